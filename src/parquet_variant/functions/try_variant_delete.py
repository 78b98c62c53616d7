"""`try_variant_delete`: `variant_delete` that gives null for rows that it cannot change.

Owns the public operation. Leaves the work to `editing`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited
from parquet_variant.path import VariantPath

__all__ = ["try_variant_delete"]


@overload
def try_variant_delete(array: Variant, *paths: str | VariantPath | None) -> Variant | None: ...
@overload
def try_variant_delete(array: Any, *paths: str | VariantPath | None) -> VariantArray: ...
def try_variant_delete(array: Any, *paths: str | VariantPath | None) -> Variant | VariantArray | None:
    r"""Do what `variant_delete` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_delete`; a path that cannot be read still raises.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python({"a": 1}), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_variant_delete(pv.VariantArray.from_variants(rows), "$.a").to_pylist()
    [{}, None]
    """
    edits = [Edit(EditKind.DELETE, value_path(path)) for path in paths if path is not None]
    return edited(array, edits, keep_going=True)
