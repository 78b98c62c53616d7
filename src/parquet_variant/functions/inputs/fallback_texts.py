"""Rows of a text column that a kernel leaves to the scalar fallback.

Owns putting the scalar fallback's texts among those of the kernel. Leaves which rows those are to the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.types import MAX_OFFSET


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
