"""Values made of others: fields and elements inserted, set, deleted and appended, nulls stripped, bytes made canonical.

Owns the public operations and their `try_` twins. Leaves the work to `walks.editing`, what an edit means to
`encoding.edits`, and the canonical form to `encoding.builder`.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.editing import edited
from parquet_variant.path import AnyPath


@overload
def variant_insert(array: Variant, path: AnyPath, value: Any, *, max_size: int = ...) -> Variant | None: ...
@overload
def variant_insert(array: Any, path: AnyPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def variant_insert(array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE) -> Variant | VariantArray | None:
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
def try_variant_insert(array: Variant, path: AnyPath, value: Any, *, max_size: int = ...) -> Variant | None: ...
@overload
def try_variant_insert(array: Any, path: AnyPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def try_variant_insert(
    array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE
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


@overload
def variant_set(
    array: Variant, path: AnyPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> Variant | None: ...
@overload
def variant_set(
    array: Any, path: AnyPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> VariantArray: ...
def variant_set(
    array: Any, path: AnyPath, value: Any, create_if_missing: bool = True, *, max_size: int = MAX_SIZE
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
    create_if_missing
        Whether to make what is not there.
    value, max_size
        As for `variant_insert`.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    PathError
        For a path that cannot be read, has a wildcard or is ``$``; with the row and reason ``path-mismatch`` where a
        step meets a value of another kind (a Variant null is one), with or without ``create_if_missing``.
    MalformedVariantError, VariantError
        As for `variant_insert`.

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
    array: Variant, path: AnyPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> Variant | None: ...
@overload
def try_variant_set(
    array: Any, path: AnyPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ...
) -> VariantArray: ...
def try_variant_set(
    array: Any, path: AnyPath, value: Any, create_if_missing: bool = True, *, max_size: int = MAX_SIZE
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


@overload
def variant_array_append(array: Variant, path: AnyPath, value: Any, *, max_size: int = ...) -> Variant | None: ...
@overload
def variant_array_append(array: Any, path: AnyPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def variant_array_append(
    array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE
) -> Variant | VariantArray | None:
    """Append a value to the array at a path, with the semantics of Spark 4.3's ``variant_array_append``.

    An array is appended as one element. Where nothing is at the path, the value is left as it is.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        Where the array is, without wildcards; ``$`` is the value itself.
    value, max_size
        As for `variant_insert`.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Rows that change are canonical, the others keep their bytes. SQL NULL stays SQL NULL.

    Raises
    ------
    PathError
        For a path that cannot be read or has a wildcard; with the row and reason ``path-mismatch`` where a step meets a
        value of another kind, or what is at the path is no array.
    MalformedVariantError, VariantError
        As for `variant_insert`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": [1]}', '{"b": 2}'])
    >>> pv.variant_array_append(rows, "$.a", [2, 3]).to_pylist()
    [{'a': [1, [2, 3]]}, {'b': 2}]
    """
    return edited(array, [Edit(EditKind.APPEND, value_path(path, root=True), max_size)], value)


@overload
def try_variant_array_append(array: Variant, path: AnyPath, value: Any, *, max_size: int = ...) -> Variant | None: ...
@overload
def try_variant_array_append(array: Any, path: AnyPath, value: Any, *, max_size: int = ...) -> VariantArray: ...
def try_variant_array_append(
    array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE
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


@overload
def variant_delete(array: Variant, *paths: AnyPath | None) -> Variant: ...
@overload
def variant_delete(array: Any, *paths: AnyPath | None) -> VariantArray: ...
def variant_delete(array: Any, *paths: AnyPath | None) -> Variant | VariantArray:
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
def try_variant_delete(array: Variant, *paths: AnyPath | None) -> Variant | None: ...
@overload
def try_variant_delete(array: Any, *paths: AnyPath | None) -> VariantArray: ...
def try_variant_delete(array: Any, *paths: AnyPath | None) -> Variant | VariantArray | None:
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


@overload
def variant_normalize(array: Variant) -> Variant: ...
@overload
def variant_normalize(array: Any) -> VariantArray: ...
def variant_normalize(array: Any) -> Variant | VariantArray:
    """Write values in canonical bytes, so that values of the same types that are equal have the same bytes.

    Metadata gets exactly the keys of its value, sorted and unique; fields and their values the order of the keys' UTF-8
    bytes; all widths are the narrowest. Scalars keep their types: an int64 of 1 is not made an int8. For arrays by
    writers that leave fields unsorted (DuckDB 2.0), sort them by UTF-16 (Spark) or repeat metadata.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.

    Returns
    -------
    VariantArray or Variant
        Unshredded.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> sloppy = pv.Variant(bytes.fromhex("01020001026261"), bytes.fromhex("020200010002040c010c02"))
    >>> [part.hex() for part in (pv.variant_normalize(sloppy).metadata, pv.variant_normalize(sloppy).value)]
    ['11020001026162', '020200010002040c020c01']
    """
    return edited(array, [Edit(EditKind.NORMALIZE)])


@overload
def try_variant_normalize(array: Variant) -> Variant | None: ...
@overload
def try_variant_normalize(array: Any) -> VariantArray: ...
def try_variant_normalize(array: Any) -> Variant | VariantArray | None:
    r"""Do what `variant_normalize` does, but give SQL NULL for rows where that would raise.

    Parameters, results and errors are those of `variant_normalize`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_variant_normalize(pv.VariantArray.from_variants(rows)).to_pylist()
    [[1], None]
    """
    return edited(array, [Edit(EditKind.NORMALIZE)], null_on_error=True)
