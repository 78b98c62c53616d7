"""Streams of directories of Parquet files: the existing files, then every new file once.

An offset is the set of the files that were read. The commit journal decides which files are visible during a commit,
and `batch_reader` reads the rows.
"""

from __future__ import annotations

import base64
import posixpath
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource, locate
from parquet_variant.io.staging import COMPACTED
from parquet_variant.spark.datasource.batch_reader import BatchReader
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.read_schema import BatchLimit, LimitedStreamReader

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit


class DirectoryStreamReader(LimitedStreamReader):
    """``spark.readStream.format("variant")`` on a directory or glob.

    The first micro-batch contains all existing files. Then every committed file with a new name is read once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch to the oldest files, at least one. An offset
    lists the files that were read and still exist.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options)
        self.reader = BatchReader(options, schema)
        self.last_files: frozenset[str] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files."""
        return _offset(frozenset())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the existing files, with which the query ends."""
        self.last_files = frozenset(self._existing_files())

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the files that were read before and the new files, the oldest first; all files in Spark 4.1.

        Raises `VariantFileError` with reason ``"not-append"`` if files that were read have been compacted into new
        files.
        """
        existing = self._existing_files()
        if start is None:
            return _offset(frozenset(existing))
        read = _files(start)
        new = [path for path in existing if path not in read and (self.last_files is None or path in self.last_files)]
        self._refuse_compacted(read - existing.keys(), new)
        if not new:
            return start
        batch_limit = self.batch_limit(limit)
        if not batch_limit.is_unlimited:
            new = _oldest(existing, new, batch_limit)
        return _offset((read & existing.keys()) | frozenset(new))

    def _refuse_compacted(self, removed: frozenset[str], new: Iterable[str]) -> None:
        """Raise `VariantFileError` if a new file contains rows of removed files, which the stream has read."""
        if removed and (file := next((path for path in new if posixpath.basename(path).startswith(COMPACTED)), None)):
            raise VariantFileError(
                f"optimize has compacted files that this stream has read into {file}: start the stream with a new "
                "checkpoint (compaction of Delta tables does not affect streams)",
                reason="not-append",
                file=file,
            )

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        read, existing = _files(start), self._existing_files()
        new = _files(end) - read
        self._refuse_compacted(read - existing.keys(), new)
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


def _oldest(files: dict[str, ParquetSource], paths: list[str], limit: BatchLimit) -> list[str]:
    """Return the paths of the files that were modified first, within a limit."""
    infos = {info.path: info for info in files[paths[0]].filesystem.get_file_info(paths)}
    times = {path: info.mtime_ns or 0 for path, info in infos.items() if info.type == pafs.FileType.File}
    oldest: list[str] = []
    size = 0
    for path in sorted(paths, key=lambda path: (times.get(path, 0), path)):
        size += infos[path].size or 0 if path in times else 0
        if not limit.admits(len(oldest) + 1, size):
            break
        oldest.append(path)
    return oldest


def _offset(files: frozenset[str]) -> dict[str, Any]:
    """Return the offset as Spark stores it. The names are compressed, because they are long and similar."""
    text = "\n".join(sorted(files)).encode()
    return {"count": len(files), "files": base64.b64encode(zlib.compress(text, 9)).decode() if files else ""}


def _files(offset: dict[str, Any]) -> frozenset[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode() if offset["files"] else ""
    return frozenset(text.split("\n")) - {""}
