"""Typed columns from a table's Variants: pruning of files by the log, then of row groups, then of leaf columns.

Owns the columns of a data file: deletion vectors, partition columns, column mapping. Leaves the query to
`tables.table_scan`, and the choice of files to `pruning`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import pyarrow as pa

from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.scanning.scan_report import ScanReport
from parquet_variant.io.parallel import thread_count
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.selection import Selected
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.keywords import with_keywords
from parquet_variant.tables.columns import align_column, by_field_id, by_name, unchanged
from parquet_variant.tables.delta.file_locations import relative_path
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.snapshot import Snapshot, SnapshotKeywords, TableLike, snapshot
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.reading.pruning import Pruned, prune_files
from parquet_variant.tables.delta.reading.read import PLACES, live_rows
from parquet_variant.tables.partitions import partition_array
from parquet_variant.tables.schema import Field, Place, fields_at
from parquet_variant.tables.storage import LocalStorage
from parquet_variant.tables.table_scan import ColumnOfRows, TableScan, TableScanReport


@dataclass(frozen=True)
class DeltaScanReport(TableScanReport):
    """The files, row groups, columns and bytes of a table that a scan reads.

    Parameters
    ----------
    version
        The table's version.
    """

    version: int
    STATISTICS: ClassVar[str] = "statistics of the log"

    def __str__(self) -> str:
        return f"version     {self.version}\n{super().__str__()}"


@dataclass(frozen=True, repr=False)
class DeltaScan(TableScan[Add]):
    """A query over a table, made by `scan`; it reads only the log until rows are requested."""

    current: Snapshot

    @cached_property
    def pruned(self) -> Pruned:
        """The files that may hold a match, according to the log."""
        if not self.skipping:
            return Pruned(self.current.files, self.current.num_files)
        return prune_files(
            self.current, self.predicate, {column.name: column for column in self.every_column}, self.place
        )

    def _files(self) -> Iterator[Add]:
        return iter_adds(self.pruned.files.select(PLACES))

    def _is_local(self) -> bool:
        return isinstance(self.current.storage, LocalStorage)

    def _open(self, file: Add) -> OpenFile:
        filesystem, path = self.current.storage.filesystem(relative_path(self.current.storage, file.path))
        return open_file(ParquetSource(path, filesystem, file.size))

    def _columns(self, file: Add, opened: OpenFile) -> _FileColumns:
        return _FileColumns(self.current, file, opened)

    def _report(self, inside: ScanReport) -> DeltaScanReport:
        pruned = self.pruned
        return DeltaScanReport(pruned.total, pruned.by_partition, pruned.by_statistics, inside, self.current.version)

    def _snapshot_for_tasks(self) -> Snapshot:
        return self.current.without_files()


@dataclass(frozen=True)
class _FileColumns:
    """The columns of an open data file; implements `TableFileColumns`."""

    current: Snapshot
    add: Add
    opened: OpenFile

    def stored_field(self, selected: Selected) -> pa.Field | None:
        """See `TableFileColumns`."""
        f = self._field(selected)
        arrow = self.opened.arrow_schema
        index = -1 if self._is_partition(f) else self._match(arrow, f)
        return None if index < 0 else arrow.field(index)

    def variant_name(self, place: Place) -> str | None:
        """See `TableFileColumns`."""
        names = []
        fields: pa.Schema | pa.DataType = self.opened.arrow_schema
        for f in fields_at(self.current.schema, place):
            index = self._match(fields, f)
            if index < 0:
                return None
            names.append(fields.field(index).name)
            fields = fields.field(index).type
        return ".".join(names)

    def needs_positions(self, missing: Sequence[Selected]) -> bool:
        """Return whether the file has deleted rows."""
        return self.add.deletion_vector is not None

    def complete(self, missing: Sequence[Selected]) -> tuple[Mask | None, Mapping[str, ColumnOfRows]]:
        """Return the rows that the deletion vector keeps, and the partition columns."""
        columns: dict[str, ColumnOfRows] = {}
        for selected in missing:
            f = self._field(selected)
            if self._is_partition(f):
                columns[selected.name] = self._partition_column(f)
        return live_rows(self.current, self.add.deletion_vector, self.opened.rows), columns

    def converted(self, column: pa.Array, selected: Selected) -> pa.Array:
        """See `TableFileColumns`."""
        f = self._field(selected)
        return align_column(column, f.type, self._match, unchanged, (f.name,))

    def _field(self, selected: Selected) -> Field:
        f = self.current.schema.get(selected.stored_name)
        assert f is not None
        return f

    def _is_partition(self, f: Field) -> bool:
        return f.name.lower() in {name.lower() for name in self.current.partition_columns}

    def _partition_column(self, f: Field) -> ColumnOfRows:
        value = self.add.partition_values.get(f.physical_name)
        return lambda start, count: partition_array(value, f.type, count)

    def _match(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        match = by_field_id if self.current.column_mapping == "id" else by_name
        return match(fields, f)


@with_keywords(SnapshotKeywords, snapshot)
def scan(
    table: TableLike,
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    skipping: bool = True,
    zone: str = "UTC",
    threads: int | None = None,
    **at: Unpack[SnapshotKeywords],
) -> DeltaScan:
    """Plan a query by path over a table; files that cannot hold a match are not opened; see `Table.scan`."""
    thread_count(threads)
    current = snapshot(table, **at)
    return DeltaScan.plan(
        current, current.schema, columns, where, column, skipping=skipping, zone=zone, threads=threads
    )
