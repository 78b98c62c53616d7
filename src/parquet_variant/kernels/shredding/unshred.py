"""Shredded columns back to Variant bytes (final layout).

Owns putting each row together as nodes (`values.value_nodes`) in the order in which they will lie in the value. Leaves
the rows that the specification calls INVALID, and metadata that lacks a shredded name, to the scalar fallback: the
kernel lists them and goes on.

Fields of an object are put in the order of their names while they are gathered: schema fields are sorted already, and
so are residuals.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.compiling import helper, kernel, numbered
from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import load_u8, load_u32, load_u64, load_uint, store_u32
from parquet_variant.kernels.native_vectors import (
    address_in,
    export_table,
    new_table,
    new_vector,
    pooled_table,
    reserve_rows,
)
from parquet_variant.kernels.ownership import Memory
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, OBJECT_NODE, NamedNodes, S
from parquet_variant.kernels.tapes.tape import put_node
from parquet_variant.kernels.values.name_tables import SORTED, UNSORTED, UNUSABLE, NameTable, resolve_names
from parquet_variant.kernels.values.reading import MALFORMED, container, load_fixed, value_kind, value_size
from parquet_variant.kernels.values.value_nodes import RAW
from parquet_variant.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s

# Columns of the input table, which has one row per schema node: addresses of buffers, 0 for missing buffers. Validity
# is
# one byte per entry; its address is 0 if all entries are valid, and -1 if none is valid (or the column is missing).
# Offsets are int64.
INPUT = numbered("VALUE_VALID VALUE_OFFSETS VALUE_DATA TYPED_VALID TYPED_OFFSETS TYPED_DATA SLOTS GROUP_VALID")

# DuckDB writes the fields of objects in any order. Larger unsorted objects are left to the scalar fallback.
_MOST_UNSORTED = 4096
# Columns of the frame of an open container in `assemble`. All containers: schema node, entry (in an array the next
# entry), next schema node (in an array the entry after the last), node, and number of children. Objects: the remaining
# fields of the residual, their number, and the bytes that they may still take.
_SCHEMA, _AT, _STOP, _NODE, _COUNT, _IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, _VALUES_END, _RESIDUAL, _ROOM = (
    range(13)
)
# Steps: visit a place, ask again, close the container at the top, or leave the row to the scalar fallback.
_ENTER, _AGAIN, _CLOSE, _REFUSE = range(4)


class ShreddedRows(NamedTuple):
    """A shredded storage."""

    valid: UInt8s  # One byte per row, 0 for SQL NULL; empty if all rows are valid.
    dictionary_of: ReadOnlyInt32s  # Index of the metadata of each row; -1 for null.
    inputs: Int64Table  # Columns as described above.


class _Columns(NamedTuple):
    nodes: Int64Table
    inputs: Int64Table


class _Fields(NamedTuple):
    """Field id and rank of each schema node's name in the dictionary of a row; -1 for names that it lacks."""

    ids: Int64s
    ranks: Int64s


class _Place(NamedTuple):
    """An entry of a schema node, the field id of its value, and whether a value is required."""

    s: int
    at: int
    field: int
    required: bool


class _Scratch(NamedTuple):
    """Addresses of unused bytes."""

    at: int
    end: int


@helper(inline=True)
def _is_set(address: int, at: int) -> bool:
    """Return whether an entry of a validity column is set."""
    return address == 0 or (address != -1 and load_u8(address + at) != 0)


@helper(inline=True)
def _slot(s: int, at: int, table: Int64Table, inputs: Int64Table) -> tuple[int, int, int, int]:
    """Return ``(kind, a, b, scale)`` of a typed slot.

    The kind is MALFORMED if the type of the column cannot hold it.
    """
    code = table[s, S.CODE]
    width = table[s, S.WIDTH]
    if width == 0:
        offsets = inputs[s, INPUT.TYPED_OFFSETS]
        begin = load_u64(offsets + at * 8)
        return code, inputs[s, INPUT.TYPED_DATA] + begin, load_u64(offsets + at * 8 + 8) - begin, 0
    address = inputs[s, INPUT.SLOTS] + at * width
    if code == KIND.TRUE:
        return (KIND.TRUE if load_u8(address) != 0 else KIND.FALSE), 0, 0, 0
    if KIND.DECIMAL4 <= code <= KIND.DECIMAL16:
        low, high = load_u64(address), load_u64(address + 8)
        fits = digits_of(high, low) <= table[s, S.PRECISION]
        return (code if fits else MALFORMED), low, high, table[s, S.SCALE]
    if code == KIND.UUID:
        return code, address, 16, 0
    cell = load_fixed(code, address)
    if code == KIND.TIME and not 0 <= cell < MICROS_PER_DAY:
        return MALFORMED, 0, 0, 0
    return code, cell, 0, 0


@helper(inline=True)
def _value_at(inputs: Int64Table, s: int, at: int) -> tuple[int, int]:
    """Return ``(begin, size)`` of a set entry of a `value` column; the size is MALFORMED if it is not a value."""
    data, offsets = inputs[s, INPUT.VALUE_DATA], inputs[s, INPUT.VALUE_OFFSETS]
    begin = data + load_u64(offsets + at * 8)
    return begin, value_size(begin, data + load_u64(offsets + at * 8 + 8))


@helper
def _sort_residual(stack: Int64Table, top: int, ranks: Int64s, room: int) -> bool:
    """Sort ids and offsets of a residual's fields by name into ``room``; return False for a duplicate field."""
    count = stack[top, _RESIDUAL]
    ids, id_width = stack[top, _IDS], stack[top, _ID_WIDTH]
    offsets, width = stack[top, _OFFSETS], stack[top, _OFFSET_WIDTH]
    for j in range(count):
        field_id, place = load_uint(ids + j * id_width, id_width), load_uint(offsets + j * width, width)
        if field_id >= len(ranks):
            return False
        k = j
        while k > 0:
            before = load_u32(room + 4 * (k - 1))
            if ranks[before] == ranks[field_id]:
                return False
            if ranks[before] < ranks[field_id]:
                break
            store_u32(room + 4 * k, before)
            store_u32(room + 4 * (count + k), load_u32(room + 4 * (count + k - 1)))
            k -= 1
        store_u32(room + 4 * k, field_id)
        store_u32(room + 4 * (count + k), place)
    stack[top, _IDS] = room
    stack[top, _OFFSETS] = room + 4 * count
    stack[top, _ID_WIDTH] = stack[top, _OFFSET_WIDTH] = 4
    return True


@helper(inline=True)
def _order_of_residual(ids: int, id_width: int, count: int, ranks: Int64s) -> int:
    """Return SORTED if fields are sorted and unique (required for merging), else UNSORTED or MALFORMED."""
    previous = -1
    for j in range(count):
        field_id = load_uint(ids + j * id_width, id_width)
        if field_id >= len(ranks):
            return MALFORMED
        if ranks[field_id] <= previous:
            return UNSORTED
        previous = ranks[field_id]
    return SORTED


@helper(inline=True)
def _open_residual(
    stack: Int64Table, top: int, begin: int, size: int, ranks: Int64s, scratch: _Scratch
) -> tuple[bool, _Scratch]:
    """Store the fields of a partial object in its frame, sorted in ``scratch`` if needed.

    Returns ``(ok, scratch)``.
    """
    if value_kind(load_u8(begin)) != KIND.OBJECT:
        return False, scratch
    parts = container(begin, begin + size)
    count = parts.count
    stack[top, _RESIDUAL] = count
    stack[top, _IDS] = parts.ids
    stack[top, _ID_WIDTH] = parts.id_width
    stack[top, _OFFSETS] = parts.offsets
    stack[top, _OFFSET_WIDTH] = parts.offset_width
    stack[top, _VALUES] = parts.values
    stack[top, _VALUES_END] = parts.values + parts.size
    stack[top, _ROOM] = parts.size
    order = _order_of_residual(parts.ids, parts.id_width, count, ranks)
    if order != UNSORTED:
        return order == SORTED, scratch
    ok = (
        count <= _MOST_UNSORTED
        and scratch.at + 8 * count <= scratch.end
        and _sort_residual(stack, top, ranks, scratch.at)
    )
    return ok, _Scratch(scratch.at + 8 * count, scratch.end)


@helper(inline=True)
def _put_untyped(place: _Place, shape: int, begin: int, size: int, nodes: Int64Table, n: int) -> tuple[bool, int]:
    """Write the node of an entry without typed value, whose value has ``size`` bytes; return ``(ok, n)``."""
    if size > 0:
        kind = value_kind(load_u8(begin))
        if (shape == OBJECT_NODE and kind == KIND.OBJECT) or (shape == ARRAY_NODE and kind == KIND.ARRAY):
            return False, n  # INVALID by the specification
        put_node(nodes, n, RAW | (place.field << 16), begin, size)
        return True, n + 1
    if place.required:
        put_node(nodes, n, KIND.NULL | (place.field << 16), 0, 0)
        return True, n + 1
    return True, n  # a missing field


@helper(inline=True)
def _open(stack: Int64Table, depth: int, place: _Place, n: int, at: int, stop: int, count: int) -> None:
    """Push the frame of a container."""
    stack[depth, _SCHEMA] = place.s
    stack[depth, _AT] = at
    stack[depth, _STOP] = stop
    stack[depth, _NODE] = n
    stack[depth, _COUNT] = count


@helper(inline=True)
def _visit(
    place: _Place,
    stack: Int64Table,
    depth: int,
    nodes: Int64Table,
    n: int,
    columns: _Columns,
    ranks: Int64s,
    scratch: _Scratch,
) -> tuple[bool, int, int, _Scratch]:
    """Turn an entry into a node or an open container, or skip a missing one; return ``(ok, depth, n, scratch)``."""
    s, at, inputs = place.s, place.at, columns.inputs
    shape = columns.nodes[s, S.KIND]
    is_present = _is_set(inputs[s, INPUT.GROUP_VALID], at)
    begin = size = 0
    if is_present and _is_set(inputs[s, INPUT.VALUE_VALID], at):
        begin, size = _value_at(inputs, s, at)
        if size < 0:
            return False, depth, n, scratch
    if not (is_present and _is_set(inputs[s, INPUT.TYPED_VALID], at)):
        ok, after = _put_untyped(place, shape, begin, size, nodes, n)
        if ok and after == n:
            stack[depth - 1, _COUNT] -= 1
        return ok, depth, after, scratch
    if shape == OBJECT_NODE:
        _open(stack, depth, place, n, at, s + 1, 0)
        stack[depth, _RESIDUAL] = 0
        ok = True
        if size > 0:
            ok, scratch = _open_residual(stack, depth, begin, size, ranks, scratch)
        nodes[n, 0] = KIND.OBJECT | (place.field << 16)
        return ok, depth + 1, n + 1, scratch
    if size > 0:
        return False, depth, n, scratch
    if shape == ARRAY_NODE:
        first = load_u64(inputs[s, INPUT.TYPED_OFFSETS] + at * 8)
        last = load_u64(inputs[s, INPUT.TYPED_OFFSETS] + at * 8 + 8)
        _open(stack, depth, place, n, first, last, last - first)
        nodes[n, 0] = KIND.ARRAY | (place.field << 16)
        return True, depth + 1, n + 1, scratch
    kind, a, b, scale = _slot(s, at, columns.nodes, inputs)
    put_node(nodes, n, kind | (scale << 8) | (place.field << 16), a, b)
    return kind != MALFORMED, depth, n + 1, scratch


@helper(inline=True)
def _next_element(stack: Int64Table, top: int) -> tuple[int, _Place]:
    """Return ``(step, place)`` of the array at the top."""
    s, at = stack[top, _SCHEMA], stack[top, _AT]
    if at == stack[top, _STOP]:
        return _CLOSE, _Place(0, 0, 0, True)
    stack[top, _AT] = at + 1
    return _ENTER, _Place(s + 1, at, 0, True)


@helper(inline=True)
def _put_residual(stack: Int64Table, top: int, field_id: int, nodes: Int64Table, n: int) -> bool:
    """Write the node of the next field of the residual; return False if it is malformed."""
    begin = stack[top, _VALUES] + load_uint(stack[top, _OFFSETS], stack[top, _OFFSET_WIDTH])
    size = value_size(begin, stack[top, _VALUES_END])
    if size < 0 or size > stack[top, _ROOM]:
        return False
    put_node(nodes, n, RAW | (field_id << 16), begin, size)
    stack[top, _ROOM] -= size
    stack[top, _COUNT] += 1
    stack[top, _RESIDUAL] -= 1
    stack[top, _IDS] += stack[top, _ID_WIDTH]
    stack[top, _OFFSETS] += stack[top, _OFFSET_WIDTH]
    return True


@helper(inline=True)
def _next_field(
    stack: Int64Table, top: int, nodes: Int64Table, n: int, columns: _Columns, fields: _Fields, ranks: Int64s
) -> tuple[int, _Place, int]:
    """Return ``(step, place, n)`` of the object at the top.

    The next field is the first by name of its shredded fields and the fields of its residual.
    """
    s, at, child = stack[top, _SCHEMA], stack[top, _AT], stack[top, _STOP]
    inputs, nowhere = columns.inputs, _Place(0, 0, 0, False)
    if child < columns.nodes[s, S.END] and fields.ids[child] < 0:
        # The metadata lacks the name, which is valid only if the field is missing too.
        is_present = _is_set(inputs[child, INPUT.GROUP_VALID], at)
        if is_present and (
            _is_set(inputs[child, INPUT.VALUE_VALID], at) or _is_set(inputs[child, INPUT.TYPED_VALID], at)
        ):
            return _REFUSE, nowhere, n
        stack[top, _STOP] = columns.nodes[child, S.END]
        return _AGAIN, nowhere, n
    has_child = child < columns.nodes[s, S.END]
    if stack[top, _RESIDUAL] > 0:
        field_id = load_uint(stack[top, _IDS], stack[top, _ID_WIDTH])
        if not has_child or ranks[field_id] < fields.ranks[child]:
            ok = _put_residual(stack, top, field_id, nodes, n)
            return _AGAIN if ok else _REFUSE, nowhere, n + 1
        if ranks[field_id] == fields.ranks[child]:
            return _REFUSE, nowhere, n  # a shredded field in the residual
    elif not has_child:
        return _CLOSE, nowhere, n
    stack[top, _STOP] = columns.nodes[child, S.END]
    stack[top, _COUNT] += 1
    return _ENTER, _Place(child, at, fields.ids[child], False), n


@helper(inline=True)
def _assemble_row(
    row: int,
    stack: Int64Table,
    nodes: Int64Table,
    n: int,
    columns: _Columns,
    fields: _Fields,
    ranks: Int64s,
    scratch: _Scratch,
) -> tuple[bool, Int64Table, int]:
    """Write the nodes of a row; return ``(ok, nodes, n)``."""
    place = _Place(0, row, 0, True)
    step, depth = _ENTER, 0
    while True:
        if n + 2 > len(nodes):
            nodes = reserve_rows(nodes, n + 2)
        if step == _ENTER:
            ok, depth, n, scratch = _visit(place, stack, depth, nodes, n, columns, ranks, scratch)
            if not ok or depth == 0:
                return ok, nodes, n
        top = depth - 1
        if columns.nodes[stack[top, _SCHEMA], S.KIND] == ARRAY_NODE:
            step, place = _next_element(stack, top)
        else:
            step, place, n = _next_field(stack, top, nodes, n, columns, fields, ranks)
        if step == _REFUSE:
            return False, nodes, n
        if step == _CLOSE:
            nodes[stack[top, _NODE], 1] = stack[top, _COUNT]
            nodes[stack[top, _NODE], 3] = n
            depth = top
            if depth == 0:
                return True, nodes, n


@kernel
def assemble(
    memory: Memory,
    rows: ShreddedRows,
    schema: NamedNodes,
    names: NameTable,
    row_start: Int64s,
    refused: UInt8s,
    max_depth: int,
    scratch: UInt8s,
    block: tuple[int, int],
) -> tuple[int, int, int]:
    """Write the nodes of every row; return their table for `adopt`.

    Rows that the kernel cannot decide have no nodes and are marked in ``refused``. ``scratch`` is room for sorting:
    three times the bytes of the residuals are always enough. ``block`` is memory of the pool for the nodes.
    """
    count = len(rows.dictionary_of)
    nodes = pooled_table(memory, block, 4, max(64, 2 * count))
    ids, field_ranks = new_vector(memory, len(schema.nodes)), new_vector(memory, len(schema.nodes))
    fields, columns = _Fields(ids, field_ranks), _Columns(schema.nodes, rows.inputs)
    ranks = names.rank[:0]
    stack = new_table(memory, max_depth + 2, 13)
    unused = _Scratch(address_in(scratch), address_in(scratch) + len(scratch))
    current = -1
    n = 0
    for row in range(count):
        row_start[row] = n
        if len(rows.valid) > 0 and rows.valid[row] == 0:
            continue
        d = rows.dictionary_of[row]
        if d < 0 or names.state[d] == UNUSABLE:
            refused[row] = 1
            continue
        if d != current:
            current = d
            resolve_names(schema, names, d, ids, field_ranks)
            ranks = names.rank[names.starts[d] : names.starts[d + 1]]
        ok, nodes, n = _assemble_row(row, stack, nodes, n, columns, fields, ranks, unused)
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[count] = n
    # The whole table, so that the pool knows its size; ``row_start[rows]`` of its rows are filled.
    return export_table(nodes, len(nodes))
