"""Bringing what a caller passes in to one `VariantArray`.

Owns accepting the forms that a Variant column has in Arrow. Leaves layouts to `VariantArray`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import SchemaError
from parquet_variant.functions.inputs.arrow_input import as_arrow


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
