"""The storage structs of Spark's two drafts: their canonical shapes, and how structs are read.

The second draft has ``untyped_value``, ``object``, ``array`` and ``typed_value`` (spark-encoding-and-shredding-draft-2,
"Parquet Layout"). Every group, the top group included, has one or more of the four, all optional. Names that start with
``_`` are ignored; any other field is an error.

The first draft has ``value``, ``metadata`` and ``paths`` (spark-shredding-draft-1-paths, "Parquet Layout"). A group in
``paths`` is a leaf if it has a binary ``untyped_value``, or a ``typed_value`` that is not nested; a nested
``typed_value`` needs an ``untyped_value`` to be a leaf. Leaves the values to `layouts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import pyarrow as pa

from parquet_variant.layouts.storage_shape import (
    SchemaNode,
    TypeTree,
    fields_of,
    is_binary,
    is_list,
    refuse,
    shredded_type,
    tree_from_arrow,
    value_fields,
)
from parquet_variant.types.path import WILDCARD, VariantPath

ROOT = VariantPath()


@dataclass(frozen=True, slots=True)
class ObjectNode:
    """A shredded value: which of the four columns it has, and its children."""

    typed: pa.DataType | None  # The canonical type of ``typed_value``, or None without that column.
    has_untyped: bool  # Whether there is an ``untyped_value``.
    fields: dict[str, ObjectNode] | None  # The groups in ``object``, or None without that column.
    element: ObjectNode | None  # The group of an element of ``array``, or None without that column.


def object_storage_type(schema: SchemaNode, *, untyped: bool = True) -> pa.StructType:
    """Return the storage struct of a schema in the second draft; all fields are optional.

    `untyped`: add an ``untyped_value`` to every group. Without it, only groups without other columns have one, and only
      values that match the schema completely can be stored.

    >>> from parquet_variant.layouts.shredding_schema import ShreddingSchema
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
        fields = [pa.field(name, object_storage_type(child, untyped=untyped)) for name, child in schema.fields]
        columns.append(pa.field("object", pa.struct(fields)))
    elif schema.type is not None:
        columns.append(pa.field("typed_value", schema.type))
    return pa.struct(columns)


@lru_cache(maxsize=64)
def object_plan(storage: pa.StructType) -> ObjectNode:
    """Return the plan for reading a storage struct of the second draft.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-value`` (none of the four),
    ``unsupported-type``, ``not-a-list``, ``empty-object``, ``not-a-group``.
    """
    return _object_node(storage, ROOT)


def _object_node(group: pa.DataType, path: VariantPath) -> ObjectNode:
    columns = value_fields(group, ("untyped_value", "object", "array", "typed_value"), path)
    if not columns:
        raise refuse("the group has none of untyped_value, object, array and typed_value", path, "no-value")
    typed = fields = element = None
    if "typed_value" in columns:
        typed = shredded_type(columns["typed_value"].type, path)
    if "object" in columns:
        children = fields_of(columns["object"].type, path)
        if not children:
            raise refuse("'object' is a group without fields", path, "empty-object")
        fields = {name: _object_node(child.type, path / name) for name, child in children.items()}
    if "array" in columns:
        inner = columns["array"].type
        if not is_list(inner):
            raise refuse(f"'array' is {inner}, not a list", path, "not-a-list")
        element = _object_node(inner.value_type, path / WILDCARD)
    return ObjectNode(typed, "untyped_value" in columns, fields, element)


def tree_of_object(storage: pa.StructType) -> TypeTree:
    """Return the shredding schema of a storage struct of the second draft, as a plain tree.

    A group may have several of ``object``, ``array`` and ``typed_value``, which a `ShreddingSchema` cannot express;
    then the first of them is used. Raises `SchemaError` as `object_plan`.
    """
    return _object_tree(object_plan(storage))


def _object_tree(node: ObjectNode) -> TypeTree:
    if node.fields is not None:
        return {name: _object_tree(child) for name, child in node.fields.items()}
    if node.element is not None:
        return [_object_tree(node.element)]
    return node.typed


ROOT = VariantPath()


@dataclass(frozen=True, slots=True)
class PathsNode:
    """A group in ``paths``: a leaf with one or both columns, or a group with leaves inside it.

    Parameters
    ----------
    kind
        ``"leaf"``, ``"object"`` or ``"array"``.
    typed
        The Arrow type of a leaf's ``typed_value``, canonical and possibly nested; None without that column.
    has_untyped
        Whether the leaf has an ``untyped_value``.
    fields, element
        The children of an object or array.
    """

    kind: Literal["leaf", "object", "array"]
    typed: pa.DataType | None = None
    has_untyped: bool = False
    fields: dict[str, PathsNode] = field(default_factory=dict)
    element: PathsNode | None = None


def paths_storage_type(schema: SchemaNode, *, whole_arrays: bool = False, untyped: bool = True) -> pa.StructType:
    """Return the storage struct of a schema in the first draft; all fields are optional.

    `schema`: the shredding schema. If it is a single variant, nothing is shredded and there is no ``paths``.
    `whole_arrays`: store arrays of primitives as leaves with a list as ``typed_value`` (the draft's "alternative
    Parquet
      schema"); an array with an element of another type is then stored in ``untyped_value``.
    `untyped`: add an ``untyped_value`` to typed leaves. Without it, values of other types are stored in the top-level
      ``value``.

    >>> from parquet_variant.layouts.shredding_schema import ShreddingSchema
    >>> print(paths_storage_type(ShreddingSchema.from_ddl("a bigint")))
    struct<value: binary, metadata: binary,
        paths: struct<a: struct<typed_value: int64, untyped_value: binary>>>
    """
    top = [pa.field("value", pa.binary()), pa.field("metadata", pa.binary())]
    if schema.kind != "variant":
        top.append(pa.field("paths", _paths_group(schema, whole_arrays, untyped)))
    return pa.struct(top)


def _paths_group(schema: SchemaNode, whole_arrays: bool, untyped: bool) -> pa.DataType:
    if schema.kind == "object":
        return pa.struct([pa.field(name, _paths_group(child, whole_arrays, untyped)) for name, child in schema.fields])
    if schema.element is not None:
        list_type = _list_type(schema) if whole_arrays else None
        if list_type is not None:
            return pa.struct([pa.field("typed_value", list_type), pa.field("untyped_value", pa.binary())])
        return pa.list_(pa.field("element", _paths_group(schema.element, whole_arrays, untyped)))
    if schema.type is None:
        return pa.struct([pa.field("untyped_value", pa.binary())])
    columns = [pa.field("typed_value", schema.type)]
    if untyped:
        columns.append(pa.field("untyped_value", pa.binary()))
    return pa.struct(columns)


def _list_type(schema: SchemaNode) -> pa.DataType | None:
    if schema.element is None:
        return schema.type
    element = _list_type(schema.element)
    return None if element is None else pa.list_(pa.field("element", element))


@lru_cache(maxsize=64)
def paths_plan(storage: pa.StructType) -> PathsNode | None:
    """Return the plan for reading a storage struct of the first draft; None if it has no ``paths``.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-metadata`` (``value`` without
    ``metadata``), ``unsupported-type``, ``empty-object``, ``not-a-group``.
    """
    top = value_fields(storage, ("value", "metadata", "paths"), ROOT)
    if "value" in top and "metadata" not in top:
        raise refuse("the group has a 'value' but no 'metadata'", ROOT, "no-metadata")
    return _paths_node(top["paths"].type, ROOT) if "paths" in top else None


def _paths_node(group: pa.DataType, path: VariantPath) -> PathsNode:
    if is_list(group):
        return PathsNode("array", element=_paths_node(group.value_type, path / WILDCARD))
    if not pa.types.is_struct(group):
        raise refuse(f"expected a group or a list in 'paths', got {group}", path, "not-a-group")
    fields = fields_of(group, path)
    untyped, typed = fields.get("untyped_value"), fields.get("typed_value")
    has_untyped = untyped is not None and is_binary(untyped.type)
    if has_untyped or (typed is not None and not pa.types.is_nested(typed.type)):
        value_fields(group, ("typed_value", "untyped_value"), path)
        return PathsNode("leaf", None if typed is None else _nested_type(typed.type, path), has_untyped)
    if not fields:
        raise refuse("a group of 'paths' has no fields", path, "empty-object")
    children = {name: _paths_node(child.type, path / name) for name, child in fields.items()}
    return PathsNode("object", fields=children)


def _nested_type(arrow: pa.DataType, path: VariantPath) -> pa.DataType:
    if is_list(arrow):
        return pa.list_(pa.field("element", _nested_type(arrow.value_type, path / WILDCARD)))
    if pa.types.is_struct(arrow):
        fields = fields_of(arrow, path)
        return pa.struct([pa.field(name, _nested_type(field.type, path / name)) for name, field in fields.items()])
    return shredded_type(arrow, path)


def tree_of_paths(storage: pa.StructType) -> TypeTree:
    """Return the shredding schema of a storage struct of the first draft, as a plain tree; nested typed values are
    expanded.

    Raises `SchemaError` as `paths_plan`.
    """
    plan = paths_plan(storage)
    return None if plan is None else _paths_tree(plan)


def _paths_tree(node: PathsNode) -> TypeTree:
    if node.element is not None:
        return [_paths_tree(node.element)]
    if node.kind == "object":
        return {name: _paths_tree(child) for name, child in node.fields.items()}
    return None if node.typed is None else tree_from_arrow(node.typed)
