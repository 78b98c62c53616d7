"""The logical type Variant, and the layouts in which a Vortex file stores a column of it.

Owns the type, the choice of layouts, and the limits of vortex-data's own Variant type. `storing` converts columns.

=========  ===================================================================  ============================
layout     storage                                                              another Vortex reader sees
=========  ===================================================================  ============================
variant    Vortex's own Variant type; scalar fields at the top may be typed in  a Variant
           it
struct     the Arrow storage struct: typed columns next to the residual         that struct
=========  ===================================================================  ============================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from parquet_variant.arrays.capsules import is_storage, is_variant_field
from parquet_variant.arrays.parts import columns_of
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns.arguments import as_variant_array
from parquet_variant.ops.shred_variant import shred_variant
from parquet_variant.types.path import VariantPath

StoredLayout = Literal["variant", "struct"]
LAYOUTS: tuple[StoredLayout, ...] = get_args(StoredLayout)

# Limits of vortex-data 0.93.
_NOT_IN_DTYPE = {
    "array": "vortex-data fails or crashes on shredded lists",
    "object": "vortex-data returns null below shredded objects",
    "variant": "vortex-data loses fields that are shredded without a type",
}
_UUID = "vortex-data has no uuid type"
_NANOSECONDS = "vortex-data returns whole microseconds as another type"
_RESIDUAL = "some values have other types: vortex-data then fails on a part of the rows"
_NUL = "a name ends at NUL in Arrow's C interface"
_ROOT = "vortex-data can type only fields"


@dataclass(frozen=True, slots=True)
class VariantDType:
    """The logical type: Variant, nullable or not.

    Parameters
    ----------
    nullable
        True if rows may be absent (the outer null). A Variant null is a value, so both types allow it.

    Examples
    --------
    >>> str(VariantDType(nullable=True))
    'variant?'
    """

    nullable: bool

    def __str__(self) -> str:
        return "variant?" if self.nullable else "variant"


def final_variant(array: Any) -> VariantArray:
    """Return a column as a `VariantArray`, unshredded or in the final layout.

    Raises `SchemaError` if the column is not a Variant column, or is in a draft layout (``draft-layout``).
    """
    column = as_variant_array(array)
    if column.layout not in ("unshredded", "final"):
        raise SchemaError(
            f"the array is in Parquet's draft layout {column.layout}, which Vortex does not have: convert it with "
            "shred_variant(array, array.schema) or array.to_unshredded()",
            reason="draft-layout",
        )
    return column


def layout_of(field: pa.Field) -> StoredLayout | None:
    """Return the layout of a file's column; None if the column is not a Variant."""
    if is_variant_field(field):
        return "variant"
    return "struct" if is_storage(field.type) else None


def within_dtype(array: VariantArray) -> tuple[VariantArray, dict[str, str]]:
    """Return the array, shredded as far as Vortex's own type allows, and the reason for each path that is not typed.

    >>> import parquet_variant as pv
    >>> array = pv.shred_variant(pv.parse_json(['{"a": 1, "b": [1]}']), "a bigint, b array<bigint>")
    >>> storage, in_bytes = within_dtype(array)
    >>> storage.schema.to_ddl(), list(in_bytes)
    ('a bigint', ["$['b']"])
    """
    if array.schema is None:
        return array, {}
    in_bytes: dict[str, str] = {}
    typed_fields = {}
    top = columns_of(array.storage).get("typed_value")
    for name, node in array.schema.fields:
        reason = _NUL if "\0" in name else _reason(node, columns_of(columns_of(top)[name]))
        if reason is None:
            typed_fields[name] = node
        else:
            in_bytes[str(VariantPath() / name)] = reason
    if array.schema.kind != "object":
        in_bytes["$"] = _NOT_IN_DTYPE.get(array.schema.kind, _ROOT)
    if not in_bytes:
        return array, {}
    unshredded = array.to_unshredded()
    if not typed_fields:
        return unshredded, in_bytes
    return shred_variant(unshredded, ShreddingSchema.object(typed_fields)), in_bytes


def without_nul(schema: ShreddingSchema) -> ShreddingSchema:
    r"""Return the schema without the fields whose name contains NUL, which ends names in Arrow's C interface.

    >>> schema = ShreddingSchema.object({"a": pa.int64(), "b\0": pa.int64()})
    >>> without_nul(ShreddingSchema.array(schema)).to_ddl()
    'array<struct<a: bigint>>'
    """
    if schema.element is not None:
        return ShreddingSchema.array(without_nul(schema.element))
    if schema.kind != "object":
        return schema
    fields = {name: without_nul(child) for name, child in schema.fields if "\0" not in name}
    return ShreddingSchema.object(fields) if fields else ShreddingSchema.variant()


def _reason(node: ShreddingSchema, field: dict[str, pa.Array]) -> str | None:
    """Return the reason why a field of the top level cannot be typed; None if it can."""
    if node.type == pa.uuid():
        return _UUID
    if node.type is not None and pa.types.is_timestamp(node.type) and node.type.unit == "ns":
        return _NANOSECONDS
    if node.kind in _NOT_IN_DTYPE:
        return _NOT_IN_DTYPE[node.kind]
    has_residual = "value" in field and field["value"].null_count < len(field["value"])
    return _RESIDUAL if has_residual else None
