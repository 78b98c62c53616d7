"""Dictionaries that grow as values occur.

Owns the hash tables of the distinct values of a column, of 8 bytes or of any length. Leaves their memory to
`files.parquet.pages.encodings`: a kernel stops when a table is full, and continues when it is called again with a
larger one.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import MIX_A, MIX_B, copy, equal, hash_bytes, load_s32, load_u64
from parquet_variant.kernels.native_vectors import address_in
from parquet_variant.kernels.pages.levels import ByteArrays, is_set, offset_at

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
def mark_used(indices: Int32s, used: UInt8s) -> None:
    """Set ``used`` to 1 for each entry that has an index."""
    for i in range(len(indices)):
        used[indices[i]] = 1
