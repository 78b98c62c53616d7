"""`to_python`: Variants to Python objects.

Owns the public operation and its `try_` twin. Leaves which type gives which to `encoding.python_values`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.array.row_by_row import row_by_row
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.inputs.null_on_error import or_none
from parquet_variant.functions.inputs.variant_input import as_variant_array


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
    return array.to_python() if isinstance(array, Variant) else python_objects(array, null_on_error=False)


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
    return python_objects(array, null_on_error=True)


def python_objects(array: Any, *, null_on_error: bool) -> list[Any]:
    """The object of each row; with ``null_on_error`` None for those that would raise."""
    values = list(as_variant_array(array))

    def of_row(row: int) -> Any:
        value = values[row]
        return None if value is None else value.to_python()

    return row_by_row(range(len(values)), of_row, null_on_error=null_on_error)
