"""Streams of Delta tables: the rows of the version at the start, then the rows that every later version appends.

An offset is a position between files: ``{"version": v}`` after all files of version `v`, and with ``"files": n`` after
the first `n` files of the next version. While the version at the start is read, ``"snapshot"`` names it and `n` counts
its files. `delta_reader` reads the files of a micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from parquet_variant.delta.log.file_actions import iter_adds, log_lines
from parquet_variant.delta.log.segment import commit_path
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.reading.read import PLACES
from parquet_variant.errors import DeltaError
from parquet_variant.spark.datasource.delta_reader import DeltaReader
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.read_limits import LimitedStreamReader

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

Offset: TypeAlias = dict[str, int]
# The version of an offset before the version at the start, whose files are read as a whole.
_BEFORE_SNAPSHOT = -1


class DeltaStreamReader(LimitedStreamReader):
    """``spark.readStream.format("variant")`` on a Delta table.

    The stream starts with all rows of the table, or at ``startingVersion``. Then it delivers every appended row once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch, which has at least one file. A version that
    removes rows ends the query with an error. With the trigger ``availableNow`` the query ends with the version that
    was the newest when it started.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options)
        self.reader = DeltaReader(options, schema)
        self.last_version: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files, or before ``startingVersion``."""
        first = self.options.starting_version
        return {"version": _BEFORE_SNAPSHOT if first is None else first - 1}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the newest version, with which the query ends."""
        self.last_version = self._snapshot().version

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the offset at the end of the next micro-batch, or after the newest version in Spark 4.1."""
        last = self._snapshot().version if self.last_version is None else self.last_version
        batch_limit = self.batch_limit(limit)
        if start is not None and last <= start["version"]:
            return start
        if start is None:
            # A stream may start at a version that does not exist yet.
            return {"version": max(last, self.initialOffset()["version"])}
        if batch_limit.is_unlimited:
            return {"version": last}
        offset, files, size = start, 0, 0
        for next_offset, file in self._files(start, {"version": last}):
            files, size = files + 1, size + file.size
            if not batch_limit.admits(files, size):
                return offset
            offset = next_offset
        return {"version": last}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        if start == end:
            return []
        if start == {"version": _BEFORE_SNAPSHOT} and end.keys() == {"version"}:
            # Only files that may match the filter.
            return self.reader.partitions_of(self._snapshot(end["version"]))
        files = [file for _, file in self._files(start, end)]
        return self.reader.partitions_of(self._snapshot(self._last_read_version(end)), files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)

    def _files(self, start: Offset, end: Offset) -> Iterator[tuple[Offset, Add]]:
        """Yield the files between two offsets, with the offset after each file."""
        version, skip = start["version"], start.get("files", 0)
        if version == _BEFORE_SNAPSHOT:
            first = start.get("snapshot", end.get("snapshot", end["version"]))
            # The order of the files must not depend on checkpoints of the log.
            files = sorted(iter_adds(self._snapshot(first).files.select(PLACES)), key=lambda add: add.path)
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
        last = end["version"] + ("files" in end)
        current = self._snapshot(self._last_read_version(end))
        for number in range(version + 1, last + 1):
            appended = _appended(current, number)
            stop = end["files"] if number > end["version"] else len(appended)
            for position in range(skip, stop):
                is_last = position + 1 == len(appended)
                after = {"version": number} if is_last else {"version": number - 1, "files": position + 1}
                yield after, appended[position]
            skip = 0

    def _last_read_version(self, end: Offset) -> int:
        """Return the newest version from which a micro-batch reads files."""
        if end["version"] == _BEFORE_SNAPSHOT:
            return end["snapshot"]
        return end["version"] + ("files" in end)

    def _snapshot(self, version: int | None = None) -> Snapshot:
        return snapshot(self.options.sources[0], version=version)


def _appended(current: Snapshot, version: int) -> list[Add]:
    """Return the files whose rows a version appends; compaction appends none.

    Raises `DeltaError` for a version that removes rows, or that the log no longer contains.
    """
    try:
        actions = log_lines(current.storage.read(commit_path(version)))
    except FileNotFoundError:
        raise DeltaError(
            f"version {version} is no longer in the log: start the stream with a new checkpoint",
            reason="missing-version",
        ) from None
    for action in actions:
        if "remove" in action and action["remove"].get("dataChange", True):
            raise DeltaError(
                f"version {version} removes rows, and a stream contains only appended rows: start a new stream with "
                f"startingVersion={version + 1}",
                reason="not-append",
            )
    adds = [Add.from_dict({"dataChange": True} | action["add"]) for action in actions if "add" in action]
    return [add for add in adds if add.data_change]
