"""`try_from_python`: `from_python` that gives null for objects that have no Variant type.

Owns the public operation. Leaves the work to `from_python`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.functions.from_python import variants_of

__all__ = ["try_from_python"]


def try_from_python(values: Iterable[Any], *, max_depth: int = MAX_DEPTH) -> VariantArray:
    """Make a column of Python objects as `from_python` does; SQL NULL for those that have no Variant type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_from_python([1, {2}, "x"]).to_pylist()
    [1, None, 'x']
    """
    return VariantArray.from_variants(variants_of(values, max_depth, keep_going=True))
