"""Which layout a storage struct has.

Owns that one question. Leaves whether the struct is sound in its layout to the `schema` modules, which it asks.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.choices import Layout
from parquet_variant.errors import SchemaError
from parquet_variant.path import VariantPath
from parquet_variant.schema.draft_storages import tree_of_object, tree_of_paths
from parquet_variant.schema.final_storage import tree_of_final
from parquet_variant.schema.storage_shape import TypeTree, fields_of


def detect_layout(storage: pa.DataType) -> Layout:
    """Tell the layout of a storage struct by the names of its fields.

    Raises `SchemaError` if it is none (``not-a-variant``, ``not-a-group``).

    >>> detect_layout(pa.struct({"value": pa.binary(), "metadata": pa.binary()}))
    'unshredded'
    >>> detect_layout(pa.struct({"untyped_value": pa.binary(), "typed_value": pa.int64()}))
    'draft-object'
    """
    layout = _layout_of(storage)
    if layout is None:
        names = ", ".join(field.name for field in storage)
        raise SchemaError(
            f"a group of {names or 'nothing'} is not a Variant column in any layout", reason="not-a-variant"
        )
    return layout


def _layout_of(storage: pa.DataType) -> Layout | None:
    names = {name for name in fields_of(storage, VariantPath()) if not name.startswith("_")}
    if "paths" in names:
        return "draft-paths"
    if "metadata" in names and names & {"value", "typed_value"}:
        return "final" if "typed_value" in names else "unshredded"
    if names and names <= {"untyped_value", "object", "array", "typed_value"}:
        return "draft-object"
    return None


def tree_of_layout(storage: pa.DataType) -> TypeTree:
    """Say what a storage struct of any layout shreds.

    Raises `SchemaError` if its layout does not allow it; a struct of no layout is told what the final one lacks.
    """
    layout = _layout_of(storage)
    if layout == "draft-paths":
        return tree_of_paths(storage)
    return tree_of_object(storage) if layout == "draft-object" else tree_of_final(storage)
