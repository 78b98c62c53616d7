"""`try_variant_set`: `variant_set` that gives null for rows that it cannot change.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited
from parquet_variant.path import VariantPath

__all__ = ["try_variant_set"]


@overload
def try_variant_set(
    array: Variant, path: str | VariantPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> Variant | None: ...
@overload
def try_variant_set(
    array: Any, path: str | VariantPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> VariantArray: ...
def try_variant_set(
    array: Any, path: str | VariantPath, value: Any, create_if_missing: bool = True, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Do what `variant_set` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_set`; a path that cannot be read still raises.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_variant_set(pv.parse_json(['{"a": 1}', "[]"]), "$.a", 2).to_pylist()
    [{'a': 2}, None]
    """
    kind = EditKind.SET if create_if_missing else EditKind.REPLACE
    return edited(array, [Edit(kind, value_path(path), max_size)], value, keep_going=True)
