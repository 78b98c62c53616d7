"""Metadata for the rows of a tape: the keys that each row uses, with each distinct set stored once.

Owns finding the key sets and writing their bytes. Leaves the use of field ids to `shredding.shred_tape`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.machine_code.functions import helper
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, MIX_A, copy, store_u8, store_u32, store_uint
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    allocate,
    filled_vector,
    new_vector,
    refilled_vector,
    reserve,
    sort_with,
)
from parquet_variant.kernels.tapes.tape import KEY, SHAPE
from parquet_variant.kernels.values.reading import sort_by_name
from parquet_variant.kernels.values.scalar_slots import uint_width


class Runs(NamedTuple):
    """Distinct runs of numbers: a hash table of their indices, their hashes, the start of each, and the numbers."""

    slots: Int64s
    hashes: Int64s
    starts: Int64s
    values: Int64s


@helper
def no_runs(memory: Memory) -> Runs:
    """Return an empty table of runs."""
    slots, starts = filled_vector(memory, 256, -1), filled_vector(memory, 64, 0)
    return Runs(slots, new_vector(memory, 64), starts, new_vector(memory, 256))


@helper
def _find_run(runs: Runs, hashed: int, run: Int64s, size: int) -> int:
    """Return the index of an equal run of numbers, or -1 - slot where it would be stored."""
    mask = len(runs.slots) - 1
    slot_number = hashed & mask
    while runs.slots[slot_number] >= 0:
        entry = runs.slots[slot_number]
        start = runs.starts[entry]
        if runs.hashes[entry] == hashed and runs.starts[entry + 1] - start == size:
            same = True
            for i in range(size):
                if runs.values[start + i] != run[i]:
                    same = False
                    break
            if same:
                return entry
        slot_number = (slot_number + 1) & mask
    return -1 - slot_number


@helper
def _add_run(runs: Runs, count: int, slot: int, hashed: int, run: Int64s, size: int) -> Runs:
    """Append a run, for which `_find_run` returned ``slot``; return the table."""
    hashes = reserve(runs.hashes, count + 2)
    starts = reserve(runs.starts, count + 2)
    values = reserve(runs.values, starts[count] + size)
    slots = runs.slots
    hashes[count] = hashed
    for i in range(size):
        values[starts[count] + i] = run[i]
    starts[count + 1] = starts[count] + size
    slots[-1 - slot] = count
    if (count + 1) * 2 > len(slots):
        slots = refilled_vector(slots, 4 * len(slots), -1)
        mask = len(slots) - 1
        for entry in range(count + 1):
            at = hashes[entry] & mask
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = entry
    return Runs(slots, hashes, starts, values)


_RUN_HASH: Any = np.int64(7)
_SET_HASH: Any = np.int64(11)


@helper
def _mix(value: int, number: int) -> int:
    """Return a hash of a hash and a number."""
    value = (value ^ (number + 0x51ED270B)) * MIX_A
    return (value ^ ((value >> 30) & 0x3FFFFFFFF)) & 0x3FFFFFFFFFFFFFFF


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


@helper(inline=True)
def _shapes_of_row(
    row: int, stamp: int, nodes: Int64Table, row_start: Int64s, shape_stamp: Int64s, run: Int64s, size: int
) -> tuple[int, int]:
    """Append the distinct shapes of the objects in a row to a run; return ``(size, hash)``."""
    hashed = _RUN_HASH
    for i in range(row_start[row], row_start[row + 1]):
        if (nodes[i, 0] & 0xFF) == KIND.OBJECT:
            shape = nodes[i, 2]
            if shape_stamp[shape] != stamp:
                shape_stamp[shape] = stamp
                run[size] = shape
                size += 1
                hashed = _mix(hashed, shape)
    return size, hashed


@helper
def add_set(sets: Runs, count: int, keys: Int64s, key_count: int) -> tuple[int, Runs]:
    """Find or append a set of keys; return ``(index, sets)``."""
    hashed = _SET_HASH
    for i in range(key_count):
        hashed = _mix(hashed, keys[i])
    index = _find_run(sets, hashed, keys, key_count)
    if index >= 0:
        return index, sets
    return count, _add_run(sets, count, index, hashed, keys, key_count)


@helper
def _metadata_size(sets: Runs, d: int, lengths: Int64s) -> tuple[int, int]:
    """Return the bytes and the offset width of the metadata of a set of names."""
    size = 0
    for i in range(sets.starts[d], sets.starts[d + 1]):
        size += lengths[sets.values[i]]
    count = sets.starts[d + 1] - sets.starts[d]
    width = uint_width(max(size, count))
    return 1 + width * (count + 2) + size, width


@helper
def write_dictionaries(
    memory: Memory, sets: Runs, count: int, addresses: Int64s, lengths: Int64s, max_bytes: int
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
) -> tuple[int, Runs]:
    """Fill ``of_row``; return the number of dictionaries, and the keys of each."""
    shape_stamp, key_stamp = filled_vector(memory, len(shapes), -1), filled_vector(memory, len(rank), -1)
    run, keys = new_vector(memory, len(shapes)), new_vector(memory, len(rank))
    # Distinct runs of shapes with the dictionary of each, and the dictionaries.
    runs, sets, dictionary_of = no_runs(memory), no_runs(memory), new_vector(memory, 64)
    count = set_count = size = 0
    for row in range(len(row_start) - 1):
        of_row[row] = 0
        if row_start[row] == row_start[row + 1]:
            continue
        if per_batch:
            size, _ = _shapes_of_row(row, 0, nodes, row_start, shape_stamp, run, size)
            continue
        size, hashed = _shapes_of_row(row, row, nodes, row_start, shape_stamp, run, 0)
        entry = _find_run(runs, hashed, run, size)
        if entry < 0:
            key_count = _keys_of_shapes(run, size, shapes, key_stamp, count, rank, order, keys)
            index, sets = add_set(sets, set_count, keys, key_count)
            set_count = max(set_count, index + 1)
            dictionary_of = reserve(dictionary_of, count + 1)
            dictionary_of[count] = index
            runs = _add_run(runs, count, entry, hashed, run, size)
            entry = count
            count += 1
        of_row[row] = dictionary_of[entry]
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
    return pa.DictionaryArray.from_arrays(from_numpy(of_row, None if valid is None else valid == 0), dictionary)


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
) -> tuple[int, tuple[int, int], tuple[int, int]]:
    """Find one dictionary for each distinct key set of a row, or one for the whole batch, and fill ``of_row``.

    Returns ``(count, numbers, data)`` with address and size of new memory. The numbers are the ranks of all keys, the
    starts of the dictionaries and the end of the last one, and their keys. The data are those of `write_dictionaries`.
    """
    order, rank = new_vector(memory, len(keys)), new_vector(memory, len(keys))
    addresses, lengths = keys[:, KEY.ADDRESS], keys[:, KEY.LENGTH]
    for i in range(len(keys)):
        order[i] = i
    sort_by_name(addresses, lengths, order)
    for i in range(len(keys)):
        rank[order[i]] = i
    count, sets = _find_dictionaries(memory, nodes, row_start, shapes, rank, order, per_batch, of_row)
    data = write_dictionaries(memory, sets, count, addresses, lengths, max_bytes)
    if data[1] < 0:
        return count, (0, 0), data
    size = sets.starts[count]
    numbers = new_vector(memory, len(keys) + count + 1 + size)
    for i in range(len(keys)):
        numbers[i] = rank[i]
    for i in range(count + 1):
        numbers[len(keys) + i] = sets.starts[i]
    for i in range(size):
        numbers[len(keys) + count + 1 + i] = sets.values[i]
    return count, (address_in(numbers), len(numbers)), data
