"""Metadata for the rows of a tape: the keys that each row uses, with each distinct set stored once.

Owns finding the key sets and writing their bytes. Leaves the use of field ids to `shredding.shred_tape`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.kernels.machine_code.functions import helper
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, copy, store_u8, store_u32, store_uint
from parquet_variant.kernels.native_vectors import (
    Memory,
    allocate,
    filled_vector,
    new_vector,
    reserve,
    sort_with,
)
from parquet_variant.kernels.tapes.tape import KEY, SHAPE, HashedTable, no_pairs, pair_row
from parquet_variant.kernels.values.reading import sort_by_name
from parquet_variant.kernels.values.scalar_slots import uint_width

_METADATA = pa.dictionary(pa.int32(), pa.binary())
# Column of the rows of a trie of pairs: the set of the numbers on the way from the root to the row, or -1.
_SET = 2


class Sets(NamedTuple):
    """Distinct sets of numbers: a trie of a row and the next number, the start of each set, and the numbers."""

    trie: HashedTable
    starts: Int64s
    values: Int64s


@helper
def _new_trie(memory: Memory) -> HashedTable:
    """Return a trie that has only its root, row 0."""
    return pair_row(no_pairs(memory, 3), -1, -1)[1]


@helper
def no_sets(memory: Memory) -> Sets:
    """Return an empty table of sets."""
    return Sets(_new_trie(memory), filled_vector(memory, 64, 0), new_vector(memory, 256))


@helper
def add_set(sets: Sets, count: int, numbers: Int64s, size: int) -> tuple[int, Sets]:
    """Find or append a set of numbers in order; return ``(index, sets)``."""
    at, trie = 0, sets.trie
    for i in range(size):
        at, trie = pair_row(trie, at, numbers[i])
    if trie.rows[at, _SET] >= 0:
        return trie.rows[at, _SET], Sets(trie, sets.starts, sets.values)
    starts = reserve(sets.starts, count + 2)
    values = reserve(sets.values, starts[count] + size)
    for i in range(size):
        values[starts[count] + i] = numbers[i]
    starts[count + 1] = starts[count] + size
    trie.rows[at, _SET] = count
    return count, Sets(trie, starts, values)


@helper
def _keys_of_shapes(
    run: Int64s, size: int, shapes: Int64Table, stamps: Int64s, stamp: int, rank: Int64s, order: Int64s, out: Int64s
) -> int:
    """Write the distinct keys of some shapes to ``out``, sorted by name; return their number."""
    count = 0
    for i in range(size):
        shape = run[i]
        while shapes[shape, SHAPE.KEY] >= 0:
            key = shapes[shape, SHAPE.KEY]
            if stamps[key] != stamp:
                stamps[key] = stamp
                out[count] = rank[key]
                count += 1
            shape = shapes[shape, SHAPE.PARENT]
    sort_with(out, out, 0, count)
    for i in range(count):
        out[i] = order[out[i]]
    return count


@helper
def _metadata_size(sets: Sets, d: int, lengths: Int64s) -> tuple[int, int]:
    """Return the bytes and the offset width of the metadata of a set of names."""
    size = 0
    for i in range(sets.starts[d], sets.starts[d + 1]):
        size += lengths[sets.values[i]]
    count = sets.starts[d + 1] - sets.starts[d]
    width = uint_width(max(size, count))
    return 1 + width * (count + 2) + size, width


@helper
def write_dictionaries(
    memory: Memory, sets: Sets, count: int, addresses: Int64s, lengths: Int64s, max_bytes: int
) -> tuple[int, int]:
    """Write the metadata of some sets of names, which are numbers of names in order; return address and size.

    The offsets of the metadata, as int32, come first. The size is -1 if the metadata exceed ``max_bytes``.
    """
    total = 4 * (count + 1)
    for d in range(count):
        total += _metadata_size(sets, d, lengths)[0]
    if total > max_bytes:
        return 0, -1
    data = allocate(memory, total)
    begin = at = data + 4 * (count + 1)
    for d in range(count):
        store_u32(data + 4 * d, at - begin)
        names = sets.starts[d + 1] - sets.starts[d]
        _, width = _metadata_size(sets, d, lengths)
        store_u8(at, 0x11 | ((width - 1) << 6))  # version 1, sorted
        store_uint(at + 1, names, width)
        offsets = at + 1 + width
        first = at = offsets + (names + 1) * width
        for i in range(sets.starts[d], sets.starts[d + 1]):
            name = sets.values[i]
            store_uint(offsets, at - first, width)
            offsets += width
            copy(at, addresses[name], lengths[name])
            at += lengths[name]
        store_uint(offsets, at - first, width)
    store_u32(data + 4 * count, at - begin)
    return data, total


@helper(inline=True)
def _find_dictionaries(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    shapes: Int64Table,
    rank: Int64s,
    order: Int64s,
    per_batch: bool,
    of_row: Int32s,
) -> tuple[int, Sets]:
    """Fill ``of_row``; return the number of dictionaries, and the keys of each."""
    shape_stamp, key_stamp = filled_vector(memory, len(shapes), -1), filled_vector(memory, len(rank), -1)
    run, keys = new_vector(memory, len(shapes)), new_vector(memory, len(rank))
    # The distinct runs of shapes of rows, with the dictionary of each, and the dictionaries.
    runs, sets = _new_trie(memory), no_sets(memory)
    set_count = size = 0
    for row in range(len(row_start) - 1):
        of_row[row] = at = 0
        if row_start[row] == row_start[row + 1]:
            continue
        stamp = 0 if per_batch else row
        size = size if per_batch else 0
        for i in range(row_start[row], row_start[row + 1]):
            shape = nodes[i, 2]
            if (nodes[i, 0] & 0xFF) == KIND.OBJECT and shape_stamp[shape] != stamp:
                shape_stamp[shape] = stamp
                run[size] = shape
                size += 1
                if not per_batch:
                    at, runs = pair_row(runs, at, shape)
        if per_batch:
            continue
        if runs.rows[at, _SET] < 0:
            key_count = _keys_of_shapes(run, size, shapes, key_stamp, at, rank, order, keys)
            runs.rows[at, _SET], sets = add_set(sets, set_count, keys, key_count)
            set_count = max(set_count, runs.rows[at, _SET] + 1)
        of_row[row] = runs.rows[at, _SET]
    if set_count == 0:  # one dictionary for the batch, or no rows
        key_count = _keys_of_shapes(run, size, shapes, key_stamp, 0, rank, order, keys)
        _, sets = add_set(sets, 0, keys, key_count)
        set_count = 1
    return set_count, sets


def metadata_column(
    of_row: npt.NDArray[np.int32],
    count: int,
    data: npt.NDArray[np.uint8],
    valid: npt.NDArray[np.uint8] | None = None,
) -> pa.DictionaryArray:
    """Return a metadata column: the dictionary of each row, and dictionaries as `write_dictionaries` writes them."""
    offsets, values = pa.py_buffer(data[: 4 * (count + 1)]), pa.py_buffer(data[4 * (count + 1) :])
    dictionary = pa.Array.from_buffers(pa.binary(), count, [None, offsets, values])
    buffers = [bitmap(valid), pa.py_buffer(of_row)]
    return pa.DictionaryArray.from_buffers(_METADATA, len(of_row), buffers, dictionary)


@helper
def assign_dictionaries(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    shapes: Int64Table,
    keys: Int64Table,
    per_batch: bool,
    max_bytes: int,
    of_row: Int32s,
    rank: Int64s,
) -> tuple[int, Sets, tuple[int, int]]:
    """Find one dictionary for each distinct key set of a row, or one for the whole batch, and fill ``of_row``.

    Fills ``rank``, the position by name of each key; returns ``(count, sets, data)``: the keys of each dictionary, and
    the metadata, as `write_dictionaries` writes them.
    """
    order = new_vector(memory, len(keys))
    addresses, lengths = keys[:, KEY.ADDRESS], keys[:, KEY.LENGTH]
    for i in range(len(keys)):
        order[i] = i
    sort_by_name(addresses, lengths, order)
    for i in range(len(keys)):
        rank[order[i]] = i
    count, sets = _find_dictionaries(memory, nodes, row_start, shapes, rank, order, per_batch, of_row)
    return count, sets, write_dictionaries(memory, sets, count, addresses, lengths, max_bytes)
