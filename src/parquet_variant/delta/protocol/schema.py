"""Delta's schema strings: a small type tree, and its Arrow form.

Owns the JSON spelling of schemas, column mapping (physical names, field ids) and the Arrow type that a Delta type is
read and written as. Leaves names of primitive types to `types` where Variant has the same type.

A variant is ``struct<metadata: binary, value: binary>`` in Arrow; the field that holds it carries the canonical
extension name ``arrow.parquet.variant`` in its metadata.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import DeltaError
from parquet_variant.schema.storage_shape import is_list
from parquet_variant.types import TYPES, of_arrow

_PHYSICAL = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"
_EXTENSION = b"ARROW:extension:name"
_VARIANT_NAME = b"arrow.parquet.variant"
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts, by its Delta name: ``"long"``, ``"decimal(10,2)"``, ``"variant"``."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list."""

    element: DeltaType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    """A map."""

    key: DeltaType
    value: DeltaType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructType:
    """A struct, or the table itself."""

    fields: tuple[Field, ...]

    def get(self, name: str) -> Field | None:
        """The field of a name: the exact one, else the one that differs by case only."""
        return next((f for f in self.fields if f.name == name), None) or next(
            (f for f in self.fields if f.name.lower() == name.lower()), None
        )

    def to_json(self) -> str:
        """The schema string.

        >>> StructType((Field("v", VARIANT),)).to_json()
        '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}'
        """
        return json.dumps(_to_json(self), separators=(",", ":"), ensure_ascii=False)


DeltaType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    type: DeltaType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def physical_name(self) -> str:
        """The name in data files, statistics and partition values."""
        return str(self.metadata.get(_PHYSICAL, self.name))

    @property
    def field_id(self) -> int | None:
        """The column mapping id."""
        value = self.metadata.get(_FIELD_ID)
        return None if value is None else int(value)


VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")


def parse_schema(text: str, *, mapped: bool = True) -> StructType:
    """Read a schema string. Raises `DeltaError`: reason ``"bad-schema"`` for text that is not a Delta schema.

    `mapped`: with the physical names and ids of columns, which count only where the table maps columns.

    >>> parse_schema('{"type":"struct","fields":[{"name":"v","type":"variant"}]}').fields[0].type
    PrimitiveType(name='variant')
    """
    try:
        bare = not mapped and _PHYSICAL in text
        parsed = _from_json(parse_json(text, object_hook=_without_mapping if bare else None))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DeltaError(f"the schema string is not a Delta schema: {text[:80]}", reason="bad-schema") from error
    if not isinstance(parsed, StructType):
        raise DeltaError(f"the table's schema is not a struct: {text[:80]}", reason="bad-schema")
    return parsed


def arrow_type(kind: DeltaType, *, physical: bool = False) -> pa.DataType:
    """The Arrow type of a Delta type.

    `physical`: name the fields of structs as data files do.
    Raises `DeltaError`: reason ``"unsupported-type"`` for a type that this code does not know.

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
    if match := DECIMAL.fullmatch(kind.name):
        return pa.decimal128(int(match[1]), int(match[2]))
    arrow = _ARROW.get(kind.name)
    if arrow is None:
        raise DeltaError(f"column type {kind.name!r} is not supported", reason="unsupported-type")
    return arrow


def arrow_schema(schema: StructType, *, physical: bool = False) -> pa.Schema:
    """The Arrow schema of a table.

    >>> arrow_schema(StructType((Field("n", PrimitiveType("long")),))).names
    ['n']
    """
    return pa.schema([_arrow_field(f, physical) for f in schema.fields])


def is_variant_field(item: pa.Field) -> bool:
    """Whether an Arrow field is marked as a Variant."""
    return (item.metadata or {}).get(_EXTENSION) == _VARIANT_NAME


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """The Delta schema of Arrow data whose variant fields are marked (`is_variant_field`).

    Raises `DeltaError`: reason ``"unsupported-type"`` for an Arrow type that Delta has no type for.

    >>> from_arrow_schema(pa.schema([("n", pa.int32())])).fields[0].type.name
    'integer'
    """
    return StructType(tuple(_field_from_arrow(f) for f in schema))


def read_schema(schema: pa.Schema | StructType | str) -> StructType:
    """The columns that a user gives, as Arrow's schema or Delta's JSON.

    Raises `DeltaError`: reason ``"bad-schema"``; and as `from_arrow_schema`.

    >>> read_schema(pa.schema([("n", pa.int64())])).fields[0].name
    'n'
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if not isinstance(schema, pa.Schema):
        what = type(schema).__name__
        raise DeltaError(f"schema is a {what}: give one of pyarrow, or Delta's JSON", reason="bad-schema")
    return from_arrow_schema(schema)


def named_type(name: str) -> PrimitiveType:
    """A type without parts by its name in Delta or in SQL.

    >>> named_type("BIGINT").name, named_type("long").name, named_type("decimal(10, 2)").name
    ('long', 'long', 'decimal(10,2)')
    """
    plain = "".join(str(name).lower().split())
    return PrimitiveType(_DELTA_OF_SQL.get(plain, plain))


def check_schema(schema: StructType, partition_by: Sequence[str] = ()) -> None:
    """Refuse columns that no table may have, at every depth. Raises `DeltaError`: reason ``"bad-schema"``."""
    for kind in all_types(schema):
        names = Counter(f.name.lower() for f in kind.fields) if isinstance(kind, StructType) else Counter()
        if twice := [name for name, count in names.items() if count > 1]:
            raise DeltaError(f"column names must differ in more than case: {twice[0]!r}", reason="bad-schema")
    for name in partition_by:
        column = next((f for f in schema.fields if f.name == name), None)
        if column is None:
            raise DeltaError(f"partition column {name!r} is not in the schema", reason="bad-schema")
        if not isinstance(column.type, PrimitiveType) or column.type == VARIANT:
            raise DeltaError(f"column {name!r} cannot be a partition column", reason="bad-schema")
    if len(partition_by) >= len(schema.fields):
        raise DeltaError("a table needs a column that is no partition column", reason="bad-schema")


def was_float(column: Field) -> bool:
    """Whether a column of doubles held floats once: their shortest text is no bound of the doubles they became."""
    changes = column.metadata.get("delta.typeChanges") or ()
    return any(isinstance(each, dict) and each.get("fromType") == "float" for each in changes)


def all_types(kind: DeltaType) -> Iterator[DeltaType]:
    """A type and all types in it, at any depth."""
    yield kind
    if isinstance(kind, StructType):
        parts = [f.type for f in kind.fields]
    elif isinstance(kind, MapType):
        parts = [kind.key, kind.value]
    else:
        parts = [kind.element] if isinstance(kind, ArrayType) else []
    for part in parts:
        yield from all_types(part)


def all_fields(kind: DeltaType) -> Iterator[Field]:
    """The fields of all structs in a type, at any depth."""
    return (f for part in all_types(kind) if isinstance(part, StructType) for f in part.fields)


_Type = TypeVar("_Type", bound=DeltaType)


def with_fields(kind: _Type, change: Callable[[Field], Field | None]) -> _Type:
    """A type whose fields, at any depth, are changed, outer ones first, or left out for None."""
    if isinstance(kind, StructType):
        changed = [new for f in kind.fields if (new := change(f)) is not None]
        return replace(kind, fields=tuple(replace(f, type=with_fields(f.type, change)) for f in changed))
    if isinstance(kind, ArrayType):
        return replace(kind, element=with_fields(kind.element, change))
    if isinstance(kind, MapType):
        return replace(kind, key=with_fields(kind.key, change), value=with_fields(kind.value, change))
    return kind


def variant_paths(kind: DeltaType, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a type holds variants: field names, with ``element``, ``key`` and ``value`` for parts of lists and maps.

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
    """The fields on the way to a place in structs, which is there."""
    fields: list[Field] = []
    kind: DeltaType = schema
    for name in place:
        f = kind.get(name) if isinstance(kind, StructType) else None
        assert f is not None
        fields.append(f)
        kind = f.type
    return fields


def leaves(schema: StructType) -> Iterator[tuple[Field, ...]]:
    """The ways to the columns and fields of structs that are no structs themselves: lists and maps are whole."""
    for f in schema.fields:
        if isinstance(f.type, StructType):
            yield from ((f, *way) for way in leaves(f.type))
        else:
            yield (f,)


def reachable_variants(schema: StructType) -> Iterator[tuple[str, ...]]:
    """Where a type holds variants that have one value a row: columns, and fields of structs.

    >>> list(reachable_variants(StructType((Field("a", ArrayType(VARIANT)), Field("b", VARIANT)))))
    [('b',)]
    """
    return (tuple(f.name for f in way) for way in leaves(schema) if way[-1].type == VARIANT)


# Delta's names where Variant has the type too, from the one type table; decimals carry parameters.
_ARROW: dict[str, pa.DataType] = {
    row.delta: row.arrow
    for row in TYPES.values()
    if row.delta is not None and row.arrow is not None and row.delta != "decimal"
} | {"void": pa.null()}
_DELTA = {arrow: name for name, arrow in _ARROW.items()}
_DELTA_OF_SQL = {name: row.delta for row in TYPES.values() for name in row.ddl if row.delta is not None}


def _arrow_field(f: Field, physical: bool) -> pa.Field:
    name = f.physical_name if physical else f.name
    metadata = {_EXTENSION: _VARIANT_NAME} if f.type == VARIANT else None
    return pa.field(name, arrow_type(f.type, physical=physical), f.nullable, metadata)


def _field_from_arrow(f: pa.Field) -> Field:
    return Field(f.name, VARIANT if is_variant_field(f) else _from_arrow(f.type, f.name), f.nullable)


def _from_arrow(kind: pa.DataType, where: str) -> DeltaType:
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
        raise DeltaError(
            f"column {where!r} has the Arrow type {kind}, which Delta has no type for: cast it first",
            reason="unsupported-type",
        )
    return PrimitiveType(name)


def _to_json(kind: DeltaType) -> Any:
    if isinstance(kind, StructType):
        fields = [
            {"name": f.name, "type": _to_json(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(kind, ArrayType):
        return {"type": "array", "elementType": _to_json(kind.element), "containsNull": kind.contains_null}
    if isinstance(kind, MapType):
        return {
            "type": "map",
            "keyType": _to_json(kind.key),
            "valueType": _to_json(kind.value),
            "valueContainsNull": kind.value_contains_null,
        }
    return kind.name


def _without_mapping(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in (_PHYSICAL, _FIELD_ID)}


def _from_json(data: Any) -> DeltaType:
    if isinstance(data, str):
        return PrimitiveType(data)
    kind = data["type"]
    if kind == "struct":
        return StructType(tuple(_field_from_json(f) for f in data["fields"]))
    if kind == "array":
        return ArrayType(_from_json(data["elementType"]), bool(data.get("containsNull", True)))
    if kind == "map":
        nullable = bool(data.get("valueContainsNull", True))
        return MapType(_from_json(data["keyType"]), _from_json(data["valueType"]), nullable)
    # PROTOCOL.md prints the element type variant as {"type": "variant"}.
    return PrimitiveType(kind) if isinstance(kind, str) else _from_json(kind)


def _field_from_json(data: dict[str, Any]) -> Field:
    name, nullable, metadata = data["name"], data.get("nullable", True), data.get("metadata") or {}
    if not isinstance(name, str) or not isinstance(nullable, bool) or not isinstance(metadata, dict):
        raise TypeError(f"{name!r} is no field")
    f = Field(name, _from_json(data["type"]), nullable, metadata)
    _ = f.field_id  # which must be a number
    return f
