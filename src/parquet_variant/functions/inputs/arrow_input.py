"""Bringing what a caller passes in to one Arrow array.

Owns accepting lists, NumPy arrays, chunked arrays and any object with Arrow's PyCapsule interface. Leaves types to the
operations.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.array.soundness import refuse_unsound
from parquet_variant.array.variant_array import refuse_one_value

__all__ = ["as_arrow", "refuse_one_value"]


def as_arrow(values: Any, arrow_type: pa.DataType | None = None) -> pa.Array:
    """One Arrow array of some values.

    Parameters
    ----------
    values
        A pyarrow array or chunked array, an object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (a polars
        Series), or a sequence of Python objects.
    arrow_type
        The type of an array made from Python objects.

    Raises
    ------
    SchemaError
        For what is one value and no column of them (a text, bytes, a mapping, a number), and for Arrow data whose
        buffers point outside of one another.

    Examples
    --------
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
        if hasattr(values, "__arrow_c_array__"):
            return pa.array(values)
        if not hasattr(values, "__arrow_c_stream__"):
            return pa.array(values, arrow_type)
        values = pa.chunked_array(values)
    return values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
