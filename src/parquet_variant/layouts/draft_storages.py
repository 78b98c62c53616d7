"""The storage structs of Spark's two drafts: their canonical shapes, and how structs are read.

The second draft has ``untyped_value``, ``object``, ``array`` and ``typed_value`` (spark-encoding-and-shredding-draft-2,
"Parquet Layout"). Every group, the top group included, has one or more of the four, all optional. Names that start with
``_`` are ignored; any other field is an error.

The first draft has ``value``, ``metadata`` and ``paths`` (spark-shredding-draft-1-paths, "Parquet Layout"). A group in
``paths`` is a leaf if it has a binary ``untyped_value``, or a ``typed_value`` that is not nested; a nested
``typed_value`` needs an ``untyped_value`` to be a leaf. Leaves the values to `layouts.reference`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from parquet_variant.layouts.storage_shape import (
    ROOT,
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


@dataclass(frozen=True, slots=True)
class DraftNode:
    """A shredded value of a draft: its columns, and its children.

    In the second draft a node may have all of them. In the first draft a node is a leaf with columns, or an object or
    array without columns of its own.
    """

    typed: pa.DataType | None = None  # The canonical type of ``typed_value``, or None without that column.
    has_untyped: bool = False  # Whether there is an ``untyped_value``.
    fields: dict[str, DraftNode] | None = None  # The fields of an object, or None.
    element: DraftNode | None = None  # The element of an array, or None.

    @property
    def is_leaf(self) -> bool:
        """Whether the node is neither an object nor an array."""
        return self.fields is None and self.element is None


def object_storage_type(tree: TypeTree) -> pa.StructType:
    """Return the storage struct of a schema in the second draft; all fields are optional.

    >>> print(object_storage_type({"a": pa.int64()}))
    struct<untyped_value: binary,
        object: struct<a: struct<untyped_value: binary, typed_value: int64>>>
    """
    columns = [pa.field("untyped_value", pa.binary())]
    if isinstance(tree, list):
        columns.append(pa.field("array", pa.list_(pa.field("element", object_storage_type(tree[0])))))
    elif isinstance(tree, dict):
        fields = [pa.field(name, object_storage_type(child)) for name, child in tree.items()]
        columns.append(pa.field("object", pa.struct(fields)))
    elif tree is not None:
        columns.append(pa.field("typed_value", tree))
    return pa.struct(columns)


@lru_cache(maxsize=64)
def object_plan(storage: pa.StructType) -> DraftNode:
    """Return the plan for reading a storage struct of the second draft.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-value`` (none of the four),
    ``unsupported-type``, ``not-a-list``, ``empty-object``, ``not-a-group``.
    """
    return _object_node(storage, ROOT)


def _object_node(group: pa.DataType, path: VariantPath) -> DraftNode:
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
    return DraftNode(typed, "untyped_value" in columns, fields, element)


def tree_of_draft(node: DraftNode | None) -> TypeTree:
    """Return the shredding schema of a plan, as a plain tree; nested typed values are expanded.

    A group of the second draft may have several of ``object``, ``array`` and ``typed_value``, which a schema cannot
    express; then the first of them is used.
    """
    if node is None:
        return None
    if node.fields is not None:
        return {name: tree_of_draft(child) for name, child in node.fields.items()}
    if node.element is not None:
        return [tree_of_draft(node.element)]
    return None if node.typed is None else tree_from_arrow(node.typed)


def paths_storage_type(tree: TypeTree, *, whole_arrays: bool = False, untyped: bool = True) -> pa.StructType:
    """Return the storage struct of a schema in the first draft; all fields are optional.

    `tree`: the shredding schema. If it is a single variant, nothing is shredded and there is no ``paths``.
    `whole_arrays`: store arrays of primitives as leaves with a list as ``typed_value`` (the draft's "alternative
      Parquet schema"); an array with an element of another type is then stored in ``untyped_value``.
    `untyped`: add an ``untyped_value`` to typed leaves. Without it, values of other types are stored in the top-level
      ``value``.

    >>> print(paths_storage_type({"a": pa.int64()}))
    struct<value: binary, metadata: binary,
        paths: struct<a: struct<typed_value: int64, untyped_value: binary>>>
    """
    top = [pa.field("value", pa.binary()), pa.field("metadata", pa.binary())]
    if tree is not None:
        top.append(pa.field("paths", _paths_group(tree, whole_arrays, untyped)))
    return pa.struct(top)


def _paths_group(tree: TypeTree, whole_arrays: bool, untyped: bool) -> pa.DataType:
    if isinstance(tree, dict):
        return pa.struct([pa.field(name, _paths_group(child, whole_arrays, untyped)) for name, child in tree.items()])
    typed = _list_type(tree) if whole_arrays or not isinstance(tree, list) else None
    if isinstance(tree, list) and typed is None:
        return pa.list_(pa.field("element", _paths_group(tree[0], whole_arrays, untyped)))
    columns = [] if typed is None else [pa.field("typed_value", typed)]
    if untyped or typed is None or isinstance(tree, list):
        columns.append(pa.field("untyped_value", pa.binary()))
    return pa.struct(columns)


def _list_type(tree: TypeTree) -> pa.DataType | None:
    """Return the type of lists of primitives, or of a primitive; None for any other node."""
    if isinstance(tree, list):
        element = _list_type(tree[0])
        return None if element is None else pa.list_(pa.field("element", element))
    return None if isinstance(tree, dict) else tree


@lru_cache(maxsize=64)
def paths_plan(storage: pa.StructType) -> DraftNode | None:
    """Return the plan for reading a storage struct of the first draft; None if it has no ``paths``.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-metadata`` (``value`` without
    ``metadata``), ``unsupported-type``, ``empty-object``, ``not-a-group``.
    """
    top = value_fields(storage, ("value", "metadata", "paths"), ROOT)
    if "value" in top and "metadata" not in top:
        raise refuse("the group has a 'value' but no 'metadata'", ROOT, "no-metadata")
    return _paths_node(top["paths"].type, ROOT) if "paths" in top else None


def _paths_node(group: pa.DataType, path: VariantPath) -> DraftNode:
    if is_list(group):
        return DraftNode(element=_paths_node(group.value_type, path / WILDCARD))
    if not pa.types.is_struct(group):
        raise refuse(f"expected a group or a list in 'paths', got {group}", path, "not-a-group")
    fields = fields_of(group, path)
    untyped, typed = fields.get("untyped_value"), fields.get("typed_value")
    has_untyped = untyped is not None and is_binary(untyped.type)
    if has_untyped or (typed is not None and not pa.types.is_nested(typed.type)):
        value_fields(group, ("typed_value", "untyped_value"), path)
        return DraftNode(None if typed is None else _nested_type(typed.type, path), has_untyped)
    if not fields:
        raise refuse("a group of 'paths' has no fields", path, "empty-object")
    return DraftNode(fields={name: _paths_node(child.type, path / name) for name, child in fields.items()})


def _nested_type(arrow: pa.DataType, path: VariantPath) -> pa.DataType:
    if is_list(arrow):
        return pa.list_(pa.field("element", _nested_type(arrow.value_type, path / WILDCARD)))
    if pa.types.is_struct(arrow):
        fields = fields_of(arrow, path)
        return pa.struct([pa.field(name, _nested_type(field.type, path / name)) for name, field in fields.items()])
    return shredded_type(arrow, path)
