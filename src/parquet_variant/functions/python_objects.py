"""`from_python` and `to_python`: Python objects to Variants, and back.

Owns the public operations and their `try_` twins. Leaves which type gives which to `encoding.python_values`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.array.tapes import python_objects
from parquet_variant.array.variant_array import VariantArray, is_one_value
from parquet_variant.compute.arrow_input import as_variant_array
from parquet_variant.compute.null_on_error import or_none
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.encoding.variant import Variant


@overload
def from_python(values: list[Any], *, max_depth: int = ...) -> VariantArray: ...
@overload
def from_python(values: Any, *, max_depth: int = ...) -> Any: ...
def from_python(values: Any, *, max_depth: int = MAX_DEPTH) -> Variant | VariantArray:
    """Make Variants of Python objects: one of one object, a column of a list of them.

    For Arrow data `cast_to_variant` is faster.

    Parameters
    ----------
    values
        A list, or any other iterable that is not itself one value, gives a `VariantArray`; None in it is SQL NULL,
        ``Variant.from_python(None)`` a Variant null. One value (a dict, a text, a number, None) gives a `Variant`; for
        a list that is one value there is `Variant.from_python`.
    max_depth
        The most containers inside each other.

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
    return VariantArray.from_variants(variants_of(values, max_depth, null_on_error=False))


def try_from_python(values: Any, *, max_depth: int = MAX_DEPTH) -> Variant | VariantArray | None:
    """Make Variants of Python objects as `from_python` does; null for those that have no Variant type.

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
    return VariantArray.from_variants(variants_of(values, max_depth, null_on_error=True))


def variants_of(values: Iterable[Any], max_depth: int, *, null_on_error: bool) -> list[Variant | None]:
    """The value of each object; with ``null_on_error`` None for those that would raise."""
    objects = list(values)

    def of_row(row: int) -> Variant | None:
        value = objects[row]
        ready = value is None or isinstance(value, Variant)
        return value if ready else Variant.from_python(value, max_depth=max_depth)

    return row_by_row(range(len(objects)), of_row, null_on_error=null_on_error)


def to_python(array: Any) -> Any:
    """Give values as Python objects.

    Parameters
    ----------
    array
        A `VariantArray` of any layout gives a list, None for SQL NULL and for Variant null; a single `Variant` gives
        one object.

    Raises
    ------
    MalformedVariantError
        If the bytes of a value are malformed, with the row.
    CastError
        For the timestamps that numpy uses for NaT, with the row.

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
    r"""Give values as Python objects, as `to_python` does; None where that would raise.

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
