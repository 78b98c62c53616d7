"""The storage struct of Spark's second draft: ``untyped_value``, ``object``, ``array`` and ``typed_value``.

Owns its canonical shape and how it is read (spark-encoding-and-shredding-draft-2, "Parquet Layout"): every group, the
top one included, has one or more of the four, all optional; names that start with ``_`` are ignored, any other extra
field is refused. Leaves the values to `layouts.draft_object`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.primitive_types import stored_primitive
from parquet_variant.schema.storage_shape import fields_of, is_list, refuse, value_fields
from parquet_variant.schema.type_tree import TypeTree

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema

ROOT = VariantPath()


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """A shredded value: which of the four columns it has, and what is below."""

    typed: pa.DataType | None  # The canonical type of ``typed_value``, or None without that column.
    has_untyped: bool  # Whether there is an ``untyped_value``.
    fields: dict[str, ObjectNode] | None  # The groups in ``object``, or None without that column.
    element: ObjectNode | None  # The group of an element of ``array``, or None without that column.


def object_storage_type(schema: ShreddingSchema, *, untyped: bool = True) -> pa.StructType:
    """Give the storage struct of a schema in this layout; everything is optional.

    `untyped`: give every group an ``untyped_value``; without, only those that have nothing else, and then only values
      that fit the schema wholly can be stored.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> print(object_storage_type(ShreddingSchema.from_ddl("a bigint")))
    struct<untyped_value: binary,
        object: struct<a: struct<untyped_value: binary, typed_value: int64>>>
    """
    columns = []
    if untyped or schema.kind == "variant":
        columns.append(pa.field("untyped_value", pa.binary()))
    if schema.element is not None:
        element = object_storage_type(schema.element, untyped=untyped)
        columns.append(pa.field("array", pa.list_(pa.field("element", element))))
    elif schema.kind == "object":
        below = [pa.field(name, object_storage_type(child, untyped=untyped)) for name, child in schema.fields]
        columns.append(pa.field("object", pa.struct(below)))
    elif schema.type is not None:
        columns.append(pa.field("typed_value", schema.type))
    return pa.struct(columns)


@lru_cache(maxsize=64)
def object_plan(storage: pa.StructType) -> ObjectNode:
    """Read a storage struct.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-value`` (none of the four),
    ``unsupported-type``, ``not-a-list``, ``empty-object``, ``not-a-group``.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> object_plan(object_storage_type(ShreddingSchema.from_ddl("array<int>"))).element.typed
    DataType(int32)
    """
    return _node(storage, ROOT)


def _node(group: pa.DataType, path: VariantPath) -> ObjectNode:
    columns = value_fields(group, ("untyped_value", "object", "array", "typed_value"), path)
    if not columns:
        raise refuse("the group has none of untyped_value, object, array and typed_value", path, "no-value")
    typed = fields = element = None
    if "typed_value" in columns:
        typed = stored_primitive(columns["typed_value"].type)
        if typed is None:
            inner = columns["typed_value"].type
            raise refuse(f"typed_value is {inner}, which is not a shredded value type", path, "unsupported-type")
    if "object" in columns:
        below = fields_of(columns["object"].type, path)
        if not below:
            raise refuse("'object' is a group without fields", path, "empty-object")
        fields = {name: _node(child.type, path / name) for name, child in below.items()}
    if "array" in columns:
        inner = columns["array"].type
        if not is_list(inner):
            raise refuse(f"'array' is {inner}, not a list", path, "not-a-list")
        element = _node(inner.value_type, path / WILDCARD)
    return ObjectNode(typed, "untyped_value" in columns, fields, element)


def tree_of_object(storage: pa.StructType) -> TypeTree:
    """Say what a storage struct of this layout shreds.

    A group may have several of ``object``, ``array`` and ``typed_value``, which a `ShreddingSchema` cannot say: then
    the first of them is given. Raises `SchemaError` as `object_plan`.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> tree_of_object(object_storage_type(ShreddingSchema.from_ddl("a array<int>")))
    {'a': [DataType(int32)]}
    """
    return _tree(object_plan(storage))


def _tree(node: ObjectNode) -> TypeTree:
    if node.fields is not None:
        return {name: _tree(child) for name, child in node.fields.items()}
    if node.element is not None:
        return [_tree(node.element)]
    return node.typed
