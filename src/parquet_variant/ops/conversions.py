"""`cast_to_variant`, `from_python`, `to_python` and `to_json`: Variants of Arrow columns and Python objects, and back.

Owns the public operations and the mapping of Arrow types to Variant types. An Arrow column becomes a shredded storage
whose leaves are encoded column by column; `VariantArray.to_unshredded` assembles the rows. Types without such a form
(maps, nested JSON and nested Variants) go through the scalar fallback, row by row. `encoding.python_values` has the
mapping of Python types; JSON of columns is written by `ops.columns.json_text`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import is_storage
from parquet_variant.arrays.parts import metadata_of_all, row_by_row, struct_of
from parquet_variant.arrays.tapes import python_objects
from parquet_variant.arrays.value_positions import ScalarSlots
from parquet_variant.arrays.variant_array import VariantArray, is_one_value
from parquet_variant.encoding.metadata import NULL_VALUE
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import CastError
from parquet_variant.kernels.arrow_buffers import from_numpy, offsets_of, to_numpy
from parquet_variant.kernels.values.scalar_slots import narrow
from parquet_variant.layouts.storage_shape import is_any_list, lenient_primitive, refuse_deep
from parquet_variant.ops.columns.arguments import as_arrow, check_errors, or_none, or_null, unchecked_array
from parquet_variant.ops.columns.json_text import json_column
from parquet_variant.ops.columns.slot_casts import slots_of_column
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import Errors, OnConflict
from parquet_variant.types import PrimitiveId, of_arrow
from parquet_variant.types.forms import entry_lists, is_json_type, list_elements, plain_form, without_encoding

_STORED = {pa.time64("ns"): pa.time64("us")}
_EMPTY_OBJECT = b"\x02\x00\x00"


def cast_to_variant(values: Any) -> VariantArray:
    """Cast an Arrow column of any type to Variants.

    ==========================================  =============================================================
    Arrow                                       Variant
    ==========================================  =============================================================
    boolean                                     boolean
    integers, signed or not                     the narrowest integer; beyond int64 decimal16
    float16, float32; float64                   float; double
    decimals                                    the narrowest decimal of that scale
    string, large, view                         string
    binary, large, view, fixed size             binary
    date32, date64                              date
    time32, time64                              time (nanoseconds only if they are whole microseconds)
    timestamp with a zone, without              timestamp, timestamp_ntz; those in ns the nanosecond types
    uuid; arrow.json                            uuid; the parsed value
    list, large, view, fixed size               array; null elements are Variant null
    struct; map with string keys                object; null fields are Variant null
    dictionary, run-end-encoded                 as the type of their values
    a Variant storage                           unchanged
    ==========================================  =============================================================

    Parameters
    ----------
    values
        A pyarrow array or chunked array, or any object with Arrow's PyCapsule interface.

    Returns
    -------
    VariantArray
        Unshredded. Null rows are SQL NULL.

    Raises
    ------
    CastError
        For types without a Variant type (durations, intervals, unions, maps with other keys), maps with duplicate
        keys, decimals with more than 38 digits, times that are not whole microseconds, and timestamps outside the
        range of microseconds.

    Examples
    --------
    >>> import pyarrow as pa
    >>> cast_to_variant(pa.array([{"a": 1, "b": ["x", None]}, None]))
    <VariantArray unshredded, 2 rows: [{"a":1,"b":["x",null]}, NULL]>
    """
    if isinstance(values, VariantArray):
        return values
    array = without_encoding(as_arrow(values))
    if is_storage(array.type):
        return VariantArray(array)
    refuse_deep(array.type)
    if is_json_type(array.type):
        return parse_json(array.storage)
    if _needs_fallback(array.type):
        return VariantArray.from_pylist(_objects(array))
    names: set[str] = set()
    columns = _group(array, names)
    metadata = metadata_of_all(names, len(array))
    return VariantArray(struct_of({"metadata": metadata, **columns}, array.is_null())).to_unshredded()


def _group(array: pa.Array, names: set[str]) -> dict[str, pa.Array]:
    """Return the columns of a shredded group with the values; null becomes Variant null."""
    array = without_encoding(array)
    if pa.types.is_struct(array.type):
        fields = [field.name for field in array.type]
        if len(set(fields)) < len(fields):
            raise CastError(f"{array.type} has duplicate field names: rename the fields", reason="duplicate-key")
        if not fields:
            return {"value": pc.if_else(array.is_null(), NULL_VALUE, _EMPTY_OBJECT)}
        names.update(fields)
        children = {name: struct_of(_group(array.field(index), names)) for index, name in enumerate(fields)}
        typed = struct_of(children, array.is_null())
    elif is_any_list(array.type):
        offsets = offsets_of(to_numpy(pc.list_value_length(array).fill_null(0)))
        elements = struct_of(_group(list_elements(array), names))
        typed = pa.LargeListArray.from_arrays(from_numpy(offsets), elements, mask=array.is_null())
    elif pa.types.is_null(array.type):
        return {"value": pa.repeat(pa.scalar(NULL_VALUE, pa.binary()), len(array))}
    else:
        slots = _slots(array)
        narrow(slots.kinds, slots.a, slots.b, slots.scales)
        return {"value": slots.encoded()}
    return {"value": pc.if_else(array.is_null(), NULL_VALUE, pa.scalar(None, pa.binary())), "typed_value": typed}


def _slots(array: pa.Array) -> ScalarSlots:
    arrow = array.type
    if pa.types.is_uint64(arrow):
        signed = slots_of_column(array.view(pa.int64()))
        large = (signed.kinds == PrimitiveId.INT64) & (signed.a < 0)
        signed.kinds[large] = PrimitiveId.DECIMAL16  # its high half is 0
        return signed
    stored = of_arrow(_STORED, arrow) or lenient_primitive(arrow)
    if pa.types.is_decimal256(arrow) and stored is None:
        stored = pa.decimal128(38, arrow.scale)
    if stored is None:
        raise CastError(f"type {arrow} has no Variant type: cast the column first", reason="unsupported-type")
    try:
        return slots_of_column(array if arrow == pa.uuid() else array.cast(stored))
    except pa.ArrowInvalid as error:
        raise CastError(f"cannot cast {arrow} to a Variant of type {stored}: {error}", reason="bad-cast") from None


def _needs_fallback(arrow: pa.DataType) -> bool:
    """Return whether a type contains a type whose keys or metadata differ between rows."""
    if pa.types.is_dictionary(arrow) or pa.types.is_run_end_encoded(arrow) or is_any_list(arrow):
        return _needs_fallback(arrow.value_type)
    if pa.types.is_struct(arrow) and not is_storage(arrow):
        return any(_needs_fallback(field.type) for field in arrow)
    return pa.types.is_map(arrow) or is_json_type(arrow) or is_storage(arrow)


def _objects(array: pa.Array) -> list[Any]:
    """Return the values as Python containers of Variants, None for null."""
    array = without_encoding(array)
    arrow = array.type
    if not _needs_fallback(arrow) or is_json_type(arrow) or is_storage(arrow):
        return list(cast_to_variant(array))
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(arrow):
        names = [field.name for field in arrow]
        columns = [_objects(array.field(index)) for index in range(len(names))]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [row if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]
    if pa.types.is_map(arrow):
        key_type = plain_form(arrow.key_type)
        if not (pa.types.is_string(key_type) or pa.types.is_large_string(key_type)):
            raise CastError(f"the keys of {arrow} are not strings: cast them first", reason="unsupported-type")
        keys, array = entry_lists(array)
        items = list(zip(list_elements(keys).to_pylist(), _objects(list_elements(array)), strict=True))
    else:
        items = _objects(list_elements(array))
    ends = np.cumsum(to_numpy(pc.list_value_length(array).fill_null(0))).tolist()
    parts = [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return [
        (_fields(part) if pa.types.is_map(arrow) else part) if is_valid else None
        for part, is_valid in zip(parts, valid, strict=True)
    ]


def _fields(entries: list[Any]) -> dict[str, Any]:
    fields = dict(entries)
    if len(fields) < len(entries):
        keys = ", ".join(repr(key) for key, _ in entries[:8])
        raise CastError(f"a map has a duplicate key; its keys are {keys}", reason="duplicate-key")
    return fields


@overload
def from_python(values: list[Any], *, max_depth: int = ..., errors: Errors = ...) -> VariantArray: ...
@overload
def from_python(values: Any, *, max_depth: int = ..., errors: Errors = ...) -> Any: ...
def from_python(values: Any, *, max_depth: int = MAX_DEPTH, errors: Errors = "raise") -> Variant | VariantArray | None:
    """Convert Python objects to Variants: one object, or a list of objects as a column.

    For Arrow data, `cast_to_variant` is faster.

    Parameters
    ----------
    values
        A list, data frame or other iterable that is not a single value becomes a `VariantArray`, in which None is SQL
        NULL and ``Variant.from_python(None)`` is Variant null. A single value (a dict, a string, a number, None)
        becomes a `Variant`; use `Variant.from_python` for a list that is a single value.
    max_depth
        Maximum nesting depth.
    errors
        ``"raise"``, or ``"null"``: objects that have no Variant type become null.

    Raises
    ------
    CastError
        For an object that has no Variant type, with the row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.from_python([{"a": [True]}, None, 1.5])
    <VariantArray unshredded, 3 rows: [{"a":[true]}, NULL, 1.5]>
    >>> pv.from_python({"a": 1}).to_json()
    '{"a":1}'
    >>> pv.from_python([1, {2}])
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: builtins.set has no Variant type: convert {2} first (row 1)
    >>> pv.from_python([1, {2}, "x"], errors="null").to_pylist()
    [1, None, 'x']
    """
    null_on_error = check_errors(errors)
    if is_one_value(values):
        return or_none(partial(_variant_of, values, max_depth), errors)
    if hasattr(values, "columns"):  # a data frame, whose rows are objects
        return cast_to_variant(values)
    objects = list(values)

    def of_row(row: int) -> Variant | None:
        return None if objects[row] is None else _variant_of(objects[row], max_depth)

    return VariantArray.from_variants(row_by_row(range(len(objects)), of_row, null_on_error=null_on_error))


def _variant_of(value: Any, max_depth: int) -> Variant:
    return value if isinstance(value, Variant) else Variant.from_python(value, max_depth=max_depth)


def to_python(array: Any, *, errors: Errors = "raise") -> Any:
    """Convert values to Python objects.

    Parameters
    ----------
    array
        A `VariantArray` of any layout becomes a list, with None for SQL NULL and for Variant null; a single `Variant`
        becomes one object.
    errors
        ``"raise"``, or ``"null"``: values that would raise become None.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed, with the row.
    CastError
        For timestamps that NumPy reserves for NaT, with the row.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.to_python(pv.parse_json(['{"a": [1, 2.50]}', "null", None]))
    [{'a': [1, Decimal('2.50')]}, None, None]
    """
    if isinstance(array, Variant):
        return or_none(array.to_python, errors)
    return python_objects(unchecked_array(array), null_on_error=check_errors(errors))


@overload
def to_json(source: Variant, *, errors: Errors = ...) -> str | Any: ...
@overload
def to_json(
    source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None, errors: Errors = ...
) -> pa.Array: ...
def to_json(
    source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None, errors: Errors = "raise"
) -> str | pa.Array | None:
    r"""Write values as compact JSON text.

    Doubles are written as the shortest text that parses to the same double, decimals exactly, binary as base64, and
    timestamps as ISO 8601; docs/json.md has the complete table.

    Parameters
    ----------
    source
        A `Variant`, or a column of any layout.
    on_conflict
        For shredded arrays, as in `unshred_variant`.
    threads
        Number of threads for a large column (default: one per CPU of this process).
    errors
        ``"raise"``, or ``"null"``: values that would raise become null.

    Returns
    -------
    str or pyarrow.Array
        A string for a `Variant`; for a column an array of strings, null for SQL NULL.

    Raises
    ------
    MalformedVariantError
        For malformed bytes, with the row.
    ConflictError
        As in `unshred_variant`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.to_json(pv.parse_json(['{"b": [1.50, null], "a": "\u00e9"}', None])).to_pylist()
    ['{"a":"é","b":[1.5,null]}', None]
    """
    if isinstance(source, Variant):
        return or_none(source.to_json, errors)
    return or_null(source, partial(json_column, on_conflict=on_conflict, threads=threads), errors)
