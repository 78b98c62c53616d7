"""Bringing what a caller passes in to one Arrow array, or to one `VariantArray`.

Owns accepting lists, NumPy arrays, chunked arrays and any object with Arrow's PyCapsule interface. Leaves types to the
operations, and layouts to `VariantArray`.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from parquet_variant.array.parts import one_chunk
from parquet_variant.array.soundness import refuse_unsound
from parquet_variant.array.variant_array import VariantArray, refuse_one_value
from parquet_variant.encoding.cast.forms import without_null_entries
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import from_bytes

# So many texts become an array in the time that pyarrow takes to import pandas.
_FEW = 100_000


def as_arrow(values: Any, arrow_type: pa.DataType | None = None) -> pa.Array:
    """One Arrow array of some values.

    `values`: a pyarrow array or chunked array, an object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (a polars
      Series), or a sequence of Python objects.
    `arrow_type`: the type of an array made from Python objects.
    Raises `SchemaError` for what is one value and no column of them (a text, bytes, a mapping, a number), and for Arrow
    data whose buffers point outside of one another.

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
            texts = _texts(values) if arrow_type == pa.string() else None
            return _of_objects(values, arrow_type) if texts is None else texts
        values = pa.chunked_array(values)
    return one_chunk(without_null_entries(values))


def _of_objects(values: Any, arrow_type: pa.DataType | None) -> pa.Array:
    try:
        return pa.array(values, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        if arrow_type is not None:
            raise
        raise SchemaError(
            f"no Arrow array can be made of the values ({error}): Python values become Variants with from_python",
            reason="bad-data",
        ) from None


def _texts(values: Any) -> pa.Array | None:
    """A column of a list of texts, where pyarrow would import pandas first, to see whether the list is of its types."""
    if not isinstance(values, list) or len(values) > _FEW or "pandas" in sys.modules or not _has_pandas():
        return None
    try:
        return from_bytes([None if text is None else text.encode() for text in values], pa.string())
    except AttributeError:
        return None  # not texts alone


@cache
def _has_pandas() -> bool:
    return find_spec("pandas") is not None


def as_variant_array(values: Any) -> VariantArray:
    r"""The `VariantArray` of a column.

    `values`: a `VariantArray`, an Arrow struct array of a Variant storage, plain or chunked, or anything else that
      `VariantArray.from_arrow` takes.
    Raises `SchemaError` if it is no Variant column.

    >>> import pyarrow as pa
    >>> as_variant_array(pa.array([{"metadata": b"\x11\0\0", "value": b"\0"}]))
    <VariantArray unshredded, 1 rows: [null]>
    """
    if isinstance(values, VariantArray):
        return values
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return VariantArray(as_arrow(values))
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return VariantArray.from_arrow(values)
    raise SchemaError(
        f"expected a VariantArray, found {type(values).__name__}: make one with parse_json, cast_to_variant or "
        "VariantArray.from_pylist",
        reason="not-a-variant",
    )
