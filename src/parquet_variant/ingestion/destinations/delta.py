"""A Delta table as the destination of an ingest: `WritePlan` writes the data files, and `delta` commits them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import DeltaError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.destination import TableDestination
from parquet_variant.ingestion.loads import LoadedFile, iso_time
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.io.commit_journal import TEMPORARY
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import check_mode, sweep
from parquet_variant.io.temporaries import is_temporary
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import Mode
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import LOAD_ID, Add, Txn, forgotten_loads
from parquet_variant.tables.delta.reading.read import parquet_files
from parquet_variant.tables.delta.writing.data_files import DATA_FILE_NAME, WritePlan
from parquet_variant.tables.delta.writing.write import (
    check_partitioned_by,
    commit_adds,
    existing_table,
    plan,
    planned_table,
)
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.storage import now_millis, open_storage


class DeltaDestination(TableDestination):
    """A Delta table; `vacuum` removes the files of a job whose commit may have failed."""

    def __init__(self, request: IngestRequest, current: Snapshot | None) -> None:
        super().__init__(request, request.dest)
        self._current, self._is_new = current, current is None

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the files of the newest version."""
        return () if self._current is None else parquet_files(self._current)

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that transaction identifiers of the newest version record."""
        return [] if self._current is None else recorded_loads(self._current)

    def _plan_table(self, columns: pa.Schema) -> None:
        storage, request = open_storage(self.dest), self.request
        by, preview = request.partition_by.names, request.preview
        self._current = planned_table(storage, from_arrow_schema(columns), by, preview=preview)

    def _write_plan(self, schema: ShreddingSchema, **options: Any) -> WritePlan:
        assert self._current is not None
        return plan(self._current, schema={self.request.column: schema}, **options, **self.request.write)

    def _commit_files(self, files: list[Add]) -> list[str]:
        assert self._current is not None
        actions, overwrites = load_actions(self.records), self.request.mode == "overwrite"
        if overwrites and not self._is_new:
            actions += forgotten_loads(self._current.txns, {action.app_id for action in actions})
        if self._is_new or files or actions or overwrites:
            commit_adds(self._current, files, self.request.mode, actions=actions)
        return [unquote(add.path) for add in files]


def open_delta(request: IngestRequest) -> DeltaDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``.

    Raises `DeltaError` if the mode is ``"error"`` and the table or other files exist, or if the table has no such
    Variant column.
    """
    must_write, current = open_table(request.dest, request.mode)
    if not must_write:
        return None
    destination = DeltaDestination(request, current)
    if current is not None:
        check_partitioned_by(current, request.partition_by.names)
        destination.check_write_plan()
    return destination


def recorded_loads(table: Snapshot) -> list[LoadedFile]:
    """Return the source files that the table's transaction identifiers record."""
    return [
        file
        for name, txn in table.txns.items()
        if name.startswith(LOAD_ID) and txn.version == 1
        for file in LoadedFile.from_text(name.removeprefix(LOAD_ID), iso_time((txn.last_updated or 0) / 1000))
    ]


def load_actions(files: Iterable[LoadedFile]) -> list[Txn]:
    """Return the actions that record source files."""
    now = now_millis()
    return [Txn(f"{LOAD_ID}{replace(file, loaded=None).to_text()}", 1, now) for file in files]


def open_table(dest: str, mode: Mode) -> tuple[bool, Snapshot | None]:
    """Return whether to write to a table, and the table if it exists; raises as `open_delta`."""
    check_mode(mode)
    current = existing_table(open_storage(dest))
    if current is not None:
        if mode == "error":
            raise DeltaError(
                f"the Delta table {dest} already exists: use mode='append' or mode='overwrite', or choose another path",
                reason="exists",
                file=dest,
            )
        if mode != "ignore":
            sweep(dest)
        return mode != "ignore", current
    filesystem, path = filesystem_of(dest)
    is_free = filesystem.get_file_info(path).type in (pafs.FileType.NotFound, pafs.FileType.Directory)
    # Files of an interrupted creation of the table do not matter.
    infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True)) if is_free else ()
    names = [info.path[len(path) :].strip("/") for info in infos if info.is_file]
    names = [name for name in names if not name.startswith(f"{TEMPORARY}/") and not is_temporary(name)]
    if not is_free or not all(map(DATA_FILE_NAME.fullmatch, names)):
        raise DeltaError(
            f"{dest} contains files and is not a Delta table: choose another path", reason="exists", file=dest
        )
    sweep(dest)
    return True, None
