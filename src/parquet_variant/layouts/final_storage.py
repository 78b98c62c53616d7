"""The storage struct of the final layout: ``metadata``, ``value``, ``typed_value``.

Owns its canonical shape and the other shapes that can be read (spec: parquet-variant-shredding, "Value Shredding" to
"Nesting"): fields are found by name; ``value`` or ``typed_value`` may be missing from the file; groups may be optional
although the specification requires them; names that start with ``_`` are ignored, and any other field is an error.
Leaves the values to `layouts.reference.final` and the Parquet types to `files.parquet.validation`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.layouts.storage_shape import (
    SchemaNode,
    TypeTree,
    fields_of,
    is_list,
    refuse,
    shredded_type,
    value_fields,
)
from parquet_variant.path import WILDCARD, VariantPath

ROOT = VariantPath()


def final_storage_type(schema: SchemaNode) -> pa.StructType:
    """Return the canonical storage struct of a schema.

    ``value`` always exists; it is required only if nothing is shredded.

    >>> from parquet_variant.layouts.shredding_schema import ShreddingSchema
    >>> print(final_storage_type(ShreddingSchema.from_ddl("array<date>")))
    struct<metadata: binary not null, value: binary,
        typed_value: list<element: struct<value: binary, typed_value: date32[day]> not null>>
    """
    metadata = pa.field("metadata", pa.binary(), nullable=False)
    if schema.kind == "variant":
        return pa.struct([metadata, pa.field("value", pa.binary(), nullable=False)])
    return pa.struct([metadata, *_value_fields(schema)])


def _value_fields(schema: SchemaNode) -> list[pa.Field]:
    value = pa.field("value", pa.binary())
    return [value] if schema.kind == "variant" else [value, pa.field("typed_value", _typed_value_type(schema))]


def _typed_value_type(schema: SchemaNode) -> pa.DataType:
    if schema.element is not None:
        return pa.list_(pa.field("element", pa.struct(_value_fields(schema.element)), nullable=False))
    if schema.kind == "object":
        return pa.struct(
            [pa.field(name, pa.struct(_value_fields(child)), nullable=False) for name, child in schema.fields]
        )
    return schema.type


def tree_of_final(storage: pa.DataType) -> TypeTree:
    """Return the shredding schema of a storage struct, as a plain tree.

    Raises `SchemaError` with the path of the group, and a reason: ``no-metadata``, ``no-value`` (neither ``value`` nor
    ``typed_value``), ``unknown-field``, ``duplicate-field``, ``not-binary``, ``not-a-group``, ``unsupported-type``,
    ``empty-object``.

    >>> tree_of_final(pa.struct({"metadata": pa.binary(), "typed_value": pa.large_string()}))
    DataType(string)
    >>> tree_of_final(pa.struct({"metadata": pa.binary(), "typed_value": pa.uint32()}))
    Traceback (most recent call last):
    ...
    parquet_variant.errors.SchemaError: typed_value has the type uint32, which is not a shredded value type (path $)
    """
    fields = value_fields(storage, ("metadata", "value", "typed_value"), ROOT)
    if "metadata" not in fields:
        raise refuse("the group is not a Variant: it has no 'metadata'", ROOT, "no-metadata")
    return _node(fields, ROOT)


def _node(fields: dict[str, pa.Field], path: VariantPath) -> TypeTree:
    if "typed_value" not in fields:
        if "value" not in fields:
            raise refuse("the group has neither 'value' nor 'typed_value'", path, "no-value")
        return None
    typed = fields["typed_value"].type
    if is_list(typed):
        return [_child_tree(typed.value_type, path / WILDCARD)]
    if pa.types.is_struct(typed):
        children = fields_of(typed, path)
        if not children:
            raise refuse("'typed_value' is a group without fields", path, "empty-object")
        return {name: _child_tree(child.type, path / name) for name, child in children.items()}
    return shredded_type(typed, path)


def _child_tree(group: pa.DataType, path: VariantPath) -> TypeTree:
    return _node(value_fields(group, ("value", "typed_value"), path), path)
