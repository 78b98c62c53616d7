"""Scalars: their type and raw payload, in both directions, and the narrowest type of a number.

Owns the bytes of every primitive type. A raw payload is: None, a bool, an int (integers; days of a date; microseconds
or nanoseconds since midnight or the epoch), a float, a pair (unscaled, scale) for decimals, str, or bytes (binary,
uuid). Leaves Python's richer types (`datetime`, `Decimal`, …) to `python_values`.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from parquet_variant.encoding.header import MAX_SHORT_STRING, primitive_info, value_size
from parquet_variant.errors import CastError, MalformedVariantError
from parquet_variant.types import (
    INTEGERS,
    NANOS_OF,
    TYPES,
    BasicType,
    PrimitiveId,
    VariantType,
    decimal_type_for_precision,
)

MAX_DIGITS = 38
MAX_SCALE = 38
MICROS_PER_DAY = 86_400_000_000

# Types whose payload is any integer.
_COUNTS = frozenset({*INTEGERS, *NANOS_OF}) - {VariantType.TIME}
_STRUCT_OF_FLOAT = {VariantType.DOUBLE: "<d", VariantType.FLOAT: "<f"}


# By the basic type; the type of a primitive is in its id.
_TYPE_OF_BASIC = (VariantType.NULL, VariantType.STRING, VariantType.OBJECT, VariantType.ARRAY)


class Scalar(NamedTuple):
    """The type and raw payload of a scalar."""

    type: VariantType
    raw: Any


def value_type(data: bytes, at: int, stop: int) -> VariantType:
    """Return the type of the value at ``at``, from its first byte only.

    Raises `MalformedVariantError` if the value is empty, or the type id is unknown.
    """
    if at >= stop:
        raise MalformedVariantError("the value has no bytes", reason="truncated", offset=at)
    basic, bits = data[at] & 3, data[at] >> 2
    return _TYPE_OF_BASIC[basic] if basic else primitive_info(bits, at).type


def read_scalar(data: bytes, at: int, stop: int) -> Scalar:
    """Return the scalar at ``at``.

    Raises `MalformedVariantError` if it is truncated, of an unknown type, not UTF-8, a decimal of scale over 38, or a
    time outside the day.

    >>> read_scalar(bytes.fromhex("200296000000"), 0, 6)
    Scalar(type=<VariantType.DECIMAL4: 'decimal4'>, raw=(150, 2))
    """
    kind = value_type(data, at, stop)
    width = TYPES[kind].width
    end = at + (value_size(data, at, stop) if width is None or at + width >= stop else 1 + width)
    header = data[at]
    if kind == VariantType.STRING:
        start = at + 1 if header & 3 == BasicType.SHORT_STRING else at + 5
        try:
            return Scalar(kind, data[start:end].decode())
        except UnicodeDecodeError as err:
            raise MalformedVariantError(
                f"the string is not UTF-8: {err.reason}", reason="bad-utf8", offset=start + err.start
            ) from None
    body = data[at + 1 : end]
    raw: Any
    if kind in _COUNTS:
        return Scalar(kind, int.from_bytes(body, "little", signed=True))
    match kind:
        case VariantType.NULL:
            raw = None
        case VariantType.BOOLEAN:
            raw = header >> 2 == PrimitiveId.TRUE
        case VariantType.DOUBLE | VariantType.FLOAT:
            raw = struct.unpack(_STRUCT_OF_FLOAT[kind], body)[0]
        case VariantType.BINARY:
            raw = body[4:]
        case VariantType.UUID:
            raw = body
        case VariantType.DECIMAL4 | VariantType.DECIMAL8 | VariantType.DECIMAL16:
            if body[0] > MAX_SCALE:
                raise MalformedVariantError(
                    f"decimal scale {body[0]} is greater than {MAX_SCALE}", reason="bad-decimal", offset=at + 1
                )
            raw = (int.from_bytes(body[1:], "little", signed=True), body[0])
        case _:
            assert kind == VariantType.TIME
            raw = int.from_bytes(body, "little", signed=True)
            if not 0 <= raw < MICROS_PER_DAY:
                raise MalformedVariantError(
                    f"time of {raw} µs is outside a day of {MICROS_PER_DAY} µs", reason="bad-time", offset=at + 1
                )
    return Scalar(kind, raw)


def encode_scalar(kind: VariantType, raw: Any) -> bytes:
    """Return the bytes of a scalar; strings up to 63 bytes as short strings.

    >>> encode_scalar(VariantType.STRING, "a").hex(), encode_scalar(VariantType.INT16, 258).hex()
    ('0561', '100201')
    """
    info = TYPES[kind]
    match kind:
        case VariantType.NULL:
            primitive, body = PrimitiveId.NULL, b""
        case VariantType.BOOLEAN:
            primitive, body = (PrimitiveId.TRUE if raw else PrimitiveId.FALSE), b""
        case VariantType.STRING:
            text = raw.encode()
            if len(text) <= MAX_SHORT_STRING:
                return bytes([len(text) << 2 | BasicType.SHORT_STRING]) + text
            primitive, body = PrimitiveId.STRING, len(text).to_bytes(4, "little") + text
        case VariantType.BINARY:
            primitive, body = PrimitiveId.BINARY, len(raw).to_bytes(4, "little") + raw
        case VariantType.UUID:
            primitive, body = PrimitiveId.UUID, raw
        case VariantType.DOUBLE | VariantType.FLOAT:
            primitive, body = info.ids[0], struct.pack(_STRUCT_OF_FLOAT[kind], raw)
        case VariantType.DECIMAL4 | VariantType.DECIMAL8 | VariantType.DECIMAL16:
            unscaled, scale = raw
            assert info.width is not None
            primitive, body = info.ids[0], bytes([scale]) + unscaled.to_bytes(info.width - 1, "little", signed=True)
        case _:
            assert info.width is not None
            primitive, body = info.ids[0], raw.to_bytes(info.width, "little", signed=True)
    return bytes([primitive << 2]) + body


def narrowest_integer(number: int) -> Scalar:
    """Return the narrowest integer type; beyond int64, a decimal16 of scale 0.

    >>> [narrowest_integer(n).type.value for n in (-128, 128, 2**31, 2**63)]
    ['int8', 'int16', 'int64', 'decimal16']
    """
    for kind in INTEGERS:
        width = TYPES[kind].width
        assert width is not None
        if -1 << (8 * width - 1) <= number < 1 << (8 * width - 1):
            return Scalar(kind, number)
    return narrowest_decimal(number, 0)


def narrowest_decimal(unscaled: int, scale: int) -> Scalar:
    """Return the narrowest decimal type whose precision holds both the digits and the scale.

    The scale counts because Spark treats a decimal4 of scale 10 as malformed, whatever its digits. Raises
    `CastError` for more than 38 digits or a scale outside 0 to 38.

    >>> narrowest_decimal(150, 2), narrowest_decimal(1, 12).type.value
    (Scalar(type=<VariantType.DECIMAL4: 'decimal4'>, raw=(150, 2)), 'decimal8')
    """
    # Compared as numbers, since Python does not convert an int of more than 4,300 digits to text.
    if not 0 <= scale <= MAX_SCALE or abs(unscaled) >= 10**MAX_DIGITS:
        message = f"a decimal has at most {MAX_DIGITS} digits and a scale of 0 to {MAX_SCALE}: round the number first"
        raise CastError(message, reason="decimal-overflow")
    return Scalar(decimal_type_for_precision(max(len(str(abs(unscaled))), scale)), (unscaled, scale))
