"""`variant_set`: a field or element replaced or made in values.

Owns the public operation and its `try_` twin. Leaves the work to `editing`, and what it means to `encoding.edits`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.walks.editing import edited
from parquet_variant.path import VariantPath


@overload
def variant_set(
    array: Variant, path: str | VariantPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> Variant | None: ...
@overload
def variant_set(
    array: Any, path: str | VariantPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> VariantArray: ...
def variant_set(
    array: Any, path: str | VariantPath, value: Any, create_if_missing: bool = True, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Set the value at a path, with the semantics of Spark 4.3's ``variant_set``.

    What is there is replaced. A missing field, element or container on the way is made, arrays padded with Variant
    nulls; without ``create_if_missing`` the value is left as it is.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        Where, without wildcards: ``$.a``, ``$.a[0]``, ``$['a.b']``.
    value
        What goes in: a `Variant`, any Python object that has a Variant type (None is Variant null), or one for each
        row: a `VariantArray`, or an Arrow array of any type that `cast_to_variant` takes. SQL NULL (a null of an array,
        a null Arrow scalar) makes the row SQL NULL.
    create_if_missing
        Whether to make what is not there.
    max_size
        The most bytes, metadata and value together, that a changed value may have.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    PathError
        For a path that cannot be read, has a wildcard or is ``$``; with the row and reason ``path-mismatch`` where a
        step meets a value of another kind (a Variant null is one), with or without ``create_if_missing``.
    MalformedVariantError
        If the bytes of a value are malformed.
    VariantError
        With reason ``too-large``, beyond ``max_size``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1}', '{"b": 2}', None])
    >>> pv.variant_set(rows, "$.a", 3).to_pylist()
    [{'a': 3}, {'a': 3, 'b': 2}, None]
    >>> pv.variant_set(rows, "$.a", 3, create_if_missing=False).to_pylist()
    [{'a': 3}, {'b': 2}, None]
    """
    kind = EditKind.SET if create_if_missing else EditKind.REPLACE
    return edited(array, [Edit(kind, value_path(path), max_size)], value)


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
    return edited(array, [Edit(kind, value_path(path), max_size)], value, null_on_error=True)
