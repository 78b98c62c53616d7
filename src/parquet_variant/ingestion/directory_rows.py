"""Rows in memory that are added to a directory of files, or replace its rows: `Table.append` and `Table.overwrite`.

Owns the checks against the columns and partitions of the directory. Leaves the commit to `io.staging`, so that readers
see either all new rows or none, and files to the writers of the formats.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.files.parquet.reading.read import read_schema
from parquet_variant.files.parquet.writing.write import with_layout
from parquet_variant.ingestion.destinations.parquet import PartitionedFiles
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.staging import StagedFile, Staging, open_staging
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import Mode
from parquet_variant.tables.row_input import all_rows


@dataclass(frozen=True, slots=True)
class DirectoryCommit:
    """The result of a write to a directory of files.

    Parameters
    ----------
    rows
        The number of rows.
    files
        The new files.
    committed
        True; tables can also answer that a batch had been committed before.
    """

    rows: int
    files: tuple[str, ...]
    committed: bool = True


def _put_parquet(mode: Mode, path: Any, data: Any, *, schema: Any = None, **options: Any) -> DirectoryCommit:
    dest = _directory(path)
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
    staging = _begin(dest, mode)
    try:
        with PartitionedFiles(staging, staging.attempt(0), 0, **options) as files:
            for values, part in _partitions(rows, names):
                files.write(values, part)
            files.close()
        written = staging.commit(files.files)
    except BaseException:
        staging.abort()
        raise
    return DirectoryCommit(files.rows, tuple(written))


def _put_vortex(mode: Mode, path: Any, data: Any, *, schema: Any = None, **options: Any) -> DirectoryCommit:
    from parquet_variant.files.vortex.reader import read_schema as read_vortex_schema
    from parquet_variant.files.vortex.writer import write

    dest = _directory(path)
    rows = _in_columns(data, read_vortex_schema(dest), dest)
    staging = _begin(dest, mode)
    try:
        file = StagedFile(staging.attempt(0), staging.file_name(0, extension="vortex"))
        info = write(filesystem_of(file.path)[1], rows, schema=schema, **options)
        written = staging.commit([file])
    except BaseException:
        staging.abort()
        raise
    return DirectoryCommit(info.rows, tuple(written))


# `Table.append` and `Table.overwrite` of directories.
append_parquet, overwrite_parquet = partial(_put_parquet, "append"), partial(_put_parquet, "overwrite")
append_vortex, overwrite_vortex = partial(_put_vortex, "append"), partial(_put_vortex, "overwrite")


def _directory(path: Any) -> str:
    if not isinstance(path, str | os.PathLike):
        raise VariantFileError("rows cannot be added to a list of files: open their directory", reason="bad-path")
    return path_text(path)


def _begin(dest: str, mode: Mode) -> Staging:
    staging = open_staging(dest, mode)
    assert staging is not None
    return staging.begin()


def _in_columns(data: Any, schema: pa.Schema, dest: str) -> pa.Table:
    """Return rows with the columns of the directory, in their order and types.

    Raises `SchemaError`: reasons ``"missing-column"``, ``"unknown-column"`` and ``"type-mismatch"``.
    """
    rows = pa.concat_tables(all_rows(data), promote_options="permissive")
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


def _partitions(rows: pa.Table, names: list[str]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the rows of each partition without the partition columns, with the partition's values as text."""
    if not names:
        yield {}, rows
        return
    texts = pa.table({name: rows[name].cast(pa.string()) for name in names})
    keys = list(zip(*(texts[name].to_pylist() for name in names), strict=True))
    for key in dict.fromkeys(keys):
        mask = pa.array([other == key for other in keys])
        yield dict(zip(names, key, strict=True)), rows.filter(mask).drop_columns(names)
