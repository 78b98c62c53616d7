"""Read runs of small numbers as Parquet stores them: RLE and bit-packed groups of levels and dictionary indices.

Owns the way from one run to the next. Every bound is checked before a byte is read. Leaves pages to `chunks`, and
writing to `runs`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.machine_code.signatures import UInt8s
from parquet_variant.kernels.memory import load_u8, load_u64, store_u32, store_u64


@helper
def _run(at: int, stop: int, width: int) -> tuple[int, int, int, bool]:
    """Return ``(start, stop, values, packed)`` of the next run; the number of values is -1 if it is malformed."""
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
def packed_value(at: int, stop: int, bit: int, width: int) -> int:
    """Return the value of `width` bits at a bit position; no byte at or after `stop` is read."""
    first = at + (bit >> 3)
    if first + 8 <= stop:
        return (load_u64(first) >> (bit & 7)) & ((1 << width) - 1)
    value = 0
    for b in range(((bit & 7) + width + 7) >> 3):
        value |= load_u8(first + b) << (8 * b)
    return (value >> (bit & 7)) & ((1 << width) - 1)


@helper
def read_levels(at: int, stop: int, max_level: int, valid: UInt8s, first: int, count: int) -> int:
    """Mark the rows whose level is ``max_level`` as having a value; return their number, or -1 if malformed."""
    width = 0
    while max_level >> width:
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
                is_present = packed_value(at, end, k * width, width) == max_level
                valid[row + k] = is_present
                present += is_present
        else:
            is_present = packed_value(at, end, 0, width) == max_level
            for k in range(run):
                valid[row + k] = is_present
            present += run * is_present
        done += run
        at = end
    return present


@helper
def read_indices(at: int, stop: int, entries: int, count: int, target: int, size: int) -> bool:
    """Write ``count`` indices into a dictionary of some entries, in 4 or 8 bytes each.

    Return whether all are in bounds.

    The bytes start with the bit width of an index.
    """
    if at >= stop:
        return count == 0
    width = load_u8(at)
    if width > 32:
        return False
    at += 1
    done = largest = 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return False
        run = min(run, count - done)
        index = 0 if packed else packed_value(at, end, 0, width)
        for k in range(run):
            if packed:
                index = packed_value(at, end, k * width, width)
            largest = max(largest, index)
            if size == 4:
                store_u32(target, index)
            else:
                store_u64(target, index)
            target += size
        done += run
        at = end
    return count == 0 or largest < entries
