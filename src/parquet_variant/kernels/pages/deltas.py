"""Read pages whose values are stored as deltas: integers, sizes of byte arrays, and byte arrays with shared prefixes.

Owns reading DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY. Every bound is checked before a byte is
read or written. Leaves the other encodings to `chunks`. An empty ``valid`` means that every row has a value.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, UInt8s
from parquet_variant.kernels.memory import copy, load_u8, store_u32, store_u64
from parquet_variant.kernels.native_vectors import address_in
from parquet_variant.kernels.pages.run_reading import packed_value


@helper
def _varint(at: int, stop: int) -> tuple[int, int]:
    """Return an unsigned number and where it ends; -1 if it does not end."""
    value = shift = 0
    while at < stop and shift < 64:
        byte = load_u8(at)
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@helper
def _signed(value: int) -> int:
    """Return the number of a zigzag encoding, all of whose 64 bits may be set."""
    return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)


@helper
def _wide(at: int, stop: int, bit: int, width: int) -> int:
    """Return the value of up to 64 bits at a bit position."""
    if width <= 32:
        return packed_value(at, stop, bit, width)
    return packed_value(at, stop, bit, 32) | (packed_value(at, stop, bit + 32, width - 32) << 32)


@helper
def _store(target: int, i: int, value: int, width: int) -> None:
    """Store a value of 4 or 8 bytes."""
    if width == 8:
        store_u64(target + 8 * i, value)
    else:
        store_u32(target + 4 * i, value)


@helper
def read_deltas(at: int, stop: int, expected: int, target: int, item_bytes: int) -> int:
    """Write DELTA_BINARY_PACKED values of 4 or 8 bytes (``item_bytes``); return where they end, -1 if malformed."""
    block, at = _varint(at, stop)
    if at < 0:
        return -1
    parts, at = _varint(at, stop)
    if at < 0:
        return -1
    count, at = _varint(at, stop)
    if at < 0 or count != expected or parts < 1 or parts > 512 or block < 1 or block > 1 << 20 or block % parts:
        return -1
    size = block // parts
    if size % 8:
        return -1
    first, at = _varint(at, stop)
    if at < 0:
        return -1
    value = _signed(first)
    if count:
        _store(target, 0, value, item_bytes)
    done = 1
    while done < count:
        least, at = _varint(at, stop)
        if at < 0 or at + parts > stop:
            return -1
        least = _signed(least)
        widths = at
        at += parts
        for part in range(parts):
            if done >= count:
                break
            width = load_u8(widths + part)
            length = size * width >> 3
            if width > 64 or at + length > stop:
                return -1
            for k in range(min(size, count - done)):
                value += least + (_wide(at, stop, k * width, width) if width else 0)
                _store(target, done, value, item_bytes)
                done += 1
            at += length
    return at


@kernel
def delta_values(at: int, stop: int, values: Int64s) -> int:
    """Fill DELTA_BINARY_PACKED values; return where they end, or -1 if their number differs or they are malformed."""
    return read_deltas(at, stop, len(values), address_in(values), 8)


@kernel
def sized_spans(at: int, stop: int, lengths: Int64s, valid: UInt8s, starts: Int64s, sizes: Int64s) -> bool:
    """Fill start and size of each value of a DELTA_LENGTH_BYTE_ARRAY page; the size of a null row is 0.

    The bytes start at ``at``, behind the lengths. Returns whether they fill the page exactly.
    """
    done = 0
    for row in range(len(starts)):
        size = 0
        if len(valid) == 0 or valid[row]:
            if done >= len(lengths):
                return False
            size = lengths[done]
            done += 1
            if size < 0 or size > stop - at:
                return False
        starts[row] = at
        sizes[row] = size
        at += size
    return done == len(lengths) and at == stop


@kernel
def joined_prefixes(starts: Int64s, sizes: Int64s, prefixes: Int64s, valid: UInt8s, target: int, room: int) -> bool:
    """Write the values of a DELTA_BYTE_ARRAY page one after the other, and replace the spans of the suffixes by theirs.

    A value is a prefix of the previous value and a suffix. Returns whether every prefix is valid, and all values fit
    into the ``room``.
    """
    done = before = size_before = 0
    for row in range(len(starts)):
        if len(valid) and valid[row] == 0:
            continue
        prefix, suffix = prefixes[done], sizes[row]
        done += 1
        if prefix < 0 or prefix > size_before or prefix + suffix > room:
            return False
        copy(target, before, prefix)
        copy(target + prefix, starts[row], suffix)
        starts[row], sizes[row] = target, prefix + suffix
        before, size_before = target, prefix + suffix
        target += size_before
        room -= size_before
    return True
