"""Streams of directories of Parquet files: the existing files, then every new file once.

An offset is the set of the files that were read. The commit journal decides which files are visible during a commit,
and `batch_reader` reads the rows.
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

    The first micro-batch contains all existing files, or the oldest ``maxFilesPerTrigger`` of them. Then every
    committed file with a new name is read once. An offset lists the files that were read and still exist.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.reader = BatchReader(options, schema)
        self.last_files: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files."""
        return _offset(frozenset())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - the name in Spark's interface
        """Return the limit from the option ``maxFilesPerTrigger``."""
        max_files = self.options.max_files
        return ReadAllAvailable() if max_files is None else ReadMaxFiles(max_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the existing files, with which the query ends."""
        self.last_files = frozenset(self._existing_files())

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - the name in Spark's interface
        """Return the files that were read before and the new files, the oldest first.

        Raises `VariantFileError` with reason ``"not-append"`` if files that were read have been compacted into new
        files.
        """
        read, existing = _files(start), self._existing_files()
        new = [path for path in existing if path not in read and (self.last_files is None or path in self.last_files)]
        removed = read - existing.keys()
        if removed and (file := next((path for path in new if posixpath.basename(path).startswith(COMPACTED)), None)):
            raise VariantFileError(
                f"optimize has compacted files that this stream has read into {file}: start the stream with a new "
                "checkpoint (compaction of Delta tables does not affect streams)",
                reason="not-append",
                file=file,
            )
        if not new:
            return start
        if isinstance(limit, ReadMaxFiles):
            new = _oldest(existing, new)[: limit.max_files]
        return _offset((read - removed) | frozenset(new))

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        new, existing = _files(end) - _files(start), self._existing_files()
        if missing := sorted(new - existing.keys()):
            raise VariantFileError(
                f"{missing[0]} was removed before this stream read it: start the stream with a new checkpoint",
                reason="no-such-file",
                file=missing[0],
            )
        return self.reader.partitions_of_files([existing[path] for path in sorted(new)])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _existing_files(self) -> dict[str, ParquetSource]:
        try:
            return {source.path: source for source in locate(self.options.sources)}
        except VariantFileError as error:
            if error.reason != "no-files":
                raise
            return {}


def _oldest(files: dict[str, ParquetSource], paths: list[str]) -> list[str]:
    """Return the paths in the order of the modification times of their files."""
    filesystem = files[paths[0]].filesystem
    infos = filesystem.get_file_info(paths)
    times = {info.path: info.mtime_ns or 0 for info in infos if info.type == pafs.FileType.File}
    return sorted(paths, key=lambda path: (times.get(path, 0), path))


def _offset(files: frozenset[str]) -> dict[str, Any]:
    """Return the offset as Spark stores it. The names are compressed, because they are long and similar."""
    text = "\n".join(sorted(files)).encode()
    return {"count": len(files), "files": base64.b64encode(zlib.compress(text, 9)).decode() if files else ""}


def _files(offset: dict[str, Any]) -> frozenset[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode() if offset["files"] else ""
    return frozenset(text.split("\n")) - {""}
