"""Dictionaries that grow while values are met.

Owns the hash tables of a column's distinct values, of 8 bytes or of any length. Leaves their memory to
`parquet.pages.dictionary`: a kernel stops where there is no more room, and goes on when it is called again with more.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int32s, Int64s, UInt8s, helper, kernel
from parquet_variant.kernels.memory import copy, equal, load_s32, load_u64
from parquet_variant.kernels.tapes.interning import hash_bytes

__all__ = ["index_bytes", "index_words", "mark_used", "rehash_bytes", "rehash_words"]


@helper
def _hash_text(address, size, seed):
    """A hash of some bytes; of long ones four words at a time, since none of the four has to wait for the others."""
    if size < 32:
        return hash_bytes(address, size, seed)
    one, two, three, four = seed, seed ^ 0x2545F4914F6CDD1D, seed + size, seed * 0x2127599BF4325C37
    i = 0
    while i + 32 <= size:
        one = (one ^ load_u64(address + i)) * 0x2127599BF4325C37
        two = (two ^ load_u64(address + i + 8)) * 0x2127599BF4325C37
        three = (three ^ load_u64(address + i + 16)) * 0x2127599BF4325C37
        four = (four ^ load_u64(address + i + 24)) * 0x2127599BF4325C37
        one ^= (one >> 29) & 0x7FFFFFFFF
        two ^= (two >> 31) & 0x1FFFFFFFF
        three ^= (three >> 33) & 0x7FFFFFFF
        four ^= (four >> 30) & 0x3FFFFFFFF
        i += 32
    mixed = (one * 0x2545F4914F6CDD1D + two) ^ ((three * 0x2545F4914F6CDD1D + four) * 0x2127599BF4325C37)
    return hash_bytes(address + i, size - i, mixed)


@helper(inline=True)
def _hash_word(word, seed):
    value = (word ^ seed) * 0x2127599BF4325C37
    value ^= (value >> 32) & 0xFFFFFFFF
    value *= 0x2545F4914F6CDD1D
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
    """Number values of 4 or 8 bytes, new ones in order; returns ``(numbered up to, entries)``.

    ``slots`` (a power of two, -1 for none) has room for twice as many as ``words``.
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
    """Enter values that are known into empty slots."""
    mask = len(slots) - 1
    for entry in range(entries):
        at = _hash_word(words[entry], seed) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = entry


@kernel
def index_bytes(
    data: int,
    lengths: Int32s,
    first: int,
    entries: int,
    used: int,
    slots: Int64s,
    seed: int,
    hashes: Int64s,
    sizes: Int64s,
    starts: Int64s,
    arena: int,
    arena_size: int,
    indices: Int32s,
) -> tuple[int, int, int, int]:
    """Number byte arrays, new ones in order, from the ``first`` on, which is at ``data``.

    Returns ``(numbered up to, address of what comes next, entries, bytes of the arena used)``. Entries are ``hashes``,
    ``sizes`` and where they start in the arena, whose address is ``arena``.
    """
    mask = len(slots) - 1
    for i in range(first, len(lengths)):
        size = lengths[i]
        hashed = _hash_text(data, size, seed)
        at = hashed & mask
        while slots[at] >= 0:
            entry = slots[at]
            if hashes[entry] == hashed and sizes[entry] == size and equal(arena + starts[entry], data, size):
                break
            at = (at + 1) & mask
        if slots[at] < 0:
            if entries == len(hashes) or used + size > arena_size:
                return i, data, entries, used
            hashes[entries], sizes[entries], starts[entries] = hashed, size, used
            copy(arena + used, data, size)
            used += size
            slots[at] = entries
            entries += 1
        indices[i] = slots[at]
        data += size
    return len(lengths), data, entries, used


@kernel
def rehash_bytes(hashes: Int64s, entries: int, slots: Int64s) -> None:
    """Enter values that are known into empty slots."""
    mask = len(slots) - 1
    for entry in range(entries):
        at = hashes[entry] & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = entry


@kernel
def mark_used(indices: Int32s, used: UInt8s) -> None:
    """Set ``used`` to 1 for each entry that an index names."""
    for i in range(len(indices)):
        used[indices[i]] = 1
