"""An Iceberg table as a destination: `IcebergWritePlan` writes the files, and `tables.iceberg` commits them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.destination import LoadedFile, TableDestination, WriteRequest
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import Staging, is_kept
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties, find_table
from parquet_variant.tables.iceberg.locations import TableFiles, normal_location
from parquet_variant.tables.iceberg.metadata.partitioning import spec_of
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.metadata.updates import TableChange
from parquet_variant.tables.iceberg.reading.planning import parquet_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableFile, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import LOAD_PROPERTY, check_writable
from parquet_variant.tables.iceberg.writing.write import TableDefinition, commit_files, new_table
from parquet_variant.tables.iceberg.writing.write_plan import IcebergWritePlan, plan_write
from parquet_variant.tables.partitions import recorded_paths
from parquet_variant.tables.row_input import FILES_WITH_TYPES, Batch
from parquet_variant.tables.schema import StructType, arrow_type
from parquet_variant.tables.write_plan import refuse_files_in


class IcebergDestination(TableDestination):
    """An Iceberg table; `remove_orphan_files` removes the files of a job whose commit may have failed."""

    def __init__(self, request: WriteRequest, table: LoadedTable | None) -> None:
        location = request.dest if table is None else normal_location(table.metadata.location)
        super().__init__(request, location, exists=table is not None)
        self._base = None if table is None else newest_snapshot(table, request.branch or MAIN)

    @property
    def _snapshot(self) -> Snapshot:
        assert self._base is not None
        return self._base

    def data_files(self) -> Sequence[ParquetSource]:
        """Return files of the newest snapshot."""
        return () if self._base is None else parquet_files(self._base, FILES_WITH_TYPES)

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that properties of the table record."""
        return [] if self._base is None else recorded_loads(self._base.table)

    def _plan_table(self, columns: pa.Schema | StructType, *, at_once: bool) -> None:
        assert isinstance(columns, pa.Schema)
        catalog, identifier = find_table(self.request.dest, self.request.catalog)
        by = self.request.partition_by
        definition = TableDefinition(partition_by=by.names, properties=by.properties)
        table = new_table(catalog, identifier, columns, definition)
        if at_once:  # the catalog may choose another location for every table that it stages
            table = table.commit(TableChange())
        self._base = newest_snapshot(table, self.request.branch or MAIN)
        self.staging = Staging(normal_location(table.metadata.location))

    def _plan_write(self, schema: ShreddingSchema | None, **options: Any) -> IcebergWritePlan:
        schemas = {} if schema is None else {self.request.column: schema}
        return plan_write(self._snapshot, schema=schemas, **options, **self.request.write)

    def _commit_files(self, files: list[TableFile], batch: Batch | None) -> bool:
        overwrites = self.request.mode == "overwrite" and self.holds_data
        loads = {f"{LOAD_PROPERTY}{file.path}": file.to_text() for file in self.records}
        if self.holds_data and not (files or overwrites or loads):
            return True
        mode: Literal["append", "overwrite"] = "overwrite" if overwrites else "append"
        return commit_files(self._snapshot, files, mode=mode, batch=batch, loads=loads).committed

    def _paths(self, files: Iterable[TableFile]) -> list[str]:
        root = f"{self._snapshot.table.metadata.location.rstrip('/')}/"
        return [file.path.removeprefix(root) for file in files]

    def _delete_files(self, files: Iterable[TableFile]) -> None:
        self._snapshot.table.files.delete([file.path for file in files])


def recorded_loads(table: LoadedTable) -> list[LoadedFile]:
    """Return the source files that the table's properties record, each with the snapshot that has its rows."""
    records = [text for name, text in table.metadata.properties.items() if name.startswith(LOAD_PROPERTY)]
    return [file for text in records for file in LoadedFile.from_text(text.rpartition("@")[0])]


def open_iceberg(request: WriteRequest) -> IcebergDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``."""
    dest, mode = request.dest, request.mode
    catalog, identifier = find_table(dest, request.catalog)
    table = catalog.find(identifier)
    if table is None and request.catalog is None:
        refuse_files_in(TableFiles(dest, catalog.store_options).root, "iceberg")
    if table is not None:
        if is_kept(f"the Iceberg table {dest}", mode, dest, IcebergError):
            return None
        check_writable(table.metadata)
        names, metadata = request.partition_by.names, table.metadata
        stored = [f for f in metadata.spec.fields if names or f.transform.name == "identity"]
        if names:
            try:
                requested = spec_of(names, metadata.schema).fields
            except IcebergError:
                requested = ()
            fields = [sorted((f.source_id, str(f.transform)) for f in either) for either in (requested, stored)]
            if fields[0] != fields[1] or len(requested) != len(names):
                raise request.partition_by.differs([f.name for f in stored], table.name)
        elif (recorded := recorded_paths(metadata.properties)) or request.columns == ():
            # Without recorded paths, other columns of the rows may be those of the partition fields.
            places = [metadata.schema.by_id[f.source_id] for f in stored]
            types = {place[0]: arrow_type(column.type) for place, column in places if len(place) == 1}
            request = replace(request, partition_by=PartitionBy.of_destination(types, request.columns, recorded))
    return IcebergDestination(request, table)


def table_location(dest: str, catalog: CatalogOption) -> str:
    """Return the directory of a table in a catalog; of a table that does not exist, one below the warehouse.

    The catalog may choose another directory when the table is created.
    """
    opened, identifier = find_table(dest, catalog)
    if (table := opened.find(identifier)) is not None:
        return normal_location(table.metadata.location)
    warehouse = catalog_properties(catalog).get("warehouse", "")
    return f"{normal_location(warehouse).rstrip('/')}/{dest}" if "/" in warehouse else absolute(dest)
