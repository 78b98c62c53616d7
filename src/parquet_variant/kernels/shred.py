"""Variant bytes to typed columns (final layout), guided by the schema: what is not shredded is never looked into.

Owns the walk. Leaves cells to `cells`, buffers to `columns`, and rows that are malformed to the reference: the kernel
marks them and goes on. The same walk runs twice, first to count (see `measure` in `shred_tape`), then to write.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.cells import BINARY, STRING, UUID, exact_cell, store_cell
from parquet_variant.kernels.compiling import njit
from parquet_variant.kernels.containers import begin_object, object_size
from parquet_variant.kernels.json_scan import is_utf8
from parquet_variant.kernels.memory import copy, load_u8, load_uint, store_u8, store_u32, store_uint
from parquet_variant.kernels.name_tables import UNUSABLE, resolve_names
from parquet_variant.kernels.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    S_CODE,
    S_END,
    S_KIND,
    S_LEVEL,
    S_PRECISION,
    S_SCALE,
    S_WIDTH,
)
from parquet_variant.kernels.shred_tape import (
    C_CELLS,
    C_LENGTHS,
    C_TYPED_BYTES,
    C_TYPED_COUNT,
    C_TYPED_DATA,
    C_TYPED_VALID,
    C_VALUE_BYTES,
    C_VALUE_COUNT,
    C_VALUE_DATA,
    C_VALUE_LENGTHS,
    C_VALUE_VALID,
)
from parquet_variant.kernels.tape import ARRAY, OBJECT
from parquet_variant.kernels.values import MALFORMED, container, scalar, value_kind, value_size

__all__ = ["shred_rows"]

# Columns of an entry of the work stack: a value to visit, or a list whose next element is to be visited (COUNT > 0).
_SCHEMA, _AT, _BEGIN, _END, _LEFT, _OFFSETS, _WIDTH, _ROOM = range(8)


@njit
def _taller(table):
    bigger = np.empty((len(table) * 2, table.shape[1]), np.int64)
    bigger[: len(table)] = table
    return bigger


@njit
def _sort_fields(fields, count):
    """Sort by rank; they nearly always are."""
    for i in range(1, count):
        j = i
        while j > 0 and fields[j - 1, 0] > fields[j, 0]:
            for k in range(4):
                fields[j - 1, k], fields[j, k] = fields[j, k], fields[j - 1, k]
            j -= 1


@njit
def _put_value(addresses, s, at, begin, size):
    store_u32(addresses[s, C_VALUE_LENGTHS] + at * 4, size)
    store_u8(addresses[s, C_VALUE_VALID] + at, 1)
    copy(addresses[s, C_VALUE_DATA], begin, size)
    addresses[s, C_VALUE_DATA] += size


@njit
def _put_object(addresses, s, at, fields, count, largest, data):
    """Write the residual object of some fields."""
    size = object_size(count, largest, data)
    store_u32(addresses[s, C_VALUE_LENGTHS] + at * 4, size)
    store_u8(addresses[s, C_VALUE_VALID] + at, 1)
    ids, id_width, offsets, offset_width, values = begin_object(addresses[s, C_VALUE_DATA], count, largest, data)
    written = 0
    for j in range(count):
        store_uint(ids, fields[j, 1], id_width)
        ids += id_width
        store_uint(offsets, written, offset_width)
        offsets += offset_width
        copy(values + written, fields[j, 2], fields[j, 3])
        written += fields[j, 3]
    store_uint(offsets, written, offset_width)
    addresses[s, C_VALUE_DATA] += size


@njit
def shred_rows(rows, row_valid, value_offsets, value_address, table, schema_names, schema_lengths, dictionary_of,
               starts, address, length, rank_of_id, order, state, refused, counts, levels, addresses,
               filling):  # fmt: skip
    """Shred every row: count into ``counts`` and ``levels``, or, if ``filling``, write to ``addresses``.

    Counting marks the rows that it cannot walk in ``refused``; filling leaves them out.
    """
    ids, ranks = np.empty(len(table), np.int64), np.empty(len(table), np.int64)
    widest = 1
    for d in range(len(state)):
        widest = max(widest, starts[d + 1] - starts[d])
    # Which schema field a field id is, in the object visited last: valid where the serial is that of the visit.
    slot, slot_serial = np.empty(widest, np.int64), np.zeros(widest, np.int64)
    serial = 0
    fields = np.empty((64, 4), np.int64)  # of a residual: rank, id, address, size
    stack = np.empty((64, 8), np.int64)
    entry = np.zeros(len(levels), np.int64)
    saved_counts, saved_entry = counts.copy(), entry.copy()
    current = -1
    for row in range(rows):
        if (len(row_valid) > 0 and row_valid[row] == 0) or refused[row] != 0:
            continue
        d = dictionary_of[row]
        if d < 0 or state[d] == UNUSABLE:
            refused[row] = 1
            continue
        if d != current:
            current = d
            resolve_names(table, schema_names, schema_lengths, d, starts, address, length, order, ids, ranks)
        base = starts[d]
        names = starts[d + 1] - base
        if not filling:
            saved_counts[:] = counts
            saved_entry[:] = entry
        stack[0, _SCHEMA] = 0
        stack[0, _AT] = row
        stack[0, _BEGIN] = value_address + value_offsets[row]
        stack[0, _END] = value_address + value_offsets[row + 1]
        stack[0, _LEFT] = 0
        depth = 1
        ok = True
        while depth > 0:
            top = depth - 1
            s, at, begin, end = stack[top, _SCHEMA], stack[top, _AT], stack[top, _BEGIN], stack[top, _END]
            if stack[top, _LEFT] > 0:  # a list: visit its next element
                stack[top, _LEFT] -= 1
                stack[top, _AT] += 1
                place = load_uint(stack[top, _OFFSETS], stack[top, _WIDTH])
                stack[top, _OFFSETS] += stack[top, _WIDTH]
                begin += place
                size = value_size(begin, end)
                # Elements that share bytes could stand for any number of values.
                if size == MALFORMED or size > stack[top, _ROOM]:
                    ok = False
                    break
                stack[top, _ROOM] -= size
                if stack[top, _LEFT] > 0:
                    depth += 1
                    if depth > len(stack):
                        stack = _taller(stack)
                stack[depth - 1, _SCHEMA] = s
                stack[depth - 1, _AT] = at
                stack[depth - 1, _BEGIN] = begin
                stack[depth - 1, _END] = end
                stack[depth - 1, _LEFT] = 0
                continue
            depth -= 1
            size = value_size(begin, end)
            if size == MALFORMED:
                ok = False
                break
            kind = value_kind(load_u8(begin))
            shape = table[s, S_KIND]
            if shape == PRIMITIVE_NODE and kind < ARRAY:
                kind, a, b, scale = scalar(begin, end)
                code = table[s, S_CODE]
                fits, low, high = exact_cell(kind, a, b, scale, code, table[s, S_PRECISION], table[s, S_SCALE])
                if fits:
                    if not filling:
                        if code == STRING and not is_utf8(a, a + b):
                            ok = False
                            break
                        counts[s, C_TYPED_COUNT] += 1
                        if code == STRING or code == BINARY:
                            counts[s, C_TYPED_BYTES] += b
                        continue
                    if addresses[s, C_TYPED_VALID] != 0:
                        store_u8(addresses[s, C_TYPED_VALID] + at, 1)
                    if code == STRING or code == BINARY:
                        store_u32(addresses[s, C_LENGTHS] + at * 4, b)
                        copy(addresses[s, C_TYPED_DATA], a, b)
                        addresses[s, C_TYPED_DATA] += b
                    elif code == UUID:
                        copy(addresses[s, C_CELLS] + at * 16, a, 16)
                    else:
                        store_cell(addresses[s, C_CELLS] + at * table[s, S_WIDTH], table[s, S_WIDTH], low, high)
                    continue
            elif shape == ARRAY_NODE and kind == ARRAY:
                _, count, _, _, offsets, width, values, data = container(begin, end)
                level = table[s + 1, S_LEVEL]
                if filling:
                    if addresses[s, C_TYPED_VALID] != 0:
                        store_u8(addresses[s, C_TYPED_VALID] + at, 1)
                    store_u32(addresses[s, C_LENGTHS] + at * 4, count)
                else:
                    counts[s, C_TYPED_COUNT] += 1
                if count > 0:
                    depth += 1
                    if depth > len(stack):
                        stack = _taller(stack)
                    stack[depth - 1, _SCHEMA] = s + 1
                    stack[depth - 1, _AT] = entry[level]
                    stack[depth - 1, _BEGIN] = values
                    stack[depth - 1, _END] = values + data
                    stack[depth - 1, _LEFT] = count
                    stack[depth - 1, _OFFSETS] = offsets
                    stack[depth - 1, _WIDTH] = width
                    stack[depth - 1, _ROOM] = data
                    entry[level] += count
                continue
            elif shape == OBJECT_NODE and kind == OBJECT:
                _, count, field_ids, id_width, offsets, width, values, data = container(begin, end)
                serial += 1
                child = s + 1
                while child < table[s, S_END]:
                    if ids[child] >= 0:
                        slot[ids[child]] = child
                        slot_serial[ids[child]] = serial
                    child = table[child, S_END]
                kept = kept_bytes = largest = 0
                room = data
                previous = -1
                sorted_fields = True
                for j in range(count):
                    field_id = load_uint(field_ids + j * id_width, id_width)
                    place = load_uint(offsets + j * width, width)
                    field_size = value_size(values + place, values + data)
                    if field_id >= names or field_size == MALFORMED or field_size > room:
                        ok = False
                        break
                    room -= field_size
                    if slot_serial[field_id] == serial:
                        child = slot[field_id]
                        if child < 0:  # a second field of this name
                            ok = False
                            break
                        slot[field_id] = -1
                        depth += 1
                        if depth > len(stack):
                            stack = _taller(stack)
                        stack[depth - 1, _SCHEMA] = child
                        stack[depth - 1, _AT] = at
                        stack[depth - 1, _BEGIN] = values + place
                        stack[depth - 1, _END] = values + data
                        stack[depth - 1, _LEFT] = 0
                        continue
                    rank = rank_of_id[base + field_id]
                    if rank <= previous:
                        sorted_fields = False
                    previous = rank
                    if kept == len(fields):
                        fields = _taller(fields)
                    fields[kept, 0] = rank
                    fields[kept, 1] = field_id
                    fields[kept, 2] = values + place
                    fields[kept, 3] = field_size
                    kept += 1
                    kept_bytes += field_size
                    largest = max(largest, field_id)
                if not ok:
                    break
                if not sorted_fields:
                    _sort_fields(fields, kept)
                    for j in range(1, kept):
                        if fields[j, 0] == fields[j - 1, 0]:
                            ok = False
                    if not ok:
                        break
                if not filling:
                    counts[s, C_TYPED_COUNT] += 1
                    if kept > 0:
                        counts[s, C_VALUE_COUNT] += 1
                        counts[s, C_VALUE_BYTES] += object_size(kept, largest, kept_bytes)
                    continue
                if addresses[s, C_TYPED_VALID] != 0:
                    store_u8(addresses[s, C_TYPED_VALID] + at, 1)
                if kept > 0:
                    _put_object(addresses, s, at, fields, kept, largest, kept_bytes)
                continue
            if filling:
                _put_value(addresses, s, at, begin, size)
            else:
                counts[s, C_VALUE_COUNT] += 1
                counts[s, C_VALUE_BYTES] += size
        if not ok:
            refused[row] = 1
            counts[:] = saved_counts
            entry[:] = saved_entry
    if not filling:
        levels[:] = entry
        levels[0] = rows
