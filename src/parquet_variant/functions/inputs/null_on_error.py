"""Null in the place of an error: what the `try_` functions share.

Owns it for one value (`or_none`) and for whole columns, where the rows at fault are found by halving: a few among many
cost little. Leaves rows that are looked at one by one to `array.row_by_row`, and what is wrong to the functions that
raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.functions.inputs.arrow_input import as_variant_array
from parquet_variant.kernels.arrow_buffers import from_numpy

T = TypeVar("T")


def or_none(of_value: Callable[[], T], errors: type[VariantError] = VariantError) -> T | None:
    """What a function gives; None where it raises one of some errors."""
    try:
        return of_value()
    except errors:
        return None


def readable_storage(values: Any) -> pa.StructArray:
    """The unshredded storage of a column; null where the parts of a row cannot be put together."""
    # Pieces differ in the width of offsets and in how metadata is stored.
    canonical = VariantArray.from_variants([]).storage.type
    column = as_variant_array(values)
    try:
        return column.to_unshredded().storage
    except VariantError:
        return or_null(column, lambda part: part.to_unshredded().storage.cast(canonical))


def only_rows(storage: pa.StructArray, keep: npt.NDArray[Any]) -> VariantArray:
    """An unshredded column in which all other rows are SQL NULL."""
    fields = [storage.field("metadata"), storage.field("value")]
    return VariantArray(pa.StructArray.from_arrays(fields, names=["metadata", "value"], mask=from_numpy(~keep)))


def or_null(values: Any, of_column: Callable[[VariantArray], pa.Array]) -> pa.Array:
    """What a function that raises for rows it cannot read gives for a column, with null for these rows."""
    column = as_variant_array(values)
    try:
        return of_column(column)
    except VariantError:
        if len(column) == 1:
            return pa.nulls(1, of_column(VariantArray.from_variants([None])).type)
    middle = len(column) // 2
    return pa.concat_arrays([or_null(part, of_column) for part in (column[:middle], column[middle:])])
