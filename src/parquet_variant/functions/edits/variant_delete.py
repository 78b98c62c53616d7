"""`variant_delete`: fields and elements removed from values.

Owns the public operation and its `try_` twin. Leaves the work to `editing`, and what it means to `encoding.edits`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.walks.editing import edited
from parquet_variant.path import VariantPath


@overload
def variant_delete(array: Variant, *paths: str | VariantPath | None) -> Variant: ...
@overload
def variant_delete(array: Any, *paths: str | VariantPath | None) -> VariantArray: ...
def variant_delete(array: Any, *paths: str | VariantPath | None) -> Variant | VariantArray:
    """Remove what is at some paths, with the semantics of Spark 4.3's ``variant_delete``.

    Paths are followed from left to right: each sees what the ones before it left. What is not there is passed over,
    also where a step meets a value of another kind.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    *paths
        What to remove, without wildcards; None is passed over.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    PathError
        For a path that cannot be read, has a wildcard or is ``$``.
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1, "b": [1, 2, 3]}', "5", None])
    >>> pv.variant_delete(rows, "$.a", "$.b[0]", "$.b[0]").to_pylist()
    [{'b': [3]}, 5, None]
    """
    return edited(array, [Edit(EditKind.DELETE, value_path(path)) for path in paths if path is not None])


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
    return edited(array, edits, null_on_error=True)
