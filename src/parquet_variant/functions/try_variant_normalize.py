"""`try_variant_normalize`: `variant_normalize` that gives null for rows that it cannot read.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited

__all__ = ["try_variant_normalize"]


@overload
def try_variant_normalize(array: Variant) -> Variant | None: ...
@overload
def try_variant_normalize(array: Any) -> VariantArray: ...
def try_variant_normalize(array: Any) -> Variant | VariantArray | None:
    r"""Do what `variant_normalize` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_normalize`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_variant_normalize(pv.VariantArray.from_variants(rows)).to_pylist()
    [[1], None]
    """
    return edited(array, [Edit(EditKind.NORMALIZE)], keep_going=True)
