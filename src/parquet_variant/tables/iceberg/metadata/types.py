"""The types of Iceberg columns: read from and written to JSON, and mapped to and from Arrow.

Owns the type classes (specification, "Schemas and Data Types" and Appendix C) and both Arrow mappings. Schemas and
field ids of whole tables are in `schema`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.pages.file_schema import FIELD_ID
from parquet_variant.layouts.primitive_types import lenient_primitive
from parquet_variant.types import TYPE_OF_ARROW, of_arrow
from parquet_variant.types.targets import VARIANT_STORAGE

MAX_PRECISION = 38
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]")
_GEO = re.compile(r"(geometry|geography)(?:\((.*)\))?")

# The type of a name, and the name of a type, among those that take no numbers.
_NAME_OF_ARROW: dict[pa.DataType, str] = {arrow: row.iceberg or "" for arrow, row in TYPE_OF_ARROW.items()} | {
    pa.null(): "unknown"
}
_ARROW_OF_NAME: dict[str, pa.DataType] = {name: arrow for arrow, name in _NAME_OF_ARROW.items()} | {
    "variant": VARIANT_STORAGE
}
# Types that version 3 added: a table of version 1 or 2 must not have them.
_ADDED_BY_V3 = {"unknown", "variant", "timestamp_ns", "timestamptz_ns", "geometry", "geography"}


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts, `variant` included, by its canonical JSON name.

    >>> PrimitiveType("decimal(9,2)").precision, PrimitiveType("fixed[16]").length
    (9, 16)
    """

    name: str

    @property
    def precision(self) -> int:
        """The precision of a decimal."""
        return int(_parameter(_DECIMAL, self.name, 1))

    @property
    def scale(self) -> int:
        """The scale of a decimal."""
        return int(_parameter(_DECIMAL, self.name, 2))

    @property
    def length(self) -> int:
        """The length of a fixed."""
        return int(_parameter(_FIXED, self.name, 1))

    @property
    def family(self) -> str:
        """The name without parameters: ``decimal`` of ``decimal(9,2)``."""
        return _family(self.name)

    def __str__(self) -> str:
        return self.name


@cache
def _family(name: str) -> str:
    return re.split(r"[(\[]", name, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class NestedField:
    """A field of a struct, or the root of a column; ``extra`` keeps JSON members that this package does not know."""

    id: int
    name: str
    type: IcebergType
    required: bool = False
    doc: str | None = None
    # Defaults in the JSON form of the specification (Appendix D); None is null.
    initial_default: Any = None
    write_default: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """Named fields."""

    fields: tuple[NestedField, ...]

    def get(self, name: str) -> NestedField | None:
        """Return the field of a name; letter case matters only if several names differ by nothing else."""
        exact = next((f for f in self.fields if f.name == name), None)
        if exact is not None:
            return exact
        similar = [f for f in self.fields if f.name.lower() == str(name).lower()]
        return similar[0] if len(similar) == 1 else None

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


@dataclass(frozen=True, slots=True)
class ListType:
    """A list; its element has a field id."""

    element_id: int
    element: IcebergType
    element_required: bool = False

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map; its keys and values have field ids."""

    key_id: int
    key: IcebergType
    value_id: int
    value: IcebergType
    value_required: bool = False

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


IcebergType: TypeAlias = "PrimitiveType | StructType | ListType | MapType"
VARIANT = PrimitiveType("variant")
UNKNOWN = PrimitiveType("unknown")
NO_FIELDS = StructType(())


def parse_type(json: Any) -> IcebergType:
    """Parse a type from its JSON form.

    Raises `IcebergError`: reason ``"bad-schema"``.

    >>> parse_type("decimal(9, 2)")
    PrimitiveType(name='decimal(9,2)')
    """
    if isinstance(json, str):
        return _parse_primitive(json)
    try:
        kind = json["type"]
        if kind == "struct":
            return StructType(tuple(parse_field(f) for f in json["fields"]))
        if kind == "list":
            return ListType(int(json["element-id"]), parse_type(json["element"]), bool(json["element-required"]))
        if kind == "map":
            return MapType(
                int(json["key-id"]),
                parse_type(json["key"]),
                int(json["value-id"]),
                parse_type(json["value"]),
                bool(json["value-required"]),
            )
        if isinstance(kind, str) and set(json) == {"type"}:
            return _parse_primitive(kind)
    except (KeyError, TypeError, ValueError) as error:
        raise IcebergError(f"invalid type in the schema: {json!r} ({error!r})", reason="bad-schema") from None
    raise IcebergError(f"unknown type in the schema: {json!r}", reason="bad-schema")


_FIELD_KEYS = {"id", "name", "type", "required", "doc", "initial-default", "write-default"}


def parse_field(json: Mapping[str, Any]) -> NestedField:
    """Parse a struct field from its JSON form; see `parse_type`."""
    try:
        return NestedField(
            id=int(json["id"]),
            name=str(json["name"]),
            type=parse_type(json["type"]),
            required=bool(json["required"]),
            doc=json.get("doc"),
            initial_default=json.get("initial-default"),
            write_default=json.get("write-default"),
            extra={key: value for key, value in json.items() if key not in _FIELD_KEYS},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise IcebergError(f"invalid field in the schema: {json!r} ({error!r})", reason="bad-schema") from None


def type_to_json(kind: IcebergType) -> Any:
    """Return the JSON form of a type."""
    if isinstance(kind, PrimitiveType):
        return kind.name
    if isinstance(kind, StructType):
        return {"type": "struct", "fields": [field_to_json(f) for f in kind.fields]}
    if isinstance(kind, ListType):
        return {
            "type": "list",
            "element-id": kind.element_id,
            "element": type_to_json(kind.element),
            "element-required": kind.element_required,
        }
    return {
        "type": "map",
        "key-id": kind.key_id,
        "key": type_to_json(kind.key),
        "value-id": kind.value_id,
        "value": type_to_json(kind.value),
        "value-required": kind.value_required,
    }


def field_to_json(f: NestedField) -> dict[str, Any]:
    """Return the JSON form of a struct field."""
    json: dict[str, Any] = {"id": f.id, "name": f.name, "required": f.required, "type": type_to_json(f.type)}
    optional = {"doc": f.doc, "initial-default": f.initial_default, "write-default": f.write_default}
    return json | {key: value for key, value in optional.items() if value is not None} | dict(f.extra)


def children(kind: IcebergType) -> tuple[NestedField, ...]:
    """Return the direct parts of a type as fields; those of lists are ``element``, of maps ``key`` and ``value``."""
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return (NestedField(kind.element_id, "element", kind.element, kind.element_required),)
    if isinstance(kind, MapType):
        return (
            NestedField(kind.key_id, "key", kind.key, True),
            NestedField(kind.value_id, "value", kind.value, kind.value_required),
        )
    return ()


def walk_fields(kind: IcebergType, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    """Yield every field inside a type with its names from the outside in, parents before their parts."""
    for f in children(kind):
        yield (*place, f.name), f
        yield from walk_fields(f.type, (*place, f.name))


def added_by_v3(kind: IcebergType) -> str | None:
    """Return the name of the first type inside that only tables of version 3 may have; None if there is none."""
    if isinstance(kind, PrimitiveType):
        return kind.name if kind.family in _ADDED_BY_V3 else None
    return next((name for f in children(kind) if (name := added_by_v3(f.type)) is not None), None)


# ---- Arrow


def arrow_type(kind: IcebergType, *, with_ids: bool = False) -> pa.DataType:
    """Return the Arrow type of an Iceberg type; ``with_ids`` puts Parquet field ids on every field inside."""
    if isinstance(kind, StructType):
        return pa.struct([arrow_field(f, with_ids=with_ids) for f in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(arrow_field(children(kind)[0], with_ids=with_ids))
    if isinstance(kind, MapType):
        return pa.map_(*(arrow_field(f, with_ids=with_ids) for f in children(kind)))
    if kind.family == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.family == "fixed":
        return pa.binary(kind.length)
    if kind.family in ("geometry", "geography"):
        return pa.binary()
    return _ARROW_OF_NAME[kind.name]


def arrow_field(f: NestedField, *, with_ids: bool = False) -> pa.Field:
    """Return a field as an Arrow field; a Variant carries the extension name."""
    metadata: dict[bytes | str, bytes | str] = {}
    if f.type == VARIANT:
        metadata.update(EXTENSION_METADATA)
    if with_ids:
        metadata[FIELD_ID] = str(f.id).encode()
    return pa.field(f.name, arrow_type(f.type, with_ids=with_ids), not f.required, metadata or None)


def type_of_arrow(kind: pa.DataType, ids: Iterator[int], name: str) -> IcebergType:
    """Return the Iceberg type of an Arrow type that is not a Variant, with new field ids for its parts.

    `ids`: gives an unused field id on each call.
    `name`: the column, for errors.
    Raises `IcebergError`: reason ``"unsupported-type"``.
    """
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return type_of_arrow(kind.value_type, ids, name)
    if pa.types.is_struct(kind):
        numbers = [next(ids) for _ in range(kind.num_fields)]
        return StructType(tuple(field_of_arrow(f, number, ids, name) for f, number in zip(kind, numbers, strict=True)))
    if pa.types.is_map(kind):
        key_id, value_id = next(ids), next(ids)
        key = field_of_arrow(kind.key_field, key_id, ids, name)
        value = field_of_arrow(kind.item_field, value_id, ids, name)
        return MapType(key_id, key.type, value_id, value.type, value.required)
    if is_any_list(kind):
        element_id = next(ids)
        element = field_of_arrow(kind.value_field, element_id, ids, name)
        return ListType(element_id, element.type, element.required)
    if pa.types.is_timestamp(kind):
        zone, unit = ("tz" if kind.tz is not None else ""), ("_ns" if kind.unit == "ns" else "")
        return PrimitiveType(f"timestamp{zone}{unit}")
    if pa.types.is_decimal(kind) and kind.precision <= MAX_PRECISION and kind.scale >= 0:
        return PrimitiveType(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_fixed_size_binary(kind):
        return PrimitiveType(f"fixed[{kind.byte_width}]")
    type_name = of_arrow(_NAME_OF_ARROW, lenient_primitive(kind) or kind)
    if type_name is None:
        raise IcebergError(
            f"column {name!r} is {kind}, which Iceberg has no type for: cast it first", reason="unsupported-type"
        )
    return PrimitiveType(type_name)


def field_of_arrow(f: pa.Field, number: int, ids: Iterator[int], place: str = "") -> NestedField:
    """Return an Arrow field as an Iceberg field of an id; see `type_of_arrow`."""
    name = f"{place}.{f.name}" if place else f.name
    kind = VARIANT if is_variant_field(f) else type_of_arrow(f.type, ids, name)
    return NestedField(number, f.name, kind, required=not f.nullable and kind != UNKNOWN)


def is_any_list(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a list of any form."""
    checks = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
        pa.types.is_fixed_size_list,
    )
    return any(check(kind) for check in checks)


def _parse_primitive(text: str) -> PrimitiveType:
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise IcebergError(f"invalid type in the schema: {text!r}", reason="bad-schema")
        return PrimitiveType(f"decimal({precision},{scale})")
    if match := _FIXED.fullmatch(text):
        return PrimitiveType(f"fixed[{int(match[1])}]")
    if _GEO.fullmatch(text):
        return PrimitiveType(text)
    if text not in _ARROW_OF_NAME:
        raise IcebergError(f"unknown type in the schema: {text!r}", reason="bad-schema")
    return PrimitiveType(text)


def _parameter(pattern: re.Pattern[str], name: str, group: int) -> str:
    match = pattern.fullmatch(name)
    assert match is not None, name
    return match[group]
