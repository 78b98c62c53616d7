"""`from_python` and `to_python`: Python objects to Variants, and back.

Owns the public operations and their `try_` twins. `encoding.python_values` has the mapping of types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from parquet_variant.arrays.row_by_row import row_by_row
from parquet_variant.arrays.tapes import python_objects
from parquet_variant.arrays.variant_array import VariantArray, is_one_value
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.columns.arrow_input import as_variant_array
from parquet_variant.ops.columns.null_on_error import or_none


@overload
def from_python(values: list[Any], *, max_depth: int = ...) -> VariantArray: ...
@overload
def from_python(values: Any, *, max_depth: int = ...) -> Any: ...
def from_python(values: Any, *, max_depth: int = MAX_DEPTH) -> Variant | VariantArray:
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
    """
    if is_one_value(values):
        return values if isinstance(values, Variant) else Variant.from_python(values, max_depth=max_depth)
    return VariantArray.from_variants(objects_to_variants(values, max_depth, null_on_error=False))


def try_from_python(values: Any, *, max_depth: int = MAX_DEPTH) -> Variant | VariantArray | None:
    """Convert Python objects as `from_python` does; null for objects that have no Variant type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_from_python([1, {2}, "x"]).to_pylist()
    [1, None, 'x']
    >>> pv.try_from_python({2}) is None
    True
    """
    if is_one_value(values):
        return or_none(lambda: from_python(values, max_depth=max_depth))
    return VariantArray.from_variants(objects_to_variants(values, max_depth, null_on_error=True))


def objects_to_variants(values: Iterable[Any], max_depth: int, *, null_on_error: bool) -> list[Variant | None]:
    """Return the Variant of each object; with ``null_on_error``, None for objects that would raise."""
    objects = list(values)

    def of_row(row: int) -> Variant | None:
        value = objects[row]
        is_variant = value is None or isinstance(value, Variant)
        return value if is_variant else Variant.from_python(value, max_depth=max_depth)

    return row_by_row(range(len(objects)), of_row, null_on_error=null_on_error)


def to_python(array: Any) -> Any:
    """Convert values to Python objects.

    Parameters
    ----------
    array
        A `VariantArray` of any layout becomes a list, with None for SQL NULL and for Variant null; a single `Variant`
        becomes one object.

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
    return (
        array.to_python()
        if isinstance(array, Variant)
        else python_objects(as_variant_array(array), null_on_error=False)
    )


def try_to_python(array: Any) -> Any:
    r"""Convert values to Python objects as `to_python` does; None for values that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_to_python(pv.VariantArray.from_variants(rows))
    [[1], None]
    """
    if isinstance(array, Variant):
        return or_none(array.to_python)
    return python_objects(as_variant_array(array), null_on_error=True)
