"""Values of Arrow columns as Parquet's pages store them, the smallest and largest byte arrays, and hashes of values.

Owns leaving out nulls, the encodings of byte arrays (PLAIN and DELTA_BYTE_ARRAY), copying byte arrays out of pages, and
the hashes and bits of bloom filters (XXH64 of values as PLAIN stores them, without their length; ``BloomFilter.md``),
and the hash tables of dictionaries that grow as values occur: a kernel stops when a table is full, and continues when
it is called again with a larger one. Leaves levels and runs to `pages.levels` and `pages.runs`. Byte arrays are lengths
(``int32``) and the address of their bytes, one value after the other. The caller provides enough room.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parquet_variant.kernels.json.scan import is_ascii
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import (
    Int32s,
    Int64s,
    Int64Table,
    ReadOnlyInt32s,
    ReadOnlyUInt8s,
    UInt8s,
)
from parquet_variant.kernels.memory import (
    MIX_A,
    MIX_B,
    copy,
    equal,
    hash_bytes,
    load_s32,
    load_u8,
    load_u32,
    load_u64,
    move,
    store_u32,
    trailing_zeros,
)
from parquet_variant.kernels.native_vectors import address_in
from parquet_variant.kernels.pages.levels import ByteArrays, is_set, offset_at
from parquet_variant.kernels.pages.runs import put_deltas

# Columns of the table of distinct byte arrays.
_HASH, _SIZE, _START = range(3)


@helper
def _hash_text(address: int, size: int, seed: int) -> int:
    """Hash bytes; long ones four words at a time, because the four hashes do not depend on each other."""
    if size < 32:
        return hash_bytes(address, size, seed)
    one, two, three, four = seed, seed ^ MIX_B, seed + size, seed * MIX_A
    i = 0
    while i + 32 <= size:
        one = (one ^ load_u64(address + i)) * MIX_A
        two = (two ^ load_u64(address + i + 8)) * MIX_A
        three = (three ^ load_u64(address + i + 16)) * MIX_A
        four = (four ^ load_u64(address + i + 24)) * MIX_A
        one ^= (one >> 29) & 0x7FFFFFFFF
        two ^= (two >> 31) & 0x1FFFFFFFF
        three ^= (three >> 33) & 0x7FFFFFFF
        four ^= (four >> 30) & 0x3FFFFFFFF
        i += 32
    mixed = (one * MIX_B + two) ^ ((three * MIX_B + four) * MIX_A)
    return hash_bytes(address + i, size - i, mixed)


@helper(inline=True)
def _hash_word(word: int, seed: int) -> int:
    """Hash a word."""
    value = (word ^ seed) * MIX_A
    value ^= (value >> 32) & 0xFFFFFFFF
    value *= MIX_B
    return value ^ ((value >> 29) & 0x7FFFFFFFF)


@kernel
def index_words(
    source: int,
    width: int,
    first: int,
    count: int,
    entries: int,
    slots: Int64s,
    seed: int,
    words: Int64s,
    indices: Int32s,
) -> tuple[int, int]:
    """Number values of 4 or 8 bytes, new ones in order; return ``(numbered up to, entries)``.

    ``slots`` (a power of two, -1 for free) has room for twice as many entries as ``words``.
    """
    mask = len(slots) - 1
    for i in range(first, count):
        word = load_u64(source + i * 8) if width == 8 else load_s32(source + i * 4)
        at = _hash_word(word, seed) & mask
        while slots[at] >= 0 and words[slots[at]] != word:
            at = (at + 1) & mask
        if slots[at] < 0:
            if entries == len(words):
                return i, entries
            words[entries] = word
            slots[at] = entries
            entries += 1
        indices[i] = slots[at]
    return count, entries


@kernel
def rehash_words(words: Int64s, entries: int, seed: int, slots: Int64s) -> None:
    """Store known values in empty slots."""
    mask = len(slots) - 1
    for entry in range(entries):
        at = _hash_word(words[entry], seed) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = entry


class DistinctStrings(NamedTuple):
    """The distinct byte arrays of a column: their hash table, their entries, and their bytes."""

    slots: Int64s
    seed: int
    table: Int64Table
    arena: UInt8s


@kernel
def index_bytes(
    strings: ByteArrays,
    distinct: DistinctStrings,
    slot: int,
    entries: int,
    arena_bytes: int,
    indices: Int32s,
    numbered: int,
) -> tuple[int, int, int, int, int]:
    """Number the byte arrays that are not null, new ones in order, from ``slot`` on.

    Returns ``(next slot, numbered, bytes of those, entries, used bytes of the arena)``. An entry is the hash, the size
    and the start in the arena. ``numbered`` is the number of indices before, after which ``indices`` continue.
    """
    slots, table = distinct.slots, distinct.table
    mask, arena, total, entry = len(slots) - 1, address_in(distinct.arena), 0, -1
    while slot < strings.rows:
        if is_set(strings.bits, strings.first + slot):
            start = offset_at(strings.offsets, slot, strings.width)
            size = offset_at(strings.offsets, slot + 1, strings.width) - start
            text = strings.data + start
            # Repeated values often follow each other, and then need no hash.
            if entry < 0 or table[entry, _SIZE] != size or not equal(arena + table[entry, _START], text, size):
                hashed = _hash_text(text, size, distinct.seed)
                at = hashed & mask
                while slots[at] >= 0:
                    entry = slots[at]
                    if (
                        table[entry, _HASH] == hashed
                        and table[entry, _SIZE] == size
                        and equal(arena + table[entry, _START], text, size)
                    ):
                        break
                    at = (at + 1) & mask
                if slots[at] < 0:
                    if entries == len(table) or arena_bytes + size > len(distinct.arena):
                        break
                    table[entries, _HASH], table[entries, _SIZE], table[entries, _START] = hashed, size, arena_bytes
                    copy(arena + arena_bytes, text, size)
                    arena_bytes += size
                    entry = slots[at] = entries
                    entries += 1
            indices[numbered] = entry
            numbered += 1
            total += size
        slot += 1
    return slot, numbered, total, entries, arena_bytes


@kernel
def rehash_bytes(table: Int64Table, entries: int, slots: Int64s) -> None:
    """Store known values in empty slots."""
    mask = len(slots) - 1
    for entry in range(entries):
        at = table[entry, _HASH] & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = entry


@kernel
def valid_values(source: int, width: int, bits: int, first: int, count: int, target: int) -> int:
    """Copy the values whose bits are set, one after the other; return their number."""
    at = target
    for i in range(count):
        if is_set(bits, first + i):
            move(at, source + i * width, width)
            at += width
    return (at - target) // width


@kernel
def valid_lengths(strings: ByteArrays, lengths: Int32s) -> tuple[int, int]:
    """Fill the lengths of the byte arrays that are not null; return ``(values, bytes)``."""
    values = total = 0
    for i in range(strings.rows):
        if is_set(strings.bits, strings.first + i):
            length = offset_at(strings.offsets, i + 1, strings.width) - offset_at(strings.offsets, i, strings.width)
            lengths[values] = length
            values += 1
            total += length
    return values, total


@kernel
def gather_bytes(strings: ByteArrays, target: int) -> None:
    """Copy the byte arrays that are not null, if other byte arrays are between them."""
    for i in range(strings.rows):
        if is_set(strings.bits, strings.first + i):
            start = offset_at(strings.offsets, i, strings.width)
            length = offset_at(strings.offsets, i + 1, strings.width) - start
            copy(target, strings.data + start, length)
            target += length


@kernel
def plain_bytes(data: int, lengths: Int32s, out: int) -> int:
    """Write byte arrays as PLAIN; return the bytes written."""
    at, source = out, data
    for i in range(len(lengths)):
        length = lengths[i]
        store_u32(at, length)
        copy(at + 4, source, length)
        at += 4 + length
        source += length
    return at - out


@helper
def _shared(left: int, right: int, limit: int) -> int:
    """Return the number of bytes that two byte arrays share at their start."""
    i = 0
    while i + 8 <= limit:
        differing = load_u64(left + i) ^ load_u64(right + i)
        if differing != 0:
            return i + (trailing_zeros(differing) >> 3)
        i += 8
    while i < limit and load_u8(left + i) == load_u8(right + i):
        i += 1
    return i


@kernel
def delta_bytes(
    data: int,
    lengths: Int32s,
    prefixes: Int32s,
    suffixes: Int32s,
    prefixes_at: int,
    suffixes_at: int,
    deltas: Int64s,
    out: int,
) -> int:
    """Write byte arrays as DELTA_BYTE_ARRAY; return the bytes written.

    ``prefixes`` and ``suffixes`` are scratch space.
    """
    source = before = data
    for i in range(len(lengths)):
        prefix = 0 if i == 0 else _shared(before, source, min(lengths[i - 1], lengths[i]))
        prefixes[i] = prefix
        suffixes[i] = lengths[i] - prefix
        before = source
        source += lengths[i]
    at = put_deltas(prefixes_at, 4, len(lengths), deltas, out)
    at = put_deltas(suffixes_at, 4, len(lengths), deltas, at)
    source = data
    for i in range(len(lengths)):
        copy(at, source + prefixes[i], suffixes[i])
        at += suffixes[i]
        source += lengths[i]
    return at - out


@helper
def _is_before(left: int, left_size: int, right: int, right_size: int) -> bool:
    """Return whether a byte array sorts before another one (unsigned bytes)."""
    shorter_size = min(left_size, right_size)
    shared = _shared(left, right, shorter_size)
    if shared == shorter_size:
        return left_size < right_size
    return load_u8(left + shared) < load_u8(right + shared)


@kernel
def byte_bounds(data: int, lengths: Int32s) -> tuple[int, int, int, int]:
    """Return ``(start, length)`` of the smallest and of the largest byte array, relative to ``data``.

    The order is that of unsigned bytes.
    """
    low, low_size = data, lengths[0]
    high, high_size = low, low_size
    at = data
    for i in range(len(lengths)):
        size = lengths[i]
        if _is_before(at, size, low, low_size):
            low, low_size = at, size
        elif _is_before(high, high_size, at, size):
            high, high_size = at, size
        at += size
    return low - data, low_size, high - data, high_size


@kernel
def plain_strings(at: int, stop: int, offsets: Int32s, target: int) -> tuple[bool, bool]:
    """Copy the strings of a PLAIN page, and fill where each starts in the copy, and the last stops.

    The copy has room for the page without the four bytes before each string. Returns whether the strings fill the page,
    no more and no less, and whether all are ASCII.
    """
    done, count = 0, len(offsets) - 1
    for i in range(count):
        if at + 4 > stop:
            return False, False
        size = load_u32(at)
        at += 4
        if at + size + 4 * (count - 1 - i) > stop:
            return False, False
        offsets[i] = done
        copy(target + done, at, size)
        at += size
        done += size
    offsets[count] = done
    return at == stop, is_ascii(target, target + done)


@kernel
def are_ascii(offsets: ReadOnlyInt32s, data: int, size: int) -> bool:
    """Return whether strings lie in data of some size, one after the other, and all are ASCII."""
    first, last, steps = offsets[0], offsets[len(offsets) - 1], 0
    for i in range(len(offsets) - 1):
        steps |= offsets[i + 1] - offsets[i]
    return 0 <= first and last <= size and steps >= 0 and is_ascii(data + first, data + last)


@kernel
def copy_strings(starts: Int64s, sizes: Int64s, offsets: Int32s, target: int) -> bool:
    """Copy strings one after the other, and fill where each starts and the last stops; return whether all are ASCII."""
    done = 0
    for i in range(len(starts)):
        offsets[i] = done
        copy(target + done, starts[i], sizes[i])
        done += sizes[i]
    offsets[len(starts)] = done
    return is_ascii(target, target + done)


@kernel
def entry_offsets(valid: ReadOnlyUInt8s, indices: ReadOnlyInt32s, stops: ReadOnlyInt32s, offsets: Int32s) -> int:
    """Fill where each row's entry of a dictionary starts in a copy, and the last stops, which is returned.

    ``valid`` has Arrow's bits, ``stops`` the dictionary's offsets. -1 if an index is none, or the copy too large.
    """
    done = 0
    for row in range(len(indices)):
        offsets[row] = done
        if len(valid) and valid[row >> 3] >> (row & 7) & 1 == 0:
            continue
        index = indices[row]
        if index < 0 or index + 1 >= len(stops):
            return -1
        done += stops[index + 1] - stops[index]
        if done > 0x7FFFFFFF:
            return -1
    offsets[len(indices)] = done
    return done


@kernel
def copy_entries(indices: ReadOnlyInt32s, stops: ReadOnlyInt32s, data: int, offsets: Int32s, target: int) -> None:
    """Copy the entries whose ``offsets`` were filled."""
    for row in range(len(indices)):
        size = offsets[row + 1] - offsets[row]
        if size:
            copy(target + offsets[row], data + stops[indices[row]], size)


# Signed, because kernels compute in int64; multiplication wraps around in the same way.
_P1, _P2, _P3, _P4, _P5 = (
    int(np.uint64(prime).astype(np.int64))
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


@helper
def _rotated(number: int, bits: int) -> int:
    """Rotate the bits of a number to the left."""
    return (number << bits) | ((number >> (64 - bits)) & ((1 << bits) - 1))


@helper
def _shifted(number: int, bits: int) -> int:
    """Shift the bits of an unsigned number to the right."""
    return (number >> bits) & ((1 << (64 - bits)) - 1)


@helper
def _round(lane: int, word: int) -> int:
    """Mix a word into a lane."""
    return _rotated(lane + word * _P2, 31) * _P1


@helper
def _xxh64(at: int, size: int) -> int:
    """Return the XXH64 hash of bytes."""
    stop = at + size
    if size >= 32:
        one, two, three, four = _P1 + _P2, _P2, 0, -_P1
        while at + 32 <= stop:
            one = _round(one, load_u64(at))
            two = _round(two, load_u64(at + 8))
            three = _round(three, load_u64(at + 16))
            four = _round(four, load_u64(at + 24))
            at += 32
        result = _rotated(one, 1) + _rotated(two, 7) + _rotated(three, 12) + _rotated(four, 18)
        result = (result ^ _round(0, one)) * _P1 + _P4
        result = (result ^ _round(0, two)) * _P1 + _P4
        result = (result ^ _round(0, three)) * _P1 + _P4
        result = (result ^ _round(0, four)) * _P1 + _P4
    else:
        result = _P5
    result += size
    while at + 8 <= stop:
        result = _rotated(result ^ _round(0, load_u64(at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= stop:
        result = _rotated(result ^ (load_u32(at) * _P1), 23) * _P2 + _P3
        at += 4
    while at < stop:
        result = _rotated(result ^ (load_u8(at) * _P5), 11) * _P1
        at += 1
    result = (result ^ _shifted(result, 33)) * _P2
    result = (result ^ _shifted(result, 29)) * _P3
    return result ^ _shifted(result, 32)


@kernel
def hash_values(source: int, width: int, hashes: Int64s) -> None:
    """Hash values of one width."""
    for i in range(len(hashes)):
        hashes[i] = _xxh64(source + i * width, width)


@kernel
def hash_byte_arrays(data: int, lengths: Int32s, hashes: Int64s) -> None:
    """Hash byte arrays that follow each other."""
    for i in range(len(lengths)):
        hashes[i] = _xxh64(data, lengths[i])
        data += lengths[i]


@kernel
def set_blocks(hashes: Int64s, blocks: int, bitset: int) -> None:
    """Set the bits of values in a filter of ``blocks`` blocks of 32 bytes at an address."""
    for i in range(len(hashes)):
        block = bitset + ((_shifted(hashes[i], 32) * blocks) >> 32) * 32
        key = hashes[i] & 0xFFFFFFFF
        for k in range(8):
            at = block + 4 * k
            store_u32(at, load_u32(at) | (1 << (((key * SALT[k]) & 0xFFFFFFFF) >> 27)))
