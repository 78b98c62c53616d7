"""Reading a Variant column, or whole rows with Variants at the top level and inside structs, lists and maps.

Owns concatenating row groups and files, marking Variants in the Arrow schema, and joining files whose shredding schemas
differ. Leaves finding columns to `format.columns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain
from typing import get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.parts import empty_table, known_versions, nested_array
from parquet_variant.arrays.variant_array import VariantArray, plain_storage
from parquet_variant.errors import SchemaError, VariantError, VariantFileError, check_choice, strings_of
from parquet_variant.files.parquet.format.arrow_schema import Place, joined_field, map_variants, tagged
from parquet_variant.files.parquet.format.columns import (
    VariantColumn,
    choose_column,
    choose_values,
    find_variants,
    top_column,
)
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, Source, locate, open_file
from parquet_variant.io.directories import Partition
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import OnConflict
from parquet_variant.types.forms import cast_values, chunks_in_form, in_form, number_form, with_fields, without_encoding
from parquet_variant.types.targets import VARIANT_STORAGE


def read_table(
    source: Source,
    columns: Sequence[str] | None = None,
    *,
    filesystem: fs.FileSystem | None = None,
    threads: int | None = None,
) -> pa.Table:
    """Read whole rows; every Variant is a struct whose field carries the extension name ``arrow.parquet.variant``.

    See `Table.to_arrow`.
    """
    columns = None if columns is None else strings_of("columns", columns)

    def rows_of(parquet_source: ParquetSource) -> pa.Table:
        with open_file(parquet_source) as file:
            present = columns and [name for name in columns if name in file.column_names]
            table = read_rows(file, list(file.facts.groups), present, parquet_source.partition)
            # The nulls of a file without any of the columns need its rows.
            return table if table.num_columns or present is None else pa.table({"": pa.nulls(file.facts.rows())})

    sources = locate(source, filesystem)
    tables = list(in_order(rows_of, sources, thread_count(threads)))
    existing = {name for table in tables for name in table.column_names}
    if missing := [name for name in columns or () if name not in existing]:
        with open_file(sources[0]) as file:  # raises
            read_rows(file, [], missing, sources[0].partition)
    return joined_tables(tables, columns)


def read_rows(
    file: OpenFile, row_groups: list[int], columns: Sequence[str] | None = None, partition: Partition = ()
) -> pa.Table:
    """Return some row groups of an open file, with the extension name on Variant fields.

    `partition`: columns that are added, and replace columns of the file with the same name.
    Raises `VariantFileError` if a column does not exist.
    """
    values = {name: value for name, value in partition if columns is None or name in columns}
    names = [node.name for node in file.schema.children] if columns is None else columns
    nodes = [top_column(file.schema, name, file.name) for name in dict.fromkeys(names) if name not in values]
    numbers = [leaf.leaf for node in nodes for leaf in node.leaves() if leaf.leaf is not None]
    table = _tagged_table(file.read_leaves(row_groups, numbers), file)
    rows = file.facts.rows(row_groups)
    arrays = [*table.columns, *(pa.repeat(value, rows) for value in values.values())]
    fields = [*table.schema, *(pa.field(name, value.type) for name, value in values.items())]
    table = pa.table(arrays, schema=pa.schema(fields))
    return table if columns is None else table.select(list(columns))


def fields_of_rows(file: OpenFile, columns: Sequence[str]) -> dict[str, pa.Field]:
    """Return the fields of columns of an open file, or of its partition, as `read_rows` returns them."""
    constants = {name: pa.field(name, value.type) for name, value in file.source.partition}
    stored = [name for name in columns if name not in constants]
    schema = file.facts.plan(("fields", *stored), lambda: read_rows(file, [], stored).schema)
    return constants | {field.name: field for field in schema}


def plain_variants(table: pa.Table, file: OpenFile) -> pa.Table:
    """Return top-level columns of a file with every Variant as ``VARIANT_STORAGE`` and with the extension name."""
    return map_variants(_tagged_table(table, file), _plain_variant)


def _plain_variant(storage: pa.Array, _: Place) -> pa.Array:
    return plain_storage(VariantArray(storage))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table with marked Variants after `plain_variants`."""
    return map_variants(empty_table(schema), _plain_variant).schema


def _tagged_table(table: pa.Table, file: OpenFile) -> pa.Table:
    """Return a table with the extension name on Variant fields. Raises `SchemaError` for unknown fields of Variants."""
    names = set(table.column_names)
    variants = [variant for variant in find_variants(file.schema) if variant.path[0] in names]
    for variant in variants:
        variant.check_fields(file.name)
    paths = {variant.path for variant in variants}
    schema = pa.schema([_tagged(field, (field.name,), paths) for field in table.schema])
    columns = zip(table.columns, schema.types, strict=True)
    return pa.table([chunks_in_form(column, kind) for column, kind in columns], schema=schema)


def _tagged(field: pa.Field, path: tuple[str, ...], variants: set[tuple[str, ...]]) -> pa.Field:
    if path in variants:
        return tagged(field, number_form(field.type, pa.types.is_duration))
    is_struct, depth = pa.types.is_struct(field.type), len(path)

    def child_path(name: str) -> tuple[str, ...]:
        if is_struct:
            return (*path, name)
        # The element of a list or map, whatever the name of its repeated group.
        inside = (v[: depth + 2] for v in variants if v[:depth] == path and v[depth + 1 : depth + 2] == (name,))
        return next(inside, (*path, "", name))

    return field.with_type(with_fields(field.type, lambda child: _tagged(child, child_path(child.name), variants)))


def joined_tables(tables: Sequence[pa.Table], names: Sequence[str] | None = None) -> pa.Table:
    """Return columns of the tables of files, each as in the first table that has it in another type than null."""
    by_name = dict[str, pa.Field]()
    for field in (field for table in tables for field in table.schema):
        by_name[field.name] = joined_field(by_name.get(field.name, field), field)
    joined, fields = [], [by_name[name] for name in (by_name if names is None else names)]
    for number, field in enumerate(fields):
        columns = {at: table.column(field.name) for at, table in enumerate(tables) if field.name in table.column_names}
        if any(column.type not in (field.type, pa.null()) for column in columns.values()):
            columns = {at: map_variants(tables[at].select([field.name]), _plain_variant).column(0) for at in columns}
            field = plain_schema(pa.schema([field])).field(0)
        may_be_null = len(columns) < len(tables) or any(table.field(field.name).nullable for table in tables)
        fields[number], kind = field.with_nullable(may_be_null), field.type
        parts = (columns.get(at) or pa.chunked_array([pa.nulls(len(table), kind)]) for at, table in enumerate(tables))
        chunks = [as_in_first_file(field.name, chunk, kind) for part in parts for chunk in part.chunks]
        joined.append(pa.chunked_array(chunks, kind))
    return pa.table(joined, schema=pa.schema(fields))


def as_in_first_file(name: str, column: pa.Array, kind: pa.DataType, file: str | None = None) -> pa.Array:
    """Return an array of a later file with the type that the first file has, or that other files have in place of null.

    Raises `SchemaError` if the cast fails, or would lose a part of values: a field, a fraction, or a time of day.
    """
    if column.type == kind:  # pyarrow cannot cast every type to itself
        return column
    with suppress(pa.ArrowException):
        # Nulls cannot be cast back to the type null, nor strings to the same dictionary.
        column = without_encoding(column)
        values = in_form(column, joined_field(pa.field(name, column.type), pa.field(name, kind)).type)
        cast = values if values.type == kind else cast_values(values, kind)
        # NaN is not equal to NaN.
        if values.type in (pa.float32(), kind) or cast.cast(values.type).equals(values):
            return cast
    fault = f"column {name} is {column.type}, but {kind} in the first file"
    raise SchemaError(f"{fault}: cast it in one of the files", reason="files-differ", file=file)


def variant_of_files(sources: Sequence[ParquetSource], name: str | None) -> VariantColumn:
    """Return the column of Variants or JSON text, as `choose_values` does, of the first file that has it."""
    for source in sources:
        try:
            with open_file(source) as file:
                return choose_values(file.schema, name, file.name)
        except VariantFileError as error:
            if source is sources[-1] or error.reason not in ("no-such-column", "no-variant-column"):
                raise
    raise AssertionError("no files")


def column_of_files(sources: Sequence[ParquetSource], name: str | None, schema: object) -> str | None:
    """Return the name of the column that a schema is for; None for several Variants without a name and a schema."""
    try:
        return variant_of_files(sources, name).name
    except VariantFileError as error:
        if schema is not None or error.reason != "several-variant-columns":
            raise
    return None


def main_place(file: OpenFile, name: str | None) -> Place | None:
    """Return the place of the column that a schema is for; None without a name, or if the file lacks the column."""
    return choose_column(file.schema, name, file.name).path if name and _has_column(file, name) else None


def _has_column(file: OpenFile, name: str) -> bool:
    names = chain(file.column_names, (node.dotted for node in file.schema.walk()))
    # A Variant inside lists also has a name without their levels.
    return name in names or any(name == variant.name for variant in find_variants(file.schema))


def variant_in(file: OpenFile, name: str | None) -> VariantColumn | None:
    """Return the Variant column of a file with a name, or the only one; None if the file lacks the column.

    Raises `VariantFileError` if the column is not a Variant, or inside a list or map.
    """
    column = choose_values(file.schema, name, file.name) if name is None or _has_column(file, name) else None
    if column is not None and column.repeated:
        problem = f"{column.name} is inside a list or map, so a row may have several values: use Table.to_arrow"
        raise VariantFileError(f"{problem} or `variant cat`", reason="repeated-column", file=file.name)
    return column


def read(
    source: Source,
    column: str | None = None,
    *,
    filesystem: fs.FileSystem | None = None,
    on_conflict: OnConflict = "error",
    threads: int | None = None,
) -> VariantArray:
    """Read a Variant column; see `Table.read`."""
    check_choice("on_conflict", on_conflict, get_args(OnConflict))
    workers, sources = thread_count(threads), locate(source, filesystem)
    parts: list[VariantArray] = []
    name = variant_of_files(sources, column).name
    for parquet_source in sources:
        with open_file(parquet_source) as file:
            parts += [array for _, array in row_group_arrays(file, variant_in(file, name), workers)]
    if on_conflict != "error":
        from parquet_variant.ops.shred_variant import unshred_variant

        parts = [unshred_variant(array, on_conflict=on_conflict) for array in parts]
    parts = [part for part in parts if len(part)] or parts[:1]
    if len({part.storage.type for part in parts}) > 1:
        parts = [part.to_unshredded() for part in parts]
    return VariantArray.concat(parts) if len(parts) > 1 else parts[0]


def row_group_arrays(
    file: OpenFile, column: VariantColumn | None, threads: int = 1
) -> Iterator[tuple[int, VariantArray]]:
    """Yield the Variant column per row group, with the number of the first row; one empty array for an empty file.

    `column`: the column; None if only other files have it, so that the rows of this file are null.

    Row groups are read by `threads` threads; at most one more is in memory. Raises `SchemaError` if the specification
    does not allow the type of the column.
    """
    if column is None:
        yield 0, VariantArray(pa.nulls(file.facts.rows(), VARIANT_STORAGE))
        return
    leaves = [leaf.leaf for leaf in column.node.leaves() if leaf.leaf is not None]

    def read_groups(groups: list[int]) -> VariantArray:
        thread_file = file if threads == 1 else file.for_one_thread()
        table = thread_file.read_leaves(groups, leaves)
        try:
            array = VariantArray(variant_storage(table, column))
            _ = array.schema  # Raises an error for types that the specification does not allow.
        except VariantError as error:
            raise error.at(file=file.name) from None
        return array

    first_row = 0
    numbers = [[number] for number in file.facts.groups] or [[]]
    for array in in_order(read_groups, numbers, threads):
        yield first_row, array
        first_row += len(array)


def variant_storage(table: pa.Table, column: VariantColumn) -> pa.StructArray:
    """Return the storage of a Variant column in a table that was read from some of its leaves; JSON text is parsed.

    pyarrow takes the nulls of a group from its first leaf. In a damaged file the leaves may disagree: then the group
    exists where any leaf has a value, so that the values of a path do not depend on which other leaves are read.

    Raises `MalformedVariantError` (``bad-version``) for metadata of an unknown version, even next to a scalar, and
    `JsonError` for text that is not JSON.
    """
    storage = nested_array(table, column.path)
    if isinstance(storage, pa.ExtensionArray):  # a type of that name that the process has registered
        storage = storage.storage
    if column.node.is_leaf:
        return parse_json(storage, threads=1).storage
    storage = in_form(storage, number_form(storage.type, pa.types.is_duration))  # only an Arrow schema has durations
    return _agreeing(known_versions(storage), nullable=True, may_be_lost=False)[0]


def _agreeing(array: pa.Array, *, nullable: bool, may_be_lost: bool) -> tuple[pa.Array, pa.Array | None]:
    """Return the array with the nulls of groups that all leaves support, and where the array certainly has a value, if
    it is `nullable`; this is needed where a group above has nulls (`may_be_lost`).
    """
    kind = array.type
    may_be_lost = may_be_lost or (pa.types.is_struct(kind) and nullable and array.null_count > 0)
    is_valid = array.is_valid() if nullable and may_be_lost else None
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and not array.offset:
        element = kind.value_field
        elements = _agreeing(array.values, nullable=element.nullable, may_be_lost=False)[0]
        if elements is not array.values:
            array = type(array).from_arrays(array.offsets, elements, type=kind, mask=array.is_null())
    if not pa.types.is_struct(kind):
        return array, is_valid
    fields = [(kind.field(number), array.field(number)) for number in range(kind.num_fields)]
    parts = [_agreeing(child, nullable=field.nullable, may_be_lost=may_be_lost) for field, child in fields]
    variants = [values for _, values in parts if values is not None]
    has_value = reduce(pc.or_, variants) if variants else None
    if is_valid is not None:
        lost = has_value is not None and pc.and_not(has_value, is_valid).true_count
        has_value = pc.or_(is_valid, has_value) if lost else is_valid
    else:
        lost = 0
    if lost or any(part is not child for (_, child), (part, _) in zip(fields, parts, strict=True)):
        mask = None if is_valid is None else pc.invert(has_value)
        array = pa.StructArray.from_arrays([part for part, _ in parts], fields=list(kind), mask=mask)
    return array, has_value
