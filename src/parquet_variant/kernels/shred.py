"""Variant bytes to typed columns (final layout), guided by the schema: what is not shredded is never looked into.

Owns the walk. Leaves slots to `scalar_slots`, buffers to `columns`, and rows that are malformed to the scalar fallback:
the kernel marks them and goes on. The same walk runs twice, first to count (see `measure` in `shred_tape`), then to
write.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int64s, Int64Table, ReadOnlyInt32s, UInt8s, helper, kernel
from parquet_variant.kernels.containers import begin_object, object_size
from parquet_variant.kernels.json_scan import is_utf8
from parquet_variant.kernels.memory import copy, load_u8, load_uint, store_u8, store_u32, store_uint
from parquet_variant.kernels.name_tables import UNUSABLE, resolve_names
from parquet_variant.kernels.native_vectors import address_in, filled_vector, free, new_table, new_vector, reserve_rows
from parquet_variant.kernels.scalar_slots import BINARY, MICROS_PER_DAY, STRING, TIME, UUID, exact_slot, store_slot
from parquet_variant.kernels.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    S_CODE,
    S_KIND,
    S_LEVEL,
    S_PARENT,
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
from parquet_variant.kernels.values import MALFORMED, container, scalar_of_size, value_size

__all__ = ["shred_rows"]

# Columns of an entry of the work stack: a value to visit, or a list whose next element is to be visited (COUNT > 0).
_SCHEMA, _AT, _BEGIN, _END, _LEFT, _OFFSETS, _WIDTH, _ROOM = range(8)


@helper
def _copy_counts(to_counts, to_entry, counts, entry):
    copy(address_in(to_counts), address_in(counts), counts.size * 8)
    copy(address_in(to_entry), address_in(entry), entry.size * 8)


@helper
def _sort_fields(fields, count):
    """Sort by rank; they nearly always are."""
    for i in range(1, count):
        j = i
        while j > 0 and fields[j - 1, 0] > fields[j, 0]:
            for k in range(4):
                fields[j - 1, k], fields[j, k] = fields[j, k], fields[j - 1, k]
            j -= 1


@helper
def _put_value(addresses, s, at, begin, size):
    store_u32(addresses[s, C_VALUE_LENGTHS] + at * 4, size)
    store_u8(addresses[s, C_VALUE_VALID] + at, 1)
    copy(addresses[s, C_VALUE_DATA], begin, size)
    addresses[s, C_VALUE_DATA] += size


@helper
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


@helper(inline=True)
def _put_leaf(table, s, at, begin, size, counts, addresses, filling):
    """Count or write a value that is not taken apart: in its typed column, or else as bytes; False if malformed."""
    if table[s, S_KIND] == PRIMITIVE_NODE and load_u8(begin) & 2 == 0:
        code = table[s, S_CODE]
        low = high = 0
        if code == STRING:  # most columns: not by `scalar_of_size`
            header = load_u8(begin)
            fits = header & 3 == 1 or header == STRING << 2
            a = begin + (1 if header & 3 == 1 else 5)
            b = begin + size - a
        else:
            kind, a, b, scale = scalar_of_size(begin, size)
            if kind == TIME and code == TIME and not 0 <= a < MICROS_PER_DAY:
                return False
            fits, low, high = exact_slot(kind, a, b, scale, code, table[s, S_PRECISION], table[s, S_SCALE])
        if fits:
            if not filling:
                if code == STRING and not is_utf8(a, a + b):
                    return False
                counts[s, C_TYPED_COUNT] += 1
                if code == STRING or code == BINARY:
                    counts[s, C_TYPED_BYTES] += b
                return True
            if addresses[s, C_TYPED_VALID] != 0:
                store_u8(addresses[s, C_TYPED_VALID] + at, 1)
            if code == STRING or code == BINARY:
                store_u32(addresses[s, C_LENGTHS] + at * 4, b)
                copy(addresses[s, C_TYPED_DATA], a, b)
                addresses[s, C_TYPED_DATA] += b
            elif code == UUID:
                copy(addresses[s, C_CELLS] + at * 16, a, 16)
            else:
                store_slot(addresses[s, C_CELLS] + at * table[s, S_WIDTH], table[s, S_WIDTH], low, high)
            return True
    if filling:
        _put_value(addresses, s, at, begin, size)
    else:
        counts[s, C_VALUE_COUNT] += 1
        counts[s, C_VALUE_BYTES] += size
    return True


@helper(inline=True)
def _is_taken_apart(table, s, begin):
    """Whether the value is a container that the schema shreds."""
    shape = table[s, S_KIND]
    basic = load_u8(begin) & 3
    return (shape == OBJECT_NODE and basic == 2) or (shape == ARRAY_NODE and basic == 3)


@helper
def _open_list(stack, top, schema, at, values, size, count, offsets, width):
    """Put a list on the stack, whose elements are in ``size`` bytes and go to entries of ``schema`` from ``at`` on."""
    stack[top, _SCHEMA] = schema
    stack[top, _AT] = at
    stack[top, _BEGIN] = values
    stack[top, _END] = values + size
    stack[top, _LEFT] = count
    stack[top, _OFFSETS] = offsets
    stack[top, _WIDTH] = width
    stack[top, _ROOM] = size


@helper
def _chain_children(ids, first_of_id, next_of_node):
    """Chain the schema nodes that have the same name, by its field id; `_child_of` follows the chain."""
    for s in range(len(ids)):
        if ids[s] >= 0:
            next_of_node[s] = first_of_id[ids[s]]
            first_of_id[ids[s]] = s


@helper(inline=True)
def _child_of(table, s, field_id, first_of_id, next_of_node):
    """The schema node of a field of schema node ``s``; -1 where it has none."""
    child = first_of_id[field_id]
    while child >= 0 and table[child, S_PARENT] != s:
        child = next_of_node[child]
    return child


@kernel
def shred_rows(
    rows: int,
    row_valid: UInt8s,
    value_offsets: Int64s,
    value_address: int,
    table: Int64Table,
    schema_names: Int64s,
    schema_lengths: Int64s,
    dictionary_of: ReadOnlyInt32s,
    starts: Int64s,
    address: Int64s,
    length: Int64s,
    rank_of_id: Int64s,
    order: Int64s,
    state: UInt8s,
    refused: UInt8s,
    counts: Int64Table,
    levels: Int64s,
    addresses: Int64Table,
    filling: bool,
) -> None:
    """Shred every row: count into ``counts`` and ``levels``, or, if ``filling``, write to ``addresses``.

    Counting marks the rows that it cannot walk in ``refused``; filling leaves them out.
    """
    ids, ranks = filled_vector(len(table), -1), new_vector(len(table))
    widest = 1
    for d in range(len(state)):
        widest = max(widest, starts[d + 1] - starts[d])
    first_of_id, next_of_node = filled_vector(widest, -1), new_vector(len(table))
    # The object that each schema field was last seen in: seen twice in one, the name stands there twice.
    seen = filled_vector(len(table), 0)
    serial = 0
    fields = new_table(64, 4)  # of a residual: rank, id, address, size
    stack = new_table(64, 8)
    entry, saved_entry = filled_vector(len(levels), 0), new_vector(len(levels))
    saved_counts = new_table(counts.shape[0], counts.shape[1])
    _copy_counts(saved_counts, saved_entry, counts, entry)
    zero = filled_vector(1, 0)
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
            for s in range(len(ids)):
                if ids[s] >= 0:
                    first_of_id[ids[s]] = -1
            resolve_names(table, schema_names, schema_lengths, d, starts, address, length, order, ids, ranks)
            _chain_children(ids, first_of_id, next_of_node)
        base = starts[d]
        names = starts[d + 1] - base
        if not filling:
            _copy_counts(saved_counts, saved_entry, counts, entry)
        begin, end = value_address + value_offsets[row], value_address + value_offsets[row + 1]
        # A row is taken apart like a list of one element.
        _open_list(stack, 0, 0, row, begin, end - begin, 1, address_in(zero), 1)
        ok, depth = True, 1
        while depth > 0 and ok:
            if depth + 2 > len(stack):
                stack = reserve_rows(stack, depth + 2)
            top = depth - 1
            s, at, begin, end = stack[top, _SCHEMA], stack[top, _AT], stack[top, _BEGIN], stack[top, _END]
            left = stack[top, _LEFT]
            if left >= 0:  # the elements of a list, up to the next one that is taken apart
                offsets, width, room = stack[top, _OFFSETS], stack[top, _WIDTH], stack[top, _ROOM]
                depth -= 1
                while left > 0:
                    element = begin + load_uint(offsets, width)
                    size = value_size(element, end)
                    # Elements that share bytes could stand for any number of values.
                    if size == MALFORMED or size > room:
                        ok = False
                        break
                    offsets += width
                    room -= size
                    left -= 1
                    if _is_taken_apart(table, s, element):
                        stack[top, _LEFT] = left
                        stack[top, _AT] = at + 1
                        stack[top, _OFFSETS] = offsets
                        stack[top, _ROOM] = room
                        stack[top + 1, _SCHEMA] = s
                        stack[top + 1, _AT] = at
                        stack[top + 1, _BEGIN] = element
                        stack[top + 1, _END] = end
                        stack[top + 1, _LEFT] = -1
                        depth += 2
                        break
                    if not _put_leaf(table, s, at, element, size, counts, addresses, filling):
                        ok = False
                        break
                    at += 1
                continue
            depth -= 1
            _, count, field_ids, id_width, offsets, width, values, data = container(begin, end)
            if not filling:
                counts[s, C_TYPED_COUNT] += 1
            elif addresses[s, C_TYPED_VALID] != 0:
                store_u8(addresses[s, C_TYPED_VALID] + at, 1)
            if table[s, S_KIND] == ARRAY_NODE:
                level = table[s + 1, S_LEVEL]
                if filling:
                    store_u32(addresses[s, C_LENGTHS] + at * 4, count)
                _open_list(stack, top, s + 1, entry[level], values, data, count, offsets, width)
                entry[level] += count
                depth += 1
                continue
            serial += 1
            kept = kept_bytes = largest = 0
            room = data
            previous = -1
            sorted_fields = True
            for j in range(count):
                field_id = load_uint(field_ids + j * id_width, id_width)
                begin = values + load_uint(offsets + j * width, width)
                size = value_size(begin, values + data)
                if field_id >= names or size == MALFORMED or size > room:
                    ok = False
                    break
                room -= size
                child = _child_of(table, s, field_id, first_of_id, next_of_node)
                if child >= 0:
                    if seen[child] == serial:
                        ok = False
                        break
                    seen[child] = serial
                    if not _is_taken_apart(table, child, begin):
                        if not _put_leaf(table, child, at, begin, size, counts, addresses, filling):
                            ok = False
                            break
                        continue
                    if depth + 1 > len(stack):
                        stack = reserve_rows(stack, depth + 1)
                    stack[depth, _SCHEMA] = child
                    stack[depth, _AT] = at
                    stack[depth, _BEGIN] = begin
                    stack[depth, _END] = values + data
                    stack[depth, _LEFT] = -1
                    depth += 1
                    continue
                rank = rank_of_id[base + field_id]
                if rank <= previous:
                    sorted_fields = False
                previous = rank
                if kept + 1 > len(fields):
                    fields = reserve_rows(fields, kept + 1)
                fields[kept, 0] = rank
                fields[kept, 1] = field_id
                fields[kept, 2] = begin
                fields[kept, 3] = size
                kept += 1
                kept_bytes += size
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
            if kept > 0:
                if filling:
                    _put_object(addresses, s, at, fields, kept, largest, kept_bytes)
                else:
                    counts[s, C_VALUE_COUNT] += 1
                    counts[s, C_VALUE_BYTES] += object_size(kept, largest, kept_bytes)
        if not ok:
            refused[row] = 1
            _copy_counts(counts, entry, saved_counts, saved_entry)
    if not filling:
        for level in range(1, len(levels)):
            levels[level] = entry[level]
        levels[0] = rows
    for vector in (ids, ranks, first_of_id, next_of_node, seen, entry, saved_entry, zero):
        free(vector)
    for made in (fields, stack, saved_counts):
        free(made)
