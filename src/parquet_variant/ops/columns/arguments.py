"""Arguments of operations: conversion to one Arrow array or `VariantArray`, and slices of large columns for threads.

Accepts lists, NumPy arrays, chunked arrays and objects with Arrow's PyCapsule interface. Types are checked by the
operations, layouts by `VariantArray`. Owns also slicing, the row numbers of errors in slices, and joining the results;
threads are started by `io.parallel`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa

from parquet_variant.arrays.capsules import imported, is_arrow, refuse_objects
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.soundness import refuse_unsound
from parquet_variant.arrays.variant_array import VariantArray, refuse_one_value
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.kernels.arrow_buffers import from_bytes
from parquet_variant.types.forms import without_null_entries

# Strings that are converted in the time that pyarrow takes to import pandas.
_MAX_STRINGS = 100_000


def as_arrow(values: Any, arrow_type: pa.DataType | None = None) -> pa.Array:
    """Return the argument as one Arrow array.

    `values`: a pyarrow array or chunked array, an object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (a polars
      Series), or a sequence of Python objects.
    `arrow_type`: the type of an array made from Python objects.
    Raises `SchemaError` for a single value instead of a column (a string, bytes, a mapping, a number), and for Arrow
    data whose buffers are inconsistent with each other.

    >>> as_arrow(["1", None], pa.string()).type
    DataType(string)
    """
    array = _array_of(values, arrow_type)
    refuse_unsound(array)
    return array


def _array_of(values: Any, arrow_type: pa.DataType | None) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if not isinstance(values, pa.ChunkedArray):
        refuse_one_value(values)
        if not is_arrow(values):
            strings = _strings(values) if arrow_type == pa.string() else None
            return _of_objects(values, arrow_type) if strings is None else strings
        if arrow_type is None:
            values = imported(values)
        else:  # unlike `imported`, raises pyarrow's error for values of other types
            refuse_objects(values)
            values = pa.chunked_array([pa.array(values)] if hasattr(values, "__arrow_c_array__") else values)
    return one_chunk(without_null_entries(values))


def _of_objects(values: Any, arrow_type: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        if arrow_type is not None:
            raise
        raise SchemaError(
            f"cannot convert the values to an Arrow array ({error}); use from_python for Python objects",
            reason="bad-data",
        ) from None


def _strings(values: Any) -> pa.Array | None:
    """Convert a list of strings; None if some value is not a string.

    pyarrow would import pandas first, to check whether the list has its types.
    """
    if not isinstance(values, list) or len(values) > _MAX_STRINGS or "pandas" in sys.modules or not _has_pandas():
        return None
    try:
        return from_bytes([None if string is None else string.encode() for string in values], pa.string())
    except AttributeError:
        return None  # some value is not a string


@cache
def _has_pandas() -> bool:
    return find_spec("pandas") is not None


if not _has_pandas():
    # pyarrow looks for pandas once, under a lock of C++ that a forked child could never take: do it on the first use.
    pa.array([""], pa.string())


def as_variant_array(values: Any) -> VariantArray:
    r"""Return the argument as a `VariantArray`.

    `values`: a `VariantArray`, an Arrow struct array of a Variant storage, plain or chunked, or any other argument of
      `VariantArray.from_arrow`.
    Raises `SchemaError` if the argument is not a Variant column.

    >>> import pyarrow as pa
    >>> as_variant_array(pa.array([{"metadata": b"\x11\0\0", "value": b"\0"}]))
    <VariantArray unshredded, 1 rows: [null]>
    """
    if isinstance(values, VariantArray):
        return values
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return VariantArray(as_arrow(values))
    if is_arrow(values):
        return VariantArray.from_arrow(values)
    raise SchemaError(
        f"expected a VariantArray, found {type(values).__name__}: make one with parse_json, cast_to_variant or "
        "VariantArray.from_pylist",
        reason="not-a-variant",
    )


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
