"""What is kept of a Vortex file between scans, and that a file that changed is never answered from it."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.files.vortex.library import CheckedSource

pytest.importorskip("vortex")

ROWS = [f'{{"a": {number}, "b": "{number % 7}"}}' for number in range(3000)]
ASKED = {"a": "$.a:bigint"}


@pytest.fixture
def reads(monkeypatch):
    """The offsets that Vortex asks for."""
    found = []
    read_at = CheckedSource.read_at
    monkeypatch.setattr(
        CheckedSource, "read_at", lambda self, at, length: found.append(at) or read_at(self, at, length)
    )
    return found


def settled(path, rows, day=1, **options):
    """A file that was written long ago."""
    pv.write(path, pv.parse_json(rows), format="vortex", mode="overwrite", **options)
    os.utime(path, (day, day))
    return path


def answers(path):
    return pv.open(path).scan(ASKED).to_arrow()["a"].to_pylist()


@pytest.mark.parametrize(
    "options", [{"schema": "a bigint, b string"}, {"schema": "a bigint", "layout": "struct"}, {"layout": "variant"}]
)
def test_a_file_that_stays_as_it_was_is_read_once(tmp_path, monkeypatch, reads, options):
    monkeypatch.setattr("parquet_variant.files.parquet.format.footer_cache.SETTLED_NS", 0)
    path = settled(tmp_path / "a.vortex", ROWS, **options)
    assert answers(path) == list(range(3000))
    assert reads
    reads.clear()
    assert answers(path) == list(range(3000))
    assert not reads


def test_a_file_that_was_written_again_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr("parquet_variant.files.parquet.format.footer_cache.SETTLED_NS", 0)
    for day in range(1, 20):
        path = settled(tmp_path / "a.vortex", [f'{{"a": {day}}}'], day, schema="a bigint")
        assert answers(path) == [day]
        assert answers(path) == [day]


def test_a_file_that_changes_before_a_scan_runs_is_read_again_and_is_an_error_for_the_plan_alone(tmp_path):
    # So long that its beginning is not read with its end.
    long = [f'{{"a": {number}, "c": "{os.urandom(200).hex()}"}}' for number in range(4000)]
    path = settled(tmp_path / "a.vortex", long, schema="a bigint, c string", compact=False)
    scan, scan_in_batches = pv.open(path).scan(ASKED), pv.open(path).scan(ASKED)
    settled(path, ROWS[:2000], 2, schema="a bigint")
    plan = scan_in_batches.plan
    with pytest.raises(pv.VariantFileError, match="changed while it was read") as caught:
        list(plan.batches())
    assert scan.to_arrow()["a"].to_pylist() == list(range(2000))
    assert [a for part in scan_in_batches.batches() for a in part["a"].to_pylist()] == list(range(2000))
    assert caught.value.reason == "files-changed"
    assert len(answers(path)) == 2000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are listed on Linux only")
def test_no_descriptor_stays_open(tmp_path):
    path = settled(tmp_path / "a.vortex", ROWS, schema="a bigint")
    answers(path)
    held = [item.readlink() for item in Path("/proc/self/fd").glob("*") if item.is_symlink()]
    assert path not in held


def test_a_column_that_is_not_a_variant_is_not_taken_for_one(tmp_path):
    path = tmp_path / "a.vortex"
    pv.write(path, {"v": pv.parse_json(ROWS), "id": pa.array(range(len(ROWS)))}, format="vortex")
    with pytest.raises(pv.VariantFileError, match="'id' is not a Variant column") as caught:
        pv.open(path).scan(ASKED, column="id")
    assert caught.value.reason == "no-such-column"
