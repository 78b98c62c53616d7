"""`try_variant_insert`: `variant_insert` that gives null for rows that it cannot change.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited
from parquet_variant.path import VariantPath

__all__ = ["try_variant_insert"]


@overload
def try_variant_insert(
    array: Variant, path: str | VariantPath, value: Any, *, max_size: int = ...
) -> Variant | None: ...
@overload
def try_variant_insert(array: Any, path: str | VariantPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def try_variant_insert(
    array: Any, path: str | VariantPath, value: Any, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Do what `variant_insert` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_insert`; a path that cannot be read still raises.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_variant_insert(pv.parse_json(['{"a": 1}', "{}", "5"]), "$.a", 2).to_pylist()
    [None, {'a': 2}, None]
    """
    return edited(array, [Edit(EditKind.INSERT, value_path(path), max_size)], value, keep_going=True)
