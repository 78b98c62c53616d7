"""`try_to_python`: `to_python` that gives None for values that it cannot read.

Owns the public operation. Leaves the work to `to_python`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.to_python import python_objects

__all__ = ["try_to_python"]


def try_to_python(array: Any) -> Any:
    r"""Give values as Python objects, as `to_python` does; None where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_to_python(pv.VariantArray.from_variants(rows))
    [[1], None]
    """
    if isinstance(array, Variant):
        try:
            return array.to_python()
        except VariantError:
            return None
    return python_objects(array, keep_going=True)
