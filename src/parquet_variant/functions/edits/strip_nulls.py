"""`strip_nulls`: values without Variant nulls.

Owns the public operation and its `try_` twin. Leaves the work to `editing`, and what it means to `encoding.edits`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import Edit, EditKind
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.walks.editing import edited


@overload
def strip_nulls(array: Variant, include_arrays: bool = ...) -> Variant: ...
@overload
def strip_nulls(array: Any, include_arrays: bool = ...) -> VariantArray: ...
def strip_nulls(array: Any, include_arrays: bool = True) -> Variant | VariantArray:
    """Remove fields and elements that are Variant null, at every depth, as Spark 4.3's ``variant_strip_nulls`` does.

    Containers that become empty stay, and so does a value that is itself null.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    include_arrays
        Whether nulls are removed from arrays too.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": null, "b": [1, null, {"c": null}]}', "null"])
    >>> pv.to_json(pv.strip_nulls(rows)).to_pylist()
    ['{"b":[1,{}]}', 'null']
    >>> pv.to_json(pv.strip_nulls(rows, include_arrays=False)).to_pylist()
    ['{"b":[1,null,{}]}', 'null']
    """
    return edited(array, [Edit(EditKind.STRIP_NULLS if include_arrays else EditKind.STRIP_FIELDS)])


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
    return edited(array, [Edit(EditKind.STRIP_NULLS if include_arrays else EditKind.STRIP_FIELDS)], null_on_error=True)
