"""`to_python`: Variants to Python objects.

Owns the public operation. Leaves which type gives which to `encoding.python_values`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.functions.variant_input import as_variant_array

__all__ = ["python_objects", "to_python"]


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
    return array.to_python() if isinstance(array, Variant) else python_objects(array, keep_going=False)


def python_objects(array: Any, *, keep_going: bool) -> list[Any]:
    """The object of each row; with ``keep_going`` None for those that would raise."""
    found: list[Any] = []
    for row, value in enumerate(as_variant_array(array)):
        try:
            found.append(None if value is None else value.to_python())
        except VariantError as error:
            if not keep_going:
                raise error.at(row=row) from None
            found.append(None)
    return found
