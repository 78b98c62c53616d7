"""Storage types of the drafts, with the alternatives of the first draft that this library reads but does not write."""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.layouts.storage_shape import TypeTree
from parquet_variant.layouts.storages import storage_type


def object_storage_type(tree: TypeTree) -> pa.StructType:
    return storage_type(tree, "draft-object")


def paths_storage_type(tree: TypeTree, *, whole_arrays: bool = False, untyped: bool = True) -> pa.StructType:
    """The storage of a schema in the first draft.

    `whole_arrays`: arrays of primitives are leaves with a list as ``typed_value`` (the draft's "alternative Parquet
      schema"); an array with an element of another type is then stored in ``untyped_value``.
    `untyped`: typed leaves have an ``untyped_value``. Without it, values of other types are stored in ``value``.
    """
    storage = storage_type(tree, "draft-paths")
    if tree is None or (untyped and not whole_arrays):
        return storage
    return pa.struct([*list(storage)[:2], pa.field("paths", _paths_group(tree, whole_arrays, untyped))])


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
