"""Metadata for the rows of a tape: which keys each row uses, each distinct set once.

Owns finding the key sets and writing their bytes. Leaves the use of field ids to `shredding.shred_tape`.
"""

from __future__ import annotations

from itertools import starmap
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantError
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.compiling import Int32s, Int64s, Int64Table, helper, kernel
from parquet_variant.kernels.kinds import OBJECT
from parquet_variant.kernels.memory import copy, store_u8, store_uint
from parquet_variant.kernels.native_vectors import address_in, export_vector, filled_vector, free, new_vector, reserve
from parquet_variant.kernels.sorting import sort_run
from parquet_variant.kernels.tapes.tape import (
    KEY_ADDRESS,
    KEY_LENGTH,
    SHAPE_KEY,
    SHAPE_PARENT,
    Tape,
)
from parquet_variant.kernels.values.containers import uint_width

__all__ = ["Dictionaries", "assign_dictionaries"]


class Dictionaries(NamedTuple):
    """The distinct metadata of a batch.

    Parameters
    ----------
    of_row
        ``int32[rows]``: index of each row's dictionary; 0 for null rows.
    starts
        ``int64[dictionaries + 1]`` into ``keys``.
    keys
        Key ids, sorted by name within each dictionary: position there is the field id.
    offsets, data
        The encoded metadata of each dictionary, as offsets and bytes of an Arrow binary array.
    """

    of_row: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]


@helper
def _find_run(slots, hashes, starts, values, hashed, run, size):
    """Index of the entry with the same run of numbers, or -1 - slot where it would go."""
    mask = len(slots) - 1
    at = hashed & mask
    while slots[at] >= 0:
        entry = slots[at]
        if hashes[entry] == hashed and starts[entry + 1] - starts[entry] == size:
            same = True
            for i in range(size):
                if values[starts[entry] + i] != run[i]:
                    same = False
                    break
            if same:
                return entry
        at = (at + 1) & mask
    return -1 - at


@helper
def _add_run(slots, hashes, starts, values, count, found, hashed, run, size):
    """Append a run; returns the five grown tables."""
    hashes = reserve(hashes, count + 2)
    starts = reserve(starts, count + 2)
    values = reserve(values, starts[count] + size)
    hashes[count] = hashed
    for i in range(size):
        values[starts[count] + i] = run[i]
    starts[count + 1] = starts[count] + size
    slots[-1 - found] = count
    if (count + 1) * 2 > len(slots):
        room = 4 * len(slots)
        free(slots)
        slots = filled_vector(room, -1)
        mask = len(slots) - 1
        for entry in range(count + 1):
            at = hashes[entry] & mask
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = entry
    return slots, hashes, starts, values


_RUN_HASH, _SET_HASH = np.int64(7), np.int64(11)


@helper
def _mix(value, number):
    value = (value ^ (number + 0x51ED270B)) * 0x2127599BF4325C37
    return (value ^ ((value >> 30) & 0x3FFFFFFFF)) & 0x3FFFFFFFFFFFFFFF


@helper
def _keys_of_shapes(run, size, shapes, stamps, stamp, rank, order, out):
    """Distinct keys of some shapes, sorted by name, into ``out``; returns how many."""
    count = 0
    for i in range(size):
        shape = run[i]
        while shapes[shape, SHAPE_KEY] >= 0:
            key = shapes[shape, SHAPE_KEY]
            if stamps[key] != stamp:
                stamps[key] = stamp
                out[count] = rank[key]
                count += 1
            shape = shapes[shape, SHAPE_PARENT]
    sort_run(out, 0, count)
    for i in range(count):
        out[i] = order[out[i]]
    return count


@kernel
def _assign(
    nodes: Int64Table,
    row_start: Int64s,
    shapes: Int64Table,
    rank: Int64s,
    order: Int64s,
    per_batch: bool,
    of_row: Int32s,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Fill ``of_row``; returns ``(starts, keys)`` of the dictionaries, for `adopt`."""
    rows = len(row_start) - 1
    shape_stamp, key_stamp = filled_vector(len(shapes), -1), filled_vector(len(rank), -1)
    run, keys = new_vector(len(shapes)), new_vector(len(rank))
    # Runs of shapes that were seen, each with its dictionary; and the dictionaries.
    slots, set_slots = filled_vector(256, -1), filled_vector(256, -1)
    hashes, starts, values = new_vector(64), filled_vector(64, 0), new_vector(256)
    set_hashes, set_starts, set_keys = new_vector(64), filled_vector(64, 0), new_vector(256)
    dictionary_of = new_vector(64)
    count = set_count = size = 0
    for row in range(rows):
        stamp = 0 if per_batch else row
        if not per_batch:
            size = 0
        hashed = _RUN_HASH
        for i in range(row_start[row], row_start[row + 1]):
            if (nodes[i, 0] & 0xFF) == OBJECT:
                shape = nodes[i, 2]
                if shape_stamp[shape] != stamp:
                    shape_stamp[shape] = stamp
                    run[size] = shape
                    size += 1
                    hashed = _mix(hashed, shape)
        if per_batch:
            of_row[row] = 0
            continue
        if row_start[row] == row_start[row + 1]:
            of_row[row] = 0
            continue
        found = _find_run(slots, hashes, starts, values, hashed, run, size)
        if found < 0:
            key_count = _keys_of_shapes(run, size, shapes, key_stamp, count, rank, order, keys)
            set_hash = _SET_HASH
            for i in range(key_count):
                set_hash = _mix(set_hash, keys[i])
            known = _find_run(set_slots, set_hashes, set_starts, set_keys, set_hash, keys, key_count)
            if known < 0:
                set_slots, set_hashes, set_starts, set_keys = _add_run(
                    set_slots, set_hashes, set_starts, set_keys, set_count, known, set_hash, keys, key_count
                )
                known = set_count
                set_count += 1
            if count == len(dictionary_of):
                dictionary_of = reserve(dictionary_of, len(dictionary_of) + 1)
            dictionary_of[count] = known
            slots, hashes, starts, values = _add_run(slots, hashes, starts, values, count, found, hashed, run, size)
            found = count
            count += 1
        of_row[row] = dictionary_of[found]
    if set_count == 0:  # one for the batch, or no row at all
        key_count = _keys_of_shapes(run, size, shapes, key_stamp, 0, rank, order, keys)
        set_keys = reserve(set_keys, key_count)
        copy(address_in(set_keys), address_in(keys), 8 * key_count)
        set_starts[1] = key_count
        set_count = 1
    for vector in (
        shape_stamp,
        key_stamp,
        run,
        keys,
        slots,
        set_slots,
        hashes,
        starts,
        values,
        set_hashes,
        dictionary_of,
    ):
        free(vector)
    return export_vector(set_starts, set_count + 1), export_vector(set_keys, set_starts[set_count])


@kernel
def _metadata_sizes(starts: Int64s, dictionary_keys: Int64s, keys: Int64Table, sizes: Int64s, widths: Int64s) -> None:
    for d in range(len(sizes)):
        length = 0
        for i in range(starts[d], starts[d + 1]):
            length += keys[dictionary_keys[i], KEY_LENGTH]
        count = starts[d + 1] - starts[d]
        widths[d] = uint_width(max(length, count))
        sizes[d] = 1 + widths[d] * (count + 2) + length


@kernel
def _write_metadata(
    starts: Int64s, dictionary_keys: Int64s, keys: Int64Table, offsets: Int64s, widths: Int64s, target: int
) -> None:
    for d in range(len(widths)):
        at = target + offsets[d]
        width = widths[d]
        count = starts[d + 1] - starts[d]
        store_u8(at, 0x11 | ((width - 1) << 6))  # version 1, sorted
        store_uint(at + 1, count, width)
        at += 1 + width
        data = at + (count + 1) * width
        length = 0
        for i in range(starts[d], starts[d + 1]):
            store_uint(at, length, width)
            at += width
            key = dictionary_keys[i]
            copy(data + length, keys[key, KEY_ADDRESS], keys[key, KEY_LENGTH])
            length += keys[key, KEY_LENGTH]
        store_uint(at, length, width)


def assign_dictionaries(tape: Tape, *, per_batch: bool = False) -> Dictionaries:
    """Find the dictionaries of a tape: one for each distinct key set, or one for the whole batch."""
    of_row = np.zeros(tape.rows, np.int32)
    vectors = _assign(tape.nodes, tape.row_start, tape.shapes, tape.key_rank, tape.key_order, per_batch, of_row)
    starts, dictionary_keys = starmap(adopt, vectors)
    sizes, widths = np.empty(len(starts) - 1, np.int64), np.empty(len(starts) - 1, np.int64)
    _metadata_sizes(starts, dictionary_keys, tape.keys, sizes, widths)
    offsets = np.zeros(len(starts), np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise VariantError("the metadata of these rows exceeds 2 GiB: parse fewer rows at a time", reason="too-large")
    data = np.empty(max(int(offsets[-1]), 1), np.uint8)
    _write_metadata(starts, dictionary_keys, tape.keys, offsets, widths, data.ctypes.data)
    return Dictionaries(of_row, starts, dictionary_keys, offsets.astype(np.int32), data)
