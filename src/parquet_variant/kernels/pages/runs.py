"""Write small numbers as Parquet stores them: RLE and bit-packed groups, and deltas in blocks.

Owns packing bits, the hybrid of runs for levels and dictionary indices, and DELTA_BINARY_PACKED. Leaves computing the
numbers to `pages.levels` and `pages.dictionary`. Spec: ``Encodings.md``. Every output needs the room that
`most_run_bytes` and `most_delta_bytes` return.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s
from parquet_variant.kernels.memory import load_s32, load_u8, load_u32, load_u64, store_u8, store_u64

_BLOCK, _MINIBLOCK = 128, 32
# Number of equal numbers from which a run pays off, because it interrupts the packed groups around it.
_LEAST_RUN, _LEAST_NARROW_RUN, _NARROW = 8, 24, 2


def most_run_bytes(count: int, width: int) -> int:
    """Return the maximum bytes of ``count`` numbers of a bit width as runs."""
    return (count // 8 + 2) * (width + 7) + 32


def most_delta_bytes(count: int, width: int) -> int:
    """Return the maximum bytes of ``count`` numbers of 4 or 8 bytes as deltas."""
    return 64 + (count // _BLOCK + 1) * (_BLOCK * width + 16)


@helper
def _put_varint(at: int, number: int) -> int:
    """Write a number of up to 64 bits; return where it ends."""
    while number & ~0x7F:
        store_u8(at, number & 0x7F | 0x80)
        number = (number >> 7) & 0x1FFFFFFFFFFFFFF
        at += 1
    store_u8(at, number)
    return at + 1


@helper
def _put_bits(at: int, word: int, filled: int, number: int, width: int) -> tuple[int, int, int]:
    """Append a number to a word that is partly filled and is written at ``at``; return ``(at, word, filled)``."""
    word |= number << filled
    filled += width
    if filled >= 64:
        store_u64(at, word)
        at += 8
        filled -= 64
        word = 0
        if filled > 0:
            shift = width - filled
            word = (number >> shift) & ((1 << (64 - shift)) - 1)
    return at, word, filled


@helper(inline=True)
def _pack(load: Callable[..., Any], source: int, size: int, count: int, width: int, at: int) -> int:
    """Write the low bits of numbers, padded with zeros to a multiple of eight numbers; return where they end."""
    word = filled = 0
    for i in range(count):
        at, word, filled = _put_bits(at, word, filled, load(source + i * size), width)
    filled += (-count & 7) * width
    while filled > 0:
        store_u64(at, word)
        at += min((filled + 7) >> 3, 8)
        filled -= 64
        word = 0
    return at


@helper
def _pack_levels(source: int, count: int, width: int, at: int) -> int:
    """Pack levels of one byte each."""
    return _pack(load_u8, source, 1, count, width, at)


@helper
def _pack_indices(source: int, count: int, width: int, at: int) -> int:
    """Pack indices of four bytes each."""
    return _pack(load_u32, source, 4, count, width, at)


@helper
def _count_run(counts: Int64s, number: int, size: int) -> None:
    """Add a run to the counts of numbers."""
    counts[number] += size


@helper
def _ignore_run(counts: int, number: int, size: int) -> None:
    """Do nothing with a run."""


@helper(inline=True)
def _runs(
    load: Callable[..., Any],
    pack: Callable[..., Any],
    note: Callable[..., Any],
    counts: Int64s | int,
    source: int,
    size: int,
    count: int,
    width: int,
    out: int,
) -> int:
    """Write numbers as runs; return the bytes written."""
    at = out
    least = _LEAST_NARROW_RUN if width <= _NARROW else _LEAST_RUN
    literal = i = 0  # the first number that is not written yet, and the current one
    while i < count:
        number = load(source + i * size)
        stop = i + 1
        if size == 1:
            eight = number * 0x0101010101010101
            while stop + 8 <= count and load_u64(source + stop) == eight:
                stop += 8
        while stop < count and load(source + stop * size) == number:
            stop += 1
        note(counts, number, stop - i)
        start = i + (-(i - literal) & 7)  # packed groups have eight numbers
        if stop - start >= least or (literal == i and stop == count):
            if start > literal:
                at = _put_varint(at, ((start - literal) >> 3) << 1 | 1)
                at = pack(source + literal * size, start - literal, width, at)
            at = _put_varint(at, (stop - start) << 1)
            store_u64(at, number)
            at += (width + 7) >> 3
            literal = stop
        i = stop
    if literal < count:
        at = _put_varint(at, ((count - literal + 7) >> 3) << 1 | 1)
        at = pack(source + literal * size, count - literal, width, at)
    return at - out


@kernel
def level_runs(source: int, count: int, width: int, out: int, counts: Int64s) -> int:
    """Write levels of one byte each as runs, and add the occurrences of each to ``counts``.

    Return the bytes written.
    """
    return _runs(load_u8, _pack_levels, _count_run, counts, source, 1, count, width, out)


@kernel
def index_runs(source: int, count: int, width: int, out: int) -> int:
    """Write dictionary indices of four bytes each as runs; return the bytes written."""
    return _runs(load_u32, _pack_indices, _ignore_run, 0, source, 4, count, width, out)


@helper
def _zigzag(number: int) -> int:
    """Return the zigzag encoding of a number."""
    return (number << 1) ^ (number >> 63)


@helper
def _bits(number: int) -> int:
    """Return the number of bits of an unsigned number."""
    bits = 0
    while number != 0:
        number = (number >> 1) & 0x7FFFFFFFFFFFFFFF
        bits += 1
    return bits


@helper
def _signed_32(number: int) -> int:
    """Return the low 32 bits as a signed number."""
    return ((number & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@helper
def _load(source: int, i: int, size: int) -> int:
    """Load an integer of 4 or 8 bytes."""
    return load_u64(source + i * 8) if size == 8 else load_s32(source + i * 4)


@helper
def put_deltas(source: int, size: int, count: int, deltas: Int64s, out: int) -> int:
    """Write integers of ``size`` bytes (4 or 8) as DELTA_BINARY_PACKED; return where they end.

    ``deltas`` is scratch space for a block of ``int64``. Differences wrap around as the type does.
    """
    at = _put_varint(_put_varint(_put_varint(out, _BLOCK), _BLOCK // _MINIBLOCK), count)
    before = _load(source, 0, size) if count else 0
    at = _put_varint(at, _zigzag(before))
    start = 1
    while start < count:
        entries = min(_BLOCK, count - start)
        least = 0
        for i in range(entries):
            number = _load(source, start + i, size)
            delta = number - before
            if size == 4:
                delta = _signed_32(delta)
            deltas[i] = delta
            least = delta if i == 0 else min(least, delta)
            before = number
        at = _put_varint(at, _zigzag(least))
        for i in range(entries):
            delta = deltas[i] - least
            deltas[i] = delta & 0xFFFFFFFF if size == 4 else delta
        for i in range(entries, _BLOCK):
            deltas[i] = 0
        widths = at
        at += _BLOCK // _MINIBLOCK
        for part in range(_BLOCK // _MINIBLOCK):
            all_bits = 0
            for i in range(_MINIBLOCK):
                all_bits |= deltas[part * _MINIBLOCK + i]
            width = _bits(all_bits)
            store_u8(widths + part, width)
            if width > 0:
                at = _pack_block(deltas, part * _MINIBLOCK, width, at)
        start += entries
    return at


@helper
def _pack_block(deltas: Int64s, first: int, width: int, at: int) -> int:
    """Pack the deltas of a miniblock."""
    word = filled = 0
    for i in range(first, first + _MINIBLOCK):
        at, word, filled = _put_bits(at, word, filled, deltas[i], width)
    if filled > 0:
        store_u64(at, word)
        at += filled >> 3
    return at


@kernel
def delta_packed(source: int, size: int, count: int, deltas: Int64s, out: int) -> int:
    """Write integers with `put_deltas`; return the bytes written."""
    return put_deltas(source, size, count, deltas, out) - out
