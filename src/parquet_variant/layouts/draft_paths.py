"""Spark's first draft: ``value``, ``metadata``, ``paths``.

Owns what each row holds and what it means (spark-shredding-draft-1-paths). Leaves the storage type to
`schema.draft_storages`.

``value`` has what ``paths`` cannot represent, with metadata of just its names; both are null if nothing is left. Where
elements of an array are left, the others stand as Variant null in ``value``. ``untyped_value`` is metadata and value in
one binary, with metadata of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.choices import OnConflict
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, SchemaError
from parquet_variant.layouts.trees import (
    VARIANT_NULL,
    Policy,
    Tree,
    compact,
    elements_of_array,
    fields_of_object,
    is_null,
)
from parquet_variant.layouts.typed_values import slot_of, variant_of
from parquet_variant.path import VariantPath
from parquet_variant.schema.draft_storages import PathsNode, paths_plan, paths_storage_type
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.types import VariantType


def _plan(schema: ShreddingSchema | pa.StructType) -> PathsNode | None:
    return paths_plan(paths_storage_type(schema) if isinstance(schema, ShreddingSchema) else schema)


def shred_value(variant: Variant | None, schema: ShreddingSchema | pa.StructType) -> dict[str, Any] | None:
    """Take a value apart; the row is as that of `final.shred_value`.

    `variant`: the value; None is a SQL NULL.
    `schema`: the schema, or a storage type of this layout with ``value`` and ``metadata``; its leaves may have one
      column only, and nested typed values.
    Raises `SchemaError` if something is left and the storage type has no ``value`` (``no-value``);
    `MalformedVariantError` for bytes that are not a Variant.

    >>> row = shred_value(Variant.from_python([1, "x"]), ShreddingSchema.from_ddl("array<bigint>"))
    >>> row["value"], [leaf["typed_value"] for leaf in row["paths"]], row["paths"][1]["untyped_value"].hex()
    (None, [1, None], '1100000578')
    """
    plan = _plan(schema)
    if variant is None:
        return None
    residual, paths = (variant, None) if plan is None else _shred(variant, plan)
    if residual is not None and isinstance(schema, pa.DataType) and schema.get_field_index("value") < 0:
        raise SchemaError("a value does not fit, and the storage type has no 'value' for it", reason="no-value")
    rest = None if residual is None else compact(residual)
    row: dict[str, Any] = {"value": rest and rest.value, "metadata": rest and rest.metadata}
    return row if plan is None else {**row, "paths": paths}


def _shred(variant: Variant, node: PathsNode) -> tuple[Tree | None, Any]:
    """What is left for ``value``, and what goes to ``paths``."""
    if node.kind == "leaf":
        return _leaf(variant, node)
    if node.element is not None:
        if variant.type != VariantType.ARRAY:
            return variant, None
        pairs = [_shred(element, node.element) for element in elements_of_array(variant)]
        left = [VARIANT_NULL if rest is None else rest for rest, _ in pairs]
        return (left if any(rest is not None for rest, _ in pairs) else None), [paths for _, paths in pairs]
    if variant.type != VariantType.OBJECT:
        return variant, None
    fields: dict[str, Tree] = {**fields_of_object(variant)}
    groups: dict[str, Any] = dict.fromkeys(node.fields)
    for name, child in node.fields.items():
        field = fields.pop(name, None)
        if isinstance(field, Variant):
            rest, groups[name] = _shred(field, child)
            if rest is not None:
                fields[name] = rest
    return fields or None, groups


def _leaf(variant: Variant, node: PathsNode) -> tuple[Tree | None, dict[str, Any] | None]:
    slot = None if node.typed is None else nested_slot_of(variant, node.typed)
    if slot is None and not node.has_untyped:
        return variant, None
    row = {} if node.typed is None else {"typed_value": slot}
    if node.has_untyped:
        row["untyped_value"] = compact(variant).to_bytes() if slot is None else None
    return None, row


def reconstruct(
    row: Mapping[str, Any] | None, schema: ShreddingSchema | pa.StructType, on_conflict: OnConflict = "error"
) -> Variant | None:
    """Put a row's value together again, as `final.reconstruct` does, with metadata of just its names.

    Raises `ConflictError` if columns are set that exclude each other; `MalformedVariantError` for bytes that are not a
    Variant, and for a ``value`` whose metadata is null; `SchemaError` if the storage type is not allowed.

    >>> row = {"value": None, "metadata": None, "paths": [{"typed_value": 1, "untyped_value": None}]}
    >>> reconstruct(row, ShreddingSchema.from_ddl("array<bigint>"))
    <Variant array: [1]>
    """
    plan = _plan(schema)
    if row is None:
        return None
    residual = None
    if row.get("value") is not None:
        if row.get("metadata") is None:
            raise MalformedVariantError("a value has no metadata", reason="null-metadata")
        residual = Variant(row["metadata"], row["value"])
    tree = residual if plan is None else _build(residual, row.get("paths"), plan, VariantPath(), Policy(on_conflict))
    return VARIANT_NULL if tree is None else compact(tree)


def _build(residual: Variant | None, paths: Any, node: PathsNode, path: VariantPath, policy: Policy) -> Tree | None:
    if paths is None:
        return residual
    if node.kind == "leaf":
        return _leaf_tree(residual, paths, node, path, policy)
    if node.element is not None:
        rest = _elements(residual, len(paths), path, policy)
        built = [_build(rest[i], one, node.element, path / i, policy) for i, one in enumerate(paths)]
        return [VARIANT_NULL if element is None else element for element in built]
    fields = policy.fields_left(residual, path)
    for name, child in node.fields.items():
        rest_of_field = fields.pop(name, None)
        assert rest_of_field is None or isinstance(rest_of_field, Variant)
        field = _build(rest_of_field, paths.get(name), child, path / name, policy)
        if field is not None:
            fields[name] = field
    return fields


def _leaf_tree(
    residual: Variant | None, leaf: Mapping[str, Any], node: PathsNode, path: VariantPath, policy: Policy
) -> Tree | None:
    typed, untyped = leaf.get("typed_value"), leaf.get("untyped_value")
    if typed is None and untyped is None:
        return residual
    clash = typed is not None and untyped is not None
    if clash or (residual is not None and not is_null(residual)):
        policy.meet("both-set", path)
    return Variant.from_bytes(untyped) if untyped is not None and not clash else tree_of_nested_slot(typed, node.typed)


def _elements(residual: Variant | None, size: int, path: VariantPath, policy: Policy) -> list[Variant | None]:
    """What is left of each element: none where a placeholder stands, which is told apart by ``paths``."""
    if residual is None or is_null(residual):
        return [None] * size
    if residual.type == VariantType.ARRAY and len(residual) == size:
        return [None if is_null(element) else element for element in residual]
    policy.meet("array-size", path)
    return [None] * size


def nested_slot_of(variant: Variant, arrow: pa.DataType) -> Any | None:
    """Give the slot that holds a whole value exactly, or None if a column of that type cannot.

    >>> nested_slot_of(Variant.from_python([1, 2]), pa.list_(pa.int64()))
    [1, 2]
    >>> nested_slot_of(Variant.from_python([1, "x"]), pa.list_(pa.int64())) is None
    True
    """
    if pa.types.is_list(arrow):
        if variant.type != VariantType.ARRAY:
            return None
        slots = [nested_slot_of(element, arrow.value_type) for element in elements_of_array(variant)]
        return None if None in slots else slots
    if not pa.types.is_struct(arrow):
        return slot_of(variant, arrow)
    if variant.type != VariantType.OBJECT:
        return None
    fields = fields_of_object(variant)
    if fields.keys() != {field.name for field in arrow}:
        return None
    row = {field.name: nested_slot_of(fields[field.name], field.type) for field in arrow}
    return None if None in row.values() else row


def tree_of_nested_slot(slot: Any, arrow: pa.DataType) -> Tree:
    """Make the value of a slot.

    >>> tree_of_nested_slot([1, None], pa.list_(pa.int8()))
    [<Variant int8: 1>, <Variant null: null>]
    """
    if slot is None:
        return VARIANT_NULL
    if pa.types.is_list(arrow):
        return [tree_of_nested_slot(one, arrow.value_type) for one in slot]
    if pa.types.is_struct(arrow):
        return {field.name: tree_of_nested_slot(slot[field.name], field.type) for field in arrow}
    return variant_of(slot, arrow)
