"""`from_python`: Python objects to Variants.

Owns the public operation and its `try_` twin. Leaves which type gives which to `encoding.python_values`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.array.variant_array import VariantArray, refuse_one_value
from parquet_variant.encoding.python_values import MAX_DEPTH
from parquet_variant.encoding.variant import Variant

__all__ = ["from_python", "try_from_python", "variants_of"]


def from_python(values: Iterable[Any], *, max_depth: int = MAX_DEPTH) -> VariantArray:
    """Make a column of Python objects.

    For Arrow data `cast_to_variant` is faster; for one object there is `Variant.from_python`.

    Parameters
    ----------
    values
        The objects, in a list or any other iterable that is not itself one value (a dict, a text); None is SQL NULL,
        ``Variant.from_python(None)`` a Variant null.
    max_depth
        The most containers inside each other.

    Raises
    ------
    CastError
        For an object that has no Variant type, with the row.
    SchemaError
        For one value in the place of a column of them.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.from_python([{"a": [True]}, None, 1.5])
    <VariantArray unshredded, 3 rows: [{"a":[true]}, NULL, 1.5]>
    >>> pv.from_python([1, {2}])
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: builtins.set has no Variant type: convert {2} first (row 1)
    """
    return VariantArray.from_variants(variants_of(values, max_depth, null_on_error=False))


def try_from_python(values: Iterable[Any], *, max_depth: int = MAX_DEPTH) -> VariantArray:
    """Make a column of Python objects as `from_python` does; SQL NULL for those that have no Variant type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_from_python([1, {2}, "x"]).to_pylist()
    [1, None, 'x']
    """
    return VariantArray.from_variants(variants_of(values, max_depth, null_on_error=True))


def variants_of(values: Iterable[Any], max_depth: int, *, null_on_error: bool) -> list[Variant | None]:
    """The value of each object; with ``null_on_error`` None for those that would raise."""
    refuse_one_value(values)
    objects = list(values)

    def of_row(row: int) -> Variant | None:
        value = objects[row]
        ready = value is None or isinstance(value, Variant)
        return value if ready else Variant.from_python(value, max_depth=max_depth)

    return row_by_row(range(len(objects)), of_row, null_on_error=null_on_error)
