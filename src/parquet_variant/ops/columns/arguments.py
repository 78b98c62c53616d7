"""Arguments of operations: one Arrow array or `VariantArray`, slices of large columns for threads, and ``errors=``.

Accepts lists, NumPy arrays, chunked arrays and objects with Arrow's PyCapsule interface. Types are checked by the
operations, layouts by `VariantArray`. Owns also slicing, the row numbers of errors in slices, and joining the results
(threads are started by `io.parallel`); and null instead of an error for one value (`or_none`) and for whole columns,
where invalid rows are found by halving, because a few among many are the usual case. Rows that are processed
individually are left to `arrays.parts`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.capsules import imported, is_arrow, refuse_objects
from parquet_variant.arrays.parts import known_versions, one_chunk, refuse_unsound
from parquet_variant.arrays.variant_array import VariantArray, refuse_one_value, remembered
from parquet_variant.errors import SchemaError, VariantError, check_choice, rows_of_errors
from parquet_variant.kernels.arrow_buffers import binary_array, from_bytes
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import without_null_entries

# Strings that are converted in the time that pyarrow takes to import pandas.
_MAX_STRINGS = 100_000


def as_arrow(values: Any, arrow_type: pa.DataType | None = None) -> pa.Array:
    """Return the argument as one Arrow array.

    `values`: a pyarrow array or chunked array, an object with Arrow's PyCapsule interface, or Python objects.
    `arrow_type`: the type of an array made from Python objects.
    Raises `SchemaError` for a single value instead of a column (a string, bytes, a mapping, a number), and for Arrow
    data whose buffers are inconsistent with each other.
    """
    is_made = isinstance(values, list)  # pyarrow makes arrays of Python objects that need no check
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        refuse_one_value(values)
        if not is_arrow(values):
            strings = _strings(values) if arrow_type == pa.string() else None
            try:
                values = pa.array(values, arrow_type) if strings is None else strings
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
                if arrow_type is not None:
                    raise
                message = f"cannot convert the values to an Arrow array ({error}); use from_python for Python objects"
                raise SchemaError(message, reason="bad-data") from None
        elif arrow_type is None:
            values = imported(values)
        else:  # unlike `imported`, raises pyarrow's error for values of other types
            refuse_objects(values)
            values = pa.chunked_array([pa.array(values)] if hasattr(values, "__arrow_c_array__") else values)
    array = values if isinstance(values, pa.Array) else one_chunk(without_null_entries(values))
    if not is_made:
        refuse_unsound(array)
    return array


def _strings(values: Any) -> pa.Array | None:
    """Convert a list of strings, for which pyarrow would import pandas; None if some value is not a string."""
    if not isinstance(values, list) or len(values) > _MAX_STRINGS or "pandas" in sys.modules or not _has_pandas():
        return None
    with suppress(AttributeError):  # some value is not a string
        with suppress(TypeError):  # or is None
            if (text := "".join(values)).isascii():
                data = np.frombuffer(text.encode(), np.uint8)
                return binary_array(np.fromiter(map(len, values), np.int64), data, None, pa.string())
        return from_bytes([None if string is None else string.encode() for string in values], pa.string())
    return None


@cache
def _has_pandas() -> bool:
    return find_spec("pandas") is not None


if not _has_pandas():
    # pyarrow looks for pandas once, under a lock of C++ that a forked child could never take: do it on the first use.
    pa.array([""], pa.string())


def as_variant_array(values: Any, errors: object = "raise") -> VariantArray:
    """Return the argument of `unchecked_array` after `known_versions`."""
    column = unchecked_array(values)
    storage = remembered(column, f"errors={errors}", partial(known_versions, null_on_error=errors == "null"))
    return column if storage is column.storage else column._with_storage(storage)


def unchecked_array(values: Any) -> VariantArray:
    """Return the argument as a `VariantArray`: one already, or any other argument of `VariantArray.from_arrow`."""
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


# A slice is worth a thread if it takes some milliseconds.
MIN_SLICE_BYTES = 4 << 20


def joined_slices(function: Callable[[VariantArray], pa.Array], column: VariantArray, threads: int | None) -> pa.Array:
    """Apply a function to slices of a column, one per thread or one of few rows, and join the results.

    Raises the function's `VariantError`, with its row in the whole column.
    """
    count = min(column.storage.nbytes // MIN_SLICE_BYTES, len(column)) if len(column) > 1 else 1
    if threads is None and count < 2:
        return function(column)
    from parquet_variant.io.parallel import in_order, thread_count

    workers = thread_count(threads)
    count = max(min(count, workers), 1)
    stops = [len(column) * number // count for number in range(count + 1)]

    def of_slice(bounds: tuple[int, int]) -> pa.Array:
        start, stop = bounds
        with rows_of_errors(start.__add__):
            return function(column[start:stop])

    parts = list(in_order(of_slice, pairwise(stops), workers))
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # the joined array needs wider offsets than its parts
        return function(column)


T = TypeVar("T")


def check_errors(errors: object) -> bool:
    """Check the option ``errors``, and return whether rows that would raise become null."""
    check_choice("errors", errors, ("raise", "null"))
    return errors == "null"


def or_none(function: Callable[[], T], errors: object = "null", handled: type[VariantError] = VariantError) -> T | None:
    """Return what a function returns; with ``errors="null"``, None if it raises an error that is `handled`."""
    if not check_errors(errors):
        return function()
    try:
        return function()
    except handled:
        return None


def or_null(values: Any, function: Callable[[VariantArray], pa.Array], errors: object = "null") -> pa.Array:
    """Apply a function to a column; with ``errors="null"``, rows that it raises for are null."""
    is_null, column = check_errors(errors), unchecked_array(values)
    try:
        return function(as_variant_array(column))
    except VariantError:
        if not is_null:
            raise
        if len(column) < 2:
            return pa.nulls(len(column), function(VariantArray.from_variants([None])).type)
    middle = len(column) // 2
    return pa.concat_arrays([or_null(half, function) for half in (column[:middle], column[middle:])])


def canonical_storage(column: VariantArray) -> pa.StructArray:
    """Return the unshredded storage of a column, of the same type for all columns."""
    return column.to_unshredded().storage.cast(VariantArray.from_variants([]).storage.type)


def text_column(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8]) -> pa.Array:
    """Make a UTF-8 string column from its buffers, large beyond 2 GiB; an empty ``valid``: no row is null."""
    kind = pa.large_string() if offsets[-1] > MAX_OFFSET else pa.string()
    return binary_array(offsets[1:] - offsets[:-1], data[: offsets[-1]], valid if len(valid) else None, kind)
