"""`from_python` and `to_python`: Python objects to Variants, and back.

Owns the public operations. `encoding.python_values` has the mapping of types.
"""

from __future__ import annotations

from functools import partial
from typing import Any, overload

from parquet_variant.arrays.row_by_row import row_by_row
from parquet_variant.arrays.tapes import python_objects
from parquet_variant.arrays.variant_array import VariantArray, is_one_value
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.null_on_error import check_errors, or_none
from parquet_variant.support.choices import Errors


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
        A list, or another iterable that is not a single value, becomes a `VariantArray`, in which None is SQL NULL and
        ``Variant.from_python(None)`` is Variant null. A single value (a dict, a string, a number, None) becomes a
        `Variant`; use `Variant.from_python` for a list that is a single value.
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
        convert = partial(_variant_of, values, max_depth)
        return or_none(convert) if null_on_error else convert()
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
    null_on_error = check_errors(errors)
    if isinstance(array, Variant):
        return or_none(array.to_python) if null_on_error else array.to_python()
    return python_objects(as_variant_array(array), null_on_error=null_on_error)
