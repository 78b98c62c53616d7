"""Spark's second draft: ``untyped_value``, ``object``, ``array``, ``typed_value``.

Owns the content of each row and its meaning (spark-encoding-and-shredding-draft-2, from "Parquet Example" on). Leaves
the storage type to `layouts.draft_storages`.

``untyped_value`` is a binary of metadata and value, with its own metadata. The residual of an object is stored next to
``object``; an array is always stored completely in ``array``. A field whose columns are all null is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError
from parquet_variant.layouts.draft_storages import DraftNode, object_plan, object_storage_type
from parquet_variant.layouts.reference.trees import (
    VARIANT_NULL,
    Policy,
    Tree,
    compact,
    elements_of_array,
    fields_of_object,
    slot_of,
    variant_of,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import OnConflict
from parquet_variant.types import VariantType
from parquet_variant.types.path import WILDCARD, VariantPath


def _plan(schema: ShreddingSchema | pa.StructType) -> DraftNode:
    return object_plan(object_storage_type(schema.type_tree()) if isinstance(schema, ShreddingSchema) else schema)


def shred_value(variant: Variant | None, schema: ShreddingSchema | pa.StructType) -> dict[str, Any] | None:
    """Return the row of a value, in the form of `final.shred_value`.

    `variant`: the value; None is a SQL NULL.
    `schema`: the schema, or a storage type of this layout, whose groups may have several of ``object``, ``array`` and
      ``typed_value``.
    Raises `SchemaError` if a value needs an ``untyped_value`` that the storage type does not have
    (``no-untyped-value``); `MalformedVariantError` for bytes that are not a Variant.

    >>> schema = ShreddingSchema.from_ddl("a bigint")
    >>> shred_value(Variant.from_python({"a": 123}), schema)
    {'untyped_value': None, 'object': {'a': {'untyped_value': None, 'typed_value': 123}}}
    """
    return None if variant is None else _shred(variant, _plan(schema), VariantPath())


def _shred(variant: Variant, node: DraftNode, path: VariantPath) -> dict[str, Any]:
    row: dict[str, Any] = {}
    residual: Tree | None = None
    kind = variant.type
    if node.fields is not None and kind == VariantType.OBJECT:
        fields = fields_of_object(variant)
        row["object"] = {
            name: _shred(fields.pop(name), child, path / name) if name in fields else None
            for name, child in node.fields.items()
        }
        residual = dict(fields) or None
    elif node.element is not None and kind == VariantType.ARRAY:
        row["array"] = [_shred(element, node.element, path / WILDCARD) for element in elements_of_array(variant)]
    elif node.typed is None or (slot := slot_of(variant, node.typed)) is None:
        residual = variant
    else:
        row["typed_value"] = slot
    if residual is not None and not node.has_untyped:
        raise SchemaError(
            f"cannot store a value of type {kind}: the storage type has no untyped_value for values of other types",
            reason="no-untyped-value",
            path=str(path),
        )
    columns = (
        ("untyped_value", node.has_untyped),
        ("object", node.fields is not None),
        ("array", node.element is not None),
        ("typed_value", node.typed is not None),
    )
    row["untyped_value"] = None if residual is None else compact(residual).to_bytes()
    return {name: row.get(name) for name, is_column in columns if is_column}


def reconstruct(
    row: Mapping[str, Any] | None, schema: ShreddingSchema | pa.StructType, on_conflict: OnConflict = "error"
) -> Variant | None:
    """Return the value of a row, as `final.reconstruct` does, with metadata of only its names.

    Raises `ConflictError` if columns that exclude each other are set; `MalformedVariantError` for bytes that are not a
    Variant; `SchemaError` if the storage type is not allowed.

    >>> row = {"untyped_value": None, "object": {"a": {"untyped_value": None, "typed_value": 123}}}
    >>> reconstruct(row, ShreddingSchema.from_ddl("a bigint"))
    <Variant object: {"a":123}>
    """
    plan = _plan(schema)
    if row is None:
        return None
    tree = _build(row, plan, VariantPath(), Policy(on_conflict))
    return VARIANT_NULL if tree is None else compact(tree)


def _build(group: Mapping[str, Any] | None, node: DraftNode, path: VariantPath, policy: Policy) -> Tree | None:
    if group is None:
        return None
    untyped = group.get("untyped_value")
    residual = None if untyped is None else Variant.from_bytes(untyped)
    shapes = [name for name in ("object", "array", "typed_value") if group.get(name) is not None]
    if not shapes:
        return residual
    if len(shapes) > 1:
        policy.meet("both-set", path)
    value = group[shapes[0]]
    if shapes[0] == "object":
        assert node.fields is not None
        fields = policy.residual_fields(residual, path)
        for name, child in node.fields.items():
            field = _build(value.get(name), child, path / name, policy)
            if field is None:
                continue  # "if object[field] is null": the residual has the field, or nothing has it
            if name in fields:
                policy.meet("shredded-field-in-value", path / name)
            fields[name] = field
        return fields
    if residual is not None:
        policy.meet("both-set", path)
    if shapes[0] == "array":
        assert node.element is not None
        elements = [_build(item, node.element, path / index, policy) for index, item in enumerate(value)]
        return [VARIANT_NULL if element is None else element for element in elements]
    return variant_of(value, node.typed)
