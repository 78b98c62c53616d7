"""JSON files into a Delta table: tasks write data files, the driver commits once, on any engine.

Owns the table as the destination of an ingest. Leaves the steps to `job`, files to `WritePlan` and the commit to
`delta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.choices import Mode
from parquet_variant.delta.log.commit import is_uncommitted
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.writing.create import check_partitioned_by, commit_new, existing_table, planned_table
from parquet_variant.delta.writing.data_files import WritePlan, is_data_file_name
from parquet_variant.delta.writing.write import commit_files, plan
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import DeltaError, TableError, VariantError
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import Destination, SplitArrays, TaskPlan, Work, WrittenSplits
from parquet_variant.io.commit_journal import TEMPORARY
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import Staging, check_mode, sweep
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.storage import open_storage


class DeltaDestination(Destination):
    """A Delta table that an ingest adds to; it is made when the ingest begins to write, if it is not there."""

    def __init__(self, request: IngestRequest, current: Snapshot | None) -> None:
        # Bad lines only: data files lie in the table from the start, and no reader sees them before the commit.
        super().__init__(request, Staging.into(request.dest), _write)
        self._current = current
        self._plan: WritePlan | None = None
        self._sure = True

    def work(self, plan: TaskPlan) -> Work:
        """What every task does."""
        if self._current is None:
            variant = pa.field(self._request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            by = self._request.partition_by
            fields = [variant if field.name == variant.name else field for field in plan.fields] or [variant]
            columns = from_arrow_schema(pa.schema([*fields, *by.fields]))
            storage, preview = open_storage(self.dest), self._request.preview
            self._current = planned_table(storage, columns, by.names, preview=preview)
        self._staging = self._staging.begin()
        options = {"threads": plan.threads, "encodings": plan.encodings}
        write_plan = _plan(self._current, self._request, plan.schema, **options)
        self._plan = replace(write_plan, job=f"{self._staging.job}-")
        return partial(_write, self._plan, self._request, plan, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Commit the files of all tasks as one version."""
        assert self._current is not None
        adds = [add for part in written for add in part.adds]
        bad = [file for part in written for file in part.files]
        mode: Literal["append", "overwrite"] = "overwrite" if self._request.mode == "overwrite" else "append"
        try:
            if self._current.version < 0:
                commit_new(self._current, adds, self._request.mode)
            elif adds or mode == "overwrite":
                commit_files(self._current, adds, mode=mode)
        except BaseException as error:
            self._sure = isinstance(error, VariantError) and is_uncommitted(error)
            raise
        self._plan = None
        if bad:
            self._staging.commit(bad, marker=False)
        else:
            self._staging.abort()
        return [unquote(add.path) for add in adds]

    def abort(self) -> None:
        """Remove exactly the files that this job wrote, as far as no commit may name them; vacuum finds the rest."""
        with suppress(OSError, TableError):
            if self._plan is not None and self._sure:
                self._plan.remove_files()
        super().abort()


def open_delta(request: IngestRequest) -> DeltaDestination | None:
    """Look at the table; None if it is there and is to be left alone then.

    Raises `DeltaError` if the mode is ``"error"`` and the table, or other files, are there, and if the table cannot
    take the column.
    """
    to_write, current = open_table(request.dest, request.mode)
    if not to_write:
        return None
    if current is not None:
        check_partitioned_by(current, request.partition_by.names)
        _plan(current, request, request.schema or ShreddingSchema.variant())
    return DeltaDestination(request, current)


def _plan(current: Snapshot, request: IngestRequest, schema: ShreddingSchema, **options: Any) -> WritePlan:
    return plan(current, schema={request.column: schema}, **options, **request.write)


def open_table(dest: str, mode: Mode) -> tuple[bool, Snapshot | None]:
    """Whether to write to a table, and the table if it is there; raises as `open_delta`."""
    check_mode(mode)
    current = existing_table(open_storage(dest))
    if current is not None:
        if mode == "error":
            raise DeltaError(
                f"{dest} is a Delta table already: use mode='append' or mode='overwrite', or choose another place",
                reason="exists",
                file=dest,
            )
        if mode != "ignore":
            sweep(dest)
        return mode != "ignore", current
    filesystem, path = filesystem_of(dest)
    is_place = filesystem.get_file_info(path).type in (pafs.FileType.NotFound, pafs.FileType.Directory)
    if not is_place or _has_other_files(filesystem, path):
        raise DeltaError(
            f"{dest} holds other files and is no Delta table: choose another place", reason="exists", file=dest
        )
    sweep(dest)
    return True, None


def _has_other_files(filesystem: pafs.FileSystem, path: str) -> bool:
    """Whether a directory without a log holds what no job that was to make a table there has left."""
    infos = filesystem.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    names = [info.path[len(path) :].strip("/") for info in infos if info.type == pafs.FileType.File]
    return any(not name.startswith(f"{TEMPORARY}/") and not is_data_file_name(name) for name in names)


def _write(
    write_plan: WritePlan,
    request: IngestRequest,
    task_plan: TaskPlan,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    arrays = SplitArrays(splits, task_plan, request.text, staging, task, attempt)
    rows = 0

    def columns() -> Iterator[dict[str, Any]]:
        nonlocal rows
        for part in arrays:
            rows += len(part)
            yield {**part.columns(request.column), **request.partition_by.values(part.variants)}

    adds = write_plan.write_files(columns())
    return arrays.written((), rows, sum(add.size for add in adds), tuple(adds))
