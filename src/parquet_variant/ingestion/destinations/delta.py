"""A Delta table as a destination: `WritePlan` writes the data files, and `tables.delta` commits them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.destination import LoadedFile, TableDestination, WriteRequest, iso_time
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.io.staging import is_kept
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import LOAD_ID, Add, Txn, forgotten_loads
from parquet_variant.tables.delta.reading.read import parquet_files
from parquet_variant.tables.delta.writing import write
from parquet_variant.tables.delta.writing.data_files import WritePlan
from parquet_variant.tables.partitions import recorded_paths
from parquet_variant.tables.row_input import FILES_WITH_TYPES, Batch
from parquet_variant.tables.schema import StructType, arrow_type, from_arrow_schema
from parquet_variant.tables.storage import now_millis, open_storage


class DeltaDestination(TableDestination):
    """A Delta table; `vacuum` removes the files of a job whose commit may have failed."""

    def __init__(self, request: WriteRequest, current: Snapshot | None) -> None:
        super().__init__(request, request.dest, exists=current is not None)
        self._current = current

    def __getstate__(self) -> dict[str, Any]:
        # Tasks do not need the list of all files, and the process that commits reads it again.
        return {**vars(self), "_current": None if self.holds_data else self._current}

    def _table(self) -> Snapshot:
        return load_snapshot(open_storage(self.dest)) if self._current is None else self._current

    def data_files(self) -> Sequence[ParquetSource]:
        """Return files of the newest version."""
        return parquet_files(self._table(), FILES_WITH_TYPES) if self.holds_data else ()

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that transaction identifiers of the newest version record."""
        return recorded_loads(self._table()) if self.holds_data else []

    def _plan_table(self, columns: pa.Schema | StructType, *, at_once: bool) -> None:
        storage, request = open_storage(self.dest), self.request
        if isinstance(columns, pa.Schema):
            columns = from_arrow_schema(columns)
        by, preview = request.partition_by, request.preview
        self._current = write.planned_table(storage, columns, by.names, by.properties, preview=preview)

    def _plan_write(self, schema: ShreddingSchema | None, **options: Any) -> WritePlan:
        schemas = None if schema is None else {self.request.column: schema}
        return write.plan(self._table(), schema=schemas, **options, **self.request.write)

    def _commit_files(self, files: list[Add], batch: Batch | None) -> bool:
        current, mode = self._table(), self.request.mode
        now, overwrites = now_millis(), mode == "overwrite" and self.holds_data
        actions = [Txn(f"{LOAD_ID}{replace(file, loaded=None).to_text()}", 1, now) for file in self.records]
        if overwrites:
            actions += forgotten_loads(current.txns, {action.app_id for action in actions})
        if self.holds_data and not (files or actions or overwrites or batch):
            return True
        return write.commit_adds(current, files, mode, batch, actions=actions).committed

    def _paths(self, files: Iterable[Add]) -> list[str]:
        return [unquote(add.path) for add in files]

    def _delete_files(self, files: Iterable[Add]) -> None:
        storage = open_storage(self.dest)
        for path in self._paths(files):
            storage.delete(path)


def open_delta(request: WriteRequest) -> DeltaDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``."""
    dest, mode, names = request.dest, request.mode, request.partition_by.names
    current = write.table_or_empty_place(open_storage(dest))
    if current is not None:
        if is_kept(f"the Delta table {dest}", mode, dest, DeltaError):
            return None
        if names and names != current.partition_columns:
            raise request.partition_by.differs(current.partition_columns, dest)
        if not names and (recorded := recorded_paths(current.metadata.configuration)):
            types = {field.name: arrow_type(field.type) for field in current.partition_fields}
            request = replace(request, partition_by=PartitionBy.of_destination(types, request.columns, recorded))
    return DeltaDestination(request, current)


def recorded_loads(table: Snapshot) -> list[LoadedFile]:
    """Return the source files that the table's transaction identifiers record."""
    return [
        file
        for name, txn in table.txns.items()
        if name.startswith(LOAD_ID) and txn.version == 1
        for file in LoadedFile.from_text(name.removeprefix(LOAD_ID), iso_time((txn.last_updated or 0) / 1000))
    ]
