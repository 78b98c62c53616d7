"""`try_is_variant_null`: `is_variant_null` that gives null for values that it cannot read.

Owns the public operation. Leaves the work to `is_variant_null`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.functions.is_variant_null import is_variant_null
from parquet_variant.functions.keep_going import by_row
from parquet_variant.path import VariantPath

__all__ = ["try_is_variant_null"]


def try_is_variant_null(array: Any, path: str | VariantPath = "$") -> bool | pa.BooleanArray | None:
    r"""Tell which values are Variant null, as `is_variant_null` does; null where that would raise for a row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python(None), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_is_variant_null(pv.VariantArray.from_variants(rows)).to_pylist()
    [True, None]
    """
    path = VariantPath.parse(path)
    if isinstance(array, Variant):
        try:
            return is_variant_null(array, path)
        except MalformedVariantError:
            return None
    return by_row(array, lambda column: is_variant_null(column, path))
