"""`optimize` on a directory: small files are joined and re-shredded where that saves space; no row changes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.io.staging import Staging

OLD = "id bigint, kind string, gone double"


def texts(drifted: bool) -> list[str]:
    more = {"extra": 7} if drifted else {}
    return [json.dumps({"id": f"x{n}" if drifted else n, "kind": f"k{n % 3}"} | more) for n in range(300)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        columns = {"n": pa.array(range(300)), "v": pv.parse_json(texts(drifted=False))}
        pv.write(tmp_path / f"day={number % 2}/f{number}.parquet", columns, schema=OLD)
    return tmp_path


def rows(folder: Path) -> list[str | None]:
    return sorted(pv.to_json(pv.open(folder).read()).to_pylist())


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder).parent) for file in folder.rglob("*") if file.is_file())


def test_small_files_become_one_in_their_folder(folder: Path) -> None:
    before = rows(folder)
    result = pv.open(folder).optimize()
    assert (result.files_removed, result.files_added, files(folder)) == (4, 2, ["day=0", "day=1"])
    assert rows(folder) == before
    assert pv.open(folder).to_arrow().column("n").to_pylist() == [*range(300)] * 4
    assert pv.open(folder).optimize().files_removed == 0


def test_a_schema_that_fits_stays_and_dead_columns_too(folder: Path) -> None:
    result = pv.open(folder).optimize()
    assert result.schema == pv.ShreddingSchema.from_ddl(OLD)
    assert result.drift is not None
    assert [(drift.change, str(drift.path)) for drift in result.drift.drifts] == [("dead", "$['gone']")]
    assert not result.drift.pays


def test_drift_that_pays_is_shredded_again(folder: Path) -> None:
    for number in range(5):
        columns = {"n": pa.array(range(300)), "v": pv.parse_json(texts(drifted=True))}
        pv.write(folder / f"day=2/f{number}.parquet", columns)
        pv.write(folder / f"day=0/g{number}.parquet", columns, schema=OLD)
    before = rows(folder)
    judged = pv.open(folder).optimize(dry_run=True)
    assert (judged.files_removed, rows(folder)) == (0, before)
    result = pv.open(folder).optimize()
    assert result.drift is not None
    assert result.drift.pays
    assert result.drift.to_dict()["merged"] == "extra bigint, gone double, id string, kind string"
    assert {pv.ShreddingSchema.from_parquet(str(file)) for file in folder.rglob("*.parquet")} == {result.schema}
    assert rows(folder) == before


def test_a_given_schema_rewrites_what_has_another(folder: Path) -> None:
    result = pv.open(folder).optimize(schema="id bigint", file_bytes=1)
    assert (result.files_removed, result.files_added) == (4, 4)
    assert pv.open(folder).optimize(schema="id bigint", file_bytes=1).files_removed == 0


def test_a_failure_leaves_the_directory_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(folder), rows(folder)

    def fail(*_: object, **__: object) -> None:
        raise VariantFileError("no", reason="commit-failed")

    monkeypatch.setattr(Staging, "commit", fail)
    with pytest.raises(VariantFileError, match="no"):
        pv.open(folder).optimize()
    assert (files(folder), rows(folder)) == before


def test_a_path_that_is_not_a_directory_of_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VariantFileError, match="not a directory"):
        pv.open(tmp_path / "absent", format="parquet").optimize()
    pv.write(tmp_path / "table", {"v": pv.parse_json(["1"])}, format="delta")
    with pytest.raises(VariantFileError, match=r"open it with pv\.open"):
        pv.open(tmp_path / "table", format="parquet").optimize()


def test_options_are_checked_before_anything_is_read(tmp_path):
    for options in ({"writer": "nope"}, {"compression": "nope"}, {"unknown": 1}):
        with pytest.raises(pv.VariantError) as caught:
            pv.open(tmp_path / "not there", format="parquet").optimize(**options)
        assert caught.value.reason == "bad-option"
