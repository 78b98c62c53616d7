"""`try_variant_array_append`: `variant_array_append` that gives null for rows that it cannot change.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited
from parquet_variant.path import VariantPath

__all__ = ["try_variant_array_append"]


@overload
def try_variant_array_append(
    array: Variant, path: str | VariantPath, value: Any, *, max_size: int = ...
) -> Variant | None: ...
@overload
def try_variant_array_append(
    array: Any, path: str | VariantPath, value: Any, *, max_size: int = ...
) -> VariantArray: ...
def try_variant_array_append(
    array: Any, path: str | VariantPath, value: Any, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Do what `variant_array_append` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_array_append`; a path that cannot be read still raises.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_variant_array_append(pv.parse_json(["[1]", "{}"]), "$", 2).to_pylist()
    [[1, 2], None]
    """
    return edited(array, [Edit(EditKind.APPEND, value_path(path, root=True), max_size)], value, keep_going=True)
