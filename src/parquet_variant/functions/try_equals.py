"""`try_equals`: `equals` that gives null for values that it cannot read.

Owns the public operation. Leaves the work to `equals`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.equals import compared

__all__ = ["try_equals"]


def try_equals(left: Any, right: Any) -> bool | pa.BooleanArray | None:
    r"""Compare values as `equals` does; null where that would raise for a row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_equals(pv.VariantArray.from_variants(rows), pv.Variant.from_python([1])).to_pylist()
    [True, None]
    """
    if isinstance(left, Variant) and isinstance(right, Variant):
        try:
            return left == right
        except VariantError:
            return None
    return compared(left, right, keep_going=True)
