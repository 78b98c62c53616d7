"""Shredding schemas from and to logical Arrow types.

Owns the conversion of Arrow types that Variant does not have: unsigned integers widen; large types, views and
dictionaries become their plain type; seconds and milliseconds become microseconds; maps and nulls are untyped; a
Variant storage struct becomes its own schema. Leaves storage structs themselves to `final_storage`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.errors import SchemaError
from parquet_variant.layouts.final_storage import final_storage_type, tree_of_final
from parquet_variant.layouts.primitive_types import lenient_primitive
from parquet_variant.layouts.storage_shape import SchemaNode, TypeTree, is_binary, is_list, refuse_deep
from parquet_variant.path import WILDCARD, VariantPath

ROOT = VariantPath()


def tree_from_arrow(arrow: pa.Schema | pa.DataType) -> TypeTree:
    """Return the shredding schema of an Arrow schema or type, as a plain tree.

    Raises `SchemaError` for a type that no Variant type holds: nanosecond times, durations, intervals, unions, decimals
    over 38 digits (``unsupported-type``); and for one with too many levels (``too-deep``).

    >>> tree_from_arrow(pa.schema({"a": pa.uint32(), "m": pa.map_(pa.string(), pa.int8())}))
    {'a': DataType(int64), 'm': None}
    """
    if not isinstance(arrow, pa.Schema | pa.DataType):
        raise SchemaError(f"expected an Arrow schema or type, got {arrow!r}", reason="unsupported-type")
    kind = pa.struct(list(arrow)) if isinstance(arrow, pa.Schema) else arrow
    refuse_deep(kind)
    return _node(kind, ROOT)


def _node(arrow: pa.DataType, path: VariantPath) -> TypeTree:
    if is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return [_node(arrow.value_type, path / WILDCARD)]
    if pa.types.is_struct(arrow):
        if _is_variant(arrow):
            return tree_of_final(arrow)
        fields = {field.name: _node(field.type, path / field.name) for field in arrow}
        if len(fields) < arrow.num_fields:
            raise SchemaError("duplicate field names in a struct", reason="duplicate-field", path=str(path))
        return fields or None
    if pa.types.is_map(arrow) or pa.types.is_null(arrow):
        return None
    primitive = lenient_primitive(arrow)
    if primitive is None:
        raise SchemaError(
            f"no Variant type holds {arrow}: cast the column first", reason="unsupported-type", path=str(path)
        )
    return primitive


def _is_variant(arrow: pa.StructType) -> bool:
    types = {field.name: field.type for field in arrow}
    return (
        types.keys() <= {"metadata", "value", "typed_value"}
        and is_binary(types.get("metadata", pa.null()))
        and len(types) > 1
    )


def schema_to_arrow(schema: SchemaNode) -> pa.DataType:
    """Return the logical Arrow type of a schema.

    >>> from parquet_variant.layouts.shredding_schema import ShreddingSchema
    >>> print(schema_to_arrow(ShreddingSchema.from_ddl("a array<int>, b variant")))
    struct<a: list<element: int32>, b: struct<metadata: binary not null, value: binary not null>>
    """
    if schema.element is not None:
        return pa.list_(pa.field("element", schema_to_arrow(schema.element)))
    if schema.kind == "object":
        return pa.struct([pa.field(name, schema_to_arrow(child)) for name, child in schema.fields])
    return final_storage_type(schema) if schema.type is None else schema.type
