"""Columns with rows that cannot be read: what the `try_` functions over whole columns share.

Owns finding those rows and leaving them out, by halving: a few bad rows among many cost little. Leaves what is wrong
with them to the functions that raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.functions.variant_input import as_variant_array

__all__ = ["by_row", "only_rows", "readable_storage"]


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


def only_rows(storage: pa.StructArray, keep: npt.NDArray[Any]) -> VariantArray:
    """An unshredded column in which all other rows are SQL NULL."""
    fields = [storage.field("metadata"), storage.field("value")]
    return VariantArray(pa.StructArray.from_arrays(fields, names=["metadata", "value"], mask=pa.array(~keep)))


def by_row(values: Any, of_column: Callable[[VariantArray], pa.Array]) -> pa.Array:
    """What a function gives for a column, null for rows where it would raise.

    Parameters
    ----------
    values
        The column.
    of_column
        The function; raises if there is a row that it cannot read.
    """
    column = as_variant_array(values)
    try:
        return of_column(column)
    except VariantError:
        if len(column) == 1:
            return pa.nulls(1, of_column(VariantArray.from_variants([None])).type)
    middle = len(column) // 2
    return pa.concat_arrays([by_row(part, of_column) for part in (column[:middle], column[middle:])])
