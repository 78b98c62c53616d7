"""Runs of small numbers as Parquet stores them, read: RLE and bit-packed groups of levels and dictionary indices.

Owns the way from one run to the next. Every bound is checked before a byte is read. Leaves which pages they are in to
`chunks`, writing to `runs`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_u8, load_u64, store_u32, store_u64


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


@helper
def read_levels(at, stop, most, valid, first, count):
    """Fill which of so many rows have a value, those whose level is ``most``; returns how many, or -1 if malformed."""
    width = 0
    while most >> width:
        width += 1
    done = present = 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return -1
        run = min(run, count - done)
        row = first + done
        if packed:
            for k in range(run):
                there = packed_value(at, end, k * width, width) == most
                valid[row + k] = there
                present += there
        else:
            there = packed_value(at, end, 0, width) == most
            for k in range(run):
                valid[row + k] = there
            present += run * there
        done += run
        at = end
    return present


@helper
def read_indices(at, stop, entries, count, target, size):
    """Write so many indices into a dictionary of some entries, in 4 or 8 bytes each; whether all are there, in bounds.

    They stand after a byte that says how many bits each has.
    """
    if at >= stop:
        return count == 0
    width = load_u8(at)
    if width > 32:
        return False
    at += 1
    done = greatest = 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return False
        run = min(run, count - done)
        index = 0 if packed else packed_value(at, end, 0, width)
        for k in range(run):
            if packed:
                index = packed_value(at, end, k * width, width)
            greatest = max(greatest, index)
            if size == 4:
                store_u32(target, index)
            else:
                store_u64(target, index)
            target += size
        done += run
        at = end
    return count == 0 or greatest < entries
