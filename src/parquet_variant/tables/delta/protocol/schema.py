"""Delta's schema strings: the JSON spelling of a table's schema, with column mapping.

Owns reading and writing schema strings, physical names and ids among their metadata, and what users may give as a
schema. Leaves the types themselves to `tables.schema`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.schema import (
    ArrayType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    TableType,
    from_arrow_schema,
    from_ddl,
)
from parquet_variant.types import TYPES

PHYSICAL_NAME = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"
# Metadata that a user may set on the fields of an Arrow schema, apart from identity columns.
_COLUMN_METADATA = ("delta.generationExpression", "delta.invariants", "CURRENT_DEFAULT", "EXISTS_DEFAULT", "comment")
_DELTA_OF_SQL = {name: row.delta for row in TYPES.values() for name in row.ddl if row.delta is not None}


def parse_schema(text: str, *, mapped: bool = True) -> StructType:
    """Read a schema string.

    `mapped`: whether the table maps columns; only then do physical names and ids in the metadata of columns count.
    Raises `DeltaError`: reason ``"bad-schema"`` for text that is not a Delta schema.

    >>> parse_schema('{"type":"struct","fields":[{"name":"v","type":"variant"}]}').fields[0].type
    PrimitiveType(name='variant')
    """
    try:
        bare = not mapped and PHYSICAL_NAME in text
        parsed = _from_json(parse_json(text, object_hook=_without_mapping if bare else None))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DeltaError(f"the schema string is not a Delta schema: {text[:80]}", reason="bad-schema") from error
    if not isinstance(parsed, StructType):
        raise DeltaError(f"the table's schema is not a struct: {text[:80]}", reason="bad-schema")
    return parsed


def schema_json(schema: StructType) -> str:
    """Return the schema string of a schema.

    >>> from parquet_variant.tables.schema import VARIANT
    >>> schema_json(StructType((Field("v", VARIANT),)))
    '{"type":"struct","fields":[{"name":"v","type":"variant","nullable":true,"metadata":{}}]}'
    """
    return json.dumps(_to_json(schema), separators=(",", ":"), ensure_ascii=False)


def read_schema(schema: pa.Schema | StructType | str) -> StructType:
    """Return the columns that a user gives as an Arrow schema, a `StructType`, DDL or Delta's JSON.

    Raises `DeltaError`: reason ``"bad-schema"``; and as `from_arrow_schema`.

    >>> read_schema(pa.schema([("n", pa.int64())])).fields[0].name
    'n'
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema) if schema.lstrip().startswith("{") else from_ddl(schema)
    if not isinstance(schema, pa.Schema):
        raise DeltaError(
            f"schema must be a pyarrow.Schema, DDL or a Delta schema string, not {type(schema).__name__}",
            reason="bad-schema",
        )
    columns = zip(from_arrow_schema(schema).fields, schema, strict=True)
    return StructType(tuple(replace(column, metadata=_column_metadata(field)) for column, field in columns))


def _column_metadata(field: pa.Field) -> dict[str, Any]:
    """Return the metadata of an Arrow field that Delta defines: identity, generation, defaults, comments.

    Arrow keeps strings only, so numbers and booleans of identity columns are parsed.
    """
    metadata: dict[str, Any] = {}
    for key, value in (field.metadata or {}).items():
        name, text = key.decode(), value.decode()
        if name.startswith("delta.identity."):
            try:
                metadata[name] = json.loads(text)
            except ValueError:
                metadata[name] = text
        elif name in _COLUMN_METADATA:
            metadata[name] = text
    return metadata


def named_type(name: str) -> PrimitiveType:
    """Return the primitive type of a name in Delta or in SQL.

    >>> named_type("BIGINT").name, named_type("long").name, named_type("decimal(10, 2)").name
    ('long', 'long', 'decimal(10,2)')
    """
    compact = "".join(str(name).lower().split())
    return PrimitiveType(_DELTA_OF_SQL.get(compact, compact))


def was_float(column: Field) -> bool:
    """Return whether a column of doubles held floats before a type change.

    The shortest text of a float is not a bound of the double that the float became.
    """
    changes = column.metadata.get("delta.typeChanges") or ()
    return any(isinstance(change, dict) and change.get("fromType") == "float" for change in changes)


def with_metadata(field: Field, metadata: dict[str, Any]) -> Field:
    """Return the field with other metadata, and with the physical name and id that these give it."""
    physical, number = metadata.get(PHYSICAL_NAME), metadata.get(_FIELD_ID)
    return Field(
        field.name,
        field.type,
        field.nullable,
        metadata,
        None if physical is None else str(physical),
        None if number is None else int(number),
    )


def _to_json(kind: TableType) -> Any:
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
    return {key: value for key, value in data.items() if key not in (PHYSICAL_NAME, _FIELD_ID)}


def _from_json(data: Any) -> TableType:
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
        raise TypeError(f"{name!r} is not a field")
    return with_metadata(Field(name, _from_json(data["type"]), nullable), metadata)
