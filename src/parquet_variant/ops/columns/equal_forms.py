"""One form for equal Variants: values with the same sort key get the same bytes.

Owns the form, for aggregates that compare values for equality and return them, such as ``mode``. Leaves the equality to
`sort_keys`.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Any

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.types import VariantType


def equal_forms(values: VariantArray) -> VariantArray:
    """Return the form of each value; SQL NULL for Variant null.

    Numbers become the narrowest integer or decimal of their value, also inside arrays and objects.

    >>> import parquet_variant as pv
    >>> pv.to_json(equal_forms(pv.parse_json(["1", "1.0", "1e0", "[1.50]", "null", '"a"']))).to_pylist()
    ['1', '1', '1', '[1.5]', None, '"a"']
    """
    return VariantArray.from_variants(
        [
            None if value is None or value.type == VariantType.NULL else _form(value.metadata, value.value)
            for value in values
        ]
    )


@lru_cache(maxsize=1 << 16)
def _form(metadata: bytes, value: bytes) -> Variant:
    return Variant.from_python(_equal_object(Variant(metadata, value).to_python()))


def _equal_object(value: Any) -> Any:
    if isinstance(value, list):
        return [_equal_object(element) for element in value]
    if isinstance(value, dict):
        return {key: _equal_object(part) for key, part in value.items()}
    if isinstance(value, (float, Decimal)):
        return _equal_number(value)
    return value


def _equal_number(value: float | Decimal) -> Any:
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if not number.is_finite():
        return value
    exact: int | Decimal = int(number) if number == number.to_integral_value() else number.normalize()
    try:
        Variant.from_python(exact)
    except VariantError:  # more digits than a decimal has
        return float(value)
    return exact
