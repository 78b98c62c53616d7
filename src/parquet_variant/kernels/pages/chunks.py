"""Column chunks: the values of all their pages in one call, one per row.

Owns levels, and values that are PLAIN, in a dictionary, or numbers in deltas. The columns of a table of pages are named
below. Every bound is checked before a byte is read. Fills ``valid``, which marks the rows that have a value, and the
values. Leaves byte arrays in deltas to `runs`, and headers and compression of pages to
`files.parquet.reading.column_values`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import copy, load_u8, load_u32, load_u64, store_u8, store_u32, store_u64
from parquet_variant.kernels.native_vectors import address_in
from parquet_variant.kernels.pages.runs import packed_value, read_deltas, read_indices, read_levels

# Columns of a table of pages: rows, encoding, start and stop of levels and values, and number of values (filled).
FIRST, COUNT, ENCODING, LEVELS, LEVELS_STOP, VALUES, STOP, PRESENT = range(8)
# Encodings of values, by Parquet's numbers.
PLAIN, PLAIN_DICTIONARY, RLE, DELTAS, SIZED, PREFIXED, RLE_DICTIONARY = 0, 2, 3, 5, 6, 7, 8


@helper
def _read_levels(pages: Int64Table, max_level: int, valid: UInt8s) -> bool:
    """Mark the rows that have a value, and fill their number in each page; return whether the levels are valid."""
    for page in range(len(pages)):
        first, count = pages[page, FIRST], pages[page, COUNT]
        present = count
        if max_level == 0:
            for row in range(first, first + count):
                valid[row] = 1
        else:
            present = read_levels(pages[page, LEVELS], pages[page, LEVELS_STOP], max_level, valid, first, count)
        if present < 0:
            return False
        pages[page, PRESENT] = present
    return True


@helper
def _is_indexed(pages: Int64Table, page: int) -> bool:
    """Return whether the values of a page are dictionary indices."""
    return pages[page, ENCODING] == RLE_DICTIONARY or pages[page, ENCODING] == PLAIN_DICTIONARY


@helper(inline=True)
def _spread(
    load: Callable[..., Any],
    store: Callable[..., Any],
    size: int,
    pages: Int64Table,
    page: int,
    valid: UInt8s,
    target: int,
) -> None:
    """Move the values of a page, which are one after the other, to their rows; null rows become 0."""
    first, done = pages[page, FIRST], pages[page, PRESENT]
    row = pages[page, COUNT] - 1
    while done <= row:  # The values before are in their rows.
        value = 0
        if valid[first + row]:
            done -= 1
            value = load(target + done * size)
        store(target + row * size, value)
        row -= 1


@helper
def _spread_32(pages: Int64Table, page: int, valid: UInt8s, target: int) -> None:
    """Spread values of four bytes."""
    _spread(load_u32, store_u32, 4, pages, page, valid, target)


@helper
def _page_indices(pages: Int64Table, page: int, entries: int, valid: UInt8s, indices: Int32s) -> bool:
    """Fill the indices of a page; return whether they are valid."""
    present = pages[page, PRESENT]
    target = address_in(indices) + 4 * pages[page, FIRST]
    is_sound = present == 0 or read_indices(pages[page, VALUES], pages[page, STOP], entries, present, target, 4)
    _spread_32(pages, page, valid, target)
    return is_sound


@kernel
def chunk_indices(pages: Int64Table, max_level: int, entries: int, valid: UInt8s, indices: Int32s) -> bool:
    """Fill the indices of pages into a dictionary of some entries, 0 for null rows; return whether they are valid."""
    is_sound = _read_levels(pages, max_level, valid)
    for page in range(len(pages)):
        is_sound = is_sound and _is_indexed(pages, page) and _page_indices(pages, page, entries, valid, indices)
    return is_sound


@helper
def _plain_spans(at: int, stop: int, valid: UInt8s, first: int, count: int, starts: Int64s, sizes: Int64s) -> int:
    """Fill the spans of the byte arrays of a PLAIN page; return their bytes, or -1 if they do not fill it exactly."""
    total = 0
    for row in range(first, first + count):
        starts[row] = sizes[row] = 0
        if valid[row]:
            if at + 4 > stop:
                return -1
            size = load_u32(at)
            at += 4
            if at + size > stop:
                return -1
            starts[row] = at
            sizes[row] = size
            at += size
            total += size
    return total if at == stop else -1


@helper
def _entry_spans(
    indices: Int32s,
    data: int,
    offsets: ReadOnlyInt32s,
    valid: UInt8s,
    first: int,
    count: int,
    starts: Int64s,
    sizes: Int64s,
) -> int:
    """Fill the spans of the dictionary entries of rows; return their bytes."""
    total = 0
    for row in range(first, first + count):
        starts[row] = sizes[row] = 0
        if valid[row]:
            start, stop = offsets[indices[row]], offsets[indices[row] + 1]
            starts[row] = data + start
            sizes[row] = stop - start
            total += stop - start
    return total


@kernel
def chunk_spans(
    pages: Int64Table,
    max_level: int,
    data: int,
    offsets: ReadOnlyInt32s,
    indices: Int32s,
    valid: UInt8s,
    starts: Int64s,
    sizes: Int64s,
) -> int:
    """Fill the spans of the byte arrays of pages, 0 bytes for null rows; return their bytes, or -1 if damaged.

    The entries of the dictionary are at ``data``, each from one of ``offsets`` to the next; ``indices`` is scratch
    space for pages with indices. Only the levels of pages in deltas are read.
    """
    total = 0 if _read_levels(pages, max_level, valid) else -1
    for page in range(len(pages)):
        first, count, size = pages[page, FIRST], pages[page, COUNT], 0
        if total < 0:
            break
        if pages[page, ENCODING] == PLAIN:
            size = _plain_spans(pages[page, VALUES], pages[page, STOP], valid, first, count, starts, sizes)
        elif _is_indexed(pages, page):
            size = -1
            if _page_indices(pages, page, len(offsets) - 1, valid, indices):
                size = _entry_spans(indices, data, offsets, valid, first, count, starts, sizes)
        elif pages[page, ENCODING] != SIZED and pages[page, ENCODING] != PREFIXED:
            size = -1
        total = -1 if size < 0 else total + size
    return total


@helper
def _read_entries(at: int, stop: int, dictionary: int, entries: int, count: int, target: int, width: int) -> bool:
    """Write the dictionary entries of some indices; return whether the indices are valid."""
    if not read_indices(at, stop, entries, count, target, width):
        return False
    for k in range(count):
        if width == 8:
            store_u64(target + 8 * k, load_u64(dictionary + 8 * load_u64(target + 8 * k)))
        else:
            store_u32(target + 4 * k, load_u32(dictionary + 4 * load_u32(target + 4 * k)))
    return True


@kernel
def chunk_numbers(
    pages: Int64Table, max_level: int, dictionary: int, entries: int, width: int, valid: UInt8s, target: int
) -> bool:
    """Write numbers of 4 or 8 bytes, 0 for null rows; return whether all pages are valid.

    Their dictionary has ``entries`` entries at the address ``dictionary``.
    """
    if not _read_levels(pages, max_level, valid):
        return False
    for page in range(len(pages)):
        at, stop, present = pages[page, VALUES], pages[page, STOP], pages[page, PRESENT]
        start = target + width * pages[page, FIRST]
        is_sound = present == 0
        if is_sound:
            pass
        elif pages[page, ENCODING] == PLAIN:
            is_sound = stop - at == present * width
            if is_sound:
                copy(start, at, stop - at)
        elif pages[page, ENCODING] == DELTAS:
            is_sound = read_deltas(at, stop, present, start, width) >= 0
        elif _is_indexed(pages, page):
            is_sound = _read_entries(at, stop, dictionary, entries, present, start, width)
        if not is_sound:
            return False
        if width == 8:
            _spread(load_u64, store_u64, 8, pages, page, valid, start)
        else:
            _spread_32(pages, page, valid, start)
    return True


@kernel
def chunk_booleans(pages: Int64Table, max_level: int, valid: UInt8s, booleans: UInt8s) -> bool:
    """Fill booleans of one byte each, 0 for null rows; return whether all pages are valid."""
    if not _read_levels(pages, max_level, valid):
        return False
    for page in range(len(pages)):
        at, stop, present = pages[page, VALUES], pages[page, STOP], pages[page, PRESENT]
        first = pages[page, FIRST]
        if pages[page, ENCODING] == PLAIN and stop - at >= (present + 7) >> 3:
            for k in range(present):
                booleans[first + k] = packed_value(at, stop, k, 1)
        # Runs stand behind four bytes that say how many follow.
        elif (
            pages[page, ENCODING] != RLE or stop - at < 4 or read_levels(at + 4, stop, 1, booleans, first, present) < 0
        ):
            return False
        _spread(load_u8, store_u8, 1, pages, page, valid, address_in(booleans) + first)
    return True
