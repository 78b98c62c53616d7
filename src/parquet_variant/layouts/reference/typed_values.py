"""Primitives in a ``typed_value``: conversions and the exactness rules.

An exact number (int or decimal) can be stored in any int or decimal column that holds it exactly; float and double are
stored only in columns of their own type, and so is every other type (spark-shredding-draft-1-paths, "Shredding
Semantics"; timestamps keep unit and zone). Owns those rules and the Python form of a slot: bool, int (also days, and
microseconds or nanoseconds of times and timestamps), float, Decimal, str, and bytes (also of a uuid). Leaves Arrow
arrays to `storages`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar, read_scalar
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPE_OF_ARROW, TYPES, VariantType, decimal_type_for_precision

_CONTAINERS = (VariantType.ARRAY, VariantType.OBJECT, VariantType.NULL)


def slot_of(variant: Variant, arrow: pa.DataType) -> Any | None:
    """Return the slot that holds a value exactly, or None if a column of that canonical Arrow type cannot hold it.

    >>> slot_of(Variant.from_python(123), pa.decimal128(9, 2)), slot_of(Variant.from_python(1.0), pa.int64())
    (Decimal('123.00'), None)
    """
    kind = variant.type
    if kind in _CONTAINERS:
        return None
    if not pa.types.is_decimal(arrow):
        target = TYPE_OF_ARROW[arrow].type
        if target not in INTEGERS:
            return _raw_value(variant) if kind == target else None
        number = _number(variant, kind, 0)
        width = TYPES[target].width
        assert width is not None
        return number if number is not None and -1 << (8 * width - 1) <= number < 1 << (8 * width - 1) else None
    unscaled = _number(variant, kind, arrow.scale)
    if unscaled is None or abs(unscaled) >= 10**arrow.precision:
        return None
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -arrow.scale))


def _raw_value(variant: Variant) -> Any:
    value = variant.value
    return read_scalar(value, 0, len(value)).raw


def _number(variant: Variant, kind: VariantType, scale: int) -> int | None:
    """Return the unscaled integer of an exact number at a scale, or None if digits would be lost."""
    if kind not in EXACT_NUMERIC:
        return None
    raw = _raw_value(variant)
    unscaled, value_scale = (raw, 0) if kind in INTEGERS else raw
    if value_scale <= scale:
        return unscaled * 10 ** (scale - value_scale)
    quotient, remainder = divmod(unscaled, 10 ** (value_scale - scale))
    return None if remainder else quotient


def variant_of(slot: Any, arrow: pa.DataType) -> Variant:
    """Return the Variant of a slot; its type is that of the column.

    Raises `MalformedVariantError` for a slot that the column's type cannot hold: a time outside the day, a decimal with
    too many digits.

    >>> variant_of(Decimal("1.50"), pa.decimal128(9, 2)), variant_of(7, pa.int16())
    (<Variant decimal4: 1.5>, <Variant int16: 7>)
    """
    if pa.types.is_decimal(arrow):
        sign, digits, exponent = slot.as_tuple()
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + arrow.scale) * (-1 if sign else 1)
        if abs(unscaled) >= 10**arrow.precision:
            raise MalformedVariantError(
                f"the decimal {slot} has too many digits for decimal({arrow.precision},{arrow.scale})",
                reason="bad-decimal",
            )
        kind, raw = decimal_type_for_precision(arrow.precision), (unscaled, arrow.scale)
    else:
        kind, raw = TYPE_OF_ARROW[arrow].type, slot
    value = encode_scalar(kind, raw)
    if kind == VariantType.TIME:
        read_scalar(value, 0, len(value))
    if kind == VariantType.UUID and len(raw) != TYPES[kind].width:
        raise MalformedVariantError(f"a uuid has {len(raw)} bytes instead of 16", reason="bad-uuid")
    return Variant(EMPTY_METADATA, value)
