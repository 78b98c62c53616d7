"""An Iceberg table as the destination of an ingest: `IcebergWritePlan` writes the files, and `iceberg` commits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.destination import TableDestination
from parquet_variant.ingestion.loads import LoadedFile
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import Staging, check_mode
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import Mode
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties, find_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.reading.planning import parquet_files
from parquet_variant.tables.iceberg.reading.snapshot import TableFile, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import check_writable, commit_snapshot
from parquet_variant.tables.iceberg.writing.manifest_changes import LOAD_PROPERTY, SnapshotChange
from parquet_variant.tables.iceberg.writing.write import TableDefinition, new_table
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan, plan_write


class IcebergDestination(TableDestination):
    """An Iceberg table; `remove_orphan_files` removes the files of a job whose commit may have failed."""

    def __init__(self, request: IngestRequest, table: LoadedTable | None) -> None:
        super().__init__(request, request.dest if table is None else normal_location(table.metadata.location))
        self._table, self._is_new = table, table is None

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the files of the newest snapshot."""
        return () if self._table is None else parquet_files(newest_snapshot(self._table))

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that properties of the table record."""
        return [] if self._table is None else recorded_loads(self._table)

    def _plan_table(self, columns: pa.Schema) -> None:
        catalog, identifier = find_table(self.request.dest, self.request.catalog)
        definition = TableDefinition(partition_by=tuple(self.request.partition_by.names))
        self._table = new_table(catalog, identifier, columns, definition)
        self._staging = Staging.into(normal_location(self._table.metadata.location))

    def _write_plan(self, schema: ShreddingSchema, **options: Any) -> IcebergWritePlan:
        assert self._table is not None
        write = dict(self.request.write)
        file_bytes, schemas = write.pop("file_bytes", None), {self.request.column: schema}
        return plan_write(
            newest_snapshot(self._table), schema=schemas, file_bytes=file_bytes, options={**options, **write}
        )

    def _commit_files(self, files: list[TableFile]) -> list[str]:
        assert self._table is not None
        added = tuple(file.file for file in files if file.file.record_count)
        overwrites = not self._is_new and self.request.mode == "overwrite"
        loads = {f"{LOAD_PROPERTY}{file.path}": file.to_text() for file in self.records}
        if added or overwrites or self._is_new or loads:
            operation = "overwrite" if overwrites else "append"
            change = SnapshotChange(
                operation, added=added, removes_all=overwrites, loads=loads, forgets_loads=overwrites
            )
            commit_snapshot(newest_snapshot(self._table), change)
        root = f"{self._table.metadata.location.rstrip('/')}/"
        return [file.path.removeprefix(root) for file in added]


def recorded_loads(table: LoadedTable) -> list[LoadedFile]:
    """Return the source files that the table's properties record, each with the snapshot that has its rows."""
    texts = [text for name, text in table.metadata.properties.items() if name.startswith(LOAD_PROPERTY)]
    return [file for text in texts for file in LoadedFile.from_text(text.rpartition("@")[0])]


def open_iceberg(request: IngestRequest) -> IcebergDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``.

    Raises `IcebergError` if the mode is ``"error"`` and the table exists, or if the table has no such Variant column.
    """
    must_write, table = open_table(request.dest, request.mode, request.catalog)
    if not must_write:
        return None
    destination = IcebergDestination(request, table)
    if table is not None:
        check_writable(table.metadata)
        _check_partitioned_by(table, request)
        destination.check_write_plan()
    return destination


def open_table(dest: str, mode: Mode, catalog: CatalogOption) -> tuple[bool, LoadedTable | None]:
    """Return whether to write to a table, and the table if it exists; raises as `open_iceberg`."""
    check_mode(mode)
    opened, identifier = find_table(dest, catalog)
    table = opened.find(identifier)
    if table is None:
        return True, None
    if mode == "error":
        raise IcebergError(
            f"the Iceberg table {dest} already exists: use mode='append' or mode='overwrite', or choose another table",
            reason="exists",
            file=dest,
        )
    return mode != "ignore", table


def table_location(dest: str, catalog: CatalogOption) -> str:
    """Return the directory of a table in a catalog; of a table that does not exist, one below the warehouse.

    The catalog may choose another directory when the table is created.
    """
    _, table = open_table(dest, "append", catalog)
    if table is not None:
        return normal_location(table.metadata.location)
    warehouse = catalog_properties(catalog).get("warehouse", "")
    return f"{normal_location(warehouse).rstrip('/')}/{dest}" if "/" in warehouse else absolute(dest)


def _check_partitioned_by(table: LoadedTable, request: IngestRequest) -> None:
    """Refuse other partition columns than those by whose values a table is partitioned."""
    if request.text.json_column is not None:
        return  # The sources may have the columns.
    metadata = table.metadata
    names = [
        ".".join(metadata.schema.by_id[f.source_id][0])
        for f in metadata.spec.fields
        if f.transform.name == "identity" and f.source_id in metadata.schema.by_id
    ]
    if sorted(names) != sorted(request.partition_by.names):
        raise IcebergError(
            f"the table {request.dest} is partitioned by {', '.join(names) or 'no column'}: give partition_by= for the "
            "same columns",
            reason="bad-option",
            file=request.dest,
        )
