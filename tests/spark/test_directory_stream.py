"""A directory as a stream: every file once, whole and committed, over restarts of the query."""

from __future__ import annotations

from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.io.staging import StagedFile, open_staging
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.reading import read_schema
from parquet_variant.spark.datasource.streams import DirectoryStreamReader

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Spark 4.1 has no read limits")
ReadAllAvailable = limits.ReadAllAvailable
ReadMaxBytes = limits.ReadMaxBytes
ReadMaxFiles = limits.ReadMaxFiles
_ALL = ReadAllAvailable()


def _commit(dest: Path, *values: int) -> None:
    staging = open_staging(str(dest), "append").begin()
    staging.commit([_staged(staging, values)])


def _staged(staging, values) -> StagedFile:
    file = StagedFile(staging.attempt(0), staging.file_name(0))
    pv.write(file.path, pv.from_python([{"n": value} for value in values]))
    return file


@pytest.fixture
def reader(tmp_path):
    _commit(tmp_path / "in", 1, 2)
    options = ReadOptions.of({"path": str(tmp_path / "in"), "columns": '{"n": ["$.n", "bigint"]}'})
    return DirectoryStreamReader(options, read_schema(options))


def _batch(reader, start, end) -> list[int]:
    return sorted(
        n for part in reader.partitions(start, end) for rows in reader.read(part) for n in rows["n"].to_pylist()
    )


def test_each_file_comes_once_and_a_batch_is_the_same_again(reader, tmp_path):
    start = reader.initialOffset()
    first = reader.latestOffset(start, _ALL)
    assert _batch(reader, start, first) == [1, 2]
    assert reader.latestOffset(first, _ALL) == first
    _commit(tmp_path / "in", 3)
    assert _batch(reader, start, first) == [1, 2]
    second = reader.latestOffset(first, _ALL)
    assert _batch(reader, first, second) == [3]
    again = DirectoryStreamReader(reader.options, reader.reader.schema)
    assert _batch(again, first, second) == [3]
    assert _batch(again, second, second) == []


def test_what_is_not_committed_is_not_seen(reader, tmp_path):
    from parquet_variant.io.commit_journal import Journal

    first = reader.latestOffset(reader.initialOffset(), _ALL)
    staging = open_staging(str(tmp_path / "in"), "append").begin()
    file = _staged(staging, [3])
    import pyarrow.fs as pafs

    Journal((file.name,)).publish(pafs.LocalFileSystem(), staging.directory)
    Path(file.path).rename(tmp_path / "in" / file.name)
    assert reader.latestOffset(first, _ALL) == first
    Path(staging.directory, "prepared.json").rename(Path(staging.directory, "committed.json"))
    assert _batch(reader, first, reader.latestOffset(first, _ALL)) == [3]


def test_as_many_files_at_a_time_as_was_said(reader, tmp_path):
    for value in (3, 4):
        _commit(tmp_path / "in", value)
    found, end = [], reader.initialOffset()
    for _ in range(4):
        start, end = end, reader.latestOffset(end, ReadMaxFiles(1))
        found.append(_batch(reader, start, end))
    assert found == [[1, 2], [3], [4], []]
    limited = ReadOptions.of({"path": str(tmp_path / "in"), "maxFilesPerTrigger": "2"})
    assert DirectoryStreamReader(limited, reader.reader.schema).getDefaultReadLimit() == ReadMaxFiles(2)


def test_a_batch_is_limited_by_bytes_and_has_at_least_one_file(reader, tmp_path):
    for value in (3, 4):
        _commit(tmp_path / "in", value)
    size = max(file.stat().st_size for file in (tmp_path / "in").glob("*.parquet"))
    for limit, batches in ((1, [[1, 2], [3], [4]]), (2 * size, [[1, 2, 3], [4]]), (10 * size, [[1, 2, 3, 4]])):
        options = ReadOptions.of({"path": str(tmp_path / "in"), "maxBytesPerTrigger": str(limit)}, stream=True)
        limited = DirectoryStreamReader(options, reader.reader.schema)
        assert limited.getDefaultReadLimit() == ReadMaxBytes(limit)
        found, end = [], reader.initialOffset()
        while (new := limited.latestOffset(end, ReadMaxBytes(limit))) != end:
            found.append(_batch(reader, end, new))
            end = new
        assert found == batches


def test_spark_4_1_asks_only_for_the_newest_offset(reader, tmp_path):
    first = reader.latestOffset()
    _commit(tmp_path / "in", 3)
    second = reader.latestOffset()
    assert _batch(reader, reader.initialOffset(), first) == [1, 2]
    assert _batch(reader, first, second) == [3]
    pv.open(tmp_path / "in").optimize()
    with pytest.raises(VariantFileError, match="compacted"):
        reader.partitions(second, reader.latestOffset())


def test_now_means_now(reader, tmp_path):
    reader.prepareForTriggerAvailableNow()
    _commit(tmp_path / "in", 3)
    first = reader.latestOffset(reader.initialOffset(), _ALL)
    assert _batch(reader, reader.initialOffset(), first) == [1, 2]
    assert reader.latestOffset(first, _ALL) == first


def test_an_empty_directory_has_nothing_yet(reader, tmp_path):
    for file in (tmp_path / "in").glob("*.parquet"):
        file.unlink()
    start = reader.initialOffset()
    assert reader.latestOffset(start, _ALL) == start


def test_rows_that_were_seen_do_not_come_again_from_compacted_files(reader, tmp_path):
    first = reader.latestOffset(reader.initialOffset(), _ALL)
    for value in (3, 4):
        _commit(tmp_path / "in", value)
    pv.open(tmp_path / "in").optimize()
    with pytest.raises(VariantFileError, match="compacted") as raised:
        reader.latestOffset(first, _ALL)
    assert raised.value.reason == "not-append"
    fresh = reader.latestOffset(reader.initialOffset(), _ALL)
    assert _batch(reader, reader.initialOffset(), fresh) == [1, 2, 3, 4]


def test_a_file_that_is_removed_before_it_is_read_is_reported(reader, tmp_path):
    start = reader.initialOffset()
    first = reader.latestOffset(start, _ALL)
    file = next((tmp_path / "in").glob("*.parquet"))
    file.rename(tmp_path / "gone")
    with pytest.raises(VariantFileError, match=r"part-.* removed before"):
        reader.partitions(start, first)


def test_a_stream_of_a_directory_is_exactly_once_over_restarts(spark, tmp_path):
    spark.dataSource.register(pv.spark.VariantDataSource)
    for day in (1, 2):
        _commit(tmp_path / "in" / f"day={day}", day)

    def run() -> list[tuple[int, int]]:
        stream = spark.readStream.format("variant").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
        query = stream.writeStream.format("variant").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = query.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()
        found = pv.open(tmp_path / "out").scan({"n": ("$.n", "int"), "day": "day"}).to_arrow()
        return sorted(zip(found["n"].to_pylist(), found["day"].to_pylist(), strict=True))

    assert run() == [(1, 1), (2, 2)]
    _commit(tmp_path / "in" / "day=2", 3)
    assert run() == [(1, 1), (2, 2), (3, 2)]
    assert run() == [(1, 1), (2, 2), (3, 2)]
