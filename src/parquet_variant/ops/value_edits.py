"""Functions that change values: insert, set, delete, append, strip nulls, normalize.

Owns the public operations. `ops.editing` applies the edits, `encoding.edits` defines what an edit does, and
`encoding.builder` writes the canonical form.
"""

from __future__ import annotations

from typing import Any, overload

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.editing import apply_edits
from parquet_variant.path import AnyPath
from parquet_variant.support.choices import Errors


@overload
def variant_insert(
    array: Variant, path: AnyPath, value: Any, *, max_size: int = ..., errors: Errors = ...
) -> Variant | None: ...
@overload
def variant_insert(
    array: Any, path: AnyPath, value: Any, *, max_size: int = ..., errors: Errors = ...
) -> VariantArray: ...
def variant_insert(
    array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE, errors: Errors = "raise"
) -> Variant | VariantArray | None:
    """Insert a value at a path, with the semantics of Spark 4.3's ``variant_insert``.

    A key adds a field, which must not exist yet. An index inserts an element and shifts the following ones; beyond the
    end, the array is padded with Variant nulls. Missing objects and arrays along the path are created.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    path
        The path, without wildcards: ``$.a``, ``$.a[0]``, ``$['a.b']``.
    value
        The value to insert: a `Variant`, or any Python object that has a Variant type (None is Variant null). One value
        per row: a `VariantArray`, or an Arrow array of any type that `cast_to_variant` takes. SQL NULL (a null of an
        array, a null Arrow scalar) makes the row SQL NULL.
    max_size
        The most bytes, metadata and value together, that a changed value may have.
    errors
        ``"raise"``, or ``"null"``: rows that would raise become SQL NULL. An invalid path always raises.

    Returns
    -------
    VariantArray or Variant
        Unshredded. Changed rows are canonical, the others keep their bytes. SQL NULL remains SQL NULL.

    Raises
    ------
    PathError
        For an invalid path, a path with a wildcard, and ``$``; with the row and reason ``duplicate-key`` if the field
        exists, ``path-mismatch`` if a step meets a value of another kind (such as a Variant null).
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
    >>> pv.variant_insert(pv.parse_json(['{"a": 1}', "{}", "5"]), "$.a", 2, errors="null").to_pylist()
    [None, {'a': 2}, None]
    """
    return apply_edits(array, [Edit(EditKind.INSERT, value_path(path), max_size)], value, errors)


@overload
def variant_set(
    array: Variant,
    path: AnyPath,
    value: Any,
    create_if_missing: bool = ...,
    *,
    max_size: int = ...,
    errors: Errors = ...,
) -> Variant | None: ...
@overload
def variant_set(
    array: Any,
    path: AnyPath,
    value: Any,
    create_if_missing: bool = ...,
    *,
    max_size: int = ...,
    errors: Errors = ...,
) -> VariantArray: ...
def variant_set(
    array: Any,
    path: AnyPath,
    value: Any,
    create_if_missing: bool = True,
    *,
    max_size: int = MAX_SIZE,
    errors: Errors = "raise",
) -> Variant | VariantArray | None:
    """Set the value at a path, with the semantics of Spark 4.3's ``variant_set``.

    An existing value is replaced. A missing field, element or container along the path is created, and arrays are
    padded with Variant nulls; without ``create_if_missing`` such rows do not change.

    Parameters
    ----------
    array, path, value, max_size, errors
        As for `variant_insert`.
    create_if_missing
        Whether to create the path in rows that lack it.

    Returns
    -------
    VariantArray or Variant
        As `variant_insert`.

    Raises
    ------
    PathError
        For an invalid path, a path with a wildcard, and ``$``; with the row and reason ``path-mismatch`` if a step
        meets a value of another kind (such as a Variant null), with or without ``create_if_missing``.
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
    return apply_edits(array, [Edit(kind, value_path(path), max_size)], value, errors)


@overload
def variant_array_append(
    array: Variant, path: AnyPath, value: Any, *, max_size: int = ..., errors: Errors = ...
) -> Variant | None: ...
@overload
def variant_array_append(
    array: Any, path: AnyPath, value: Any, *, max_size: int = ..., errors: Errors = ...
) -> VariantArray: ...
def variant_array_append(
    array: Any, path: AnyPath, value: Any, *, max_size: int = MAX_SIZE, errors: Errors = "raise"
) -> Variant | VariantArray | None:
    """Append a value to the array at a path, with the semantics of Spark 4.3's ``variant_array_append``.

    An array is appended as one element. Rows without a value at the path do not change.

    Parameters
    ----------
    array, value, max_size, errors
        As for `variant_insert`.
    path
        The path of the array, without wildcards; ``$`` is the value itself.

    Returns
    -------
    VariantArray or Variant
        As `variant_insert`.

    Raises
    ------
    PathError
        For an invalid path and a path with a wildcard; with the row and reason ``path-mismatch`` if a step meets a
        value of another kind, or the value at the path is not an array.
    MalformedVariantError, VariantError
        As for `variant_insert`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": [1]}', '{"b": 2}'])
    >>> pv.variant_array_append(rows, "$.a", [2, 3]).to_pylist()
    [{'a': [1, [2, 3]]}, {'b': 2}]
    """
    return apply_edits(array, [Edit(EditKind.APPEND, value_path(path, root=True), max_size)], value, errors)


@overload
def variant_delete(array: Variant, *paths: AnyPath | None, errors: Errors = ...) -> Variant | Any: ...
@overload
def variant_delete(array: Any, *paths: AnyPath | None, errors: Errors = ...) -> VariantArray: ...
def variant_delete(array: Any, *paths: AnyPath | None, errors: Errors = "raise") -> Variant | VariantArray | None:
    """Delete the values at paths, with the semantics of Spark 4.3's ``variant_delete``.

    Paths are applied from left to right, each to the result of the previous one. A missing path is ignored, also if a
    step meets a value of another kind.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    *paths
        The paths to delete, without wildcards; None is ignored.
    errors
        As for `variant_insert`.

    Returns
    -------
    VariantArray or Variant
        As `variant_insert`.

    Raises
    ------
    PathError
        For an invalid path, a path with a wildcard, and ``$``.
    MalformedVariantError
        If the bytes of a value are malformed.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1, "b": [1, 2, 3]}', "5", None])
    >>> pv.variant_delete(rows, "$.a", "$.b[0]", "$.b[0]").to_pylist()
    [{'b': [3]}, 5, None]
    """
    edits = [Edit(EditKind.DELETE, value_path(path)) for path in paths if path is not None]
    return apply_edits(array, edits, errors=errors)


@overload
def strip_nulls(array: Variant, include_arrays: bool = ..., *, errors: Errors = ...) -> Variant | Any: ...
@overload
def strip_nulls(array: Any, include_arrays: bool = ..., *, errors: Errors = ...) -> VariantArray: ...
def strip_nulls(array: Any, include_arrays: bool = True, *, errors: Errors = "raise") -> Variant | VariantArray | None:
    """Remove fields and elements that are Variant null, at every depth, as Spark 4.3's ``variant_strip_nulls`` does.

    Containers that become empty are kept, and so is a top-level null.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    include_arrays
        Whether nulls are also removed from arrays.
    errors
        As for `variant_insert`.

    Returns
    -------
    VariantArray or Variant
        As `variant_insert`.

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
    edit = Edit(EditKind.STRIP_NULLS if include_arrays else EditKind.STRIP_FIELDS)
    return apply_edits(array, [edit], errors=errors)


@overload
def variant_normalize(array: Variant, *, errors: Errors = ...) -> Variant | Any: ...
@overload
def variant_normalize(array: Any, *, errors: Errors = ...) -> VariantArray: ...
def variant_normalize(array: Any, *, errors: Errors = "raise") -> Variant | VariantArray | None:
    """Write values in canonical bytes, so that equal values of the same types have the same bytes.

    Metadata has exactly the keys of its value, sorted and unique; fields and their values are ordered by the UTF-8
    bytes of the keys; all widths are the narrowest. Scalars keep their types: an int64 of 1 does not become an int8.
    Useful for data of writers that leave fields unsorted (DuckDB 2.0), sort them by UTF-16 (Spark) or repeat metadata.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.
    errors
        As for `variant_insert`.

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
    return apply_edits(array, [Edit(EditKind.NORMALIZE)], errors=errors)
