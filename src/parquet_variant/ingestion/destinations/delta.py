"""A Delta table as the destination of an ingest: tasks write data files, and the driver commits them once.

`WritePlan` writes the data files, and the package `delta` commits them.
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
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.writing.create import check_partitioned_by, commit_new, existing_table, planned_table
from parquet_variant.delta.writing.data_files import WritePlan, is_data_file_name
from parquet_variant.delta.writing.write import commit_files, plan
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import DeltaError, TableError, VariantError
from parquet_variant.ingestion.destination import Destination, Work
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.splits import Split
from parquet_variant.ingestion.task import SplitRows, TaskPlan, WrittenSplits
from parquet_variant.io.commit_journal import TEMPORARY
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import Staging, check_mode, sweep
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.storage import is_uncommitted, open_storage


class DeltaDestination(Destination):
    """A Delta table that an ingest appends to or overwrites. A new table is planned when the tasks start.

    Data files are written to their final place, because no reader sees them before the commit. Only quarantined lines
    are staged.
    """

    def __init__(self, request: IngestRequest, current: Snapshot | None) -> None:
        super().__init__(request, Staging.into(request.dest), _write)
        self._current = current
        self._plan: WritePlan | None = None
        # False if the log may name the files of this job, so that they must not be removed.
        self._is_uncommitted = True

    def work(self, plan: TaskPlan) -> Work:
        """Plan the table, and return the function that every task runs."""
        if self._current is None:
            variant = pa.field(self._request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            by = self._request.partition_by
            fields = [variant if field.name == variant.name else field for field in plan.fields] or [variant]
            columns = from_arrow_schema(pa.schema([*fields, *by.fields]))
            storage, preview = open_storage(self.dest), self._request.preview
            self._current = planned_table(storage, columns, by.names, preview=preview)
        self._staging = self._staging.begin()
        options = {"threads": plan.threads, "encodings": plan.encodings}
        write_plan = _write_plan(self._current, self._request, plan.schema, **options)
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
            self._is_uncommitted = isinstance(error, VariantError) and is_uncommitted(error)
            raise
        self._plan = None
        if bad:
            self._staging.commit(bad, marker=False)
        else:
            self._staging.abort()
        return [unquote(add.path) for add in adds]

    def abort(self) -> None:
        """Remove the files that this job wrote, unless a commit may name them; `vacuum` removes those later."""
        with suppress(OSError, TableError):
            if self._plan is not None and self._is_uncommitted:
                self._plan.remove_files()
        super().abort()


def open_delta(request: IngestRequest) -> DeltaDestination | None:
    """Open the table; return None if it exists and the mode is ``"ignore"``.

    Raises `DeltaError` if the mode is ``"error"`` and the table or other files exist, or if the table has no such
    Variant column.
    """
    must_write, current = open_table(request.dest, request.mode)
    if not must_write:
        return None
    if current is not None:
        check_partitioned_by(current, request.partition_by.names)
        _write_plan(current, request, request.schema or ShreddingSchema.variant())
    return DeltaDestination(request, current)


def _write_plan(current: Snapshot, request: IngestRequest, schema: ShreddingSchema, **options: Any) -> WritePlan:
    return plan(current, schema={request.column: schema}, **options, **request.write)


def open_table(dest: str, mode: Mode) -> tuple[bool, Snapshot | None]:
    """Return whether to write to a table, and the table if it exists. Raises `DeltaError` as `open_delta` does."""
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
    if not is_free or _contains_other_files(filesystem, path):
        raise DeltaError(
            f"{dest} contains files and is not a Delta table: choose another path", reason="exists", file=dest
        )
    sweep(dest)
    return True, None


def _contains_other_files(filesystem: pafs.FileSystem, path: str) -> bool:
    """Return whether a directory without a log contains files other than those of an interrupted table creation."""
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
    """Write the data files of a task."""
    split_rows = SplitRows(splits, task_plan, request.text, staging, task, attempt)
    row_count = 0

    def columns() -> Iterator[dict[str, Any]]:
        nonlocal row_count
        for rows in split_rows:
            row_count += len(rows)
            yield {**rows.columns(request.column), **request.partition_by.values(rows.variants)}

    adds = write_plan.write_files(columns())
    return split_rows.written((), row_count, sum(add.size for add in adds), tuple(adds))
