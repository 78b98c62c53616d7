"""Parquet files as the destination of an ingest: a directory, a partitioned directory, or one file.

Tasks stage files, and the driver moves them into place. `partition_by` extracts partition values, `VariantWriter`
writes a file, and `io.staging` moves files. Rows in memory that are added to a directory of files, or replace its rows
(`Table.append`, `Table.overwrite`), are written likewise, after checks against its columns and partitions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import SchemaError, VariantFileError, bad_option
from parquet_variant.files.parquet.format.arrow_schema import joined_field
from parquet_variant.files.parquet.format.files import ParquetSource, locate, locate_any
from parquet_variant.files.parquet.reading.read import as_in_first_file
from parquet_variant.files.parquet.scanning.scan import read_schema, schema_of_files
from parquet_variant.files.parquet.writing.writer import VariantWriter, with_layout
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.ingestion import destination
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.io.commit_journal import of_current_files
from parquet_variant.io.directories import declared_partitions
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.staging import StagedFile, Staging, open_staging, staged_job
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from parquet_variant.ops.interop.tables import rows_of, table_of
from parquet_variant.support.options import Mode
from parquet_variant.support.records import Record
from parquet_variant.tables.partitions import OpenFiles, partition_directory, rows_by_partition
from parquet_variant.tables.row_input import FILES_WITH_TYPES, first_rows, kept_types, spread
from parquet_variant.types.forms import is_json_type

_SHOWN_CHARACTERS = 60


class PartitionedFiles:
    """The files that a task attempt stages, one per partition, or more if the task has very many partitions.

    As a context manager it removes what it wrote if the block fails. `**options` are those of `VariantWriter`.
    """

    def __init__(self, staging: Staging, directory: str, task: int, **options: Any) -> None:
        self._staging, self._directory, self._task, self._options = staging, directory, task, options
        self._open: OpenFiles[str, VariantWriter] = OpenFiles()
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
        return self._open.opened(folder, partial(self._create, folder))

    def _create(self, folder: str) -> VariantWriter:
        # Checked first, because the writer would create the directory of an aborted job again.
        self._staging.check_running()
        name = self._staging.file_name(self._task, len(self.files))
        self.files.append(StagedFile(self._directory, f"{folder}{name}"))
        return self._stack.enter_context(VariantWriter(self.files[-1].path, **self._options))

    def close(self) -> None:
        """Finish all files."""
        self._open.close_all()
        self.rows = sum(info.rows for info in self._open.results)
        self.bytes = sum(info.bytes for info in self._open.results)

    def __enter__(self) -> PartitionedFiles:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            if error[0] is None:
                self.close()
        finally:
            self._stack.__exit__(*error)


class ParquetDirectory(destination.Destination):
    """A directory of Parquet files, which may be partitioned."""

    held: Sequence[ParquetSource] = ()  # The files before an append.

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "held": ()}  # Tasks do not need the list of all files.

    @property
    def holds_data(self) -> bool:
        """Whether the directory has Parquet files."""
        return bool(locate_any(self.dest))

    def data_files(self) -> Sequence[ParquetSource]:
        """Return the files of the directory."""
        return self.held

    def columns(self) -> pa.Schema:
        """Return the columns of files that are spread over the directory."""
        return schema_of_files(spread(self.held, FILES_WITH_TYPES))

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse to append columns that the files of the directory lack: readers would not find their values."""
        stored = read_schema(self.dest).names
        if new := [name for name in names if name not in stored]:
            problem = (
                f"{self.dest} has the columns {', '.join(stored)}, and the new rows have {new[0]}, too: give column= "
                "or columns= as in the first load"
            )
            raise SchemaError(problem, reason="unknown-column", file=self.dest)

    def write(self, batches: Iterable[destination.Columns], task: int, attempt: int | str) -> destination.Written:
        """Stage the files of a task."""
        request, directory = self.request, self.staging.attempt(task, attempt)
        with PartitionedFiles(self.staging, directory, task, **request.write, **self._options) as files:
            for columns in batches:
                variants = columns[request.column]
                if len(columns) == 1 and isinstance(variants, ShreddedRows) and not request.partition_by:
                    files.write_rows(request.column, variants)
                    continue
                for values, part in request.partition_by.split(destination.arrays_of(columns), request.column):
                    files.write(values, part)
            files.close()  # inside, so that an error of the disk is not replaced by that of an aborted writer
        return destination.Written(tuple(files.files), files.rows, files.bytes)


class ParquetFile(destination.FileDestination, ParquetDirectory):
    """One Parquet file."""


def open_parquet(request: destination.WriteRequest) -> destination.Destination | None:
    """Open the directory or file; return None if it holds data and the mode is ``"ignore"``."""
    if request.one_file:
        return ParquetFile.open(request)
    staging = open_staging(request.dest, request.mode)
    if staging is None:
        return None
    if request.mode == "append" and vortex_files(request.dest):
        raise bad_option(f"{request.dest} has Vortex files, which would hide Parquet files: use format='vortex'")
    names, opened = request.partition_by.names, ParquetDirectory(request, staging)
    opened.held = locate_any(request.dest) if request.mode == "append" else ()
    existing = {name: value.type for name, value in opened.held[0].partition} if opened.held else {}
    if opened.held and names and names != tuple(existing):
        raise request.partition_by.differs(tuple(existing), request.dest)
    if existing and not names:
        declared, _ = declared_partitions(*filesystem_of(request.dest))
        recorded = {name: text for name, text in declared.items() if text.startswith("$")}
        opened.request = replace(request, partition_by=PartitionBy.of_destination(existing, request.columns, recorded))
    return opened


class DirectoryCommit(Record):
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
        sources, columns = of_current_files(partial(_files_and_columns, dest))
        names = [name for name, _ in sources[0].partition]
        rows = _in_columns(data, columns, dest)
        if schema is None:
            schema = kept_types(sources, [field.name for field in rows.schema if is_variant_field(field)])
        rows = with_layout(rows, schema)
    with staged_job(dest, mode) as staging:
        directory = staging.attempt(0)
        if format == "vortex":
            staged = [StagedFile(directory, staging.file_name(0, extension="vortex"))]
            row_count = write(filesystem_of(staged[0].path)[1], rows, schema=schema, **options).rows
        else:
            with PartitionedFiles(staging, directory, 0, **options) as files:
                data = rows.drop_columns(names)
                for values, part in rows_by_partition({name: rows[name] for name in names}):
                    files.write(values, data if part is None else data.take(part))
                files.close()
            staged, row_count = files.files, files.rows
        written = staging.commit(staged)
    return DirectoryCommit(row_count, tuple(written))


# `Table.append` and `Table.overwrite` of directories.
append_parquet, overwrite_parquet = partial(_put, "parquet", "append"), partial(_put, "parquet", "overwrite")
append_vortex, overwrite_vortex = partial(_put, "vortex", "append"), partial(_put, "vortex", "overwrite")


def _files_and_columns(dest: str) -> tuple[list[ParquetSource], pa.Schema]:
    sources = locate(dest)
    return sources, schema_of_files(spread(sources, FILES_WITH_TYPES))


def _in_columns(data: Any, schema: pa.Schema, dest: str) -> pa.Table:
    """Return rows with the columns of the directory, in their order and types."""
    rows = pa.concat_tables(map(table_of, first_rows(data)[1]), promote_options="permissive")
    for name in schema.names:
        if name not in rows.column_names:
            raise SchemaError(f"{dest} has a column {name}, which the rows lack: add it", reason="missing-column")
    for name in rows.column_names:
        if name not in schema.names:
            problem = f"{dest} has no column {name}: its columns are {', '.join(schema.names)}; leave it out"
            raise SchemaError(f"{problem}, or use Delta or Iceberg with schema_mode='merge'", reason="unknown-column")
    columns, fields = [], []
    for expected in schema:
        field, column = rows.schema.field(expected.name), rows[expected.name]
        if is_variant_field(expected) and is_json_type(field.type):
            parsed = rows_of({field.name: column})
            field, column = parsed.schema.field(0), parsed.column(0)
        if not is_variant_field(expected):
            problem = f"column {field.name} is {field.type}, and {dest} has {expected.type}, which would lose values"
            field = joined_field(expected, field)
            if pa.types.is_floating(column.type) and pa.types.is_floating(field.type):
                column = column.cast(field.type)  # rounded, as in pyarrow
            try:
                chunks = [as_in_first_file(field.name, chunk, field.type) for chunk in column.chunks]
            except SchemaError:
                raise SchemaError(f"{problem}: cast it", reason="type-mismatch") from None
            column = pa.chunked_array(chunks, field.type)
        elif is_variant_field(expected) and not is_variant_field(field):
            problem = f"column {field.name} is {field.type}, and {dest} has Variants"
            raise SchemaError(f"{problem}: use parse_json or cast_to_variant", reason="type-mismatch")
        columns.append(column)
        fields.append(field)
    return pa.table(columns, schema=pa.schema(fields))
