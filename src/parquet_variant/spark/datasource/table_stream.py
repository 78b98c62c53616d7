"""Streams of tables: the rows of the version at the start, then the rows that every later version appends.

An offset is a position between files: ``{"version": v}`` after all files of version `v`, and with ``"files": n`` after
the first `n` files of the next version. While the version at the start is read, ``"snapshot"`` names it and `n` counts
its files. This module implements what all table formats share: `delta_stream` and `iceberg_stream` find the versions
and their files, and a `TableReader` reads the files of a micro-batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.read_schema import LimitedStreamReader
from parquet_variant.spark.datasource.table_reader import TableReader, Version
from parquet_variant.tables.table_scan import File

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

Offset: TypeAlias = dict[str, int]
# The version of an offset before the version at the start, whose files are read as a whole.
_BEFORE_SNAPSHOT = -1


class TableStreamReader(LimitedStreamReader, Generic[Version, File]):
    """``spark.readStream.format("variant")`` on a table.

    The stream starts with all rows of the table, or at ``startingVersion``. Then it delivers every appended row once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch, which has at least one file. A version that
    removes rows ends the query with an error, unless ``skipChangeCommits`` skips it. With the trigger ``availableNow``
    the query ends with the version that was the newest when it started.

    Versions have numbers, which increase from commit to commit.
    """

    def __init__(self, options: ReadOptions, reader: TableReader[Version, File]) -> None:
        super().__init__(options)
        self.reader = reader
        self.last_version: int | None = None

    @abstractmethod
    def newest(self) -> Version:
        """Load the newest version of the table."""

    @abstractmethod
    def number(self, current: Version) -> int:
        """Return the number of a version."""

    @abstractmethod
    def at(self, newest: Version, number: int) -> Version:
        """Return the version of a number."""

    @abstractmethod
    def files_of(self, current: Version) -> list[File]:
        """Return all files of a version, always in the same order."""

    @abstractmethod
    def before(self, newest: Version, starting_version: int) -> int:
        """Return the number of the version before the one that ``startingVersion`` names."""

    @abstractmethod
    def versions(self, newest: Version, start: int, end: int | None = None) -> Sequence[int]:
        """Return the numbers of the versions after `start` and up to `end`, in order."""

    @abstractmethod
    def appended(self, newest: Version, number: int) -> list[File]:
        """Return the files whose rows a version appends.

        Raises `TableError` for a version that removes rows, unless such versions are skipped.
        """

    def initialOffset(self) -> Offset:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files, or before ``startingVersion``."""
        first = self.options.starting_version
        return {"version": _BEFORE_SNAPSHOT if first is None else self.before(self.newest(), first)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the newest version, with which the query ends."""
        self.last_version = self.number(self.newest())

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the offset at the end of the next micro-batch, or after the newest version in Spark 4.1."""
        newest = self.newest()
        last = self.number(newest) if self.last_version is None else self.last_version
        batch_limit = self.batch_limit(limit)
        if start is not None and last <= start["version"]:
            return start
        if start is None:
            # A stream may start at a version that does not exist yet.
            return {"version": max(last, self.initialOffset()["version"])}
        if batch_limit.is_unlimited:
            return {"version": last}
        offset, files, size = start, 0, 0
        for next_offset, file in self._files(newest, start, {"version": last}):
            files, size = files + 1, size + file.size
            if not batch_limit.admits(files, size):
                return offset
            offset = next_offset
        return {"version": last}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        if start == end:
            return []
        newest = self.newest()
        if start == {"version": _BEFORE_SNAPSHOT} and end.keys() == {"version"}:
            # Only files that may match the filter.
            return self.reader.partitions_of(self.at(newest, end["version"]))
        files = [file for _, file in self._files(newest, start, end)]
        return self.reader.partitions_of(self.at(newest, self._last_read_version(newest, end)), files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _files(self, newest: Version, start: Offset, end: Offset) -> Iterator[tuple[Offset, File]]:
        """Yield the files between two offsets, with the offset after each file."""
        version, skip = start["version"], start.get("files", 0)
        if version == _BEFORE_SNAPSHOT:
            first = start.get("snapshot", end.get("snapshot", end["version"]))
            files = self.files_of(self.at(newest, first))
            stop = end.get("files", 0) if end["version"] == _BEFORE_SNAPSHOT else len(files)
            for number in range(skip, stop):
                is_last = number + 1 == len(files)
                after = (
                    {"version": first}
                    if is_last
                    else {"version": _BEFORE_SNAPSHOT, "snapshot": first, "files": number + 1}
                )
                yield after, files[number]
            version, skip = first, 0
            if end["version"] == _BEFORE_SNAPSHOT:
                return
        for number in self.versions(newest, version, self._last_read_version(newest, end)):
            appended = self.appended(newest, number)
            stop = end["files"] if number > end["version"] else len(appended)
            for position in range(skip, stop):
                is_last = position + 1 == len(appended)
                after = {"version": number} if is_last else {"version": version, "files": position + 1}
                yield after, appended[position]
            version, skip = number, 0

    def _last_read_version(self, newest: Version, end: Offset) -> int:
        """Return the newest version from which a micro-batch reads files."""
        if end["version"] == _BEFORE_SNAPSHOT:
            return end["snapshot"]
        return self.versions(newest, end["version"])[0] if "files" in end else end["version"]
