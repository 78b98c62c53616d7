"""Streams of Iceberg tables: the snapshots of a branch, and the files that each appends.

The number of a version is the sequence number of its snapshot. `table_stream` implements what all table formats share.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from parquet_variant.errors import IcebergError
from parquet_variant.spark.datasource.iceberg_reader import IcebergReader
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.table_stream import TableStreamReader
from parquet_variant.tables.iceberg.metadata.manifests import Status
from parquet_variant.tables.iceberg.metadata.table_metadata import SnapshotInfo
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, snapshot


class IcebergStreamReader(TableStreamReader[Snapshot, TableFile]):
    """``spark.readStream.format("variant")`` on a branch of an Iceberg table."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        super().__init__(options, IcebergReader(options, schema))

    def newest(self) -> Snapshot:
        """See `TableStreamReader.newest`.

        Raises `IcebergError` for a table of version 1, whose snapshots have no sequence numbers.
        """
        newest = snapshot(self.options.sources[0], catalog=self.options.catalog, branch=self.options.branch)
        if newest.metadata.version < 2:
            raise IcebergError(
                "a stream requires a table of format version 2 or newer: upgrade the table with IcebergTable.upgrade",
                reason="unsupported-version",
                file=newest.table.name,
            )
        return newest

    def number(self, current: Snapshot) -> int:
        """Return the sequence number; 0 for a table without a snapshot."""
        return 0 if current.info is None else current.info.sequence_number

    def at(self, newest: Snapshot, number: int) -> Snapshot:
        """Return the snapshot of a sequence number, with the current columns of the table."""
        info = next((info for info in _line(newest) if info.sequence_number == number), None)
        if info is None and number > 0:
            raise _missing_snapshot(newest, number)
        return Snapshot(newest.table, info, newest.metadata.schema, newest.branch)

    def files_of(self, current: Snapshot) -> list[TableFile]:
        """See `TableStreamReader.files_of`."""
        return sorted(plan_files(current).files, key=lambda file: file.path)

    def before(self, newest: Snapshot, starting_version: int) -> int:
        """Return the sequence number before the snapshot whose id ``startingVersion`` is."""
        info = newest.metadata.snapshot(starting_version)
        parent = newest.metadata.snapshots.get(info.parent_id or 0)
        return info.sequence_number - 1 if parent is None else parent.sequence_number

    def versions(self, newest: Snapshot, start: int, end: int | None = None) -> Sequence[int]:
        """See `TableStreamReader.versions`.

        Raises `IcebergError` if snapshots have expired that the stream has not read, or if the branch was rolled back.
        """
        line = _line(newest)
        numbers = [info.sequence_number for info in reversed(line)]
        is_rolled_back = start not in numbers and any(
            info.sequence_number == start for info in newest.metadata.snapshots.values()
        )
        is_incomplete = bool(line) and line[-1].parent_id is not None and numbers[0] > start + 1
        if is_rolled_back or is_incomplete:
            raise _missing_snapshot(newest, start)
        return [number for number in numbers if start < number and (end is None or number <= end)]

    def appended(self, newest: Snapshot, number: int) -> list[TableFile]:
        """Return the files whose rows a snapshot appends; compaction appends none.

        Raises `IcebergError` for a snapshot that removes rows.
        """
        current = self.at(newest, number)
        assert current.info is not None
        if current.info.operation == "replace":
            return []
        if current.info.operation != "append":
            if self.options.skip_changes:
                return []
            raise IcebergError(
                f"snapshot {current.info.id} ({current.info.operation}) removes rows, and a stream contains only "
                "appended rows: set the option skipChangeCommits to true, or start a new stream with startingVersion= "
                "the id of a later snapshot",
                reason="not-append",
                file=newest.table.name,
            )
        entries = [
            entry
            for manifest in current.manifests
            if not manifest.is_deletes and manifest.added_snapshot_id == current.info.id
            for entry in current.entries(manifest, frozenset())
            if entry.status == Status.ADDED and entry.snapshot_id in (None, current.info.id)
        ]
        return sorted(map(TableFile, entries), key=lambda file: file.path)


def _line(newest: Snapshot) -> list[SnapshotInfo]:
    """Return the snapshots of the branch, the newest first."""
    return newest.metadata.ancestors(newest.snapshot_id)


def _missing_snapshot(newest: Snapshot, number: int) -> IcebergError:
    return IcebergError(
        f"the snapshot with sequence number {number}, up to which the stream has read, has expired or was rolled back: "
        "start the stream with a new checkpoint",
        reason="missing-version",
        file=newest.table.name,
    )
