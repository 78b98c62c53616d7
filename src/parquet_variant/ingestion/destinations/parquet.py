"""Parquet files as the destination of an ingest: a directory, a partitioned directory, or one file.

Tasks stage files, and the driver moves them into place. `partition_by` extracts partition values, `VariantWriter`
writes a file, and `io.staging` moves files. Rows in memory that are added to a directory of files, or replace its rows
(`Table.append`, `Table.overwrite`), are written likewise, after checks against its columns and partitions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import ParquetSource, locate
from parquet_variant.files.parquet.reading.read import read_schema
from parquet_variant.files.parquet.writing.write import with_layout
from parquet_variant.files.parquet.writing.writer import VariantWriter
from parquet_variant.ingestion.destination import Destination, FileDestination
from parquet_variant.ingestion.partition_by import PartitionBy, check_partition_names, existing_partitions
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.task import SplitRows, TaskPlan, WrittenSplits
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.hive import partition_texts
from parquet_variant.io.staging import BAD_RECORDS, StagedFile, Staging, open_staging
from parquet_variant.kernels.shredding.columns import ShreddedRows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import rows_of, table_of
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.query.selection import Selected
from parquet_variant.support.choices import Mode
from parquet_variant.tables.partitions import partition_directory, split_by_partition
from parquet_variant.tables.row_input import batches_of
from parquet_variant.types.forms import is_json_type
from parquet_variant.types.path import VariantPath

# An open file holds a row group in memory. Above this number the least recently used file is closed.
MAX_OPEN_FILES = 100
_SHOWN_CHARACTERS = 60


class PartitionedFiles:
    """The files that a task attempt stages, one per partition, or more if the task has very many partitions.

    As a context manager it removes what it wrote if the block fails. `**options` are those of `VariantWriter`.
    """

    def __init__(self, staging: Staging, directory: str, task: int, **options: Any) -> None:
        self._staging, self._directory, self._task, self._options = staging, directory, task, options
        # From the least to the most recently used.
        self._writers: dict[str, VariantWriter] = {}
        self._stack = ExitStack()
        self.files: list[StagedFile] = []
        self.rows = self.bytes = 0

    def write(self, values: Mapping[str, str | None], columns: Mapping[str, Any]) -> None:
        """Write rows of one partition. Only the directory stores the partition values."""
        self._writer(values).write_batch(columns)

    def write_rows(self, name: str, rows: ShreddedRows) -> None:
        """Write rows of one Variant column without partitions."""
        self._writer({}).write_rows(name, rows)

    def _writer(self, values: Mapping[str, str | None]) -> VariantWriter:
        folder = partition_directory(values)
        if values and not folder:
            longest = max((value or "" for value in values.values()), key=len)
            raise VariantFileError(
                f"the partition value {longest[:_SHOWN_CHARACTERS] + '…'!r} is too long for the name of a directory: "
                "partition by another path, or write a Delta table",
                reason="bad-partition-value",
            )
        writer = self._writers.pop(folder, None)
        if writer is None:
            if len(self._writers) >= MAX_OPEN_FILES:
                self._close(next(iter(self._writers)))
            # Checked first, because the writer would create the directory of an aborted job again.
            self._staging.check_running()
            name = self._staging.file_name(self._task, len(self.files))
            self.files.append(StagedFile(self._directory, f"{folder}{name}"))
            writer = self._stack.enter_context(VariantWriter(self.files[-1].path, **self._options))
        self._writers[folder] = writer
        return writer

    def close(self) -> None:
        """Finish all files."""
        for folder in list(self._writers):
            self._close(folder)

    def _close(self, folder: str) -> None:
        info = self._writers.pop(folder).close()
        self.rows += info.rows
        self.bytes += info.bytes

    def __enter__(self) -> PartitionedFiles:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                self.close()
        finally:
            self._stack.__exit__(*error)


class ParquetFileDestination(FileDestination):
    """One Parquet file."""

    def write_no_rows(self, plan: TaskPlan) -> WrittenSplits | None:
        """Write a file without rows if its schema is known."""
        return None if self.request.schema is None else _write_no_rows(plan, self._staging)


class ParquetDirectory(Destination):
    """A directory of Parquet files, which may be partitioned."""

    def write_no_rows(self, plan: TaskPlan) -> WrittenSplits | None:
        """Write a file without rows, unless the directory keeps its files, or the file would be in no partition."""
        has_files = bool(self.data_files())
        if self.request.schema is None and not has_files:
            return None
        if self.request.partition_by or (self.request.mode == "append" and has_files):
            return WrittenSplits()
        return _write_no_rows(plan, self._staging)

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the files of the directory."""
        return () if existing_partitions(self.dest) is None else locate(self.dest)

    def commit(self, written: WrittenSplits) -> list[str]:
        """Make the files of all tasks visible, unless a partition column of the directory has no value in any row."""
        partition_by = self.request.partition_by
        if partition_by.is_derived:
            folders = [file.name.split("/")[:-1] for file in written.files]
            values = [partition_texts(parts) for parts in folders if parts[:1] != [BAD_RECORDS]]
            for name in partition_by.names:
                if values and all(partitions.get(name) is None for partitions in values):
                    raise VariantError(
                        f"{self.dest} is partitioned by {name}, and no row has a value at $.{name}: name its path, as "
                        f"in partition_by={name}=$.path:type",
                        reason="missing-column",
                        file=self.dest,
                    )
        return self._move_into_place(written, partition_by.types_to_declare)


def open_parquet(request: IngestRequest) -> Destination | None:
    """Open the directory or file; return None if it holds data and the mode is ``"ignore"``.

    Raises `VariantFileError` as `open_staging` or `FileDestination.open` does.
    """
    if request.one_file:
        return ParquetFileDestination.open(request, _write)
    staging = open_staging(request.dest, request.mode)
    if staging is None:
        return None
    if request.mode == "append":
        existing, partition_by = existing_partitions(request.dest), request.partition_by
        if existing is not None:
            check_partition_names(partition_by.names, tuple(existing), request.dest)
        if existing and not partition_by:
            columns = (Selected(name, VariantPath((name,)), kind) for name, kind in existing.items())
            request = replace(request, partition_by=PartitionBy(tuple(columns), is_derived=True))
    return ParquetDirectory(request, staging, _write)


def _write_no_rows(plan: TaskPlan, staging: Staging) -> WrittenSplits:
    """Stage a file that has the columns and no rows."""
    columns: dict[str, Any] = {field.name: pa.array([], field.type) for field in plan.fields}
    columns[plan.request.column] = shred_variant(VariantArray.from_pylist([]), plan.schema)
    with PartitionedFiles(staging, staging.attempt(0, "empty"), 0, **plan.request.write) as files:
        files.write({}, columns)
        files.close()
    return WrittenSplits(tuple(files.files), file_bytes=files.bytes)


def _write(split_rows: SplitRows) -> WrittenSplits:
    """Stage the files of a task."""
    request, plan = split_rows.request, split_rows.plan
    options = {**request.write, "threads": plan.threads, "encodings": plan.encodings}
    with PartitionedFiles(split_rows.staging, split_rows.directory, split_rows.task, **options) as files:
        for rows in split_rows:
            if isinstance(rows.shredded, ShreddedRows) and rows.table is None and not request.partition_by:
                files.write_rows(request.column, rows.shredded)
                continue
            columns = rows.columns(request.column)
            for values, part in request.partition_by.split(rows.variants, columns):
                files.write(values, part)
        files.close()
    return split_rows.written(files.files, rows=files.rows, file_bytes=files.bytes)


@dataclass(frozen=True, slots=True)
class DirectoryCommit:
    """The result of a write to a directory of files; tables can also answer that a batch had been committed before."""

    rows: int
    files: tuple[str, ...]
    committed: bool = True


def _put(format: str, mode: Mode, path: Any, data: Any, *, schema: Any = None, **options: Any) -> DirectoryCommit:
    if not isinstance(path, str | os.PathLike):
        raise VariantFileError("rows cannot be added to a list of files: open their directory", reason="bad-path")
    dest = path_text(path)
    if format == "vortex":
        from parquet_variant.files.vortex.reader import read_schema as read_vortex_schema
        from parquet_variant.files.vortex.writer import write

        rows = _in_columns(data, read_vortex_schema(dest), dest)
    else:
        source = locate(dest)[0]
        names = [name for name, _ in source.partition]
        rows = _in_columns(data, read_schema(dest), dest)
        if schema is None:  # the shredding schemas of the first file
            variants = [field.name for field in rows.schema if is_variant_field(field) and field.name not in names]
            schemas = {
                name: ShreddingSchema.from_parquet(source.path, name, filesystem=source.filesystem) for name in variants
            }
            schema = {name: of_file for name, of_file in schemas.items() if of_file.kind != "variant"}
        rows = with_layout(rows, schema)
    staging = open_staging(dest, mode)
    assert staging is not None
    staging = staging.begin()
    try:
        if format == "vortex":
            staged = [StagedFile(staging.attempt(0), staging.file_name(0, extension="vortex"))]
            row_count = write(filesystem_of(staged[0].path)[1], rows, schema=schema, **options).rows
        else:
            with PartitionedFiles(staging, staging.attempt(0), 0, **options) as files:
                for values, part in split_by_partition(rows, names):
                    files.write(values, part)
                files.close()
            staged, row_count = files.files, files.rows
        written = staging.commit(staged)
    except BaseException:
        staging.abort()
        raise
    return DirectoryCommit(row_count, tuple(written))


# `Table.append` and `Table.overwrite` of directories.
append_parquet, overwrite_parquet = partial(_put, "parquet", "append"), partial(_put, "parquet", "overwrite")
append_vortex, overwrite_vortex = partial(_put, "vortex", "append"), partial(_put, "vortex", "overwrite")


def _in_columns(data: Any, schema: pa.Schema, dest: str) -> pa.Table:
    """Return rows with the columns of the directory, in their order and types.

    Raises `SchemaError`: reasons ``"missing-column"``, ``"unknown-column"`` and ``"type-mismatch"``.
    """
    rows = pa.concat_tables(map(table_of, batches_of(data)), promote_options="permissive")
    for name in schema.names:
        if name not in rows.column_names:
            raise SchemaError(f"{dest} has a column {name}, which the rows lack: add it", reason="missing-column")
    for name in rows.column_names:
        if name not in schema.names:
            raise SchemaError(
                f"{dest} has no column {name}: its columns are {', '.join(schema.names)}", reason="unknown-column"
            )
    columns, fields = [], []
    for expected in schema:
        field, column = rows.schema.field(expected.name), rows[expected.name]
        if is_variant_field(expected) and is_json_type(field.type):
            parsed = rows_of({field.name: column})
            field, column = parsed.schema.field(0), parsed.column(0)
        if not is_variant_field(expected):
            try:
                field, column = expected, column.cast(expected.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SchemaError(
                    f"column {expected.name} is {field.type}, and {dest} has {expected.type}: cast it ({error})",
                    reason="type-mismatch",
                ) from None
        elif not is_variant_field(field):
            raise SchemaError(
                f"column {expected.name} is {field.type}, and {dest} has Variants: convert it with cast_to_variant",
                reason="type-mismatch",
            )
        columns.append(column)
        fields.append(field)
    return pa.table(columns, schema=pa.schema(fields))
