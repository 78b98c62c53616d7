"""A function of whole columns, done to slices of a large one by several threads.

Owns how a column is cut, whose row an error names, and joining the answers. Leaves threads to `io.parallel`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantError

Result = TypeVar("Result")
# What a thread must have to do, to be worth one: some milliseconds.
LEAST_SLICE_BYTES = 4 << 20


def in_slices(work: Callable[[VariantArray], Result], column: VariantArray, threads: int | None) -> list[Result]:
    """What a function gives for slices of a column, in order: one for each thread, or one of all rows if they are few.

    Raises `VariantError`: what the function raises, with the row in the column; or for fewer threads than 1.
    """
    count = min(column.storage.nbytes // LEAST_SLICE_BYTES, len(column))
    if threads is None and count < 2:
        return [work(column)]
    from parquet_variant.io.parallel import in_order, thread_count

    workers = thread_count(threads)
    count = max(min(count, workers), 1)
    stops = [len(column) * number // count for number in range(count + 1)]
    return list(in_order(partial(_of_slice, work, column), pairwise(stops), workers))


def _of_slice(work: Callable[[VariantArray], Result], column: VariantArray, bounds: tuple[int, int]) -> Result:
    start, stop = bounds
    try:
        return work(column[start:stop])
    except VariantError as error:
        if error.row is not None:
            error.row += start
        raise


def joined_slices(work: Callable[[VariantArray], pa.Array], column: VariantArray, threads: int | None) -> pa.Array:
    """What a function that gives an array gives for a column, done as `in_slices`."""
    parts = in_slices(work, column, threads)
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # one array of them needs wider offsets than each
        return work(column)
