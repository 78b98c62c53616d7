"""Iceberg tables in the data source: snapshots, the files that each appends, and the commit of new files.

The package `tables.iceberg` prunes files, applies deletes, writes and commits. The number of a version in a stream is
the sequence number of its snapshot. `tables` has what all table formats share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType, VariantType

from parquet_variant.errors import IcebergError
from parquet_variant.spark.arrow_variant import to_arrow_schema, with_marked_variants
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.tables import (
    Batch,
    TableBatchWriter,
    TableReader,
    TableStreamReader,
    TableStreamWriter,
    TableTaskWriter,
)
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import find_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata.manifests import Status
from parquet_variant.tables.iceberg.metadata.partitioning import spec_of
from parquet_variant.tables.iceberg.metadata.schema import METADATA_COLUMNS
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, SnapshotInfo
from parquet_variant.tables.iceberg.metadata.updates import change_of
from parquet_variant.tables.iceberg.reading.data_files import read_file
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.scan import IcebergScan, scan
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot, snapshot
from parquet_variant.tables.iceberg.writing.commit import check_writable
from parquet_variant.tables.iceberg.writing.create import TableDefinition, new_table
from parquet_variant.tables.iceberg.writing.write import commit_files
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan, plan_write
from parquet_variant.tables.schema import arrow_field


def table_columns(options: ReadOptions) -> pa.Schema:
    """Return the columns of the table, and the metadata columns if the options name columns."""
    current = load_snapshot(options)
    fields = list(current.schema.fields)
    if options.paths is not None:
        fields += [field for name, field in METADATA_COLUMNS.items() if current.schema.get(name) is None]
    return pa.schema([arrow_field(field) for field in fields])


class IcebergReader(TableReader[Snapshot, TableFile]):
    """``spark.read.format("variant")`` on an Iceberg table."""

    def load(self) -> Snapshot:
        """Return the snapshot that the options name; see `TableReader.load`."""
        return load_snapshot(self.options)

    def scan_paths(self, current: Snapshot) -> IcebergScan:
        """See `TableReader.scan_paths`."""
        columns, column = self._selection()
        return scan(current, columns, self.options.where, column=column, zone=self.options.zone)

    def scan_rows(self, current: Snapshot) -> IcebergScan:
        """See `TableReader.scan_rows`."""
        return IcebergScan(current, ())

    def read_rows(self, scan: IcebergScan, files: Sequence[TableFile]) -> Iterator[pa.Table]:
        """See `TableReader.read_rows`."""
        fields = scan.current.schema.select(self.schema.fieldNames()).struct
        for file in files:
            yield read_file(scan.current, file, fields)


def load_snapshot(options: ReadOptions) -> Snapshot:
    """Return the snapshot that the options of a batch name."""
    timestamp = options.timestamp
    return snapshot(
        options.sources[0],
        catalog=options.catalog,
        snapshot_id=options.version,
        timestamp=int(timestamp) if timestamp is not None and timestamp.isdecimal() else timestamp,
        branch=options.branch,
        tag=options.tag,
    )


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


class _IcebergTable(TableTaskWriter):
    """An Iceberg table as the target of a write."""

    base: Snapshot

    def plan_write(self, schemas: Any) -> IcebergWritePlan:
        """See `TableTaskWriter.plan_write`."""
        self.base = newest_snapshot(self._table(), self.options.branch or MAIN)
        self.uri = normal_location(self.base.table.metadata.location)
        return plan_write(self.base, schema=schemas, options=self.options.write)

    def _table(self) -> LoadedTable:
        """Return the table; a new table is planned, and created by the first commit."""
        catalog, identifier = find_table(self.options.path, self.options.catalog)
        try:
            table = catalog.load(identifier)
        except IcebergError as error:
            if error.reason != "no-such-table":
                raise
            return new_table(catalog, identifier, self._columns(), TableDefinition(tuple(self.partitioning.names)))
        check_writable(table.metadata)
        self._check_partitioned_by(table)
        return table

    def _columns(self) -> pa.Schema:
        """Return the columns of a new table: those of the DataFrame, and those extracted from paths."""
        fields = [
            StructField(field.name, VariantType() if field.name == self.frame.column else field.dataType)
            for field in self.frame.schema.fields
        ] + self.partitioning.new_fields
        return with_marked_variants(to_arrow_schema(StructType(fields)))

    def _check_partitioned_by(self, table: LoadedTable) -> None:
        """Refuse partition fields other than the table's; without the option ``partitionBy`` any are accepted."""
        if not self.partitioning.names:
            return
        spec = table.metadata.spec
        try:
            asked = spec_of(self.partitioning.names, table.metadata.schema).fields
        except IcebergError:
            asked = ()
        fields = [[(field.source_id, str(field.transform)) for field in either] for either in (asked, spec.fields)]
        if not asked or fields[0] != fields[1]:
            names = ", ".join(field.name for field in spec.fields) or "none"
            raise IcebergError(
                f"option partitionBy: the table's partition fields are {names}, not "
                f"{', '.join(self.partitioning.names)}: leave out partitionBy",
                reason="bad-option",
                file=table.name,
            )

    def commit_files(self, files: Sequence[TableFile], batch: Batch | None) -> bool:
        """See `TableTaskWriter.commit_files`."""
        if self.base.table.exists and not files and self.mode == "append":
            return True
        return commit_files(self.base, files, mode=self.mode, batch=batch).committed

    def delete_files(self, files: Sequence[TableFile]) -> None:
        """See `TableTaskWriter.delete_files`."""
        self.base.table.files.delete([file.path for file in files])


class IcebergBatchWriter(_IcebergTable, TableBatchWriter):
    """``df.write.format("variant").option("format", "iceberg")``."""


class IcebergStreamWriter(_IcebergTable, TableStreamWriter):
    """``df.writeStream.format("variant").option("format", "iceberg")``.

    Spark commits with another writer than the tasks have, so that a new table is created when the stream starts: the
    catalog may choose another location for every table that it stages.
    """

    def _table(self) -> LoadedTable:
        table = super()._table()
        return table if table.exists else table.commit(change_of())
