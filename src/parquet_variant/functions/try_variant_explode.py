"""`try_variant_explode`: `variant_explode` that takes values that it cannot read for SQL NULL.

Owns the public operation. Leaves the work to `exploding`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.functions.exploding import exploded

__all__ = ["try_variant_explode"]


def try_variant_explode(array: Any) -> pa.Table:
    r"""Explode values as `variant_explode` does; those for which that would raise count as SQL NULL.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x03\x01\0")]
    >>> pv.try_variant_explode(pv.VariantArray.from_variants(rows)).select(["row", "pos"]).to_pylist()
    [{'row': 0, 'pos': 0}]
    """
    return exploded(array, outer=False, keep_going=True)
