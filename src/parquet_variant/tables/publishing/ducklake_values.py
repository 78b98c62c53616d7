"""Types, columns and statistics as DuckLake's catalog has them: as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.path import VariantPath
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.types import (
    VARIANT,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    children,
    parse_type,
)
from parquet_variant.tables.iceberg.metadata.values import arrow_array
from parquet_variant.tables.publishing.source import SourceColumns, cannot_publish, published_bounds, raw_bounds
from parquet_variant.types import INTEGERS, TYPE_OF_ARROW, VariantType

_NAMES = {row.iceberg: row.ducklake for row in TYPE_OF_ARROW.values() if row.iceberg and row.ducklake}
_NAMES["variant"] = "variant"
_ICEBERG_NAMES = {name: iceberg for iceberg, name in _NAMES.items()}
_NOT_BOUNDED = {"binary", "fixed", "uuid", "time", "timestamp_ns"}
# DuckDB's names of the types of values at a path. Integers of a path are of one type, whatever their width.
_VARIANT_NAMES = {
    **dict.fromkeys(INTEGERS, "int64"),
    VariantType.STRING: "varchar",
    VariantType.DOUBLE: "float64",
    VariantType.FLOAT: "float32",
    VariantType.DATE: "date",
}


class ColumnRow(NamedTuple):
    """A column of the catalog: the members of ``ducklake_column`` that say what it is."""

    column_id: int
    column_order: int
    column_name: str
    column_type: str
    nulls_allowed: bool
    parent_column: int | None


def column_rows(schema: Schema, location: str) -> list[ColumnRow]:
    """Return the columns of a schema, parents before their parts.

    Raises `TableError`: reason ``"cannot-publish"`` for a type that DuckLake lacks.
    """
    made: list[ColumnRow] = []

    def add(f: NestedField, parent: int | None, place: tuple[str, ...]) -> None:
        kind = _type_name(f.type)
        if kind is None:
            raise cannot_publish(f"column {'.'.join(place)} is {f.type}, which DuckLake lacks", location)
        made.append(ColumnRow(f.id, len(made) + 1, f.name, kind, not f.required or parent is not None, parent))
        for part in children(f.type):
            add(part, f.id, (*place, part.name))

    for f in schema.fields:
        add(f, None, (f.name,))
    return made


def _type_name(kind: IcebergType) -> str | None:
    if isinstance(kind, StructType):
        return "struct"
    if isinstance(kind, ListType):
        return "list"
    if isinstance(kind, MapType):
        return "map"
    return kind.name.replace(" ", "") if kind.family == "decimal" else _NAMES.get(kind.name)


def schema_of_rows(rows: list[ColumnRow]) -> Schema:
    """Return the schema of the columns of a catalog."""

    def field(row: ColumnRow) -> NestedField:
        parts = [field(part) for part in rows if part.parent_column == row.column_id]
        kind: IcebergType
        if row.column_type == "struct":
            kind = StructType(tuple(parts))
        elif row.column_type == "list":
            kind = ListType(parts[0].id, parts[0].type)
        elif row.column_type == "map":
            kind = MapType(parts[0].id, parts[0].type, parts[1].id, parts[1].type)
        else:
            kind = parse_type(_ICEBERG_NAMES.get(row.column_type, row.column_type))
        return NestedField(row.column_id, row.column_name, kind, not row.nulls_allowed)

    return Schema(0, StructType(tuple(field(row) for row in rows if row.parent_column is None)))


def mapping_rows(columns: SourceColumns, partition_ids: set[int]) -> Iterator[tuple[int, str, int, int | None, bool]]:
    """Yield the name mapping of a schema: number, name in files, field id, number of the parent, is in directories."""
    numbers = iter(range(1 << 30))

    def rows(kind: IcebergType, parent: int | None) -> Iterator[tuple[int, str, int, int | None, bool]]:
        for f in children(kind):
            number = next(numbers)
            name = "list" if isinstance(kind, ListType) else columns.stored_name(f)
            yield number, name, f.id, parent, parent is None and f.id in partition_ids
            yield from rows(f.type, number)

    yield from rows(columns.schema.struct, None)


# ---- statistics


def column_statistics(file: DataFile, leaves: list[NestedField]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``file_column_stats``, after the ids of file and table, of the leaf columns that are known."""
    for f in leaves:
        nulls, nans = file.null_value_counts.get(f.id), file.nan_value_counts.get(f.id)
        bounds: list[str | None] = [None, None]
        if f.type != VARIANT and isinstance(f.type, PrimitiveType):
            bounds = [_text(raw, f.type) for raw in raw_bounds(file, f)]
            bounds = [None, None] if None in bounds else bounds
        if nulls is not None or bounds[0] is not None:
            yield f.id, None, file.record_count, nulls, *bounds, None if nans is None else nans > 0, None


def _text(raw: Any, kind: PrimitiveType) -> str | None:
    """Return a value as DuckDB casts it to text; None if there is no bound of the type."""
    if raw is None or kind.family in _NOT_BOUNDED:
        return None
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, float):
        return repr(raw) if math.isfinite(raw) else None
    if isinstance(raw, str) or kind.family in ("int", "long"):
        return str(raw)
    with suppress(OverflowError, ValueError):
        value = arrow_array([raw], kind)[0].as_py()
        return str(value) if kind.family != "timestamptz" else str(value).replace("+00:00", "+00")
    return None


def path_statistics(file: DataFile, f: NestedField) -> Iterator[tuple[str, str, str, str]]:
    """Yield the bounds of the paths of a Variant: path, type, minimum and maximum."""
    lower, upper = published_bounds(file, f)
    for path, bound in lower.items():
        other = upper.get(path)
        if other is None or not path.segments:
            continue
        kinds = {_VARIANT_NAMES.get(side.type) for side in (bound, other)}
        texts = [_variant_text(side) for side in (bound, other)]
        (kind,) = kinds if len(kinds) == 1 else (None,)
        if kind is not None and texts[0] is not None and texts[1] is not None:
            yield path_text(path), kind, texts[0], texts[1]


def _variant_text(bound: Variant) -> str | None:
    with suppress(VariantError, ValueError, OverflowError):
        value = bound.to_python()
        return repr(value) if isinstance(value, float) else str(value)
    return None


def path_text(path: VariantPath) -> str:
    """Return a path as DuckLake spells it.

    >>> path_text(VariantPath.parse("$.o.d"))
    '"o"."d"'
    """
    return ".".join('"{}"'.format(str(segment).replace('"', '""')) for segment in path.segments)
