"""Rows of an Iceberg table: whole rows, and typed columns of paths with pruning by manifests.

Owns the columns of a data file: delete files, metadata columns, fields that the file lacks. One file is read in
`data_files`. Leaves the query to `tables.table_scan`, and the choice of files to `planning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import IcebergError, strings_of
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource
from parquet_variant.files.parquet.scanning.scan_plan import ScanReport
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.metadata.partitioning import result_types
from parquet_variant.tables.iceberg.metadata.schema import METADATA_COLUMNS
from parquet_variant.tables.iceberg.metadata.values import partition_text
from parquet_variant.tables.iceberg.reading.data_files import (
    FileColumns,
    check_readable,
    check_rows,
    data_file_errors,
    empty_rows,
    read_file,
    with_unshredded,
)
from parquet_variant.tables.iceberg.reading.deletes import TableFile
from parquet_variant.tables.iceberg.reading.planning import PlannedFiles, QueryColumns, plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.schema import StructType
from parquet_variant.tables.table_scan import TableScan, TableScanReport, named_variant


def read_table(current: Snapshot, columns: Sequence[str] | None = None, *, threads: int | None = None) -> pa.Table:
    """Read all rows of a table; see `Table.to_arrow`."""
    fields = current.schema.struct if columns is None else current.schema.select(strings_of("columns", columns)).struct
    files = plan_files(current).files
    parts = list(in_order(lambda file: read_file(current, file, fields), files, thread_count(threads)))
    if not parts:
        return with_unshredded(empty_rows(fields.fields), fields)
    return pa.concat_tables(parts, promote_options="permissive")


def read(current: Snapshot, column: str | None = None, *, threads: int | None = None) -> VariantArray:
    """Read a Variant column of all rows; see `Table.read`."""
    column = named_variant(current.schema.struct, column, IcebergError)
    return VariantArray.from_storage(one_chunk(read_table(current, [column], threads=threads)[column]))


@dataclass(frozen=True)
class IcebergScanReport(TableScanReport):
    """The files, row groups, columns and bytes of a table that a scan reads.

    Parameters
    ----------
    snapshot_id
        The id of the snapshot; None for a table without snapshots.
    """

    snapshot_id: int | None
    STATISTICS: ClassVar[str] = "metrics of manifests"

    def __str__(self) -> str:
        return f"snapshot    {self.snapshot_id}\n{super().__str__()}"


@dataclass(frozen=True, repr=False)
class IcebergScan(TableScan[TableFile]):
    """A query over a table, made by `scan`; it reads only metadata until rows are requested."""

    current: Snapshot

    @staticmethod
    def known_columns(current: Snapshot) -> StructType:
        """Return the columns of the table, then the metadata columns."""
        names = current.schema.names
        extra = tuple(f for name, f in METADATA_COLUMNS.items() if name not in names)
        return StructType((*current.schema.fields, *extra))

    @cached_property
    def pruned(self) -> PlannedFiles:
        """The files that may hold a match, according to the manifests."""
        if not self.skipping or self.predicate is None:
            return plan_files(self.current)
        by_name = {selected.name: selected for selected in self.every_column}
        return plan_files(self.current, QueryColumns(self.current.schema, self.predicate, by_name, self.place))

    def _files(self) -> list[TableFile]:
        return self.pruned.files

    def _is_local(self) -> bool:
        return self.current.table.files.is_local

    def source(self, file: TableFile) -> ParquetSource:
        """See `TableScan`."""
        return self.current.table.files.source(file.path, file.size)

    def has_deletes(self, file: TableFile) -> bool:
        """See `TableScan`."""
        return bool(file.deletes)

    def partitions(self) -> list[dict[str, str | None]]:
        """See `TableScan`."""
        metadata, partitions = self.current.metadata, []
        for file in self._files():
            spec = metadata.specs[file.file.spec_id]
            kinds = result_types(spec, metadata.schemas_newest_first)
            values = zip(spec.fields, file.file.partition, kinds, strict=True)
            partitions.append({f.name: partition_text(raw, f.transform.name, kind) for f, raw, kind in values})
        return partitions

    def _open(self, file: TableFile) -> OpenFile:
        check_readable(file)
        with data_file_errors(file):
            opened = super()._open(file)
            check_rows(file, opened.rows)
        return opened

    def _columns(self, file: TableFile, opened: OpenFile) -> FileColumns:
        return FileColumns(self.current, file, opened.reader.schema_arrow)

    def _report(self, inside: ScanReport) -> IcebergScanReport:
        planned = self.pruned
        return IcebergScanReport(
            planned.total, planned.by_partition, planned.by_statistics, inside, self.current.snapshot_id
        )

    def _snapshot_for_tasks(self) -> Snapshot:
        return self.current.for_tasks()
