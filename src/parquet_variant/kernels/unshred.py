"""Shredded columns back to Variant bytes (final layout).

Owns putting each row together: first as nodes in the order in which they will lie in the value, then as bytes. Leaves
the rows that the specification calls INVALID, and metadata that lacks a shredded name, to the scalar fallback: the
kernel lists them and goes on.

A node is ``int64[4]``: kind (bits 0-7), scale (8-15) and field id (16-47); a; b; end, as in a tape. Fields of an object
are put in the order of their names while they are gathered: schema fields are sorted already, and so are residuals.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int64s, Int64Table, ReadOnlyInt32s, UInt8s, helper, kernel
from parquet_variant.kernels.containers import array_size, begin_array, begin_object, object_size
from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.json_scan import DECIMAL4, DECIMAL16, INT8, INT16, INT32
from parquet_variant.kernels.memory import (
    copy,
    load_s8,
    load_s16,
    load_s32,
    load_u8,
    load_u32,
    load_u64,
    load_uint,
    store_u32,
    store_uint,
)
from parquet_variant.kernels.name_tables import UNUSABLE, resolve_names
from parquet_variant.kernels.native_vectors import (
    address_in,
    export_table,
    free,
    new_table,
    new_vector,
    pooled_table,
    reserve_rows,
)
from parquet_variant.kernels.scalar_slots import (
    DATE,
    FALSE,
    FLOAT,
    MICROS_PER_DAY,
    NULL,
    TIME,
    TRUE,
    UUID,
    scalar_size,
    write_scalar,
)
from parquet_variant.kernels.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    S_CODE,
    S_END,
    S_KIND,
    S_PRECISION,
    S_SCALE,
    S_WIDTH,
)
from parquet_variant.kernels.tape import ARRAY, OBJECT, put_node
from parquet_variant.kernels.values import MALFORMED, container, value_kind, value_size

__all__ = [
    "INPUT_COLUMNS",
    "I_GROUP_VALID",
    "I_SLOTS",
    "I_TYPED_DATA",
    "I_TYPED_OFFSETS",
    "I_TYPED_VALID",
    "I_VALUE_DATA",
    "I_VALUE_OFFSETS",
    "I_VALUE_VALID",
    "RAW",
    "assemble",
    "measure_nodes",
    "write_nodes",
]

# Columns of the input table, one row a schema node: addresses of buffers, 0 where there is none. Validity is a byte an
# entry, 0 in the table if all are valid, -1 if none is (or the column is missing); offsets are int64.
(
    I_VALUE_VALID,
    I_VALUE_OFFSETS,
    I_VALUE_DATA,
    I_TYPED_VALID,
    I_TYPED_OFFSETS,
    I_TYPED_DATA,
    I_SLOTS,
    I_GROUP_VALID,
) = range(8)
INPUT_COLUMNS = 8

# An encoded value that is copied as it is: a = address, b = bytes.
RAW = 30
# DuckDB writes the fields of objects in any order. More of them in one object are left to the scalar fallback.
_UNSORTED, _MOST_UNSORTED = -2, 4096
# Columns of a frame of the stack in `assemble`.
_SCHEMA, _AT, _STOP, _NODE, _LEFT, _IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, _VALUES_END, _RESIDUAL, _ROOM = (
    range(13)
)


@helper(inline=True)
def _is_set(address, at):
    """Whether an entry of a validity column is set."""
    return address == 0 or (address != -1 and load_u8(address + at) != 0)


@helper(inline=True)
def _slot(s, at, table, inputs):
    """``(kind, a, b, scale)`` of a typed slot; kind is MALFORMED where the column's type cannot hold it."""
    code = table[s, S_CODE]
    width = table[s, S_WIDTH]
    if width == 0:
        offsets = inputs[s, I_TYPED_OFFSETS]
        begin = load_u64(offsets + at * 8)
        return code, inputs[s, I_TYPED_DATA] + begin, load_u64(offsets + at * 8 + 8) - begin, 0
    address = inputs[s, I_SLOTS] + at * width
    if code == TRUE:
        return (TRUE if load_u8(address) != 0 else FALSE), 0, 0, 0
    if DECIMAL4 <= code <= DECIMAL16:
        low, high = load_u64(address), load_u64(address + 8)
        fits = digits_of(high, low) <= table[s, S_PRECISION]
        return (code if fits else MALFORMED), low, high, table[s, S_SCALE]
    if code == UUID:
        return code, address, 16, 0
    if code == INT8:
        return code, load_s8(address), 0, 0
    if code == INT16:
        return code, load_s16(address), 0, 0
    if code == INT32 or code == DATE:
        return code, load_s32(address), 0, 0
    if code == FLOAT:
        return code, load_u32(address), 0, 0
    cell = load_u64(address)
    if code == TIME and not 0 <= cell < MICROS_PER_DAY:
        return MALFORMED, 0, 0, 0
    return code, cell, 0, 0


@helper
def _sort_residual(ids, id_width, offsets, width, count, base, names, rank_of_id, room):
    """Write ids and offsets of a residual's fields, sorted by name, to ``room``; False if a field is there twice."""
    for j in range(count):
        field_id, place = load_uint(ids + j * id_width, id_width), load_uint(offsets + j * width, width)
        if field_id >= names:
            return False
        rank = rank_of_id[base + field_id]
        k = j
        while k > 0:
            before = load_u32(room + 4 * (k - 1))
            if rank_of_id[base + before] == rank:
                return False
            if rank_of_id[base + before] < rank:
                break
            store_u32(room + 4 * k, before)
            store_u32(room + 4 * (count + k), load_u32(room + 4 * (count + k - 1)))
            k -= 1
        store_u32(room + 4 * k, field_id)
        store_u32(room + 4 * (count + k), place)
    return True


@kernel
def assemble(
    rows: int,
    row_valid: UInt8s,
    table: Int64Table,
    inputs: Int64Table,
    schema_names: Int64s,
    schema_lengths: Int64s,
    dictionary_of: ReadOnlyInt32s,
    starts: Int64s,
    address: Int64s,
    length: Int64s,
    rank_of_id: Int64s,
    order: Int64s,
    state: UInt8s,
    row_start: Int64s,
    refused: UInt8s,
    max_depth: int,
    scratch: UInt8s,
    block: tuple[int, int],
) -> tuple[int, int, int]:
    """Gather the nodes of every row; returns their table for `adopt`.

    ``schema_names`` and ``schema_lengths`` locate the name of each schema node (length -1: none); ``dictionary_of`` is
    the dictionary of each row, and the arrays after it are those of a `NameTable`. Rows that the kernel does not decide
    get no nodes and a 1 in ``refused``. ``scratch`` is bytes to sort in: three times those of the residuals are always
    enough. ``block`` is memory of the pool for the nodes.
    """
    ids, ranks = new_vector(len(table)), new_vector(len(table))
    stack = new_table(max_depth + 2, 13)
    nodes = pooled_table(block, 4, max(64, 2 * rows))
    room_end = address_in(scratch) + len(scratch)
    current = -1
    n = 0
    for row in range(rows):
        row_start[row] = n
        if len(row_valid) > 0 and row_valid[row] == 0:
            continue
        if dictionary_of[row] < 0 or state[dictionary_of[row]] == UNUSABLE:
            refused[row] = 1
            continue
        if dictionary_of[row] != current:
            current = dictionary_of[row]
            resolve_names(table, schema_names, schema_lengths, current, starts, address, length, order, ids, ranks)
        base = starts[current]
        names = starts[current + 1] - base
        depth = 0
        ok = True
        room = address_in(scratch)
        # The place to visit next: a group of the schema at an entry, and the field id of its value.
        s, at, field = 0, row, 0
        required = True
        visit = True
        while True:
            if visit:
                if n + 2 > len(nodes):
                    nodes = reserve_rows(nodes, n + 2)
                there = _is_set(inputs[s, I_GROUP_VALID], at)
                has_value = there and _is_set(inputs[s, I_VALUE_VALID], at)
                has_typed = there and _is_set(inputs[s, I_TYPED_VALID], at)
                begin = size = 0
                if has_value:
                    begin = inputs[s, I_VALUE_DATA] + load_u64(inputs[s, I_VALUE_OFFSETS] + at * 8)
                    end = inputs[s, I_VALUE_DATA] + load_u64(inputs[s, I_VALUE_OFFSETS] + at * 8 + 8)
                    size = value_size(begin, end)
                    if size < 0:
                        ok = False
                        break
                shape = table[s, S_KIND]
                if not has_typed:
                    if has_value:
                        kind = value_kind(load_u8(begin))
                        if (shape == OBJECT_NODE and kind == OBJECT) or (shape == ARRAY_NODE and kind == ARRAY):
                            ok = False  # INVALID by the specification
                            break
                        put_node(nodes, n, RAW | (field << 16), begin, size)
                        n += 1
                    elif required:
                        put_node(nodes, n, NULL | (field << 16), 0, 0)
                        n += 1
                    else:  # a missing field
                        stack[depth - 1, _LEFT] -= 1
                elif shape == PRIMITIVE_NODE:
                    if has_value:
                        ok = False
                        break
                    kind, a, b, scale = _slot(s, at, table, inputs)
                    if kind == MALFORMED:
                        ok = False
                        break
                    put_node(nodes, n, kind | (scale << 8) | (field << 16), a, b)
                    n += 1
                elif shape == ARRAY_NODE:
                    if has_value:
                        ok = False
                        break
                    nodes[n, 0] = ARRAY | (field << 16)
                    first = load_u64(inputs[s, I_TYPED_OFFSETS] + at * 8)
                    last = load_u64(inputs[s, I_TYPED_OFFSETS] + at * 8 + 8)
                    nodes[n, 1] = last - first
                    stack[depth, _SCHEMA] = s
                    stack[depth, _AT] = first
                    stack[depth, _STOP] = last
                    stack[depth, _NODE] = n
                    stack[depth, _LEFT] = last - first
                    depth += 1
                    n += 1
                else:
                    stack[depth, _SCHEMA] = s
                    stack[depth, _AT] = at
                    stack[depth, _STOP] = s + 1  # the next schema field to look at
                    stack[depth, _NODE] = n
                    stack[depth, _LEFT] = 0  # fields found so far
                    stack[depth, _RESIDUAL] = 0
                    if has_value:
                        if value_kind(load_u8(begin)) != OBJECT:
                            ok = False
                            break
                        _, count, residual_ids, id_width, offsets, width, values, data = container(begin, begin + size)
                        stack[depth, _RESIDUAL] = count
                        stack[depth, _IDS] = residual_ids
                        stack[depth, _ID_WIDTH] = id_width
                        stack[depth, _OFFSETS] = offsets
                        stack[depth, _OFFSET_WIDTH] = width
                        stack[depth, _VALUES] = values
                        stack[depth, _VALUES_END] = values + data
                        stack[depth, _ROOM] = data
                        # Fields of the residual must come sorted, each once, to be merged.
                        previous = -1
                        for j in range(count):
                            residual_id = load_uint(residual_ids + j * id_width, id_width)
                            if residual_id >= names:
                                ok = False
                                break
                            if rank_of_id[base + residual_id] <= previous:
                                previous = _UNSORTED
                                break
                            previous = rank_of_id[base + residual_id]
                        if previous == _UNSORTED:
                            ok = (
                                count <= _MOST_UNSORTED
                                and room + 8 * count <= room_end
                                and _sort_residual(
                                    residual_ids, id_width, offsets, width, count, base, names, rank_of_id, room
                                )
                            )
                            stack[depth, _IDS] = room
                            stack[depth, _OFFSETS] = room + 4 * count
                            stack[depth, _ID_WIDTH] = stack[depth, _OFFSET_WIDTH] = 4
                            room += 8 * count
                        if not ok:
                            break
                    nodes[n, 0] = OBJECT | (field << 16)
                    depth += 1
                    n += 1
                visit = False
            if depth == 0:
                break
            top = depth - 1
            s = stack[top, _SCHEMA]
            if table[s, S_KIND] == ARRAY_NODE:
                if stack[top, _AT] < stack[top, _STOP]:
                    at = stack[top, _AT]
                    stack[top, _AT] += 1
                    s += 1
                    field = 0
                    required = True
                    visit = True
                else:
                    nodes[stack[top, _NODE], 3] = n
                    depth -= 1
                continue
            # An object: the next of its schema fields and of the residual's fields, by name.
            child = stack[top, _STOP]
            has_child = child < table[s, S_END]
            if has_child and ids[child] < 0:
                # The metadata lacks the name: legal only where the field is missing, too.
                entry = stack[top, _AT]
                there = _is_set(inputs[child, I_GROUP_VALID], entry)
                if there and (
                    _is_set(inputs[child, I_VALUE_VALID], entry) or _is_set(inputs[child, I_TYPED_VALID], entry)
                ):
                    ok = False
                    break
                stack[top, _STOP] = table[child, S_END]
                continue
            has_residual = stack[top, _RESIDUAL] > 0
            rank = residual_id = 0
            if has_residual:
                residual_id = load_uint(stack[top, _IDS], stack[top, _ID_WIDTH])
                rank = rank_of_id[base + residual_id]
            if has_residual and (not has_child or rank < ranks[child]):
                if n + 2 > len(nodes):
                    nodes = reserve_rows(nodes, n + 2)
                begin = stack[top, _VALUES] + load_uint(stack[top, _OFFSETS], stack[top, _OFFSET_WIDTH])
                size = value_size(begin, stack[top, _VALUES_END])
                if size < 0 or size > stack[top, _ROOM]:
                    ok = False
                    break
                stack[top, _ROOM] -= size
                put_node(nodes, n, RAW | (residual_id << 16), begin, size)
                n += 1
                stack[top, _LEFT] += 1
                stack[top, _RESIDUAL] -= 1
                stack[top, _IDS] += stack[top, _ID_WIDTH]
                stack[top, _OFFSETS] += stack[top, _OFFSET_WIDTH]
                continue
            if has_child:
                if has_residual and rank == ranks[child]:
                    ok = False  # a shredded field in the residual
                    break
                stack[top, _STOP] = table[child, S_END]
                at = stack[top, _AT]
                s = child
                field = ids[child]
                required = False
                stack[top, _LEFT] += 1
                visit = True
                continue
            nodes[stack[top, _NODE], 1] = stack[top, _LEFT]
            nodes[stack[top, _NODE], 3] = n
            depth -= 1
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[rows] = n
    free(ids)
    free(ranks)
    free(stack)
    # All of it, so that the pool knows how large it is: ``row_start[rows]`` rows are filled.
    return export_table(nodes, len(nodes))


@kernel
def measure_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, row_sizes: Int64s) -> int:
    """Fill the encoded size of each node and each row; returns the number of bytes of all rows.

    A container's ``b`` becomes what `write_nodes` needs: its greatest field id (from bit 32 on), and its values' bytes.
    """
    total = 0
    for row in range(len(row_start) - 2, -1, -1):
        row_sizes[row] = 0
        for i in range(row_start[row + 1] - 1, row_start[row] - 1, -1):
            kind = nodes[i, 0] & 0xFF
            if kind == RAW:
                sizes[i] = nodes[i, 2]
                continue
            if kind < ARRAY:
                sizes[i] = scalar_size(kind, nodes[i, 2])
                continue
            data = largest = 0
            kid = i + 1
            while kid < nodes[i, 3]:
                data += sizes[kid]
                largest = max(largest, nodes[kid, 0] >> 16)
                kid = nodes[kid, 3]
            nodes[i, 2] = largest << 32 | data
            if kind == OBJECT:
                sizes[i] = object_size(nodes[i, 1], largest, data)
            else:
                sizes[i] = array_size(nodes[i, 1], data)
        if row_start[row] < row_start[row + 1]:
            row_sizes[row] = sizes[row_start[row]]
            total += row_sizes[row]
    return total


@kernel
def write_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, places: Int64s, target: int) -> None:
    """Write the values of all rows, as `measure_nodes` left them, one after the other at ``target``."""
    for row in range(len(row_start) - 1):
        if row_start[row] == row_start[row + 1]:
            continue
        places[row_start[row]] = target
        target += sizes[row_start[row]]
        for i in range(row_start[row], row_start[row + 1]):
            kind = nodes[i, 0] & 0xFF
            at = places[i]
            if kind == RAW:
                copy(at, nodes[i, 1], nodes[i, 2])
                continue
            if kind < ARRAY:
                write_scalar(at, kind, nodes[i, 1], nodes[i, 2], (nodes[i, 0] >> 8) & 0xFF)
                continue
            largest, data = nodes[i, 2] >> 32, nodes[i, 2] & 0xFFFFFFFF
            ids = id_width = 0
            if kind == OBJECT:
                ids, id_width, offsets, offset_width, values = begin_object(at, nodes[i, 1], largest, data)
            else:
                offsets, offset_width, values = begin_array(at, nodes[i, 1], data)
            kid = i + 1
            begin = values
            while kid < nodes[i, 3]:
                if kind == OBJECT:
                    store_uint(ids, nodes[kid, 0] >> 16, id_width)
                    ids += id_width
                store_uint(offsets, values - begin, offset_width)
                offsets += offset_width
                places[kid] = values
                values += sizes[kid]
                kid = nodes[kid, 3]
            store_uint(offsets, values - begin, offset_width)
