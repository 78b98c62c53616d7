"""Slots of a nested ``typed_value``, which only draft ``paths`` has: whole lists and structs in one leaf.

Owns when a whole value fits such a type and what its nulls mean (spark-shredding-draft-1-paths, the last example). A
value fits only if all of it does: elements of the one type without nulls, just the fields of the struct. A null inside,
which other writers may store, is Variant null. Leaves primitives to `typed_values`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.layouts.trees import VARIANT_NULL, Tree, elements_of_array, fields_of_object
from parquet_variant.layouts.typed_values import slot_of, variant_of
from parquet_variant.types import VariantType


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
