"""`variant_insert`: a new field or element in values.

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
def variant_insert(array: Variant, path: str | VariantPath, value: Any, *, max_size: int = ...) -> Variant | None: ...
@overload
def variant_insert(array: Any, path: str | VariantPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def variant_insert(
    array: Any, path: str | VariantPath, value: Any, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Insert a value at a path, with the semantics of Spark 4.3's ``variant_insert``.

    A key adds a field, which must not be there yet. An index inserts an element and shifts those from there on; beyond
    the end the array is padded with Variant nulls. Missing objects and arrays on the way are made.

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
    max_size
        The most bytes, metadata and value together, that a changed value may have.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    PathError
        For a path that cannot be read, has a wildcard or is ``$``; with the row and reason ``duplicate-key`` where the
        field is there, ``path-mismatch`` where a step meets a value of another kind (a Variant null is one).
    MalformedVariantError
        If the bytes of a value are malformed.
    VariantError
        With reason ``too-large``, beyond ``max_size``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.to_json(pv.variant_insert(pv.parse_json(['{"a": 1}', "{}"]), "$.b[1]", "x")).to_pylist()
    ['{"a":1,"b":[null,"x"]}', '{"b":[null,"x"]}']
    >>> pv.variant_insert(pv.parse_json('["a","b"]'), "$[1]", pv.parse_json("[]")).to_json()
    '["a",[],"b"]'
    """
    return edited(array, [Edit(EditKind.INSERT, value_path(path), max_size)], value)


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
    return edited(array, [Edit(EditKind.INSERT, value_path(path), max_size)], value, null_on_error=True)
