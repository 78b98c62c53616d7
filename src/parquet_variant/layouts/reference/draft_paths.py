"""Spark's first draft: ``value``, ``metadata``, ``paths``.

Owns the content of each row and its meaning (spark-shredding-draft-1-paths). Leaves the storage type to
`layouts.draft_storages`.

``value`` holds the residual that ``paths`` cannot represent, with metadata of only its names; both are null if there is
no residual. If some elements of an array are in the residual, the other elements are Variant null in ``value``.
``untyped_value`` is a binary of metadata and value, with its own metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, SchemaError
from parquet_variant.layouts.draft_storages import DraftNode, paths_plan, paths_storage_type
from parquet_variant.layouts.reference.trees import (
    VARIANT_NULL,
    Policy,
    Tree,
    compact,
    elements_of_array,
    fields_of_object,
    is_null,
    slot_of,
    variant_of,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import OnConflict
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath


def _plan(schema: ShreddingSchema | pa.StructType) -> DraftNode | None:
    return paths_plan(paths_storage_type(schema.type_tree()) if isinstance(schema, ShreddingSchema) else schema)


def shred_value(variant: Variant | None, schema: ShreddingSchema | pa.StructType) -> dict[str, Any] | None:
    """Return the row of a value, in the form of `final.shred_value`.

    `variant`: the value; None is a SQL NULL.
    `schema`: the schema, or a storage type of this layout with ``value`` and ``metadata``; its leaves may have only one
      column, and nested typed values.
    Raises `SchemaError` if there is a residual and the storage type has no ``value`` (``no-value``);
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
        raise SchemaError(
            "cannot store a value of another type: the storage type has no 'value' column", reason="no-value"
        )
    residual_variant = None if residual is None else compact(residual)
    row: dict[str, Any] = {
        "value": residual_variant and residual_variant.value,
        "metadata": residual_variant and residual_variant.metadata,
    }
    return row if plan is None else {**row, "paths": paths}


def _shred(variant: Variant, node: DraftNode) -> tuple[Tree | None, Any]:
    """Return the residual for ``value``, and the columns for ``paths``."""
    if node.is_leaf:
        return _leaf(variant, node)
    if node.element is not None:
        if variant.type != VariantType.ARRAY:
            return variant, None
        pairs = [_shred(element, node.element) for element in elements_of_array(variant)]
        residuals = [VARIANT_NULL if residual is None else residual for residual, _ in pairs]
        has_residual = any(residual is not None for residual, _ in pairs)
        return (residuals if has_residual else None), [paths for _, paths in pairs]
    if variant.type != VariantType.OBJECT:
        return variant, None
    fields: dict[str, Tree] = {**fields_of_object(variant)}
    assert node.fields is not None
    groups: dict[str, Any] = dict.fromkeys(node.fields)
    for name, child in node.fields.items():
        field = fields.pop(name, None)
        if isinstance(field, Variant):
            residual, groups[name] = _shred(field, child)
            if residual is not None:
                fields[name] = residual
    return fields or None, groups


def _leaf(variant: Variant, node: DraftNode) -> tuple[Tree | None, dict[str, Any] | None]:
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
    """Return the value of a row, as `final.reconstruct` does, with metadata of only its names.

    Raises `ConflictError` if columns that exclude each other are set; `MalformedVariantError` for bytes that are not a
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
            raise MalformedVariantError("the metadata of a value is null", reason="null-metadata")
        residual = Variant(row["metadata"], row["value"])
    tree = residual if plan is None else _build(residual, row.get("paths"), plan, VariantPath(), Policy(on_conflict))
    return VARIANT_NULL if tree is None else compact(tree)


def _build(residual: Variant | None, paths: Any, node: DraftNode, path: VariantPath, policy: Policy) -> Tree | None:
    if paths is None:
        return residual
    if node.is_leaf:
        typed, untyped = paths.get("typed_value"), paths.get("untyped_value")
        if typed is None and untyped is None:
            return residual
        are_both_set = typed is not None and untyped is not None
        if are_both_set or (residual is not None and not is_null(residual)):
            policy.meet("both-set", path)
        return (
            Variant.from_bytes(untyped)
            if untyped is not None and not are_both_set
            else tree_of_nested_slot(typed, node.typed)
        )
    if node.element is not None:
        residuals = _elements(residual, len(paths), path, policy)
        elements = [_build(residuals[i], item, node.element, path / i, policy) for i, item in enumerate(paths)]
        return [VARIANT_NULL if element is None else element for element in elements]
    fields = policy.residual_fields(residual, path)
    assert node.fields is not None
    for name, child in node.fields.items():
        field_residual = fields.pop(name, None)
        assert field_residual is None or isinstance(field_residual, Variant)
        field = _build(field_residual, paths.get(name), child, path / name, policy)
        if field is not None:
            fields[name] = field
    return fields


def _elements(residual: Variant | None, size: int, path: VariantPath, policy: Policy) -> list[Variant | None]:
    """Return the residual of each element; None for a placeholder, whose element is in ``paths``."""
    if residual is None or is_null(residual):
        return [None] * size
    if residual.type == VariantType.ARRAY and len(residual) == size:
        return [None if is_null(element) else element for element in residual]
    policy.meet("array-size", path)
    return [None] * size


def nested_slot_of(variant: Variant, arrow: pa.DataType) -> Any | None:
    """Return the slot that holds a nested value exactly, or None if a column of that type cannot hold it.

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
    """Make the value of a slot."""
    if slot is None:
        return VARIANT_NULL
    if pa.types.is_list(arrow):
        return [tree_of_nested_slot(one, arrow.value_type) for one in slot]
    if pa.types.is_struct(arrow):
        return {field.name: tree_of_nested_slot(slot[field.name], field.type) for field in arrow}
    return variant_of(slot, arrow)
