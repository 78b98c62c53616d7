"""Texts of pages as Arrow has them: their bytes one after the other, and where each starts.

Owns copying them out of PLAIN pages, from any places, and by their numbers in a dictionary. Leaves where they lie in
pages to `chunks`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, ReadOnlyInt32s, ReadOnlyUInt8s
from parquet_variant.kernels.memory import copy, load_u8, load_u32, load_u64

_HIGH_BITS = -0x7F7F7F7F7F7F7F80


@helper
def _is_ascii(at: int, size: int) -> bool:
    high, stop = 0, at + size
    while at + 8 <= stop:
        high |= load_u64(at)
        at += 8
    while at < stop:
        high |= load_u8(at)
        at += 1
    return high & _HIGH_BITS == 0


@kernel
def plain_texts(at: int, stop: int, offsets: Int32s, target: int) -> tuple[bool, bool]:
    """Copy the texts of a PLAIN page, and fill where each starts in the copy, and the last stops.

    The copy has room for the page without the four bytes before each text. Returns whether the texts fill the page, no
    more and no less, and whether all are ASCII.
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
    return at == stop, _is_ascii(target, done)


@kernel
def are_ascii(offsets: ReadOnlyInt32s, data: int, size: int) -> bool:
    """Return whether texts lie in data of some size, one after the other, and all are ASCII."""
    first, last, steps = offsets[0], offsets[len(offsets) - 1], 0
    for i in range(len(offsets) - 1):
        steps |= offsets[i + 1] - offsets[i]
    return 0 <= first and last <= size and steps >= 0 and _is_ascii(data + first, last - first)


@kernel
def copy_texts(starts: Int64s, sizes: Int64s, offsets: Int32s, target: int) -> bool:
    """Copy texts one after the other, fill where each starts in the copy, and the last stops; whether all are ASCII."""
    done = 0
    for i in range(len(starts)):
        offsets[i] = done
        copy(target + done, starts[i], sizes[i])
        done += sizes[i]
    offsets[len(starts)] = done
    return _is_ascii(target, done)


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
