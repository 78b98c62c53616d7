"""The storage struct of Spark's first draft: ``value``, ``metadata`` and ``paths``.

Owns its canonical shape and how a struct is told apart into leaves, objects and arrays (spark-shredding-draft-1-paths,
"Parquet Layout"). A group is a leaf if it has a binary ``untyped_value`` or a ``typed_value`` that is not nested; a
leaf whose ``typed_value`` is nested needs the ``untyped_value`` to be one. Leaves the values to
`layouts.draft_paths`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.arrow_schema import tree_from_arrow
from parquet_variant.schema.primitive_types import stored_primitive
from parquet_variant.schema.storage_shape import fields_of, is_binary, is_list, refuse, value_fields
from parquet_variant.schema.type_tree import TypeTree

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema

ROOT = VariantPath()


@dataclass(frozen=True, slots=True)
class PathsNode:
    """A group of ``paths``: a leaf with one or both columns, or the way to leaves.

    Parameters
    ----------
    kind
        ``"leaf"``, ``"object"`` or ``"array"``.
    typed
        The Arrow type of a leaf's ``typed_value``, canonical and possibly nested; None without that column.
    has_untyped
        Whether the leaf has an ``untyped_value``.
    fields, element
        What is below an object or array.
    """

    kind: Literal["leaf", "object", "array"]
    typed: pa.DataType | None = None
    has_untyped: bool = False
    fields: dict[str, PathsNode] = field(default_factory=dict)
    element: PathsNode | None = None


def paths_storage_type(schema: ShreddingSchema, *, whole_arrays: bool = False, untyped: bool = True) -> pa.StructType:
    """Give the storage struct of a schema in this layout; everything is optional.

    `schema`: what is shredded. Where it is a lone variant, nothing is, and there is no ``paths``.
    `whole_arrays`: make arrays of primitives leaves with a list as ``typed_value`` (the draft's "alternative Parquet
      schema"): one element of another type sends the whole array to ``untyped_value``.
    `untyped`: give typed leaves an ``untyped_value``. Without, values of other types go to the top-level ``value``.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> print(paths_storage_type(ShreddingSchema.from_ddl("a bigint")))
    struct<value: binary, metadata: binary,
        paths: struct<a: struct<typed_value: int64, untyped_value: binary>>>
    """
    top = [pa.field("value", pa.binary()), pa.field("metadata", pa.binary())]
    if schema.kind != "variant":
        top.append(pa.field("paths", _group(schema, whole_arrays, untyped)))
    return pa.struct(top)


def _group(schema: ShreddingSchema, whole_arrays: bool, untyped: bool) -> pa.DataType:
    if schema.kind == "object":
        return pa.struct([pa.field(name, _group(child, whole_arrays, untyped)) for name, child in schema.fields])
    if schema.element is not None:
        whole = _whole(schema) if whole_arrays else None
        if whole is not None:
            return pa.struct([pa.field("typed_value", whole), pa.field("untyped_value", pa.binary())])
        return pa.list_(pa.field("element", _group(schema.element, whole_arrays, untyped)))
    if schema.type is None:
        return pa.struct([pa.field("untyped_value", pa.binary())])
    columns = [pa.field("typed_value", schema.type)]
    if untyped:
        columns.append(pa.field("untyped_value", pa.binary()))
    return pa.struct(columns)


def _whole(schema: ShreddingSchema) -> pa.DataType | None:
    if schema.element is None:
        return schema.type
    element = _whole(schema.element)
    return None if element is None else pa.list_(pa.field("element", element))


@lru_cache(maxsize=64)
def paths_plan(storage: pa.StructType) -> PathsNode | None:
    """Read a storage struct; None if it has no ``paths``.

    Raises `SchemaError`: ``unknown-field``, ``not-binary``, ``duplicate-field``, ``no-metadata`` (``value`` without
    ``metadata``), ``unsupported-type``, ``empty-object``, ``not-a-group``.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> plan = paths_plan(paths_storage_type(ShreddingSchema.from_ddl("array<int>")))
    >>> plan.kind, plan.element.kind, plan.element.typed
    ('array', 'leaf', DataType(int32))
    """
    top = value_fields(storage, ("value", "metadata", "paths"), ROOT)
    if "value" in top and "metadata" not in top:
        raise refuse("the group has a 'value' but no 'metadata'", ROOT, "no-metadata")
    return _node(top["paths"].type, ROOT) if "paths" in top else None


def _node(group: pa.DataType, path: VariantPath) -> PathsNode:
    if is_list(group):
        return PathsNode("array", element=_node(group.value_type, path / WILDCARD))
    if not pa.types.is_struct(group):
        raise refuse(f"expected a group or a list in 'paths', found {group}", path, "not-a-group")
    fields = fields_of(group, path)
    untyped, typed = fields.get("untyped_value"), fields.get("typed_value")
    has_untyped = untyped is not None and is_binary(untyped.type)
    if has_untyped or (typed is not None and not pa.types.is_nested(typed.type)):
        value_fields(group, ("typed_value", "untyped_value"), path)
        return PathsNode("leaf", None if typed is None else _typed(typed.type, path), has_untyped)
    if not fields:
        raise refuse("a group of 'paths' has no fields", path, "empty-object")
    return PathsNode("object", fields={name: _node(below.type, path / name) for name, below in fields.items()})


def _typed(arrow: pa.DataType, path: VariantPath) -> pa.DataType:
    if is_list(arrow):
        return pa.list_(pa.field("element", _typed(arrow.value_type, path / WILDCARD)))
    if pa.types.is_struct(arrow):
        below = fields_of(arrow, path)
        return pa.struct([pa.field(name, _typed(one.type, path / name)) for name, one in below.items()])
    primitive = stored_primitive(arrow)
    if primitive is None:
        raise refuse(f"typed_value is {arrow}, which is not a shredded value type", path, "unsupported-type")
    return primitive


def tree_of_paths(storage: pa.StructType) -> TypeTree:
    """Say what a storage struct of this layout shreds; a nested ``typed_value`` counts as what it holds.

    Raises `SchemaError` as `paths_plan`.

    >>> from parquet_variant.schema.shredding_schema import ShreddingSchema
    >>> tree_of_paths(paths_storage_type(ShreddingSchema.from_ddl("a array<int>"), whole_arrays=True))
    {'a': [DataType(int32)]}
    """
    plan = paths_plan(storage)
    return None if plan is None else _tree(plan)


def _tree(node: PathsNode) -> TypeTree:
    if node.element is not None:
        return [_tree(node.element)]
    if node.kind == "object":
        return {name: _tree(child) for name, child in node.fields.items()}
    return None if node.typed is None else tree_from_arrow(node.typed)
