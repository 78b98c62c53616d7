"""An ingest into a table that is not there: one commit with its rows, or nothing, and nothing of others lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.ingestion.destinations.delta import DeltaDestination
from parquet_variant.tables.delta.log.snapshot import load_snapshot
from parquet_variant.tables.storage import open_storage


def ingest(source: Path, dest: Path, **options: Any) -> Any:
    return pv.ingest(source, dest, **options, format="delta")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.ndjson"
    path.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(100)))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.ndjson"
    path.write_text('{"n": 1}\n' * 1000 + "{bad\n")
    return path


def test_the_table_appears_with_its_rows(good: Path, tmp_path: Path) -> None:
    ingest(good, tmp_path / "t")
    assert [entry["version"] for entry in pv.open(tmp_path / "t").history()] == [0]
    assert len(pv.open(tmp_path / "t", version=0).read()) == 100


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_what_fails_leaves_nothing(bad: Path, tmp_path: Path, mode: str) -> None:
    with pytest.raises(VariantError):
        ingest(bad, tmp_path / "t", mode=mode, schema="n bigint")
    assert not (tmp_path / "t").exists()


def test_what_fails_takes_nothing_of_others_along(bad: Path, good: Path, tmp_path: Path, monkeypatch: Any) -> None:
    """Another writer makes the table, and puts files of its own there, while the ingest is at work."""
    table = tmp_path / "t"
    begin = DeltaDestination.begin

    def meanwhile(self: DeltaDestination, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        pv.write(table, {"v": pv.parse_json(['{"other": 1}'])}, format="delta")
        (table / "notes.txt").write_text("mine")

    monkeypatch.setattr(DeltaDestination, "begin", meanwhile)
    with pytest.raises(VariantError):
        ingest(bad, table, schema="n bigint")
    assert pv.open(table).read().to_pylist() == [{"other": 1}]
    assert (table / "notes.txt").read_text() == "mine"
    assert len(list(table.glob("*.parquet"))) == 1


def test_two_that_make_the_same_table(good: Path, tmp_path: Path, monkeypatch: Any) -> None:
    table = tmp_path / "t"
    commit = DeltaDestination.commit

    def raced(self: DeltaDestination, *args: Any) -> Any:
        monkeypatch.setattr(DeltaDestination, "commit", commit)
        pv.write(table, {"v": pv.parse_json(['{"n": 1}'] * 100)}, format="delta")
        return commit(self, *args)

    monkeypatch.setattr(DeltaDestination, "commit", raced)
    ingest(good, table, mode="append")
    found = load_snapshot(open_storage(table))
    assert found.num_files == len(list(table.glob("*.parquet")))
    assert len(pv.open(table).read()) == 200


def test_a_failed_append_removes_exactly_its_own_files(good: Path, bad: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    ingest(good, table)
    (table / "part-of-somebody.parquet").write_bytes(b"x")
    before = sorted(path.name for path in table.rglob("*"))
    with pytest.raises(VariantError):
        ingest(bad, table, mode="append", schema="n bigint")
    assert sorted(path.name for path in table.rglob("*")) == before
