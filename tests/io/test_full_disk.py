"""A disk that is full, and places that may not be written: an error of ours that names the place, and nothing left.

A limit on the size of files stands in for the full disk: the system refuses to write further, in the same calls.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import parquet_variant as pv

resource = pytest.importorskip("resource", reason="limits are of POSIX")


@contextmanager
def _full(size: int = 30_000) -> Iterator[None]:
    """No file may grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """Lines that do not get small."""
    noise = np.random.default_rng(1).bytes(150_000).hex()
    path = tmp_path_factory.mktemp("source") / "noise.ndjson"
    path.write_text("\n".join(f'{{"n": {n}, "noise": "{noise[n * 300 : n * 300 + 300]}"}}' for n in range(1000)) + "\n")
    return path


@pytest.fixture(scope="module")
def rows(source) -> pv.VariantArray:
    rows = pv.parse_json(source.read_text().splitlines())
    pv.write(source.with_suffix(".parquet"), rows)
    return rows


def _ways(source: Path, rows: pv.VariantArray) -> dict:
    return {
        "parquet.write": lambda dest: pv.write(dest, rows),
        "parquet.rewrite": lambda dest: pv.open(source.with_suffix(".parquet")).rewrite(dest),
        "parquet.ingest to a file": lambda dest: pv.ingest(source, dest, schema="n int", one_file=True),
        "parquet.ingest": lambda dest: pv.ingest(source, dest, schema="n int"),
        "delta.ingest": lambda dest: pv.ingest(source, dest, schema="n int", format="delta"),
        "delta.write": lambda dest: pv.write(dest, {"v": rows}, format="delta"),
        "vortex.write": lambda dest: pv.write(dest, rows, format="vortex"),
        "vortex.ingest": lambda dest: pv.ingest(source, dest, schema="n int", format="vortex"),
    }


NAMES = list(_ways(Path(), None))


@pytest.mark.parametrize("size", [2, 30_000])
@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_reported_with_the_place_and_leaves_nothing(name, size, source, rows, tmp_path):
    if name.startswith("vortex"):
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    dest = tmp_path / "out"
    # The files of an ingest are made in a directory next to the file; where there is no room for that, it is named.
    place = rf"{tmp_path}/\.out" if name == "parquet.ingest to a file" else str(dest)
    with _full(size), pytest.raises(pv.VariantError, match=place) as raised:
        _ways(source, rows)[name](dest)
    assert raised.value.reason in ("cannot-write", "commit-failed")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", NAMES)
def test_a_place_that_may_not_be_written_is_reported(name, source, rows, tmp_path):
    if name.startswith("vortex"):
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    # No directory can be made below a file, not even by root.
    (tmp_path / "file").write_text("in the way")
    dest = tmp_path / "file" / "out"
    with pytest.raises(pv.VariantError, match=str(tmp_path / "file")):
        _ways(source, rows)[name](dest)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_table_stays_as_it_was_when_the_disk_is_full(rows, tmp_path):
    pv.write(tmp_path / "t", {"v": pv.from_python([{"n": 1}])}, format="delta")
    before = sorted(tmp_path.rglob("*"))
    for act in (
        lambda: pv.write(tmp_path / "t", {"v": rows}, format="delta", mode="append"),
        lambda: pv.write(tmp_path / "t", {"v": rows}, format="delta", mode="overwrite"),
    ):
        with _full(), pytest.raises(pv.VariantError, match="cannot write"):
            act()
        assert sorted(tmp_path.rglob("*")) == before
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"n": 1}]
    with _full(100), pytest.raises(pv.VariantError, match=r"cannot write .*_delta_log"):
        pv.open(tmp_path / "t").delete()  # of all rows: nothing is written but the log
    assert pv.open(tmp_path / "t").snapshot.version == 0


@pytest.mark.parametrize("options", [{}, {"one_file": True}, {"format": "delta"}])
def test_a_disk_without_room_for_quarantined_lines_is_reported_with_the_place(options, tmp_path):
    lines = tmp_path / "lines.ndjson"
    lines.write_text('{"a": 1}\n' + "".join(f"not JSON {number}\n" for number in range(3000)))
    with _full(), pytest.raises(pv.VariantError, match="cannot write") as raised:
        pv.ingest(lines, tmp_path / "out", on_error="quarantine", **options)
    assert raised.value.reason == "cannot-write"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [lines]


@pytest.mark.parametrize("size", [2, 5_000, 20_000, 1_000_000])
@pytest.mark.parametrize("is_published", [False, True])
def test_a_publication_without_room_can_be_repeated(is_published, size, tmp_path):
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    table, catalog = tmp_path / "t", tmp_path / "t.ducklake"
    pv.write(table, {"n": np.arange(100), "v": pv.parse_json(['{"n": 1}'] * 100)}, format="delta")
    if is_published:
        pv.open(table).publish("ducklake")
    pv.open(table).append({"n": np.arange(5), "v": pv.parse_json(["1"] * 5)})
    before = catalog.read_bytes() if is_published else None
    with _full(size):
        try:
            pv.open(table).publish("ducklake")
        except pv.VariantError as error:
            assert str(catalog) in str(error)
            assert (catalog.read_bytes() if catalog.exists() else None) == before
    pv.open(table).publish("ducklake")
    assert not pv.open(table).publish("ducklake").committed
    assert {path.name for path in tmp_path.iterdir()} <= {"t", "t.ducklake", "t.ducklake.wal"}


@pytest.mark.parametrize("size", [2, 30_000])
def test_an_annotation_that_does_not_fit_is_reported_and_the_file_stays(size, rows, tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, rows)
    before = path.read_bytes()
    with _full(size), pytest.raises(pv.VariantError, match=str(path)) as raised:
        pv.open(path).annotate([])
    assert raised.value.reason == "cannot-write"
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
