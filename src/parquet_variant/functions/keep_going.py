"""Columns with rows that cannot be read: what the `try_` functions over whole columns share.

Owns finding those rows and leaving them out. Leaves what is wrong with them to the functions that raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.gathering import present_rows
from parquet_variant.functions.validate import sound_rows
from parquet_variant.functions.variant_input import as_variant_array

__all__ = ["by_row", "readable_storage"]


def readable_storage(values: Any) -> pa.StructArray:
    """The unshredded storage of a column; null where the parts of a row cannot be put together."""
    column = as_variant_array(values)
    try:
        return column.to_unshredded().storage
    except VariantError:
        if len(column) == 1:
            return VariantArray.from_variants([None]).storage
    middle = len(column) // 2
    pieces = [readable_storage(part) for part in (column[:middle], column[middle:])]
    # Pieces differ in the width of offsets and in how metadata is stored.
    canonical = VariantArray.from_variants([]).storage.type
    return pa.concat_arrays([piece.cast(canonical) for piece in pieces])


def by_row(values: Any, of_column: Callable[[VariantArray], pa.Array], of_value: Callable[[Variant], Any]) -> pa.Array:
    """What a function gives for a column, null for rows where it would raise.

    Parameters
    ----------
    values
        The column.
    of_column
        The function over a column; raises for the first row that it cannot read.
    of_value
        The same over one value.
    """
    column = as_variant_array(values)
    try:
        return of_column(column)
    except VariantError:
        storage = readable_storage(column)
    lost = present_rows(column.storage) & ~present_rows(storage)
    doubtful = ~sound_rows(storage)
    plain = VariantArray(storage)
    fields = [storage.field("metadata"), storage.field("value")]
    sound = pa.StructArray.from_arrays(
        fields, names=["metadata", "value"], mask=pa.array(doubtful | ~present_rows(storage))
    )
    found = of_column(VariantArray(sound))
    rows = np.flatnonzero(doubtful).tolist()
    results = [_or_none(of_value, plain[row]) for row in rows]
    replaced = pc.replace_with_mask(found, pa.array(doubtful), pa.array(results, found.type))
    return pc.if_else(pa.array(lost), pa.scalar(None, found.type), replaced)


def _or_none(of_value: Callable[[Variant], Any], value: Variant | None) -> Any:
    assert value is not None, "SQL NULL is sound"
    try:
        return of_value(value)
    except VariantError:
        return None
