"""A Delta table as a stream: every row once, within the limits of a micro-batch, over restarts of the query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType, VariantType

import parquet_variant as pv
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.reading import read_schema
from parquet_variant.spark.datasource.streams import DeltaStreamReader

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.1 has no read limits")
ReadAllAvailable = limits.ReadAllAvailable
ReadMaxBytes = limits.ReadMaxBytes
ReadMaxFiles = limits.ReadMaxFiles
SupportsTriggerAvailableNow = limits.SupportsTriggerAvailableNow
_ALL = ReadAllAvailable()


def _append(table: Path, *files: list[int]) -> None:
    """Append the files in one version."""
    if not (table / "_delta_log").exists():
        pv.create(table, StructType().add("v", VariantType()).json())
    plan = pv.open(table).plan()
    adds = [add for values in files for add in plan.write({"v": pv.from_python([{"n": n} for n in values])})]
    pv.open(table).commit_files(adds)


def _reader(table: Path, **options: Any) -> DeltaStreamReader:
    parsed = ReadOptions.of({"path": str(table), "columns": '{"n": ["$.n", "bigint"]}', **options}, stream=True)
    return DeltaStreamReader(parsed, read_schema(parsed))


def _rows(reader: DeltaStreamReader, start: Any, end: Any) -> list[int]:
    return sorted(
        n for part in reader.partitions(start, end) for rows in reader.read(part) for n in rows["n"].to_pylist()
    )


def _run(table: Path, start: Any = None, **options: Any) -> tuple[list[list[int]], Any]:
    """Run micro-batches until nothing is new; each is read twice, the second time by a restarted query."""
    reader = _reader(table, **options)
    limit = reader.getDefaultReadLimit()
    start = reader.initialOffset() if start is None else start
    batches = []
    while (end := reader.latestOffset(start, limit)) != start:
        batches.append(_rows(reader, start, end))
        assert _rows(_reader(table, **options), start, end) == batches[-1]
        start = end
    return batches, start


@pytest.fixture
def table(tmp_path: Path) -> Path:
    table = tmp_path / "t"
    _append(table, [1], [2], [3])
    _append(table, [4], [5])
    return table


@pytest.mark.parametrize("most", [None, 1, 2, 3, 4, 100])
def test_every_row_comes_once_within_the_limit(table: Path, most: int | None) -> None:
    options = {} if most is None else {"maxFilesPerTrigger": str(most)}
    batches, end = _run(table, **options)
    assert sorted([n for batch in batches for n in batch]) == [1, 2, 3, 4, 5]
    assert max(map(len, batches)) <= (most or 5)
    assert end == {"version": 2}
    _append(table, [6], [7], [8])
    pv.open(table).set_properties({"delta.logRetentionDuration": "interval 60 days"})
    _append(table, [9])
    more, end = _run(table, end, **options)
    assert [n for batch in more for n in batch] == [6, 7, 8, 9]
    assert max(map(len, more)) <= (most or 4)
    assert end == {"version": 5}
    assert _run(table, end, **options) == ([], end)


def test_rows_that_are_appended_while_the_first_version_is_read_come_once(table: Path) -> None:
    reader = _reader(table, maxFilesPerTrigger="2")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxFiles(2))
    first = _rows(reader, start, end)
    _append(table, [6])
    assert _rows(reader, start, end) == first
    batches, _ = _run(table, end, maxFilesPerTrigger="2")
    assert sorted([*first, *(n for batch in batches for n in batch)]) == [1, 2, 3, 4, 5, 6]


def test_a_batch_is_limited_by_bytes_and_has_at_least_one_file(table: Path) -> None:
    size = max(pv.open(table).snapshot.files["size"].to_pylist())
    for limit, files in ((1, 1), (size, 1), (2 * size, 2), (100 * size, 5)):
        batches, _ = _run(table, maxBytesPerTrigger=str(limit))
        assert sorted([n for batch in batches for n in batch]) == [1, 2, 3, 4, 5]
        assert max(map(len, batches)) == files
    batches, _ = _run(table, maxBytesPerTrigger="10g", maxFilesPerTrigger="2")
    assert max(map(len, batches)) == 2
    assert isinstance(_reader(table, maxBytesPerTrigger="10k").getDefaultReadLimit(), ReadMaxBytes)


def test_a_stream_starts_at_a_version(table: Path) -> None:
    assert _run(table, startingVersion="2", maxFilesPerTrigger="1")[0] == [[4], [5]]
    assert _run(table, startingVersion="1")[0] == [[1, 2, 3, 4, 5]]
    assert _run(table, startingVersion="3") == ([], {"version": 2})


def test_available_now_ends_with_the_version_at_the_start(table: Path) -> None:
    reader = _reader(table, maxFilesPerTrigger="2")
    assert isinstance(reader, SupportsTriggerAvailableNow)
    reader.prepareForTriggerAvailableNow()
    _append(table, [6])
    start, rows = reader.initialOffset(), []
    while (end := reader.latestOffset(start, ReadMaxFiles(2))) != start:
        rows += _rows(reader, start, end)
        start = end
    assert sorted(rows) == [1, 2, 3, 4, 5]
    assert _run(table, start)[0] == [[6]]


def test_offsets_of_earlier_checkpoints_are_read(table: Path) -> None:
    reader = _reader(table)
    assert _rows(reader, {"version": -1}, {"version": 1}) == [1, 2, 3]
    assert _rows(reader, {"version": 1}, {"version": 2}) == [4, 5]


def test_a_version_that_removes_rows_ends_the_stream(table: Path) -> None:
    pv.open(table).delete("v:n::int = 1")
    reader = _reader(table)
    with pytest.raises(pv.DeltaError, match="startingVersion=4"):
        reader.partitions({"version": 2}, reader.latestOffset({"version": 2}, _ALL))
    _append(table, [6])
    assert _run(table, {"version": 2}, skipChangeCommits="true")[0] == [[6]]


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
@pytest.mark.parametrize("option", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_limits_must_be_positive(table: Path, option: str, value: str) -> None:
    with pytest.raises(pv.VariantError, match=option):
        _reader(table, **{option: value})
