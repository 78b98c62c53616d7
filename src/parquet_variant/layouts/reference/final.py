"""The final layout: ``metadata``, ``value``, ``typed_value`` (Parquet's Variant Shredding).

Owns the content of each row and its meaning, rows that the specification calls INVALID included. Leaves the storage
type to `layouts.storage_shape`, and batches to `kernels`.

The row's metadata does not change, and neither do the ids in residuals. A residual never has a shredded field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.layouts.reference.trees import (
    VARIANT_NULL,
    Policy,
    Tree,
    bytes_of,
    elements_of_array,
    fields_of_object,
    joined,
    slot_of,
    variant_of,
)
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import OnConflict
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath

_schema_of = lru_cache(maxsize=64)(ShreddingSchema.from_storage)


def shred_value(variant: Variant | None, schema: ShreddingSchema | pa.StructType) -> dict[str, Any] | None:
    """Return the row of a value, shredded by a schema.

    `variant`: the value; None is a SQL NULL.
    `schema`: the schema, or a storage type; every group is written with its ``value``.
    Returns the row of the storage struct, with slots in the Python form of `typed_values`; None for a SQL NULL. Raises
    `MalformedVariantError` for bytes that are not a Variant.

    >>> row = shred_value(Variant.from_python({"a": 1, "b": "x"}), ShreddingSchema.from_ddl("a bigint"))
    >>> row["value"].hex(), row["typed_value"]
    ('02010100020578', {'a': {'value': None, 'typed_value': 1}})
    """
    if variant is None:
        return None
    schema = schema if isinstance(schema, ShreddingSchema) else _schema_of(schema)
    return {"metadata": variant.metadata, **_shred(variant, schema)}


def _shred(variant: Variant | None, schema: ShreddingSchema) -> dict[str, bytes | Any]:
    if schema.kind == "variant":
        return {"value": None if variant is None else bytes_of(variant)}
    if variant is None:
        return {"value": None, "typed_value": None}
    typed: Any = None
    residual: bytes | None = None
    if schema.element is not None:
        if variant.type == VariantType.ARRAY:
            typed = [_shred(element, schema.element) for element in elements_of_array(variant)]
    elif schema.kind == "object":
        if variant.type == VariantType.OBJECT:
            fields = fields_of_object(variant)
            typed = {name: _shred(fields.pop(name, None), child) for name, child in schema.fields}
            residual = joined(variant.metadata, dict(fields)).value if fields else None
            return {"value": residual, "typed_value": typed}
    else:
        typed = slot_of(variant, schema.type)
    return {"value": bytes_of(variant) if typed is None else None, "typed_value": typed}


def reconstruct(
    row: Mapping[str, Any] | None, schema: ShreddingSchema | pa.StructType, on_conflict: OnConflict = "error"
) -> Variant | None:
    """Return the value of a row.

    `row`: the row of the storage struct, without the columns that the file does not have. None is a SQL NULL.
    `schema`: the schema, or the storage type.
    `on_conflict`: ``"error"`` or ``"typed"``; see `trees.Policy`.
    Returns None for a SQL NULL, and Variant null for a required value that is missing. Raises `ConflictError` if
    ``value`` and ``typed_value`` conflict (rows that the specification calls INVALID); `MalformedVariantError` for
    bytes that are not a Variant, and for metadata that is null; `SchemaError` if the storage type is not allowed.

    >>> schema = ShreddingSchema.from_ddl("bigint")
    >>> reconstruct({"metadata": bytes.fromhex("110000"), "value": None, "typed_value": 34}, schema)
    <Variant int64: 34>
    """
    schema = schema if isinstance(schema, ShreddingSchema) else _schema_of(schema)
    if row is None:
        return None
    metadata = row["metadata"]
    if metadata is None:
        raise MalformedVariantError("the row has a value, but its metadata is null", reason="null-metadata")
    tree = _build(row, schema, metadata, VariantPath(), Policy(on_conflict))
    return joined(metadata, VARIANT_NULL if tree is None else tree)


def _build(
    group: Mapping[str, Any] | None, schema: ShreddingSchema, metadata: bytes, path: VariantPath, policy: Policy
) -> Tree | None:
    if group is None:  # an optional group: not allowed by the specification, but written by some writers
        return None
    value, typed = group.get("value"), group.get("typed_value")
    variant = None if value is None else Variant(metadata, value)
    if typed is None:
        if variant is not None and schema.kind in ("object", "array") and variant.type == schema.kind:
            policy.meet(f"{schema.kind}-in-value", path)
        return variant
    if schema.kind == "object":
        fields = policy.residual_fields(variant, path)
        for name, child in schema.fields:
            if fields.pop(name, None) is not None:
                policy.meet("shredded-field-in-value", path / name)
            field = _build(typed.get(name), child, metadata, path / name, policy)
            if field is not None:
                fields[name] = field
        return fields
    if variant is not None:
        policy.meet("both-set", path)
    if schema.element is not None:
        elements = (
            _build(element, schema.element, metadata, path / index, policy) for index, element in enumerate(typed)
        )
        return [VARIANT_NULL if element is None else element for element in elements]
    return variant_of(typed, schema.type)
