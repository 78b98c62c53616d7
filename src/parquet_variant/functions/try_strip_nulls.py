"""`try_strip_nulls`: `strip_nulls` that gives null for rows that it cannot change.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited

__all__ = ["try_strip_nulls"]


@overload
def try_strip_nulls(array: Variant, include_arrays: bool = ...) -> Variant | None: ...
@overload
def try_strip_nulls(array: Any, include_arrays: bool = ...) -> VariantArray: ...
def try_strip_nulls(array: Any, include_arrays: bool = True) -> Variant | VariantArray | None:
    r"""Do what `strip_nulls` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `strip_nulls`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([None, 1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_strip_nulls(pv.VariantArray.from_variants(rows)).to_pylist()
    [[1], None]
    """
    return edited(array, [Edit(EditKind.STRIP_NULLS if include_arrays else EditKind.STRIP_FIELDS)], keep_going=True)
