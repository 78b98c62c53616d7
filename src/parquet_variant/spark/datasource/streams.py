"""Streams of the data source: new files of a directory, and rows that are appended to a table.

An offset of a directory is the set of the files that were read; the commit journal decides which files are visible
during a commit. A stream of a table has the rows of the version at the start, then the rows that every later version
appends. Its offset is a position between files: ``{"version": v}`` after all files of version `v`, and with
``"files": n`` after the first `n` files of the next version. While the version at the start is read, ``"snapshot"``
names it and `n` counts its files.
"""

from __future__ import annotations

import base64
import posixpath
import zlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from parquet_variant.errors import DeltaError, IcebergError, TableError, VariantFileError, bad_option
from parquet_variant.files.parquet.format.files import ParquetSource, locate_any
from parquet_variant.io.staging import COMPACTED
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.reading import BatchReader
from parquet_variant.tables.delta.log import snapshot as delta
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.reading.read import PLACES
from parquet_variant.tables.iceberg.metadata.manifests import Status
from parquet_variant.tables.iceberg.metadata.table_metadata import SnapshotInfo
from parquet_variant.tables.iceberg.reading import snapshot as iceberg
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import TableFile
from parquet_variant.tables.opening import open
from parquet_variant.tables.table_scan import File, TableScanTask

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    SUPPORTS_LIMITS = True
except ImportError:  # Spark 4.1
    SupportsTriggerAvailableNow = object
    SUPPORTS_LIMITS = False


# The maximum of files, and of their bytes, in one micro-batch; None if Spark sets no limit.
Limits: TypeAlias = "tuple[float, float] | None"


def _are_exceeded(limits: Limits, files: int, size: int) -> bool:
    """Return whether a micro-batch has too many files or bytes; one file is always admitted."""
    return limits is not None and files > 1 and (files > limits[0] or size > limits[1])


class LimitedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader whose options limit micro-batches."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.reader = BatchReader(options, schema)
        names = {"maxFilesPerTrigger": options.max_files, "maxBytesPerTrigger": options.max_bytes}
        option = next((name for name, value in names.items() if value is not None), None)
        if option is not None and not SUPPORTS_LIMITS:
            raise bad_option(
                f"the option {option} requires Spark 4.2 or newer, because Spark {pyspark.__version__} does not limit "
                "micro-batches of Python data sources: remove the option"
            )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - the name in Spark's interface
        """Return the limit from the options."""
        if self.options.max_files is not None:
            return ReadMaxFiles(self.options.max_files)
        return ReadAllAvailable() if self.options.max_bytes is None else ReadMaxBytes(self.options.max_bytes)

    def limits(self, limit: ReadLimit | None) -> Limits:
        """Return the limits of a micro-batch. Spark passes one limit, but the options may set both."""
        if limit is None or isinstance(limit, ReadAllAvailable):
            return None
        return (
            limit.max_files if isinstance(limit, ReadMaxFiles) else self.options.max_files or inf,
            limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes or inf,
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition; runs in a task."""
        return self.reader.read(partition)


class DirectoryStreamReader(LimitedStreamReader):
    """``spark.readStream.format("variant")`` on a directory or glob.

    The first micro-batch contains all existing files. Then every committed file with a new name is read once.
    ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` limit a micro-batch to the oldest files, at least one. An offset
    lists the files that were read and still exist.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
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
        """Return the files that were read before and the new files, the oldest first; all files in Spark 4.1."""
        existing = self._existing_files()
        if start is None:
            return _offset(frozenset(existing))
        read = _files(start)
        new = [path for path in existing if path not in read and (self.last_files is None or path in self.last_files)]
        self._refuse_compacted(read - existing.keys(), new)
        if not new:
            return start
        if (limits := self.limits(limit)) is not None:
            infos = {info.path: info for info in existing[new[0]].filesystem.get_file_info(new)}
            times = {path: info.mtime_ns or 0 for path, info in infos.items() if info.type == pafs.FileType.File}
            new.sort(key=lambda path: (times.get(path, 0), path))
            size = 0
            for count, path in enumerate(new):
                size += infos[path].size or 0 if path in times else 0
                if _are_exceeded(limits, count + 1, size):
                    del new[count:]
                    break
        return _offset((read & existing.keys()) | frozenset(new))

    def _refuse_compacted(self, removed: frozenset[str], new: Iterable[str]) -> None:
        """Raise `VariantFileError` if a new file contains rows of removed files, which the stream has read."""
        if removed and (file := next((path for path in new if posixpath.basename(path).startswith(COMPACTED)), None)):
            problem = (
                f"optimize has compacted files that this stream has read into {file}: start the stream with a new "
                "checkpoint (compaction of Delta tables does not affect streams)"
            )
            raise VariantFileError(problem, reason="not-append", file=file)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        read, existing = _files(start), self._existing_files()
        new = _files(end) - read
        self._refuse_compacted(read - existing.keys(), new)
        if missing := sorted(new - existing.keys()):
            problem = f"{missing[0]} was removed before this stream read it: start the stream with a new checkpoint"
            raise VariantFileError(problem, reason="no-such-file", file=missing[0])
        return self.reader.partitions_of_files([existing[path] for path in sorted(new)])

    def _existing_files(self) -> dict[str, ParquetSource]:
        return {source.path: source for source in locate_any(self.options.sources, ("no-files",))}


def _offset(files: frozenset[str]) -> dict[str, Any]:
    """Return the offset as Spark stores it. The names are compressed, because they are long and similar."""
    text = "\n".join(sorted(files)).encode()
    return {"count": len(files), "files": base64.b64encode(zlib.compress(text, 9)).decode() if files else ""}


def _files(offset: dict[str, Any]) -> frozenset[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode() if offset["files"] else ""
    return frozenset(text.split("\n")) - {""}


Version = TypeVar("Version")
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

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self.last_version: int | None = None

    @abstractmethod
    def _newest(self) -> tuple[Version, int]:
        """Load the newest version of the table, and return it with its number."""

    @abstractmethod
    def _version_at(self, newest: Version, number: int) -> Version:
        """Return the version of a number."""

    @abstractmethod
    def _before(self, starting_version: int) -> int:
        """Return the number of the version before the one that ``startingVersion`` names."""

    @abstractmethod
    def _versions(self, newest: Version, start: int, end: int | None = None) -> Sequence[int]:
        """Return the numbers of the versions after `start` and up to `end`, in order."""

    @abstractmethod
    def _files_of(self, newest: Version, number: int, *, is_snapshot: bool) -> list[File]:
        """Return all files of a version, or those whose rows it appends, always in the same order; raise `TableError`
        for a version that removes rows, unless such versions are skipped, and for one that expired.
        """

    def initialOffset(self) -> Offset:  # noqa: N802 - the name in Spark's interface
        """Return the offset before all files, or before ``startingVersion``."""
        first = self.options.starting_version
        return {"version": _BEFORE_SNAPSHOT if first is None else self._before(first)}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - the name in Spark's interface
        """Record the newest version, with which the query ends."""
        self.last_version = self._newest()[1]

    def latestOffset(  # noqa: N802 - the name in Spark's interface
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the offset at the end of the next micro-batch, or after the newest version in Spark 4.1."""
        newest, last = self._newest()
        last = last if self.last_version is None else self.last_version
        if start is not None and last <= start["version"]:
            return start
        if start is None:
            # A stream may start at a version that does not exist yet.
            return {"version": max(last, self.initialOffset()["version"])}
        if (limits := self.limits(limit)) is None:
            return {"version": last}
        offset, files, size = start, 0, 0
        for next_offset, file in self._files(newest, start, {"version": last}):
            files, size = files + 1, size + file.size
            if _are_exceeded(limits, files, size):
                return offset
            offset = next_offset
        return {"version": last}

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the files of a micro-batch, which are the same for every call with the same offsets."""
        if start == end:
            return []
        newest, _ = self._newest()
        if start == {"version": _BEFORE_SNAPSHOT} and end.keys() == {"version"}:
            # Only files that may match the filter.
            scan = self._scan(newest, end["version"])
            return self.reader.partitions_of(scan, scan.tasks(self.options.partition_bytes))
        scan = self._scan(newest, self._last_read_version(newest, end))
        files = (file for _, file in self._files(newest, start, end))
        return self.reader.partitions_of(scan, [TableScanTask((file,), file.size) for file in files])

    def _scan(self, newest: Version, number: int) -> Any:
        return self.reader.scan(open(self._version_at(newest, number), format=self.options.format))  # type: ignore[arg-type]

    def _files(self, newest: Version, start: Offset, end: Offset) -> Iterator[tuple[Offset, File]]:
        """Yield the files between two offsets, with the offset after each file."""
        version, skip = start["version"], start.get("files", 0)
        before, numbers = {"version": version}, list[int]()
        if version == _BEFORE_SNAPSHOT:
            version = start.get("snapshot", end.get("snapshot", end["version"]))
            before, numbers = {"version": _BEFORE_SNAPSHOT, "snapshot": version}, [version]
        if end["version"] != _BEFORE_SNAPSHOT:
            numbers += self._versions(newest, version, self._last_read_version(newest, end))
        for number in numbers:
            files = self._files_of(newest, number, is_snapshot=before["version"] == _BEFORE_SNAPSHOT)
            is_partial = "files" in end and before["version"] == end["version"]
            for position in range(skip, end["files"] if is_partial else len(files)):
                is_last = position + 1 == len(files)
                yield {"version": number} if is_last else {**before, "files": position + 1}, files[position]
            skip, before = 0, {"version": number}

    def _of_removal(self, error: type[TableError], problem: str, next_version: str) -> list[File]:
        """Return no files for a version that removes rows, or raise the error if such versions are not skipped."""
        if self.options.skip_changes:
            return []
        message = (
            f"{problem}, and a stream contains only appended rows: set the option skipChangeCommits to true, or start "
            f"a new stream with startingVersion={next_version}"
        )
        raise error(message, reason="not-append", file=self.options.sources[0])

    def _last_read_version(self, newest: Version, end: Offset) -> int:
        """Return the newest version from which a micro-batch reads files."""
        if end["version"] == _BEFORE_SNAPSHOT:
            return end["snapshot"]
        return self._versions(newest, end["version"])[0] if "files" in end else end["version"]


class DeltaStreamReader(TableStreamReader[delta.Snapshot, Add]):
    """``spark.readStream.format("variant")`` on a Delta table."""

    def _newest(self) -> tuple[delta.Snapshot, int]:
        newest = delta.snapshot(self.options.sources[0])
        return newest, newest.version

    def _version_at(self, newest: delta.Snapshot, number: int) -> delta.Snapshot:
        return newest if newest.version == number else delta.snapshot(self.options.sources[0], version=number)

    def _before(self, starting_version: int) -> int:
        return starting_version - 1

    def _versions(self, newest: delta.Snapshot, start: int, end: int | None = None) -> Sequence[int]:
        return range(start + 1, (newest.version if end is None else end) + 1)

    def _files_of(self, newest: delta.Snapshot, number: int, *, is_snapshot: bool) -> list[Add]:
        if is_snapshot:  # The order must not depend on checkpoints of the log.
            return sorted(iter_adds(self._version_at(newest, number).files.select(PLACES)), key=lambda add: add.path)
        try:
            actions = log_lines(newest.storage.read(commit_path(number)))
        except FileNotFoundError:
            problem = f"version {number} is no longer in the log: start the stream with a new checkpoint"
            raise DeltaError(problem, reason="missing-version") from None
        if any("remove" in action and action["remove"].get("dataChange", True) for action in actions):
            return self._of_removal(DeltaError, f"version {number} removes rows", str(number + 1))
        adds = [Add.from_dict({"dataChange": True} | action["add"]) for action in actions if "add" in action]
        return [add for add in adds if add.data_change]


class IcebergStreamReader(TableStreamReader[iceberg.Snapshot, TableFile]):
    """``spark.readStream.format("variant")`` on a branch of an Iceberg table."""

    def _newest(self) -> tuple[iceberg.Snapshot, int]:
        newest = iceberg.snapshot(self.options.sources[0], catalog=self.options.catalog, branch=self.options.branch)
        if newest.metadata.version < 2:  # its snapshots have no sequence numbers
            problem = (
                "a stream requires a table of format version 2 or newer: upgrade the table with IcebergTable.upgrade"
            )
            raise IcebergError(problem, reason="unsupported-version", file=newest.table.name)
        return newest, 0 if newest.info is None else newest.info.sequence_number

    def _version_at(self, newest: iceberg.Snapshot, number: int) -> iceberg.Snapshot:
        """Return the snapshot of a sequence number, with the current columns of the table."""
        info = next((info for info in _line(newest) if info.sequence_number == number), None)
        if info is None and number > 0:
            raise _missing_snapshot(newest, number)
        return iceberg.Snapshot(newest.table, info, newest.metadata.schema, newest.branch)

    def _before(self, starting_version: int) -> int:
        """Return the sequence number before the snapshot whose id ``startingVersion`` is."""
        metadata = self._newest()[0].metadata
        info = metadata.snapshot(starting_version)
        parent = metadata.snapshots.get(info.parent_id or 0)
        return info.sequence_number - 1 if parent is None else parent.sequence_number

    def _versions(self, newest: iceberg.Snapshot, start: int, end: int | None = None) -> Sequence[int]:
        line = _line(newest)
        numbers = [info.sequence_number for info in reversed(line)]
        is_rolled_back = start not in numbers and any(
            info.sequence_number == start for info in newest.metadata.snapshots.values()
        )
        is_incomplete = bool(line) and line[-1].parent_id is not None and numbers[0] > start + 1
        if is_rolled_back or is_incomplete:
            raise _missing_snapshot(newest, start)
        return [number for number in numbers if start < number and (end is None or number <= end)]

    def _files_of(self, newest: iceberg.Snapshot, number: int, *, is_snapshot: bool) -> list[TableFile]:
        current = self._version_at(newest, number)
        files = plan_files(current).files if is_snapshot else ()
        if not is_snapshot:
            info = current.info
            assert info is not None
            if info.operation == "replace":
                return []
            if info.operation != "append":
                problem = f"snapshot {info.id} ({info.operation}) removes rows"
                return self._of_removal(IcebergError, problem, " the id of a later snapshot")
            files = [
                TableFile(entry)
                for manifest in current.manifests
                if not manifest.is_deletes and manifest.added_snapshot_id == info.id
                for entry in current.entries(manifest, frozenset())
                if entry.status == Status.ADDED and entry.snapshot_id in (None, info.id)
            ]
        return sorted(files, key=lambda file: file.path)


def _line(newest: iceberg.Snapshot) -> list[SnapshotInfo]:
    """Return the snapshots of the branch, the newest first."""
    return newest.metadata.ancestors(newest.snapshot_id)


def _missing_snapshot(newest: iceberg.Snapshot, number: int) -> IcebergError:
    return IcebergError(
        f"the snapshot with sequence number {number}, up to which the stream has read, has expired or was rolled back: "
        "start the stream with a new checkpoint",
        reason="missing-version",
        file=newest.table.name,
    )


# The readers of ``spark.readStream.format("variant")`` by format.
STREAM_READERS: dict[str, type[LimitedStreamReader]] = {
    "parquet": DirectoryStreamReader,
    "delta": DeltaStreamReader,
    "iceberg": IcebergStreamReader,
}
