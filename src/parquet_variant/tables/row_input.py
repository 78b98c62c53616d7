"""The input of writes to a table: rows in any form, the option ``schema=``, and the options of changes.

Owns the first batch of an iterable, all rows in memory, shredding schemas by column, and the types that the paths of a
table keep: a path that has several types in the files has that of most rows. Single batches are converted by
`interop.rows_of`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.chunked_array import ChunkedVariantArray, variant_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, TableError, VariantError, check_mapping
from parquet_variant.files.parquet.format.files import ParquetSource, open_file
from parquet_variant.io.parallel import Engine
from parquet_variant.layouts.layout import tree_of_schema
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import TypeTree, common_numeric
from parquet_variant.ops.interop.tables import is_list_of_objects, is_rows, rows_of, with_nested_as_variants
from parquet_variant.support.records import Record
from parquet_variant.tables.schema import StructType, variant_paths

# A schema for the only Variant column, or schemas by dotted column name; text is DDL or JSON.
SchemaOption: TypeAlias = "Mapping[str, ShreddingSchema | str] | ShreddingSchema | str | None"
# The name of an application and the number of its batch: a batch that the table has recorded is not written again.
Batch: TypeAlias = tuple[str, int]


class ChangeOptions(Record):
    """The options that all changes of rows have; see `Table.delete`."""

    engine: Engine
    files: Mapping[str, Any]  # Options of `VariantWriter`.
    zone: str = "UTC"
    batch: Batch | None = None

    @classmethod
    def of(cls, engine: Engine, *, zone: str = "UTC", batch: Batch | None = None, **files: Any) -> ChangeOptions:
        """Return options as users give them."""
        return cls(engine, files, zone, batch)


def all_rows(data: Any) -> list[pa.Table]:
    """Return all rows of data as tables, for operations that may need them again after a conflict."""
    return list(map(rows_of, batches_of(data)))


def rows_by_column(data: Any, table_schema: Callable[[], pa.Schema]) -> Any:
    """Return rows for a table by column, with the dicts, lists and structs of its Variant columns as Variants.

    The keys of a list of dicts, one per row, are columns, unless the table has only a column of Variants of another
    name: then each dict is a Variant. The schema is not read for data without dicts, lists and structs.
    Raises `SchemaError` for values that do not have the type of their column.

    >>> fields = pa.schema([("id", pa.int64()), ("note", pa.string())])
    >>> rows_by_column([{"id": 1}, {"id": 2, "note": "x"}], lambda: fields).to_pydict()
    {'id': [1, 2], 'note': [None, 'x']}
    """
    if isinstance(data, VariantArray | ChunkedVariantArray) or not is_rows(data):
        return data
    if not is_list_of_objects(data):
        return with_nested_as_variants(data, lambda: [f.name for f in table_schema() if is_variant_field(f)])
    schema = table_schema()
    names = dict.fromkeys(str(name) for row in data for name in row)
    if len(schema) == 1 and is_variant_field(schema.field(0)) and set(names) != set(schema.names):
        return {schema.names[0]: VariantArray.from_pylist(data)}
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in data]
        field = schema.field(name) if name in schema.names else None
        if field is not None and is_variant_field(field):
            columns[name] = VariantArray.from_pylist(values)
            continue
        try:
            columns[name] = pa.array(values, None if field is None else field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            kind = "" if field is None else f", which has the type {field.type}"
            message = f"cannot convert the values of column {name!r}{kind}: {error}"
            raise SchemaError(message, reason="bad-data") from None
    return variant_table(columns)


def first_rows(data: Any) -> tuple[pa.Table, Any]:
    """Return the first rows of data, and all of the data again; raise `TableError`, ``"bad-data"``, without a batch."""
    batches = iter(batches_of(data))
    first = next(batches, None)
    if first is None:
        raise TableError("the data has no batches, so its columns are unknown: give one", reason="bad-data")
    table = rows_of(first)
    return table, chain([table], batches)


def batches_of(data: Any) -> Iterable[Any]:
    """Return data as batches in any form. Raises `TableError`, ``"bad-data"``, for anything else."""
    if is_rows(data):
        return [data]
    if not isinstance(data, Iterable):
        raise TableError(f"the data is {data!r}: give a table, columns by name or batches", reason="bad-data")
    return data


def schemas_by_column(schema: SchemaOption, columns: StructType) -> dict[str, ShreddingSchema]:
    """Return shredding schemas by the dotted name of their Variant column; columns to be inferred have none.

    Raises `TableError`: ``"bad-argument"``.
    """
    if schema is None or _is_inferred(schema):
        return {}
    places = [".".join(place) for place in variant_paths(columns)]
    if isinstance(schema, (ShreddingSchema, str)):
        if len(places) != 1:
            raise TableError(
                f"schema= is one schema, but the table has {len(places)} Variant columns: give schemas by column name",
                reason="bad-argument",
            )
        schema = {places[0]: schema}
    check_mapping("schema", schema)
    unknown = sorted(set(schema) - set(places), key=str)
    if unknown:
        problem = (
            f"the table has no Variant column {unknown[0]!r}: give column= or schema= for {', '.join(places) or 'none'}"
        )
        raise TableError(problem, reason="bad-argument")
    return {name: ShreddingSchema.of(column) for name, column in schema.items() if not _is_inferred(column)}


def _is_inferred(schema: Any) -> bool:
    return isinstance(schema, str) and schema == "infer"


# An append keeps the types that at most this many files have, which are spread over the files of the table.
FILES_WITH_TYPES = 16
Item = TypeVar("Item")


def spread(items: Sequence[Item], limit: int | None) -> Sequence[Item]:
    """Return at most `limit` items, at equal distances; None: all of them.

    >>> spread(range(10), 4)
    range(0, 10, 3)
    """
    return items if limit is None else items[:: -(-len(items) // limit) or 1]


def types_of_paths(columns: Iterable[tuple[ParquetSource, str]]) -> ShreddingSchema | None:
    """Return the types of the paths of files and their columns: at each path those of most rows.

    Files without the column do not count. None if nothing is shredded.
    """
    return _types_of_most_rows((*_schema_and_rows(source), column) for source, column in columns)


def kept_types(files: Sequence[ParquetSource], columns: Iterable[str]) -> dict[str, ShreddingSchema]:
    """Return the types that an append keeps, by dotted name of the Variant column; damaged files do not hinder it."""
    schemas: list[tuple[pa.Schema, int]] = []
    for source in spread(files, FILES_WITH_TYPES):
        with suppress(VariantError):
            schemas.append(_schema_and_rows(source))
    types = {name: _types_of_most_rows((schema, rows, name) for schema, rows in schemas) for name in columns}
    return {column: schema for column, schema in types.items() if schema is not None}


def _schema_and_rows(source: ParquetSource) -> tuple[pa.Schema, int]:
    with open_file(source) as file:
        return file.reader.schema_arrow, file.metadata.num_rows


def _types_of_most_rows(columns: Iterable[tuple[pa.Schema, int, str]]) -> ShreddingSchema | None:
    rows: Counter[ShreddingSchema] = Counter()
    for file, count, column in columns:
        with suppress(SchemaError):  # the file does not have the column
            rows[ShreddingSchema.from_tree(tree_of_schema(file, column))] += count
    tree: TypeTree = None
    for schema, _ in rows.most_common():
        tree = _merged(tree, schema.type_tree(), adds=True)
    return None if tree is None else ShreddingSchema.from_tree(tree)


def keep_types(schema: ShreddingSchema, table: ShreddingSchema) -> ShreddingSchema:
    """Return the schema of new files with the types that the table has; numbers get a type that holds both."""
    return ShreddingSchema.from_tree(_merged(table.type_tree(), schema.type_tree(), adds=False))


def _merged(table: TypeTree, new: TypeTree, *, adds: bool) -> TypeTree:
    """Return the types of a table and the paths that only the new schema has; with `adds`, those of the table too."""
    if isinstance(table, dict) and isinstance(new, dict):
        names = {**table, **new} if adds else new
        return {
            name: _merged(table[name], new[name], adds=adds) if name in table and name in new else names[name]
            for name in names
        }
    if isinstance(table, list) and isinstance(new, list):
        return [_merged(table[0], new[0], adds=adds)]
    if isinstance(table, pa.DataType) and isinstance(new, pa.DataType):
        return common_numeric(table, new) or table
    return new if table is None else table
