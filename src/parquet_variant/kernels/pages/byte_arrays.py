"""The values of pages: where those of byte arrays lie, so that none of them has to be copied.

Owns reading the PLAIN encoding of byte arrays, and the RLE and bit-packed runs of levels and dictionary indices. Every
bound is checked before a byte is read. Leaves the encodings in deltas to `deltas`, headers and compression of pages to
`parquet.reading.chunk_pages`. Of ``valid``, no entries mean that every row has a value.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int32s, Int64s, ReadOnlyInt32s, ReadOnlyUInt8s, UInt8s, helper, kernel
from parquet_variant.kernels.memory import copy, load_u8, load_u32, load_u64

__all__ = [
    "copy_entries",
    "copy_texts",
    "dictionary_indices",
    "entry_offsets",
    "level_validity",
    "packed_value",
    "plain_spans",
]


@kernel
def plain_spans(at: int, stop: int, valid: UInt8s, starts: Int64s, sizes: Int64s) -> bool:
    """Where each value of a PLAIN page starts, and its size; whether they fill the page, no more and no less.

    Rows that have no value get size 0.
    """
    for i in range(len(starts)):
        if len(valid) and valid[i] == 0:
            starts[i] = sizes[i] = 0
            continue
        if at + 4 > stop:
            return False
        size = load_u32(at)
        at += 4
        if at + size > stop:
            return False
        starts[i] = at
        sizes[i] = size
        at += size
    return at == stop


@kernel
def copy_texts(starts: Int64s, sizes: Int64s, offsets: Int32s, target: int) -> None:
    """Copy texts one after the other, and fill where each starts in the copy, and the last stops."""
    done = 0
    for i in range(len(starts)):
        offsets[i] = done
        copy(target + done, starts[i], sizes[i])
        done += sizes[i]
    offsets[len(starts)] = done


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


@helper
def _run(at, stop, width):
    """The next run: where its bytes start and stop, its values (-1 if malformed), and whether they are packed."""
    header = shift = 0
    more = True
    while more:
        if at >= stop or shift > 28:
            return 0, 0, -1, False
        byte = load_u8(at)
        at += 1
        header |= (byte & 0x7F) << shift
        shift += 7
        more = byte >= 0x80
    packed = (header & 1) == 1
    run = header >> 1
    length = run * width if packed else (width + 7) >> 3
    if at + length > stop:
        return 0, 0, -1, False
    return at, at + length, run * 8 if packed else run, packed


@helper
def packed_value(at, stop, bit, width):
    """The value of `width` bits that starts at a bit of some bytes; no byte at or after `stop` is read."""
    first = at + (bit >> 3)
    if first + 8 <= stop:
        return (load_u64(first) >> (bit & 7)) & ((1 << width) - 1)
    value = 0
    for b in range(((bit & 7) + width + 7) >> 3):
        value |= load_u8(first + b) << (8 * b)
    return (value >> (bit & 7)) & ((1 << width) - 1)


@kernel
def level_validity(at: int, stop: int, width: int, most: int, valid: UInt8s) -> int:
    """Fill which rows of a page have a value, those whose level is ``most``; returns how many, or -1 if malformed."""
    done, count, present = 0, len(valid), 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return -1
        run = min(run, count - done)
        if packed:
            for k in range(run):
                there = packed_value(at, end, k * width, width) == most
                valid[done + k] = there
                present += there
        else:
            there = packed_value(at, end, 0, width) == most
            for k in range(run):
                valid[done + k] = there
            present += run * there
        done += run
        at = end
    return present


@kernel
def dictionary_indices(at: int, stop: int, entries: int, valid: UInt8s, count: int, indices: Int32s) -> bool:
    """Fill the indices of a page into a dictionary of so many entries, 0 where a row has no value.

    There are ``count`` of them, after a byte that says how many bits each has; tells whether all are there, in bounds.
    """
    if at >= stop:
        return False
    width = load_u8(at)
    if width > 32:
        return False
    at += 1
    row, done = 0, 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return False
        run = min(run, count - done)
        index = 0 if packed else packed_value(at, end, 0, width)
        for k in range(run):
            if packed:
                index = packed_value(at, end, k * width, width)
            if index >= entries:
                return False
            if len(valid):
                while valid[row] == 0:
                    indices[row] = 0
                    row += 1
            indices[row] = index
            row += 1
        done += run
        at = end
    for rest in range(row, len(indices)):
        indices[rest] = 0
    return True
