"""Rows that kernels refuse or that raise: null instead of an error, and strings from the scalar fallback.

Owns null instead of an error for one value (`or_none`) and for whole columns, where invalid rows are found by halving,
because a few among many are the usual case; and replacing the rows that a kernel refused. Rows that are processed
individually are left to `arrays.parts`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import patched, row_by_row
from parquet_variant.arrays.storages import unshredded_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError, check_choice
from parquet_variant.kernels.arrow_buffers import bitmap, from_numpy
from parquet_variant.ops.columns.arguments import as_variant_array
from parquet_variant.support.choices import OnConflict
from parquet_variant.types import MAX_OFFSET

T = TypeVar("T")


def check_errors(errors: object) -> bool:
    """Check the option ``errors``, and return whether rows that would raise become null."""
    check_choice("errors", errors, ("raise", "null"))
    return errors == "null"


def or_none(function: Callable[[], T], errors: type[VariantError] = VariantError) -> T | None:
    """Return what a function returns, or None if it raises one of the given errors."""
    try:
        return function()
    except errors:
        return None


def readable_storage(values: Any, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return the unshredded storage of a column, with null for rows that cannot be reassembled."""
    # One type for all parts, which may differ in offset width and in the encoding of metadata.
    canonical = VariantArray.from_variants([]).storage.type
    column = as_variant_array(values)

    def unshredded(part: VariantArray) -> pa.StructArray:
        return unshredded_storage(part.storage, part.layout, on_conflict)

    try:
        return unshredded(column)
    except VariantError:
        return or_null(column, lambda part: unshredded(part).cast(canonical))


def only_rows(storage: pa.StructArray, keep: npt.NDArray[Any]) -> VariantArray:
    """Return an unshredded column in which the rows that are not kept are SQL NULL."""
    fields = [storage.field("metadata"), storage.field("value")]
    return VariantArray(pa.StructArray.from_arrays(fields, names=["metadata", "value"], mask=from_numpy(~keep)))


def or_null(values: Any, function: Callable[[VariantArray], pa.Array]) -> pa.Array:
    """Apply a function to a column, with null for rows that it raises for."""
    column = as_variant_array(values)
    try:
        return function(column)
    except VariantError:
        if len(column) == 1:
            return pa.nulls(1, function(VariantArray.from_variants([None])).type)
    middle = len(column) // 2
    return pa.concat_arrays([or_null(half, function) for half in (column[:middle], column[middle:])])


def text_column(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8]) -> pa.Array:
    """Make a UTF-8 string column from its buffers.

    Returns `large_string` if the data exceeds 2 GiB. An empty ``valid`` means that no row is null.
    """
    wide = offsets[-1] > MAX_OFFSET
    return pa.Array.from_buffers(
        pa.large_string() if wide else pa.string(),
        len(offsets) - 1,
        [
            bitmap(valid) if len(valid) else None,
            pa.py_buffer(offsets if wide else offsets.astype(np.int32)),
            pa.py_buffer(data).slice(0, int(offsets[-1])),
        ],
    )


def with_fallback_strings(
    text: pa.Array,
    storage: pa.StructArray,
    refused: npt.NDArray[Any],
    text_of: Callable[[Variant], str],
    *,
    null_on_error: bool = False,
) -> pa.Array:
    """Replace the rows that a kernel refused by the strings that a function returns for their values.

    Rows for which the function raises become null with ``null_on_error``; otherwise the error names the row.
    """
    rows = np.flatnonzero(refused)
    if not len(rows):
        return text
    array = VariantArray(storage)

    def of_row(row: int) -> str:
        variant = array[row]
        assert variant is not None, "a row that is SQL NULL is not refused"
        return text_of(variant)

    texts = row_by_row(rows.tolist(), of_row, null_on_error=null_on_error)
    return patched(text, rows, pa.array(texts, text.type))
