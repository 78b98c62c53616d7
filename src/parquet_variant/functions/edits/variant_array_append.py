"""`variant_array_append`: one more element at the end of arrays.

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
def variant_array_append(
    array: Variant, path: str | VariantPath, value: Any, *, max_size: int = ...
) -> Variant | None: ...
@overload
def variant_array_append(array: Any, path: str | VariantPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def variant_array_append(
    array: Any, path: str | VariantPath, value: Any, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Append a value to the array at a path, with the semantics of Spark 4.3's ``variant_array_append``.

    An array is appended as one element. Where nothing is at the path, the value is left as it is.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        Where the array is, without wildcards; ``$`` is the value itself.
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
        For a path that cannot be read or has a wildcard; with the row and reason ``path-mismatch`` where a step meets a
        value of another kind, or what is at the path is no array.
    MalformedVariantError
        If the bytes of a value are malformed.
    VariantError
        With reason ``too-large``, beyond ``max_size``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": [1]}', '{"b": 2}'])
    >>> pv.variant_array_append(rows, "$.a", [2, 3]).to_pylist()
    [{'a': [1, [2, 3]]}, {'b': 2}]
    """
    return edited(array, [Edit(EditKind.APPEND, value_path(path, root=True), max_size)], value)


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
    return edited(array, [Edit(EditKind.APPEND, value_path(path, root=True), max_size)], value, null_on_error=True)
