"""Iceberg schemas in the form that all table formats share (`tables.schema`).

Owns the conversion: names of types, field ids, and nothing that writers and row changes do not need.
"""

from __future__ import annotations

from parquet_variant.tables import schema as shared
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.types import IcebergType, ListType, MapType, NestedField, StructType

# Names of types that `tables.schema` spells another way.
_NAMES = {
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "unknown": "void",
    "geometry": "binary",
    "geography": "binary",
}


def shared_schema(schema: Schema) -> shared.StructType:
    """Return a schema in the form that table formats share.

    >>> from parquet_variant.tables.iceberg.metadata.schema import schema_of_arrow
    >>> import pyarrow as pa
    >>> shared_schema(schema_of_arrow(pa.schema([("n", pa.int32())]))).fields[0].type
    PrimitiveType(name='integer')
    """
    return shared_struct(schema.struct)


def shared_struct(struct: StructType) -> shared.StructType:
    """Return the fields of a struct in the form that table formats share."""
    return shared.StructType(tuple(shared_field(f) for f in struct.fields))


def shared_field(f: NestedField) -> shared.Field:
    """Return a field in the form that table formats share."""
    return shared.Field(f.name, _type(f.type), not f.required, field_id=f.id)


def _type(kind: IcebergType) -> shared.TableType:
    if isinstance(kind, StructType):
        return shared_struct(kind)
    if isinstance(kind, ListType):
        return shared.ArrayType(_type(kind.element), not kind.element_required, kind.element_id)
    if isinstance(kind, MapType):
        return shared.MapType(_type(kind.key), _type(kind.value), not kind.value_required, kind.key_id, kind.value_id)
    return shared.PrimitiveType(_NAMES.get(kind.family, kind.name))
