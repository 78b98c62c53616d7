"""`Destination`: where the tasks of an ingest write, and how the result becomes visible as a whole or not at all.

The base class is a directory whose files are staged; `FileDestination` is one file, and `TableDestination` a table
whose files the driver commits once. The modules in `destinations` adapt them to the output formats.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import TableError, VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.ingestion.loads import LoadedFile, directory_load_files, stage_records
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import SplitRows, TaskPlan, WrittenSplits
from parquet_variant.io.commit_journal import visible_files
from parquet_variant.io.filesystems import filesystem_of, info_of, write_errors
from parquet_variant.io.staging import BAD_RECORDS, LOADS, Staging, check_target, staging_beside
from parquet_variant.io.temporaries import keep_mode, linked_file
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.tables.commits import is_uncommitted
from parquet_variant.tables.write_plan import TableWritePlan
from parquet_variant.types.targets import VARIANT_STORAGE


class Destination:
    """A directory of files that tasks stage and the driver commits.

    The destination completes `request`, for example by its partition columns. `write` writes the files of a task and
    can be pickled.
    """

    def __init__(self, request: IngestRequest, staging: Staging, write: Callable[[SplitRows], WrittenSplits]) -> None:
        self.dest = request.dest
        self.request, self._staging, self._write = request, staging, write
        self._known_loads: tuple[str, ...] | None = None  # The names of the files with the records of a directory.
        self.records: Sequence[LoadedFile] = ()  # The source files that the job loads, if they are to be recorded.

    @property
    def bad_records_path(self) -> str:
        """The directory of quarantined lines."""
        return f"{self._staging.dest.rstrip('/')}/{BAD_RECORDS}"

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the Parquet files that the destination holds before the job."""
        return ()

    def loads(self) -> Sequence[LoadedFile]:
        """Return the source files that were loaded into the directory; a commit of this job checks them again."""
        loads = directory_load_files(self.dest)
        self._known_loads = tuple(loads)
        return [record for records in loads.values() for record in records]

    def write_no_rows(self, plan: TaskPlan) -> WrittenSplits | None:
        """Write what a job without rows leaves, such as a file that has the columns; return None if it must fail.

        It succeeds if the destination holds data, so that its columns are known.
        """
        holds_data = self.request.mode == "append" and any(visible_files(*filesystem_of(self.dest)))
        return WrittenSplits() if holds_data else None

    def work(self, plan: TaskPlan) -> Callable[[int, int, list[Split]], WrittenSplits]:
        """Start the job and return the function that every task runs; it can be pickled."""
        self._staging = self._staging.begin()
        return replace(plan, staging=self._staging, write=self._write).run

    def commit(self, written: WrittenSplits) -> list[str]:
        """Make the files of all tasks visible, and return the paths of the data files relative to `dest`.

        A destination that has `loads` records `records` in the same commit.
        """
        return self._move_into_place(written, {})

    def _move_into_place(self, written: WrittenSplits, partition_types: Mapping[str, str]) -> list[str]:
        """Commit the files; the directory declares the types of partition columns, which are DDL, from then on."""
        root, known = self.dest.rstrip("/") + "/", self._known_loads
        files = [*written.files, *([] if known is None else [stage_records(self._staging, self.records)])]
        names = self._staging.commit(files, partition_types=partition_types, loads=known)
        hidden = (f"{root}{BAD_RECORDS}/", f"{root}{LOADS}/")
        return [name.removeprefix(root) for name in names if not name.startswith(hidden)]

    def abort(self) -> None:
        """Restore the state before the job. Files that other processes wrote meanwhile are kept."""
        self._staging.abort()


class FileDestination(Destination):
    """One file, which one task writes, and next to it a file of quarantined lines if there are any.

    The staging area is next to the file.
    """

    @classmethod
    def open(cls, request: IngestRequest, write: Callable[[SplitRows], WrittenSplits]) -> FileDestination | None:
        """Open the destination; return None if the file exists and the mode is ``"ignore"``.

        Raises `VariantFileError` if the path is a directory, or an existing file that the mode does not overwrite.
        """
        dest, mode = request.dest, request.mode
        filesystem, path = filesystem_of(dest)
        if mode in ("append", "ignore") and info_of(filesystem, path).type == pafs.FileType.File:
            if mode == "ignore":
                return None
            raise VariantFileError(
                f"{dest} already exists: rows cannot be appended to a file: append to a directory, or choose another "
                "path",
                reason="exists",
                file=dest,
            )
        check_target(filesystem, path, "overwrite" if mode == "overwrite" else "error")
        return cls(request, staging_beside(dest), write)

    @property
    def bad_records_path(self) -> str:
        """The file of quarantined lines."""
        return f"{self.dest}.bad_records.ndjson"

    def commit(self, written: WrittenSplits) -> list[str]:
        """Move the file to its final path; permissions of a file there and a symbolic link to it are kept."""
        data = [file for file in written.files if not file.name.startswith(f"{BAD_RECORDS}/")]
        if not data:
            raise VariantFileError(
                f"no line is valid JSON: nothing was written to {self.dest}; check the sources", reason="no-rows"
            )
        targets = [(file, self.bad_records_path) for file in written.files if file not in data]
        for file, target in [*targets, (data[0], self.dest)]:
            filesystem, path = filesystem_of(file.path)
            with write_errors(target):
                place = linked_file(filesystem, filesystem_of(target)[1])
                keep_mode(filesystem, path, place)
                filesystem.move(path, place)
        self._staging.abort()
        return [self.dest.rpartition("/")[2]]


class TableDestination(Destination):
    """A table that an ingest appends to or overwrites. A new table is planned when the tasks start.

    Data files are written to their final place, because no reader sees them before the commit. Only quarantined lines
    are staged, below the table's location.
    """

    def __init__(self, request: IngestRequest, location: str) -> None:
        super().__init__(request, Staging.into(location), SplitRows.written)
        self._plan: TableWritePlan[Any] | None = None
        self._is_new = False
        # False if a commit may name the files of this job, so that they must not be removed.
        self._is_uncommitted = True

    def write_no_rows(self, plan: TaskPlan) -> WrittenSplits | None:
        """Return None if the table does not exist and its schema is unknown."""
        return None if self._is_new and self.request.schema is None else WrittenSplits()

    @abstractmethod
    def _plan_table(self, columns: pa.Schema) -> None:
        """Plan the table that the commit will create."""

    def check_write_plan(self) -> None:
        """Raise `TableError` if the table has no such Variant column, or an option is invalid."""
        self._write_plan(self.request.schema or ShreddingSchema.variant())

    @abstractmethod
    def _write_plan(self, schema: ShreddingSchema, **options: Any) -> TableWritePlan[Any]:
        """Return the plan by which tasks write files."""

    @abstractmethod
    def _commit_files(self, files: list[Any]) -> list[str]:
        """Commit the files of all tasks, and return their paths relative to the table."""

    def work(self, plan: TaskPlan) -> Callable[[int, int, list[Split]], WrittenSplits]:
        """Plan the table, and return the function that every task runs."""
        if self._is_new:
            variant = pa.field(self.request.column, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
            fields = [variant if field.name == variant.name else field for field in plan.fields] or [variant]
            self._plan_table(pa.schema([*fields, *self.request.partition_by.fields]))
        write_plan = self._write_plan(plan.schema, threads=plan.threads, encodings=plan.encodings)
        self._plan = replace(write_plan, job=f"{self._staging.job}-")
        self._write = partial(_write, self._plan)
        return super().work(plan)

    def commit(self, written: WrittenSplits) -> list[str]:
        """Commit the files of all tasks as one version of the table."""
        try:
            paths = self._commit_files(list(written.adds))
        except BaseException as error:
            self._is_uncommitted = isinstance(error, VariantError) and is_uncommitted(error)
            raise
        self._plan = None
        try:
            if written.files:  # the quarantined lines
                self._staging.commit(written.files, marker=False)
            else:
                self._staging.abort()
        except VariantError as error:  # the rows are committed
            warnings.warn(
                f"the rows are committed to {self.dest}, but the quarantined lines could not be written there: {error}",
                UserWarning,
                stacklevel=2,
            )
        return paths

    def abort(self) -> None:
        """Remove the files that this job wrote, unless a commit may name them; they are then left for maintenance."""
        with suppress(OSError, TableError):
            if self._plan is not None and self._is_uncommitted:
                self._plan.remove_files()
        super().abort()


def _write(write_plan: TableWritePlan[Any], split_rows: SplitRows) -> WrittenSplits:
    """Write the data files of a task."""
    request, row_count = split_rows.request, 0

    def columns() -> Iterator[dict[str, Any]]:
        nonlocal row_count
        for rows in split_rows:
            row_count += len(rows)
            yield {**rows.columns(request.column), **request.partition_by.values(rows.variants)}

    files = tuple(write_plan.write_files(columns()))
    return split_rows.written(adds=files, rows=row_count, file_bytes=sum(file.size for file in files))
