"""Schemas of tables: a small tree of types, walks over it, and its Arrow form.

Owns the types that Delta and Iceberg share and their conversion to and from Arrow. Leaves the JSON of a schema to the
formats, and the names of primitive types to `types` where Variant has the same type.

A Variant is ``struct<metadata: binary, value: binary>`` in Arrow; the field that holds it carries the canonical
extension name ``arrow.parquet.variant`` in its metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import TableError
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.layouts.type_grammar import Grammar, TypeParser
from parquet_variant.types import TYPES, of_arrow
from parquet_variant.types.forms import with_fields as arrow_with_fields
from parquet_variant.types.targets import VARIANT_STORAGE

_EXTENSION = b"ARROW:extension:name"
_VARIANT_NAME = b"arrow.parquet.variant"
# Names of the fields on the way to a column in structs.
Place: TypeAlias = "tuple[str, ...]"
FIXED = re.compile(r"fixed\[(\d+)\]")
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts, by its Delta name: ``"long"``, ``"decimal(10,2)"``, ``"variant"``."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list."""

    element: TableType
    contains_null: bool = True
    element_id: int | None = None  # Parquet field id of the element, where the format has one.


@dataclass(frozen=True, slots=True)
class MapType:
    """A map."""

    key: TableType
    value: TableType
    value_contains_null: bool = True
    # Parquet field ids of keys and values, where the format has them.
    key_id: int | None = None
    value_id: int | None = None


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct, or the table itself."""

    fields: tuple[Field, ...]

    def get(self, name: str) -> Field | None:
        """Return the field with exactly this name, else the first one that differs only by case."""
        return next((f for f in self.fields if f.name == name), None) or next(
            (f for f in self.fields if f.name.lower() == str(name).lower()), None
        )


TableType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct.

    `stored_name` is the field's name in data files if it differs from `name`; `field_id` is its Parquet field id.
    `metadata` is what the table's schema says about the field apart from these.
    """

    name: str
    type: TableType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    stored_name: str | None = None
    field_id: int | None = None

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values."""
        return self.name if self.stored_name is None else self.stored_name


VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")


def arrow_type(kind: TableType, *, physical: bool = False) -> pa.DataType:
    """Return the Arrow type of a table's type.

    `physical`: use the physical names of fields of structs.
    Raises `TableError`: reason ``"unsupported-type"`` for an unknown type.

    >>> arrow_type(PrimitiveType("timestamp_ntz"))
    TimestampType(timestamp[us])
    """
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(f, physical) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(_arrow_field(Field("element", kind.element, kind.contains_null), physical))
    if isinstance(kind, MapType):
        key, value = Field("key", kind.key, False), Field("value", kind.value, kind.value_contains_null)
        return pa.map_(_arrow_field(key, physical), _arrow_field(value, physical))
    if kind == VARIANT:
        return VARIANT_STORAGE
    if match := FIXED.fullmatch(kind.name):
        return pa.binary(int(match[1]))
    if match := DECIMAL.fullmatch(kind.name):
        return pa.decimal128(int(match[1]), int(match[2]))
    arrow = _ARROW.get(kind.name)
    if arrow is None:
        raise TableError(f"column type {kind.name!r} is not supported", reason="unsupported-type")
    return arrow


def arrow_schema(schema: StructType, *, physical: bool = False) -> pa.Schema:
    """Return the Arrow schema of a table.

    >>> arrow_schema(StructType((Field("n", PrimitiveType("long")),))).names
    ['n']
    """
    return pa.schema([_arrow_field(f, physical) for f in schema.fields])


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """Return the table schema of Arrow data whose Variant fields are marked (`is_variant_field`).

    Raises `TableError`: reason ``"unsupported-type"`` for an Arrow type without a corresponding type.

    >>> from_arrow_schema(pa.schema([("n", pa.int32())])).fields[0].type.name
    'integer'
    """
    return StructType(tuple(_field_from_arrow(f) for f in schema))


def from_ddl(text: str) -> StructType:
    """Return the table schema of column definitions: ``"id BIGINT NOT NULL, v VARIANT"``.

    Raises `TableError`: reason ``"bad-schema"``.

    >>> [(f.name, f.type, f.nullable) for f in from_ddl("id BIGINT NOT NULL, v VARIANT").fields]
    [('id', PrimitiveType(name='long'), False), ('v', PrimitiveType(name='variant'), True)]
    """
    parser = TypeParser(text, _DDL)
    schema = parser.complete(parser.columns())
    return from_arrow_schema(pa.schema(list(arrow_with_fields(schema, _mark_variants))))


_DDL = Grammar(TableError, "bad-schema", 100, "the schema is nested more than {} levels deep", keeps_not_null=True)


def _mark_variants(f: pa.Field) -> pa.Field:
    if f.type == VARIANT_STORAGE:
        return f.with_metadata({_EXTENSION: _VARIANT_NAME})
    return f.with_type(arrow_with_fields(f.type, _mark_variants))


def check_schema(schema: StructType, partition_by: Sequence[str] = ()) -> None:
    """Raise `TableError` (reason ``"bad-schema"``) for columns that a table cannot have, at any depth."""
    for kind in all_types(schema):
        names = Counter(f.name.lower() for f in kind.fields) if isinstance(kind, StructType) else Counter()
        if duplicates := [name for name, count in names.items() if count > 1]:
            raise TableError(
                f"two columns are named {duplicates[0]!r} (names are compared without case): rename one of them",
                reason="bad-schema",
            )
    for name in partition_by:
        column = next((f for f in schema.fields if f.name == name), None)
        if column is None:
            raise TableError(f"partition column {name!r} is not in the schema", reason="bad-schema")
        if not isinstance(column.type, PrimitiveType) or column.type == VARIANT:
            raise TableError(
                f"column {name!r} cannot be a partition column, because it is nested or a Variant", reason="bad-schema"
            )
    if len(partition_by) >= len(schema.fields):
        raise TableError(
            "all columns are partition columns: a table needs at least one other column", reason="bad-schema"
        )


def all_types(kind: TableType) -> Iterator[TableType]:
    """Yield a type and all types in it, at any depth."""
    yield kind
    if isinstance(kind, StructType):
        parts = [f.type for f in kind.fields]
    elif isinstance(kind, MapType):
        parts = [kind.key, kind.value]
    else:
        parts = [kind.element] if isinstance(kind, ArrayType) else []
    for part in parts:
        yield from all_types(part)


def all_fields(kind: TableType) -> Iterator[Field]:
    """Return the fields of all structs in a type, at any depth."""
    return (f for part in all_types(kind) if isinstance(part, StructType) for f in part.fields)


_Type = TypeVar("_Type", bound=TableType)


def with_fields(kind: _Type, change: Callable[[Field], Field | None]) -> _Type:
    """Return a type with changed fields at any depth, outer ones first; a field is left out if its change is None."""
    if isinstance(kind, StructType):
        changed = [new for f in kind.fields if (new := change(f)) is not None]
        return replace(kind, fields=tuple(replace(f, type=with_fields(f.type, change)) for f in changed))
    if isinstance(kind, ArrayType):
        return replace(kind, element=with_fields(kind.element, change))
    if isinstance(kind, MapType):
        return replace(kind, key=with_fields(kind.key, change), value=with_fields(kind.value, change))
    return kind


def variant_paths(kind: TableType, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of Variants: field names, with ``element``, ``key`` and ``value`` for parts of lists and maps.

    >>> list(variant_paths(StructType((Field("a", ArrayType(VARIANT)),))))
    [('a', 'element')]
    """
    if kind == VARIANT:
        yield prefix
    elif isinstance(kind, StructType):
        for f in kind.fields:
            yield from variant_paths(f.type, (*prefix, f.name))
    elif isinstance(kind, ArrayType):
        yield from variant_paths(kind.element, (*prefix, "element"))
    elif isinstance(kind, MapType):
        yield from variant_paths(kind.key, (*prefix, "key"))
        yield from variant_paths(kind.value, (*prefix, "value"))


def fields_at(schema: StructType, place: Sequence[str]) -> list[Field]:
    """Return the fields on the way to an existing place in structs."""
    fields: list[Field] = []
    kind: TableType = schema
    for name in place:
        f = kind.get(name) if isinstance(kind, StructType) else None
        assert f is not None
        fields.append(f)
        kind = f.type
    return fields


def leaves(schema: StructType) -> Iterator[tuple[Field, ...]]:
    """Yield the fields on the way to each column or field that is not a struct; lists and maps are not entered."""
    for f in schema.fields:
        if isinstance(f.type, StructType):
            yield from ((f, *way) for way in leaves(f.type))
        else:
            yield (f,)


def reachable_variants(schema: StructType) -> Iterator[tuple[str, ...]]:
    """Return the places of Variants with one value per row: columns and fields of structs.

    >>> list(reachable_variants(StructType((Field("a", ArrayType(VARIANT)), Field("b", VARIANT)))))
    [('b',)]
    """
    return (tuple(f.name for f in way) for way in leaves(schema) if way[-1].type == VARIANT)


# Delta's type names, from the table of all types; decimals have parameters.
_ARROW: dict[str, pa.DataType] = {
    row.delta: row.arrow
    for row in TYPES.values()
    if row.delta is not None and row.arrow is not None and row.delta != "decimal"
} | {"void": pa.null()}
_DELTA = {arrow: name for name, arrow in _ARROW.items()}
# Types that Iceberg has and Delta does not.
_ARROW |= {
    row.iceberg: row.arrow for row in TYPES.values() if row.delta is None and row.iceberg is not None and row.arrow
}


def _arrow_field(f: Field, physical: bool) -> pa.Field:
    name = f.physical_name if physical else f.name
    metadata = {_EXTENSION: _VARIANT_NAME} if f.type == VARIANT else None
    return pa.field(name, arrow_type(f.type, physical=physical), f.nullable, metadata)


def _field_from_arrow(f: pa.Field) -> Field:
    return Field(f.name, VARIANT if is_variant_field(f) else _from_arrow(f.type, f.name), f.nullable)


def _from_arrow(kind: pa.DataType, where: str) -> TableType:
    t = pa.types
    if t.is_dictionary(kind):
        return _from_arrow(kind.value_type, where)
    if t.is_struct(kind):
        return StructType(tuple(_field_from_arrow(kind.field(i)) for i in range(kind.num_fields)))
    if is_list(kind) or t.is_fixed_size_list(kind):
        inner = kind.value_field
        return ArrayType(_field_from_arrow(inner).type, inner.nullable)
    if t.is_map(kind):
        return MapType(
            _field_from_arrow(kind.key_field).type, _field_from_arrow(kind.item_field).type, kind.item_field.nullable
        )
    if t.is_decimal(kind) and kind.precision <= 38:
        return PrimitiveType(f"decimal({kind.precision},{kind.scale})")
    if t.is_large_string(kind) or t.is_string_view(kind):
        return PrimitiveType("string")
    if t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return PrimitiveType("binary")
    if t.is_timestamp(kind):
        return PrimitiveType("timestamp_ntz" if kind.tz is None else "timestamp")
    if t.is_date64(kind):
        return PrimitiveType("date")
    name = of_arrow(_DELTA, kind)
    if name is None:
        raise TableError(
            f"column {where!r} has the Arrow type {kind}, which table formats do not have: cast it to another type",
            reason="unsupported-type",
        )
    return PrimitiveType(name)
