"""`try_variant_type`: `variant_type` that gives null for values that it cannot read.

Owns the public operation. Leaves the work to `variant_type`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.keep_going import by_row
from parquet_variant.functions.variant_type import variant_type
from parquet_variant.types import VariantType

__all__ = ["try_variant_type"]


def try_variant_type(array: Any) -> VariantType | pa.StringArray | None:
    r"""Tell what each value is, as `variant_type` does; null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_variant_type(pv.VariantArray.from_variants(rows)).to_pylist()
    ['array', None]
    """
    if isinstance(array, Variant):
        try:
            return array.type
        except VariantError:
            return None
    return by_row(array, variant_type)
