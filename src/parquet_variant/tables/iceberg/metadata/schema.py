"""Schemas of Iceberg tables over the types of `tables.schema`: JSON, field ids, name mapping, and single values.

Owns the names and the JSON of types (specification, "Schemas and Data Types" and Appendix C), `Schema`, and the
serializations of single values (Appendix D): bytes of bounds and JSON of defaults. The members ``doc``,
``initial-default`` and ``write-default`` of a field, and unknown members, are in the field's metadata.

Inside of this package a single value is *raw*: an int for int and long, for dates (days) and for times and timestamps
(ticks since 1970), the unscaled int of a decimal, bytes for uuid, fixed and binary, and bool, float or str for others.
"""

from __future__ import annotations

import json as json_module
import re
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from decimal import Context, Decimal, Inexact
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import IcebergError, TableError
from parquet_variant.layouts.storage_shape import lenient_primitive
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.types import TYPE_OF_ARROW, of_arrow

MAX_PRECISION = 38
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]")
_GEO = re.compile(r"(geometry|geography)(?:\((.*)\))?")
# The specification's names that `tables.schema` spells another way.
_TABLE_NAMES = {"int": "integer", "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "unknown": "void"}
_ICEBERG_NAMES = {table: name for name, table in _TABLE_NAMES.items()}
_NAME_OF_ARROW = {arrow: row.iceberg for arrow, row in TYPE_OF_ARROW.items() if row.iceberg} | {pa.null(): "unknown"}
_NAMES = {*_NAME_OF_ARROW.values(), "variant"}

NAME_MAPPING = "schema.name-mapping.default"
INITIAL_DEFAULT, WRITE_DEFAULT = "initial-default", "write-default"
LONG = shared.PrimitiveType("long")
ROW_ID = shared.Field("_row_id", LONG, field_id=2147483540)
LAST_UPDATED = shared.Field("_last_updated_sequence_number", LONG, field_id=2147483539)
FILE_PATH = shared.Field("_file", shared.PrimitiveType("string"), field_id=2147483646)
POSITION = shared.Field("_pos", LONG, field_id=2147483645)
# Columns that every table has besides its own, selected by name.
METADATA_COLUMNS = {f.name: f for f in (ROW_ID, LAST_UPDATED, FILE_PATH, POSITION)}
MAX_FIELD_ID = 2147483447
_SCHEMA_KEYS = {"type", "schema-id", "identifier-field-ids", "fields"}


@contextmanager
def parsing(what: str, reason: str) -> Iterator[None]:
    """Raise `IcebergError` for JSON that lacks a member, or has one of another type."""
    try:
        yield
    except IcebergError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise IcebergError(f"invalid {what} in the metadata ({error!r})", reason=reason) from None


def parse_type(json: Any) -> shared.TableType:
    """Parse a type from its JSON form. Raises `IcebergError`: reason ``"bad-schema"``.

    >>> parse_type("decimal(9, 2)"), parse_type("timestamptz")
    (PrimitiveType(name='decimal(9,2)'), PrimitiveType(name='timestamp'))
    """
    if isinstance(json, str):
        return _parse_primitive(json)
    with parsing(f"type {json!r}", "bad-schema"):
        kind = json["type"]
        if kind == "struct":
            return shared.StructType(tuple(parse_field(f) for f in json["fields"]))
        if kind == "list":
            return shared.ArrayType(parse_type(json["element"]), not json["element-required"], int(json["element-id"]))
        if kind == "map":
            key, value = parse_type(json["key"]), parse_type(json["value"])
            return shared.MapType(key, value, not json["value-required"], int(json["key-id"]), int(json["value-id"]))
        if isinstance(kind, str) and set(json) == {"type"}:
            return _parse_primitive(kind)
    raise IcebergError(f"unknown type in the schema: {json!r}", reason="bad-schema")


def _parse_primitive(text: str) -> shared.PrimitiveType:
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise IcebergError(f"invalid type in the schema: {text!r}", reason="bad-schema")
        return shared.PrimitiveType(f"decimal({precision},{scale})")
    if match := _FIXED.fullmatch(text):
        return shared.PrimitiveType(f"fixed[{int(match[1])}]")
    if text not in _NAMES and not _GEO.fullmatch(text):
        raise IcebergError(f"unknown type in the schema: {text!r}", reason="bad-schema")
    return shared.PrimitiveType(_TABLE_NAMES.get(text, text))


def parse_field(json: Mapping[str, Any]) -> shared.Field:
    """Parse a struct field from its JSON form; see `parse_type`."""
    with parsing(f"field {json!r}", "bad-schema"):
        members = {name: value for name, value in json.items() if value is not None}
        number, name, nullable = int(members.pop("id")), str(members.pop("name")), not members.pop("required")
        return shared.Field(name, parse_type(members.pop("type")), nullable, members, field_id=number)


def type_to_json(kind: shared.TableType) -> Any:
    """Return the JSON form of a type."""
    if isinstance(kind, shared.PrimitiveType):
        return type_name(kind)
    if isinstance(kind, shared.StructType):
        fields = [
            {"id": f.id, "name": f.name, "required": not f.nullable, "type": type_to_json(f.type), **f.metadata}
            for f in kind.fields
        ]
        return {"type": "struct", "fields": fields}
    json: dict[str, Any] = {"type": "list" if isinstance(kind, shared.ArrayType) else "map"}
    for f in shared.parts(kind):
        json |= {f"{f.name}-id": f.id, f.name: type_to_json(f.type)}
        json |= {} if f.name == "key" else {f"{f.name}-required": not f.nullable}
    return json


def with_members(f: shared.Field, members: Mapping[str, Any]) -> shared.Field:
    """Return a field with other members of its JSON form; members of None are removed."""
    metadata = {name: value for name, value in {**f.metadata, **members}.items() if value is not None}
    return replace(f, metadata=metadata)


def type_name(kind: shared.TableType) -> str:
    """Return the name of a type in the specification, for messages also of types with parts.

    >>> type_name(shared.ArrayType(shared.PrimitiveType("timestamp")))
    'list<timestamptz>'
    """
    if isinstance(kind, shared.PrimitiveType):
        return _ICEBERG_NAMES.get(kind.name, kind.name)
    if isinstance(kind, shared.StructType):
        return f"struct<{', '.join(f'{f.name}: {type_name(f.type)}' for f in kind.fields)}>"
    names = ", ".join(type_name(f.type) for f in shared.parts(kind))
    return f"{'list' if isinstance(kind, shared.ArrayType) else 'map'}<{names}>"


def type_of_arrow(kind: pa.DataType) -> shared.PrimitiveType | None:
    """Return the Iceberg type of an Arrow type without parts; None for other types."""
    if pa.types.is_timestamp(kind):
        zone, unit = ("tz" if kind.tz is not None else ""), ("_ns" if kind.unit == "ns" else "")
        return _parse_primitive(f"timestamp{zone}{unit}")
    if pa.types.is_decimal(kind) and kind.precision <= MAX_PRECISION and kind.scale >= 0:
        return shared.PrimitiveType(f"decimal({kind.precision},{kind.scale})")
    if pa.types.is_fixed_size_binary(kind):
        return shared.PrimitiveType(f"fixed[{kind.byte_width}]")
    name = of_arrow(_NAME_OF_ARROW, lenient_primitive(kind) or kind)
    return None if name is None else _parse_primitive(name)


def field_of_arrow(f: pa.Field, ids: Iterator[int]) -> shared.Field:
    """Return an Arrow field as a field with new field ids. Raises `TableError`: reason ``"unsupported-type"``."""
    number = next(ids)
    made = shared.from_arrow_field(f, type_of_arrow)
    return replace(made, field_id=number, type=with_new_ids(made.type, ids))


def with_new_ids(kind: shared.TableType, ids: Iterator[int]) -> shared.TableType:
    """Return a type whose parts have new field ids, outer ones first."""
    numbered = [replace(f, field_id=next(ids)) for f in shared.parts(kind)]
    return shared.with_parts(kind, [replace(f, type=with_new_ids(f.type, ids)) for f in numbered])


class Schema(Record):
    """A schema of a table; ``extra`` keeps JSON members that this package does not know."""

    id: int
    struct: shared.StructType
    identifier_ids: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, json: Any) -> Schema:
        """Parse the JSON form of a schema. Raises `IcebergError`: reason ``"bad-schema"``."""
        with parsing("schema", "bad-schema"):
            fields = tuple(parse_field(f) for f in json["fields"])
            identifiers = tuple(int(number) for number in json.get("identifier-field-ids") or ())
            number = int(json.get("schema-id", 0))
        extra = {key: value for key, value in json.items() if key not in _SCHEMA_KEYS}
        schema = cls(number, shared.StructType(fields), identifiers, extra)
        if len(schema.by_id) != sum(1 for _ in shared.walk_fields(schema.struct)):
            raise IcebergError("two fields of the schema have one field id", reason="bad-schema")
        return schema

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the schema."""
        json = {**type_to_json(self.struct), "schema-id": self.id}
        if self.identifier_ids:
            json["identifier-field-ids"] = list(self.identifier_ids)
        return json | dict(self.extra)

    @property
    def fields(self) -> tuple[shared.Field, ...]:
        """The top-level fields."""
        return self.struct.fields

    @cached_property
    def by_id(self) -> Mapping[int, tuple[shared.Place, shared.Field]]:
        """Every field at any depth, with its place, by field id."""
        return {f.id: (place, f) for place, f in shared.walk_fields(self.struct)}

    @cached_property
    def highest_id(self) -> int:
        """The highest field id in the schema."""
        return max(self.by_id, default=0)

    def find(self, name: str) -> tuple[shared.Place, shared.Field]:
        """Return the field of a dotted name, and its place. Raises `IcebergError`: reason ``"unknown-column"``."""
        try:
            return shared.find_field(self.struct, name)
        except TableError as error:
            raise IcebergError(error.message, reason=error.reason) from None


def schema_of_arrow(arrow: pa.Schema) -> Schema:
    """Return a schema for Arrow data, with field ids counted from 1, top-level columns first.

    Raises `TableError`: reason ``"unsupported-type"``.

    >>> schema = schema_of_arrow(pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string()))]))
    >>> [(f.id, f.name, type_name(f.type)) for f in schema.fields]
    [(1, 'id', 'long'), (2, 'tags', 'list<string>')]
    """
    struct = with_new_ids(shared.from_arrow_schema(arrow, type_of_arrow), count(1))
    assert isinstance(struct, shared.StructType)
    return Schema(0, struct)


# The names that a field has in files without field ids, by field id.
NameMapping = Mapping[int, frozenset[str]]


def parse_name_mapping(text: str) -> NameMapping:
    """Parse the table property ``schema.name-mapping.default``. Raises `IcebergError`: reason ``"bad-property"``.

    >>> sorted(parse_name_mapping('[{"field-id": 1, "names": ["id", "record_id"]}]')[1])
    ['id', 'record_id']
    """
    names: dict[int, frozenset[str]] = {}

    def add(mappings: Iterable[Mapping[str, Any]]) -> None:
        for mapping in mappings:
            if mapping.get("field-id") is not None:
                names[int(mapping["field-id"])] = frozenset(str(name) for name in mapping["names"])
            add(mapping.get("fields") or ())

    try:
        add(json_module.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"the table property {NAME_MAPPING} is not a name mapping ({error!r})"
        raise IcebergError(problem, reason="bad-property") from None
    return names


TIMESTAMPS = {"timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns"}
ZONED = {"timestamp", "timestamptz_ns"}
_TICKS = {"time", *TIMESTAMPS}
_INT, _FLOAT = struct.Struct("<i"), struct.Struct("<f")
# The binary forms of numbers.
_FORMS = {
    "boolean": struct.Struct("?"),
    **dict.fromkeys(("integer", "date"), _INT),
    **dict.fromkeys(("long", *_TICKS), struct.Struct("<q")),
    "float": _FLOAT,
    "double": struct.Struct("<d"),
}
# The factor of a bound of four bytes: of an int that became a long, or of a date that became a timestamp.
_WIDENED_FROM_INT = {"long": 1, "timestamp_ntz": 86_400_000_000, "timestamp_ns": 86_400_000_000_000}
# Raise instead of rounding, because a default or a partition value must be exact.
_EXACT = Context(prec=80, traps=[Inexact])


def to_bytes(raw: Any, kind: shared.PrimitiveType) -> bytes:
    r"""Return the binary single-value serialization.

    >>> to_bytes(-1, shared.PrimitiveType("integer")), to_bytes(1420, shared.PrimitiveType("decimal(9,2)"))
    (b'\xff\xff\xff\xff', b'\x05\x8c')
    """
    family = kind.family
    if family in _FORMS:
        return _FORMS[family].pack(raw)
    if family == "string":
        return str(raw).encode()
    if family == "decimal":
        return unscaled_bytes(raw)
    if family in ("uuid", "fixed", "binary", "geometry", "geography"):
        return bytes(raw)
    raise IcebergError(f"values of type {type_name(kind)} have no binary form", reason="unsupported-type")


def unscaled_bytes(raw: int) -> bytes:
    """Return a decimal's unscaled value as big-endian two's complement in the fewest bytes."""
    return raw.to_bytes(max((raw + (raw < 0)).bit_length() // 8 + 1, 1), "big", signed=True)


def from_bytes(data: bytes | None, kind: shared.PrimitiveType) -> Any:
    r"""Return the raw value of a bound, or None if it is unknown, or the bytes are not one.

    Bounds keep the type that the column had when its file was written: an int's bound of a column that is now long has
    four bytes.

    >>> from_bytes(b"\x05\x00\x00\x00", shared.PrimitiveType("long")), from_bytes(b"\x05", shared.PrimitiveType("long"))
    (5, None)
    """
    if data is None:
        return None
    family, size = kind.family, len(data)
    if family in _FORMS and size == _FORMS[family].size:
        return _FORMS[family].unpack(data)[0]
    if family in _WIDENED_FROM_INT and size == _INT.size:
        return _INT.unpack(data)[0] * _WIDENED_FROM_INT[family]
    if family == "double" and size == _FLOAT.size:
        return _FLOAT.unpack(data)[0]
    if family == "string":
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None
    if family == "decimal":
        return int.from_bytes(data, "big", signed=True) if 0 < size <= 16 else None
    if family in ("uuid", "fixed"):
        return data if (size,) == (kind.numbers or (16,)) else None
    return data if family == "binary" else None


def raw_values(array: pa.Array, kind: shared.PrimitiveType) -> list[Any]:
    """Return the values of an Arrow array of a type's own Arrow type as raw values; None for null."""
    family = kind.family
    if family == "date" or family in _TICKS:
        array = array.cast(pa.int32() if family == "date" else pa.int64())
    elif family == "uuid":
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
    values: list[Any] = array.to_pylist()
    if family == "decimal":
        return [None if value is None else int(value.scaleb(kind.numbers[1], _EXACT)) for value in values]
    return values


def arrow_array(raws: Sequence[Any], kind: shared.PrimitiveType) -> pa.Array:
    """Return raw values as an Arrow array of the type's own Arrow type."""
    family, target = kind.family, shared.arrow_type(kind)
    if family == "date" or family in _TICKS:
        return pa.array(raws, pa.int32() if family == "date" else pa.int64()).cast(target)
    if family == "decimal":
        scale = kind.numbers[1]
        return pa.array([None if raw is None else Decimal(raw).scaleb(-scale, _EXACT) for raw in raws], target)
    if family == "uuid":
        return pa.array(raws, pa.binary(16)).cast(target)
    return pa.array(raws, target)


def from_json(value: Any, kind: shared.PrimitiveType) -> Any:
    """Return the raw value of a default in JSON. Raises `IcebergError`: reason ``"bad-schema"``.

    >>> from_json("2017-11-16", shared.PrimitiveType("date")), from_json("14.20", shared.PrimitiveType("decimal(9,2)"))
    (17486, 1420)
    """
    if value is None:
        return None
    try:
        return _from_json(value, kind)
    except (ValueError, TypeError, ArithmeticError):
        problem = f"invalid default {value!r} of a column of type {type_name(kind)}"
        raise IcebergError(problem, reason="bad-schema") from None


def _from_json(value: Any, kind: shared.PrimitiveType) -> Any:
    family = kind.family
    if family in ("float", "double"):
        return float(value)
    if family in ("decimal", "date", *_TICKS):
        return raw_values(pa.array([value], pa.string()).cast(shared.arrow_type(kind)), kind)[0]
    if family == "uuid":
        return uuid.UUID(value).bytes
    if family in ("fixed", "binary"):
        return bytes.fromhex(value)
    if type(value) is not {"boolean": bool, "integer": int, "long": int, "string": str}.get(family):
        raise TypeError
    return value


def to_json(raw: Any, kind: shared.PrimitiveType) -> Any:
    """Return the JSON single-value form of a raw value.

    >>> to_json(17486, shared.PrimitiveType("date")), to_json(1420, shared.PrimitiveType("decimal(9,2)"))
    ('2017-11-16', '14.20')
    """
    family = kind.family
    if raw is None or family in ("boolean", "integer", "long", "float", "double", "string"):
        return raw
    if family == "uuid":
        return str(uuid.UUID(bytes=bytes(raw)))
    if family in ("fixed", "binary"):
        return bytes(raw).hex()
    text: str = arrow_array([raw], kind).cast(pa.string())[0].as_py()
    return text.replace(" ", "T").replace("Z", "+00:00")


def partition_text(raw: Any, transform: str, kind: shared.PrimitiveType) -> str | None:
    """Return a partition value as directories spell it, as Iceberg's Java library does; None for null."""
    if raw is None:
        return None
    if transform == "year":
        return str(1970 + raw)
    if transform == "month":
        return f"{1970 + raw // 12:04}-{raw % 12 + 1:02}"
    if transform == "hour":
        return f"{np.datetime64(raw // 24, 'D')}-{raw % 24:02}"
    if transform == "day" or kind.family == "date":
        return str(np.datetime64(raw, "D"))
    try:
        return str(to_json(raw, kind)).lower() if isinstance(raw, bool) else str(to_json(raw, kind))
    except (OverflowError, ValueError):
        return str(raw)
