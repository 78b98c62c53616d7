"""Rows that kernels leave or that raise: null in the place of an error, and texts by the scalar fallback.

Owns null for one value (`or_none`) and for whole columns, where the rows at fault are found by halving: a few among
many cost little; and putting the scalar fallback's texts among those of a kernel. Leaves rows that are looked at one by
one to `array.row_by_row`, and what is wrong to the functions that raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.compute.arrow_input import as_variant_array
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import bitmap, from_numpy
from parquet_variant.types import MAX_OFFSET

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


def text_column(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8]) -> pa.Array:
    """A column of UTF-8 text; `large_string` where the text outgrows 2 GiB, empty ``valid`` if no row is null."""
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


def with_fallback_texts(
    text: pa.Array,
    storage: pa.StructArray,
    refused: npt.NDArray[Any],
    text_of: Callable[[Variant], str],
    *,
    null_on_error: bool = False,
) -> pa.Array:
    """Replace the rows of a text column that its kernel refused by what a function gives of the unshredded values.

    With ``null_on_error``, rows that it cannot read become null; otherwise they raise, with their row.
    """
    rows = np.flatnonzero(refused).tolist()
    if not rows:
        return text
    array = VariantArray(storage)

    def of_row(row: int) -> str:
        variant = array[row]
        assert variant is not None, "a row that is SQL NULL is not refused"
        return text_of(variant)

    texts = row_by_row(rows, of_row, null_on_error=null_on_error)
    mask = np.zeros(len(text), np.bool_)
    mask[rows] = True
    return pc.replace_with_mask(text, pa.array(mask), pa.array(texts, text.type))
