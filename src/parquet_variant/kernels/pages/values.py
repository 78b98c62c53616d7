"""Values of Arrow columns as Parquet's pages store them, and the smallest and largest byte arrays.

Owns leaving out nulls, and the encodings of byte arrays: PLAIN and DELTA_BYTE_ARRAY. Leaves levels, indices and deltas
to `pages.levels`, `pages.dictionary` and `pages.runs`. Byte arrays are lengths (``int32``) and the address of their
bytes, one value after the other. The caller provides enough room.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s
from parquet_variant.kernels.memory import copy, load_u8, load_u64, move, store_u32, trailing_zeros
from parquet_variant.kernels.pages.levels import ByteArrays, is_set, offset_at
from parquet_variant.kernels.pages.runs import put_deltas


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
def valid_lengths(texts: ByteArrays, lengths: Int32s) -> tuple[int, int]:
    """Fill the lengths of the byte arrays that are not null; return ``(values, bytes)``."""
    values = total = 0
    for i in range(texts.rows):
        if is_set(texts.bits, texts.first + i):
            length = offset_at(texts.offsets, i + 1, texts.width) - offset_at(texts.offsets, i, texts.width)
            lengths[values] = length
            values += 1
            total += length
    return values, total


@kernel
def gather_bytes(texts: ByteArrays, target: int) -> None:
    """Copy the byte arrays that are not null, if other byte arrays are between them."""
    for i in range(texts.rows):
        if is_set(texts.bits, texts.first + i):
            start = offset_at(texts.offsets, i, texts.width)
            length = offset_at(texts.offsets, i + 1, texts.width) - start
            copy(target, texts.data + start, length)
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
