"""Functions that change values: insert, set, delete, append, strip nulls, normalize.

Owns the public operations, and applying edits to columns: calling `kernels.operations.edit`, replacing the rows that
only the scalar fallback can change, and keeping the bytes of rows that do not change. `encoding.edits` defines what an
edit does, and `encoding.walk` writes the canonical form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays import parts
from parquet_variant.arrays.capsules import is_arrow
from parquet_variant.arrays.value_positions import NameNumbers, ValuePositions, canonical_nodes, value_chunks
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.edits import MAX_SIZE, Edit, EditKind, apply_edit, value_path
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, rows_of_errors
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.operations.edit import (
    CHANGED,
    LEFT,
    UNCHANGED,
    Change,
    edit_rows,
    least_metadata,
    strip_rows,
)
from parquet_variant.kernels.values.value_nodes import value_array
from parquet_variant.ops.columns.arguments import as_variant_array, check_errors, or_none
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import Errors
from parquet_variant.types.path import AnyPath


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
    array: Any, path: AnyPath, value: Any, create_if_missing: bool = ..., *, max_size: int = ..., errors: Errors = ...
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


NO_VALUE = object()


def apply_edits(source: Any, edits: Sequence[Edit], value: Any = NO_VALUE, errors: Errors = "raise") -> Any:
    """Apply edits (more than one only without a value) one after the other, to a value or every value of a column.

    `value`: the operand: a Variant, a column with one value per row, or any other Python object, which is one value.
    Returns None for a single value that becomes SQL NULL.
    """
    null_on_error = check_errors(errors)
    if isinstance(source, Variant):
        operand = None if value is NO_VALUE else _operand(value, None)
        if value is not NO_VALUE and operand is None:
            return None
        return or_none(partial(_by_fallback, source, edits, None if operand is None else operand[0]), errors)
    storage = as_variant_array(source, errors).to_unshredded().storage
    if not edits:
        return VariantArray(storage)
    operand = None if value is NO_VALUE else _operand(value, len(storage))
    if value is not NO_VALUE and operand is None:
        return VariantArray.from_variants([None] * len(storage))
    pieces = []
    for start, stop in value_chunks(storage):
        rows = operand if operand is None or len(operand) == 1 else operand[start:stop]
        with rows_of_errors(start.__add__):
            pieces.append(_edit_chunk(storage.slice(start, stop - start), edits, rows, null_on_error))
    return VariantArray(parts.joined_storages(pieces))


def _operand(value: Any, rows: int | None) -> VariantArray | None:
    """Return the operand: a column of one value, or of one value per row; None for SQL NULL."""
    from parquet_variant.ops.conversions import cast_to_variant

    if isinstance(value, pa.Scalar):
        return cast_to_variant(pa.array([value.as_py()], value.type)) if value.is_valid else None
    if not isinstance(value, pa.ChunkedArray) and not is_arrow(value):
        return VariantArray.from_variants([value if isinstance(value, Variant) else Variant.from_python(value)])
    if rows is None:
        raise SchemaError(
            "the operand is a column, but the first argument is a single Variant: pass a single value", reason="length"
        )
    column = cast_to_variant(value)
    if len(column) != rows:
        raise SchemaError(
            f"the operand has {len(column):,} values for {rows:,} rows: pass one value, or one per row", reason="length"
        )
    return column.to_unshredded()


def _by_fallback(variant: Variant, edits: Sequence[Edit], value: Variant | None) -> Variant:
    return reduce(lambda changed, edit: apply_edit(changed, edit, value), edits, variant)


def _edit_chunk(
    storage: pa.StructArray, edits: Sequence[Edit], operand: VariantArray | None, null_on_error: bool
) -> pa.StructArray:
    """Return the changed rows of a chunk."""
    present = parts.valid_mask(storage)
    if operand is not None:
        present &= parts.valid_mask(operand.storage)
    changed, state = _by_kernel(ValuePositions.of_storage(storage, present), edits, operand)

    def by_fallback(row: int) -> pa.StructArray:
        one = None if operand is None else parts.variant_at(operand.storage, row if len(operand) > 1 else 0)
        return VariantArray.from_variants([_by_fallback(parts.variant_at(storage, row), edits, one)]).storage

    if np.any(present & (state != CHANGED) & (state != LEFT)):
        # The other rows keep their bytes.
        value = storage.field("value")
        if not (pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type)):
            value = value.cast(pa.large_binary())
        fields = [changed.type.field("metadata"), pa.field("value", value.type, nullable=False)]
        columns = [parts.metadata_parts(storage.field("metadata")).column, value]
        original = pa.StructArray.from_arrays(columns, fields=fields, mask=from_numpy(~present))
        positions = np.arange(len(changed)) + np.where(state != CHANGED, len(changed), 0)
        changed = parts.joined_storages([changed, original]).take(from_numpy(positions))
    return parts.with_fallback_rows(changed, present & (state == LEFT), by_fallback, null_on_error=null_on_error)


def _by_kernel(
    batch: ValuePositions, edits: Sequence[Edit], operand: VariantArray | None
) -> tuple[pa.StructArray, npt.NDArray[np.uint8]]:
    """Return the rows that the kernel changes (null elsewhere), and the state of each row."""
    keys = sorted({key for edit in edits for key in edit.segments if isinstance(key, str)})
    batches = [batch]
    if operand is not None:
        batches.append(ValuePositions.of_storage(operand.storage))
    table = NameNumbers(batches, keys)
    nodes, row_start, refused = canonical_nodes(batch, table.maps[0])
    state = np.where(refused, LEFT, UNCHANGED).astype(np.uint8)
    values, value_start = np.empty((0, 4), np.int64), np.zeros(2, np.int64)
    if operand is not None:
        values, value_start, value_refused = canonical_nodes(batches[1], table.maps[1])
        state[np.broadcast_to(value_refused != 0, state.shape)] = LEFT
    one_value = operand is None or len(operand) == 1
    for number, edit in enumerate(edits):
        if edit.kind == EditKind.NORMALIZE:
            state[state != LEFT] = CHANGED
            continue
        out_start = np.empty_like(row_start)
        if edit.kind in (EditKind.STRIP_NULLS, EditKind.STRIP_FIELDS):
            out = np.empty_like(nodes)
            nodes = out[: strip_rows(nodes, row_start, edit.kind == EditKind.STRIP_NULLS, out, out_start, state)]
        else:
            segments = [table.rank[key] if isinstance(key, str) else -1 - key for key in edit.segments]
            change = Change(int(edit.kind), np.array(segments, np.int64), values, value_start, one_value, edit.max_size)
            nodes = adopt(*edit_rows(nodes, row_start, change, number < len(edits) - 1, out_start, state))
        row_start = out_start
    # Each value has metadata of only its own names.
    metadata = least_metadata(nodes, row_start, np.zeros(len(state), np.int32), table.table)
    value = value_array(nodes, row_start)
    sizes, name_sizes = (to_numpy(pc.binary_length(part)).astype(np.int64) for part in (value, metadata.dictionary))
    if edits[0].kind != EditKind.NORMALIZE:
        state[(state == CHANGED) & (sizes + name_sizes[to_numpy(metadata.indices)] > edits[0].max_size)] = LEFT
    changed = parts.storage_of(metadata, value, from_numpy((state != CHANGED) | (sizes == 0)))
    state[~batch.is_present] = CHANGED  # SQL NULL rows have no bytes to keep
    return changed, state
