"""Functions of whole columns, applied by several threads to slices of a large column.

Owns slicing, the row numbers of errors, and joining the results. Threads are started by `io.parallel`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError

Result = TypeVar("Result")
# A slice is worth a thread if it takes some milliseconds.
MIN_SLICE_BYTES = 4 << 20


def in_slices(function: Callable[[VariantArray], Result], column: VariantArray, threads: int | None) -> list[Result]:
    """Apply a function to slices of a column and return the results in order.

    There is one slice per thread, or one of all rows if they are few. Raises `VariantError`: the function's error, with
    its row in the whole column; or for fewer threads than 1.
    """
    count = min(column.storage.nbytes // MIN_SLICE_BYTES, len(column))
    if threads is None and count < 2:
        return [function(column)]
    from parquet_variant.io.parallel import in_order, thread_count

    workers = thread_count(threads)
    count = max(min(count, workers), 1)
    stops = [len(column) * number // count for number in range(count + 1)]
    return list(in_order(partial(_apply_to_slice, function, column), pairwise(stops), workers))


def _apply_to_slice(
    function: Callable[[VariantArray], Result], column: VariantArray, bounds: tuple[int, int]
) -> Result:
    start, stop = bounds
    try:
        return function(column[start:stop])
    except VariantError as error:
        if error.row is not None:
            error.row += start
        raise


def joined_slices(function: Callable[[VariantArray], pa.Array], column: VariantArray, threads: int | None) -> pa.Array:
    """Apply a function that returns an array, as `in_slices` does, and join the arrays."""
    parts = in_slices(function, column, threads)
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # the joined array needs wider offsets than its parts
        return function(column)
