"""Reading encoded values inside kernels, with every bound checked.

Owns the byte layout of values in the reading direction: where a container's parts lie, how long a value is, what a
scalar holds. Leaves writing to `scalar_slots` and `containers`, and full validation to `operations.validate`.

``end`` is always the address after the last byte that may be touched. Lengths and counts are compared before they are
added to addresses, so that no malformed number can wrap around.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import load_s8, load_s16, load_s32, load_u8, load_u32, load_u64, load_uint
from parquet_variant.machine_code.signatures import Int64s, ReadOnlyInt32s, UInt8s

MALFORMED = -1

# Bytes after the header by kind; -1 where they follow a length.
PAYLOAD = (0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, -1, -1, 8, 8, 8, 16)


class EncodedValues(NamedTuple):
    """The rows of an unshredded column."""

    valid: UInt8s  # A byte a row, 0 for SQL NULL; empty if all are valid.
    # Where each row's value lies, counted from an address.
    offsets: Int64s
    base: int
    dictionary_of: ReadOnlyInt32s  # For each row the index of its metadata; -1 for null.


@helper
def value_kind(header):
    """Kind of a value by its first byte: PrimitiveId, STRING for short strings, ARRAY, OBJECT, or MALFORMED."""
    basic = header & 3
    if basic == 1:
        return KIND.STRING
    if basic == 2:
        return KIND.OBJECT
    if basic == 3:
        return KIND.ARRAY
    kind = header >> 2
    return kind if kind <= KIND.UUID else MALFORMED


@helper
def container(at, end):
    """``(ok, count, ids, id_width, offsets, offset_width, values, size)`` of the object or array at an address.

    ``ids``, ``offsets`` and ``values`` are addresses; ``size`` is the bytes of all values (the last offset). If ok, all
    of them lie before ``end``. An array has ``id_width`` 0.
    """
    if at >= end:
        return False, 0, 0, 0, 0, 0, 0, 0
    header = load_u8(at)
    bits = header >> 2
    offset_width = (bits & 3) + 1
    if header & 3 == 2:
        id_width = ((bits >> 2) & 3) + 1
        large = (bits >> 4) & 1
    else:
        id_width = 0
        large = (bits >> 2) & 1
    count_width = 4 if large else 1
    if end - at < 1 + count_width:
        return False, 0, 0, 0, 0, 0, 0, 0
    count = load_u32(at + 1) if large else load_u8(at + 1)
    ids = at + 1 + count_width
    if count * id_width + (count + 1) * offset_width > end - ids:
        return False, 0, 0, 0, 0, 0, 0, 0
    offsets = ids + count * id_width
    values = offsets + (count + 1) * offset_width
    size = load_uint(offsets + count * offset_width, offset_width)
    return size <= end - values, count, ids, id_width, offsets, offset_width, values, size


@helper
def value_size(at, end):
    """Bytes of the value at an address, header included, or MALFORMED; contents of containers are not looked at."""
    if at >= end:
        return MALFORMED
    header = load_u8(at)
    kind = value_kind(header)
    if kind == MALFORMED:
        return MALFORMED
    if kind >= KIND.ARRAY:
        ok, _, _, _, _, _, values, size = container(at, end)
        return values + size - at if ok else MALFORMED
    if header & 3 == 1:
        size = 1 + (header >> 2)
    elif kind == KIND.STRING or kind == KIND.BINARY:
        if end - at < 5:
            return MALFORMED
        size = 5 + load_u32(at + 1)
    else:
        size = 1 + PAYLOAD[kind]
    return size if size <= end - at else MALFORMED


@helper
def scalar(at, end):
    """``(kind, a, b, scale)`` of the scalar at an address, as in a tape node; kind is MALFORMED where it is none."""
    size = value_size(at, end)
    if size == MALFORMED or load_u8(at) & 2:
        return MALFORMED, 0, 0, 0
    return scalar_of_size(at, size)


@helper
def scalar_of_size(at, size):
    """As `scalar`, of a value that is a scalar of a size that `value_size` gave."""
    header = load_u8(at)
    kind = value_kind(header)
    if header & 3 == 1:
        return kind, at + 1, size - 1, 0
    if kind == KIND.STRING or kind == KIND.BINARY:
        return kind, at + 5, size - 5, 0
    if kind <= KIND.FALSE:
        return kind, 0, 0, 0
    if kind == KIND.DECIMAL4 or kind == KIND.DECIMAL8:
        value = load_s32(at + 2) if kind == KIND.DECIMAL4 else load_u64(at + 2)
        return kind, value, (-1 if value < 0 else 0), load_u8(at + 1)
    if kind == KIND.DECIMAL16:
        return kind, load_u64(at + 2), load_u64(at + 10), load_u8(at + 1)
    if kind == KIND.UUID:
        return kind, at + 1, 16, 0
    return kind, load_fixed(kind, at + 1), 0, 0


@helper
def load_fixed(kind, at):
    """The integer, date, time, timestamp or bits of a float at an address."""
    if kind == KIND.INT8:
        return load_s8(at)
    if kind == KIND.INT16:
        return load_s16(at)
    if kind == KIND.INT32 or kind == KIND.DATE:
        return load_s32(at)
    return load_u32(at) if kind == KIND.FLOAT else load_u64(at)


@helper
def metadata_header(at, end):
    """``(ok, count, offsets, width, names, size)`` of a metadata: addresses of offsets and names, all its bytes."""
    if end - at < 1:
        return False, 0, 0, 0, 0, 0
    header = load_u8(at)
    width = (header >> 6) + 1
    if header & 0x0F != 1 or end - at < 1 + width:
        return False, 0, 0, 0, 0, 0
    count = load_uint(at + 1, width)
    offsets = at + 1 + width
    if (count + 1) * width > end - offsets:
        return False, 0, 0, 0, 0, 0
    names = offsets + (count + 1) * width
    size = load_uint(offsets + count * width, width)
    return size <= end - names, count, offsets, width, names, names + size - at
