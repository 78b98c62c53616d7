"""The Parquet type that an Arrow type is written as, and the order of its values.

Owns the table of primitive types. Leaves groups to `file_schema`, and the conversion of values to `leaf_values`. Spec:
``LogicalTypes.md``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

import pyarrow as pa

from parquet_variant.files.parquet.format.thrift import BOOL, I8, I32, STRUCT, encode_struct
from parquet_variant.types import of_arrow

Order: TypeAlias = Literal["boolean", "signed", "unsigned", "float", "bytes", "decimal"]


class Physical(IntEnum):
    """``Type`` of ``parquet.thrift``."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class LeafType(NamedTuple):
    """The Parquet type of a leaf column."""

    physical: Physical  # The physical type.
    width: int  # Bytes per value; 1 for unpacked booleans, 0 for byte arrays.
    order: Order  # The order of values.
    # The annotations: ``ConvertedType`` and the encoded ``LogicalType``.
    converted: int | None = None
    logical: bytes | None = None
    # Precision and scale of a decimal.
    precision: int | None = None
    scale: int | None = None


def logical_type(number: int, content: bytes = b"\x00") -> bytes:
    """Return an encoded ``LogicalType``: a union with one field set."""
    return encode_struct((number, STRUCT, content))


def _integer(bits: int, signed: bool) -> bytes:
    return logical_type(10, encode_struct((1, I8, bits), (2, BOOL, signed)))


def _time(number: int, unit: str, utc: bool) -> bytes:
    units = encode_struct((("ms", "us", "ns").index(unit) + 1, STRUCT, b"\x00"))
    return logical_type(number, encode_struct((1, BOOL, utc), (2, STRUCT, units)))


_STRING = LeafType(Physical.BYTE_ARRAY, 0, "bytes", 0, logical_type(1))
_BYTES = LeafType(Physical.BYTE_ARRAY, 0, "bytes")
_TYPES: dict[pa.DataType, LeafType] = {
    pa.bool_(): LeafType(Physical.BOOLEAN, 1, "boolean"),
    pa.int8(): LeafType(Physical.INT32, 4, "signed", 15, _integer(8, True)),
    pa.int16(): LeafType(Physical.INT32, 4, "signed", 16, _integer(16, True)),
    pa.int32(): LeafType(Physical.INT32, 4, "signed"),
    pa.int64(): LeafType(Physical.INT64, 8, "signed"),
    pa.uint8(): LeafType(Physical.INT32, 4, "unsigned", 11, _integer(8, False)),
    pa.uint16(): LeafType(Physical.INT32, 4, "unsigned", 12, _integer(16, False)),
    pa.uint32(): LeafType(Physical.INT32, 4, "unsigned", 13, _integer(32, False)),
    pa.uint64(): LeafType(Physical.INT64, 8, "unsigned", 14, _integer(64, False)),
    pa.float32(): LeafType(Physical.FLOAT, 4, "float"),
    pa.float64(): LeafType(Physical.DOUBLE, 8, "float"),
    pa.date32(): LeafType(Physical.INT32, 4, "signed", 6, logical_type(6)),
    pa.time32("ms"): LeafType(Physical.INT32, 4, "signed", None, _time(7, "ms", False)),
    pa.time64("us"): LeafType(Physical.INT64, 8, "signed", None, _time(7, "us", False)),
    pa.time64("ns"): LeafType(Physical.INT64, 8, "signed", None, _time(7, "ns", False)),
    pa.string(): _STRING,
    pa.large_string(): _STRING,
    pa.string_view(): _STRING,
    pa.binary(): _BYTES,
    pa.large_binary(): _BYTES,
    pa.binary_view(): _BYTES,
    pa.uuid(): LeafType(Physical.FIXED_LEN_BYTE_ARRAY, 16, "bytes", None, logical_type(14)),
}
_CONVERTED_TIMESTAMPS = {"ms": 9, "us": 10, "ns": None}


def leaf_type_of(kind: pa.DataType) -> LeafType | None:
    """Return the Parquet type that pyarrow writes an Arrow type as; None for types that only pyarrow writes.

    >>> leaf_type_of(pa.decimal128(12, 2))[:4]
    (<Physical.INT64: 2>, 8, 'signed', 5)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if (fixed := of_arrow(_TYPES, kind)) is not None:
        return fixed
    if pa.types.is_timestamp(kind) and kind.unit != "s":
        logical = _time(8, kind.unit, kind.tz is not None)
        return LeafType(Physical.INT64, 8, "signed", _CONVERTED_TIMESTAMPS[kind.unit], logical)
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return _decimal(kind.precision, kind.scale)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > 0:
        return LeafType(Physical.FIXED_LEN_BYTE_ARRAY, kind.byte_width, "bytes")
    return None


def _decimal(precision: int, scale: int) -> LeafType:
    logical = logical_type(5, encode_struct((1, I32, scale), (2, I32, precision)))
    if precision <= 18:
        physical, width = (Physical.INT32, 4) if precision <= 9 else (Physical.INT64, 8)
        return LeafType(physical, width, "signed", 5, logical, precision, scale)
    width = ((10**precision - 1).bit_length() + 8) // 8
    return LeafType(Physical.FIXED_LEN_BYTE_ARRAY, width, "decimal", 5, logical, precision, scale)
