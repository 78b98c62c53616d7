"""A directory of Parquet files as a stream: the files that are there, then each new one once.

Owns the offsets (which files were seen) and what a micro-batch holds. Which files count in the middle of a commit says
the commit journal; the rows of a file are `batch_reader`'s.
"""

from __future__ import annotations

import base64
import posixpath
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from parquet_variant.errors import VariantFileError
from parquet_variant.io.staging import COMPACTED
from parquet_variant.parquet.format.files import ParquetSource, locate
from parquet_variant.spark.datasource.batch_reader import BatchReader
from parquet_variant.spark.datasource.options import ReadOptions


class DirectoryStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """``spark.readStream.format("variant")`` on a directory or glob.

    The first batch is what is there, or the oldest ``maxFilesPerTrigger`` files of it; then every file whose name was
    not there before comes once, whole and committed. An offset lists the files that were seen and are still there.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.reader = BatchReader(options, schema)
        self.last: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Before everything."""
        return _offset(frozenset())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """As many files as ``maxFilesPerTrigger`` says."""
        most = self.options.max_files
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Take note of the files that are there now: the query ends with them."""
        self.last = frozenset(self._there())

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark's name
        """The files seen before and the new ones, the oldest first.

        Raises `VariantFileError` with reason ``"not-append"`` if files that were seen have been put together into new
        ones.
        """
        seen, there = _files(start), self._there()
        new = [path for path in there if path not in seen and (self.last is None or path in self.last)]
        gone = seen - there.keys()
        if gone and (file := next((path for path in new if posixpath.basename(path).startswith(COMPACTED)), None)):
            raise VariantFileError(
                f"{file} holds rows of files that this stream has read, put together by optimize: start the stream "
                "with a new checkpoint; of a Delta table, compaction changes no stream",
                reason="not-append",
                file=file,
            )
        if not new:
            return start
        if isinstance(limit, ReadMaxFiles):
            new = _oldest(there, new)[: limit.max_files]
        return _offset((seen - gone) | frozenset(new))

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """The files of a micro-batch; the same whenever it is asked for."""
        new, there = _files(end) - _files(start), self._there()
        if gone := sorted(new - there.keys()):
            raise VariantFileError(
                f"{gone[0]} is to be read by this stream, and is no longer there: start it with a new checkpoint",
                reason="no-such-file",
                file=gone[0],
            )
        return self.reader.partitions_of_files([there[path] for path in sorted(new)])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _there(self) -> dict[str, ParquetSource]:
        try:
            return {source.path: source for source in locate(self.options.sources)}
        except VariantFileError as error:
            if error.reason != "no-files":
                raise
            return {}


def _oldest(there: dict[str, ParquetSource], paths: list[str]) -> list[str]:
    """The paths in the order in which their files were last written."""
    system = there[paths[0]].filesystem
    times = {info.path: info.mtime_ns or 0 for info in system.get_file_info(paths) if info.type == pafs.FileType.File}
    return sorted(paths, key=lambda path: (times.get(path, 0), path))


def _offset(files: frozenset[str]) -> dict[str, Any]:
    """What Spark keeps: names are long and alike, so they are compressed."""
    text = "\n".join(sorted(files)).encode()
    return {"count": len(files), "files": base64.b64encode(zlib.compress(text, 9)).decode() if files else ""}


def _files(offset: dict[str, Any]) -> frozenset[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode() if offset["files"] else ""
    return frozenset(text.split("\n")) - {""}
