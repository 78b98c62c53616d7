"""``variant cat``: rows of Parquet or Vortex files, or of a Delta or Iceberg table, as JSON lines.

Owns the choice between one column and whole rows. Leaves reading to the packages of the formats, and JSON to `to_json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from parquet_variant.cli.options.common import AllowOutside, At, Catalog, Column, Path, Threads, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from parquet_variant.files.parquet.format.files import OpenFile
    from parquet_variant.tables.iceberg.reading.snapshot import Snapshot

# Whole rows; or the values of one column, with its field.
Part: TypeAlias = "tuple[pa.Table, None] | tuple[pa.Array, pa.Field]"


def command(
    path: Path,
    column: Column = None,
    version: Version = None,
    at: At = None,
    catalog: Catalog = None,
    threads: Threads = None,
    limit: Annotated[
        int | None, typer.Option(help="Stop after this number of rows.", min=0, show_default=False)
    ] = None,
    allow_outside: AllowOutside = False,
) -> int:
    """Print rows as JSON, one per line. PATH can also be JSON, or - for standard input.

    Rows are objects, with each Variant as JSON. If the Variant is the only column, or --column names it, only
    its values are printed.
    """
    from parquet_variant.cli.options.stdin import queryable
    from parquet_variant.cli.output import print_json_rows, print_json_values

    remaining = limit
    with queryable(path, threads, catalog) as source:
        of_table = {"version": version, "timestamp": at, "catalog": catalog, "allow_outside": allow_outside}
        for rows, field in _parts(source, column, of_table, threads if limit is None else 1):
            shown = rows if remaining is None else rows.slice(0, remaining)
            if field is None:
                print_json_rows(shown)
            else:
                print_json_values(shown, field)
            if remaining is not None and (remaining := remaining - len(shown)) <= 0:
                break
    return 0


def _parts(path: str, column: str | None, of_table: dict[str, Any], threads: int | None) -> Iterator[Part]:
    from parquet_variant.cli.options.tables import iceberg_snapshot
    from parquet_variant.files.parquet.format.files import locate, open_file
    from parquet_variant.io.parallel import thread_count
    from parquet_variant.tables.opening import is_delta, is_vortex

    has_version = of_table["version"] is not None or of_table["timestamp"] is not None
    version, at, catalog, allow_outside = of_table.values()
    current = iceberg_snapshot(path, catalog, version, at, allow_outside=allow_outside)
    if current is not None:
        yield from _iceberg_parts(current, column, path, thread_count(threads))
    elif is_delta(path) or has_version:
        of_delta = {name: value for name, value in of_table.items() if name != "catalog"}
        yield from _table_parts(path, column, of_delta, thread_count(threads))
    elif is_vortex(path):
        yield from _vortex_parts(path, column, thread_count(threads))
    else:
        for source in locate(path):
            with open_file(source) as file:
                yield from _file_parts(file, column, thread_count(threads))


def _table_parts(path: str, column: str | None, of_table: dict[str, Any], threads: int) -> Iterator[Part]:
    """Yield the files of a Delta table; memory holds one file per thread, and one more."""
    from parquet_variant.tables.delta.log.snapshot import snapshot
    from parquet_variant.tables.delta.reading.read import iter_files, selected_schema

    current = snapshot(path, **of_table)
    names = None
    if column is not None:
        names = [column] if current.schema.get(column) is not None else column.split(".")
    schema = selected_schema(current, None if names is None else names[:1])
    yield from _parts_of_tables(iter_files(current, schema, threads=threads), names, column, path)


def _iceberg_parts(current: Snapshot, column: str | None, path: str, threads: int) -> Iterator[Part]:
    """Yield the files of an Iceberg table, as `_table_parts` does."""
    from parquet_variant.tables.iceberg.reading.planning import plan_files
    from parquet_variant.tables.iceberg.reading.scan import rows_of_files

    names = None
    if column is not None:
        names = [column] if current.schema.get(column) is not None else column.split(".")
    fields = (current.schema if names is None else current.schema.select(names[:1])).struct
    files = plan_files(current).files
    tables = rows_of_files(current, fields, files, threads=threads)
    named = ((file.path, table) for file, table in zip(files, tables, strict=True))
    yield from _parts_of_tables(named, names, column, path)


def _parts_of_tables(
    tables: Iterable[tuple[str, Any]], names: list[str] | None, column: str | None, path: str
) -> Iterator[Part]:
    """Yield rows of files as whole rows, or as the Variant column that was asked for."""
    import pyarrow as pa

    from parquet_variant.arrays.parts import nested_array
    from parquet_variant.errors import VariantFileError
    from parquet_variant.interop.display import is_variant

    for file, table in tables:
        if names is None and (len(table.schema) > 1 or not is_variant(table.schema.field(0))):
            yield table, None
            continue
        field = table.schema.field(0)
        for name in (names or [field.name])[1:]:
            index = field.type.get_field_index(name) if pa.types.is_struct(field.type) else -1
            if index < 0:
                raise VariantFileError(f"unknown column {column} in {path}", reason="no-such-column", file=file)
            field = field.type.field(index)
        if not is_variant(field):
            raise VariantFileError(
                f"{column} is not a Variant column of {path}: omit --column to print whole rows", file=file
            )
        yield nested_array(table, names or [field.name]), field


def _vortex_parts(path: str, column: str | None, threads: int) -> Iterator[Part]:
    """Yield the rows of Vortex files in batches of some thousand rows; a column of JSON text is like a Variant."""
    from parquet_variant.arrays.variant_array import VariantArray
    from parquet_variant.files.vortex.library import open_file
    from parquet_variant.files.vortex.paths import vortex_files
    from parquet_variant.files.vortex.reader import choose_path_column, iter_variant_tables

    for name in vortex_files(path):
        file = open_file(name)
        for table in iter_variant_tables(name, threads=threads):
            if column is None and (len(table.schema) > 1 or not (file.layouts or file.json_columns)):
                yield table, None
                continue
            array = VariantArray.from_arrow(table, choose_path_column(file, column))
            yield array.storage, array.arrow_field


def _file_parts(file: OpenFile, name: str | None, threads: int) -> Iterator[Part]:
    """Yield the row groups of a file; memory holds one row group per thread, and one more."""
    from parquet_variant.files.parquet.format.columns import choose_column, find_variants, no_variant_column
    from parquet_variant.files.parquet.reading.read import partitioned_table, row_group_arrays
    from parquet_variant.io.parallel import in_order

    names = list({node.name: None for node in file.schema.children} | dict(file.source.partition))
    variants = find_variants(file.schema)
    if not variants:
        raise no_variant_column(names, file.name)
    if name is not None or ([variant.path for variant in variants] == [(names[0],)] and len(names) == 1):
        for _, array in row_group_arrays(file, choose_column(file.schema, name, file.name), threads):
            yield array.storage, array.arrow_field
        return

    def rows_of(group: int) -> Part:
        return partitioned_table(file.for_one_thread(), [group]), None

    yield from in_order(rows_of, range(file.metadata.num_row_groups), threads)
