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
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    NODE,
    NODE_BYTES,
    get,
    load_u8,
    load_u32,
    load_u64,
    load_uint,
    put,
    store_u32,
)
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    allocate,
    export_table,
    new_vector,
    pooled_table,
    reserve_rows,
)
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, OBJECT_NODE, NamedNodes, S
from parquet_variant.kernels.values.name_tables import SORTED, UNSORTED, UNUSABLE, NameTable, resolve_names
from parquet_variant.kernels.values.reading import MALFORMED, container, load_fixed, value_kind, value_size
from parquet_variant.kernels.values.value_nodes import RAW

# Columns of the input table, which has one row per schema node: addresses of buffers, 0 for missing buffers. Validity
# is one byte per entry; its address is 0 if all entries are valid, and -1 if none is valid (or the column is missing).
# Offsets are int64.
INPUT = numbered("VALUE_VALID VALUE_OFFSETS VALUE_DATA TYPED_VALID TYPED_OFFSETS TYPED_DATA SLOTS GROUP_VALID")

# DuckDB writes the fields of objects in any order. Larger unsorted objects are left to the scalar fallback.
_MOST_UNSORTED = 4096
# Columns of the frame of an open container in `assemble`. All containers: schema node, entry (in an array the next
# entry), next schema node (in an array the entry after the last), node, and number of children. Objects: the remaining
# fields of the residual, their number, and the bytes that they may still take.
FRAME = numbered("SCHEMA AT STOP NODE COUNT IDS ID_WIDTH OFFSETS OFFSET_WIDTH VALUES VALUES_END RESIDUAL ROOM")
_FRAME_BYTES, _INPUT_BYTES, _SCHEMA_BYTES = 8 * len(FRAME), 8 * len(INPUT), 8 * len(S)
# Steps: visit a place, ask again, close the container at the top, or leave the row to the scalar fallback.
_ENTER, _AGAIN, _CLOSE, _REFUSE = range(4)


class ShreddedRows(NamedTuple):
    """A shredded storage."""

    valid: UInt8s  # One byte per row, 0 for SQL NULL; empty if all rows are valid.
    dictionary_of: ReadOnlyInt32s  # Index of the metadata of each row; -1 for null.
    inputs: Int64Table  # Columns as described above.


class _Columns(NamedTuple):
    """Addresses of the nodes of the schema, and of the input table."""

    nodes: int
    inputs: int


class _Fields(NamedTuple):
    """Addresses of the field id and rank of each schema node's name in the dictionary of a row.

    They are -1 for names that the dictionary lacks.
    """

    ids: int
    ranks: int


class _Names(NamedTuple):
    """Address of the ranks of the names of a dictionary, and their number."""

    ranks: int
    count: int  # type: ignore[assignment]


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


@helper
def _node_of(columns: _Columns, s: int) -> int:
    """Return the address of a schema node."""
    return columns.nodes + s * _SCHEMA_BYTES


@helper
def _input_of(columns: _Columns, s: int) -> int:
    """Return the address of the buffers of a schema node."""
    return columns.inputs + s * _INPUT_BYTES


@helper
def _put_node(nodes: int, n: int, tag: int, a: int, b: int) -> None:
    """Write a node that has no children yet."""
    node = nodes + n * NODE_BYTES
    put(node, NODE.TAG, tag)
    put(node, NODE.A, a)
    put(node, NODE.B, b)
    put(node, NODE.END, n + 1)


@helper(inline=True)
def _is_set(address: int, at: int) -> bool:
    """Return whether an entry of a validity column is set."""
    return address == 0 or (address != -1 and load_u8(address + at) != 0)


@helper(inline=True)
def _slot(columns: _Columns, s: int, at: int) -> tuple[int, int, int, int]:
    """Return ``(kind, a, b, scale)`` of a typed slot.

    The kind is MALFORMED if the type of the column cannot hold it.
    """
    code = get(_node_of(columns, s), S.CODE)
    width = get(_node_of(columns, s), S.WIDTH)
    if width == 0:
        offsets = get(_input_of(columns, s), INPUT.TYPED_OFFSETS)
        begin = load_u64(offsets + at * 8)
        return code, get(_input_of(columns, s), INPUT.TYPED_DATA) + begin, load_u64(offsets + at * 8 + 8) - begin, 0
    address = get(_input_of(columns, s), INPUT.SLOTS) + at * width
    if code == KIND.TRUE:
        return (KIND.TRUE if load_u8(address) != 0 else KIND.FALSE), 0, 0, 0
    if KIND.DECIMAL4 <= code <= KIND.DECIMAL16:
        low, high = load_u64(address), load_u64(address + 8)
        fits = digits_of(high, low) <= get(_node_of(columns, s), S.PRECISION)
        return (code if fits else MALFORMED), low, high, get(_node_of(columns, s), S.SCALE)
    if code == KIND.UUID:
        return code, address, 16, 0
    cell = load_fixed(code, address)
    if code == KIND.TIME and not 0 <= cell < MICROS_PER_DAY:
        return MALFORMED, 0, 0, 0
    return code, cell, 0, 0


@helper(inline=True)
def _value_at(columns: _Columns, s: int, at: int) -> tuple[int, int]:
    """Return ``(begin, size)`` of a set entry of a `value` column; the size is MALFORMED if it is not a value."""
    data, offsets = get(_input_of(columns, s), INPUT.VALUE_DATA), get(_input_of(columns, s), INPUT.VALUE_OFFSETS)
    begin = data + load_u64(offsets + at * 8)
    return begin, value_size(begin, data + load_u64(offsets + at * 8 + 8))


@helper
def _sort_residual(frame: int, names: _Names, room: int) -> bool:
    """Sort ids and offsets of a residual's fields by name into ``room``; return False for a duplicate field."""
    count = get(frame, FRAME.RESIDUAL)
    ids, id_width = get(frame, FRAME.IDS), get(frame, FRAME.ID_WIDTH)
    offsets, width = get(frame, FRAME.OFFSETS), get(frame, FRAME.OFFSET_WIDTH)
    for j in range(count):
        field_id, place = load_uint(ids + j * id_width, id_width), load_uint(offsets + j * width, width)
        if field_id >= names.count:
            return False
        k = j
        while k > 0:
            before = load_u32(room + 4 * (k - 1))
            if get(names.ranks, before) == get(names.ranks, field_id):
                return False
            if get(names.ranks, before) < get(names.ranks, field_id):
                break
            store_u32(room + 4 * k, before)
            store_u32(room + 4 * (count + k), load_u32(room + 4 * (count + k - 1)))
            k -= 1
        store_u32(room + 4 * k, field_id)
        store_u32(room + 4 * (count + k), place)
    put(frame, FRAME.IDS, room)
    put(frame, FRAME.OFFSETS, room + 4 * count)
    put(frame, FRAME.ID_WIDTH, 4)
    put(frame, FRAME.OFFSET_WIDTH, 4)
    return True


@helper(inline=True)
def _order_of_residual(ids: int, id_width: int, count: int, names: _Names) -> int:
    """Return SORTED if fields are sorted and unique (required for merging), else UNSORTED or MALFORMED."""
    previous = -1
    for j in range(count):
        field_id = load_uint(ids + j * id_width, id_width)
        if field_id >= names.count:
            return MALFORMED
        if get(names.ranks, field_id) <= previous:
            return UNSORTED
        previous = get(names.ranks, field_id)
    return SORTED


@helper(inline=True)
def _open_residual(frame: int, begin: int, size: int, names: _Names, scratch: _Scratch) -> tuple[bool, _Scratch]:
    """Store the fields of a partial object in its frame, sorted in ``scratch`` if needed.

    Returns ``(ok, scratch)``.
    """
    if value_kind(load_u8(begin)) != KIND.OBJECT:
        return False, scratch
    parts = container(begin, begin + size)
    count = parts.count
    put(frame, FRAME.RESIDUAL, count)
    put(frame, FRAME.IDS, parts.ids)
    put(frame, FRAME.ID_WIDTH, parts.id_width)
    put(frame, FRAME.OFFSETS, parts.offsets)
    put(frame, FRAME.OFFSET_WIDTH, parts.offset_width)
    put(frame, FRAME.VALUES, parts.values)
    put(frame, FRAME.VALUES_END, parts.values + parts.size)
    put(frame, FRAME.ROOM, parts.size)
    order = _order_of_residual(parts.ids, parts.id_width, count, names)
    if order != UNSORTED:
        return order == SORTED, scratch
    ok = count <= _MOST_UNSORTED and scratch.at + 8 * count <= scratch.end and _sort_residual(frame, names, scratch.at)
    return ok, _Scratch(scratch.at + 8 * count, scratch.end)


@helper(inline=True)
def _put_untyped(place: _Place, shape: int, begin: int, size: int, nodes: int, n: int) -> tuple[bool, int]:
    """Write the node of an entry without typed value, whose value has ``size`` bytes; return ``(ok, n)``."""
    if size > 0:
        kind = value_kind(load_u8(begin))
        if (shape == OBJECT_NODE and kind == KIND.OBJECT) or (shape == ARRAY_NODE and kind == KIND.ARRAY):
            return False, n  # INVALID by the specification
        _put_node(nodes, n, RAW | (place.field << 16), begin, size)
        return True, n + 1
    if place.required:
        _put_node(nodes, n, KIND.NULL | (place.field << 16), 0, 0)
        return True, n + 1
    return True, n  # a missing field


@helper(inline=True)
def _open(frame: int, place: _Place, n: int, at: int, stop: int, count: int) -> None:
    """Push the frame of a container."""
    put(frame, FRAME.SCHEMA, place.s)
    put(frame, FRAME.AT, at)
    put(frame, FRAME.STOP, stop)
    put(frame, FRAME.NODE, n)
    put(frame, FRAME.COUNT, count)


@helper(inline=True)
def _visit(
    place: _Place,
    stack: int,
    depth: int,
    nodes: int,
    n: int,
    columns: _Columns,
    names: _Names,
    scratch: _Scratch,
) -> tuple[bool, int, int, _Scratch]:
    """Turn an entry into a node or an open container, or skip a missing one; return ``(ok, depth, n, scratch)``."""
    s, at, frame = place.s, place.at, stack + depth * _FRAME_BYTES
    shape = get(_node_of(columns, s), S.KIND)
    is_present = _is_set(get(_input_of(columns, s), INPUT.GROUP_VALID), at)
    begin = size = 0
    if is_present and _is_set(get(_input_of(columns, s), INPUT.VALUE_VALID), at):
        begin, size = _value_at(columns, s, at)
        if size < 0:
            return False, depth, n, scratch
    if not (is_present and _is_set(get(_input_of(columns, s), INPUT.TYPED_VALID), at)):
        ok, after = _put_untyped(place, shape, begin, size, nodes, n)
        if ok and after == n:
            put(frame - _FRAME_BYTES, FRAME.COUNT, get(frame - _FRAME_BYTES, FRAME.COUNT) - 1)
        return ok, depth, after, scratch
    if shape == OBJECT_NODE:
        _open(frame, place, n, at, s + 1, 0)
        put(frame, FRAME.RESIDUAL, 0)
        ok = True
        if size > 0:
            ok, scratch = _open_residual(frame, begin, size, names, scratch)
        put(nodes + n * NODE_BYTES, NODE.TAG, KIND.OBJECT | (place.field << 16))
        return ok, depth + 1, n + 1, scratch
    if size > 0:
        return False, depth, n, scratch
    if shape == ARRAY_NODE:
        first = load_u64(get(_input_of(columns, s), INPUT.TYPED_OFFSETS) + at * 8)
        last = load_u64(get(_input_of(columns, s), INPUT.TYPED_OFFSETS) + at * 8 + 8)
        _open(frame, place, n, first, last, last - first)
        put(nodes + n * NODE_BYTES, NODE.TAG, KIND.ARRAY | (place.field << 16))
        return True, depth + 1, n + 1, scratch
    kind, a, b, scale = _slot(columns, s, at)
    _put_node(nodes, n, kind | (scale << 8) | (place.field << 16), a, b)
    return kind != MALFORMED, depth, n + 1, scratch


@helper(inline=True)
def _next_element(frame: int) -> tuple[int, _Place]:
    """Return ``(step, place)`` of the array at the top."""
    s, at = get(frame, FRAME.SCHEMA), get(frame, FRAME.AT)
    if at == get(frame, FRAME.STOP):
        return _CLOSE, _Place(0, 0, 0, True)
    put(frame, FRAME.AT, at + 1)
    return _ENTER, _Place(s + 1, at, 0, True)


@helper(inline=True)
def _put_residual(frame: int, field_id: int, nodes: int, n: int) -> bool:
    """Write the node of the next field of the residual; return False if it is malformed."""
    begin = get(frame, FRAME.VALUES) + load_uint(get(frame, FRAME.OFFSETS), get(frame, FRAME.OFFSET_WIDTH))
    size = value_size(begin, get(frame, FRAME.VALUES_END))
    if size < 0 or size > get(frame, FRAME.ROOM):
        return False
    _put_node(nodes, n, RAW | (field_id << 16), begin, size)
    put(frame, FRAME.ROOM, get(frame, FRAME.ROOM) - size)
    put(frame, FRAME.COUNT, get(frame, FRAME.COUNT) + 1)
    put(frame, FRAME.RESIDUAL, get(frame, FRAME.RESIDUAL) - 1)
    put(frame, FRAME.IDS, get(frame, FRAME.IDS) + get(frame, FRAME.ID_WIDTH))
    put(frame, FRAME.OFFSETS, get(frame, FRAME.OFFSETS) + get(frame, FRAME.OFFSET_WIDTH))
    return True


@helper(inline=True)
def _next_field(
    frame: int, nodes: int, n: int, columns: _Columns, fields: _Fields, names: _Names
) -> tuple[int, _Place, int]:
    """Return ``(step, place, n)`` of the object at the top.

    The next field is the first by name of its shredded fields and the fields of its residual.
    """
    s, at, child = get(frame, FRAME.SCHEMA), get(frame, FRAME.AT), get(frame, FRAME.STOP)
    nowhere = _Place(0, 0, 0, False)
    if child < get(_node_of(columns, s), S.END) and get(fields.ids, child) < 0:
        # The metadata lacks the name, which is valid only if the field is missing too.
        buffers = _input_of(columns, child)
        if _is_set(get(buffers, INPUT.GROUP_VALID), at) and (
            _is_set(get(buffers, INPUT.VALUE_VALID), at) or _is_set(get(buffers, INPUT.TYPED_VALID), at)
        ):
            return _REFUSE, nowhere, n
        put(frame, FRAME.STOP, get(_node_of(columns, child), S.END))
        return _AGAIN, nowhere, n
    has_child = child < get(_node_of(columns, s), S.END)
    if get(frame, FRAME.RESIDUAL) > 0:
        field_id = load_uint(get(frame, FRAME.IDS), get(frame, FRAME.ID_WIDTH))
        if not has_child or get(names.ranks, field_id) < get(fields.ranks, child):
            ok = _put_residual(frame, field_id, nodes, n)
            return _AGAIN if ok else _REFUSE, nowhere, n + 1
        if get(names.ranks, field_id) == get(fields.ranks, child):
            return _REFUSE, nowhere, n  # a shredded field in the residual
    elif not has_child:
        return _CLOSE, nowhere, n
    put(frame, FRAME.STOP, get(_node_of(columns, child), S.END))
    put(frame, FRAME.COUNT, get(frame, FRAME.COUNT) + 1)
    return _ENTER, _Place(child, at, get(fields.ids, child), False), n


@helper(inline=True)
def _assemble_row(
    row: int,
    stack: int,
    nodes: Int64Table,
    n: int,
    columns: _Columns,
    fields: _Fields,
    names: _Names,
    scratch: _Scratch,
) -> tuple[bool, Int64Table, int]:
    """Write the nodes of a row; return ``(ok, nodes, n)``."""
    place = _Place(0, row, 0, True)
    step, depth = _ENTER, 0
    while True:
        if n + 2 > len(nodes):
            nodes = reserve_rows(nodes, n + 2)
        base = address_in(nodes)
        if step == _ENTER:
            ok, depth, n, scratch = _visit(place, stack, depth, base, n, columns, names, scratch)
            if not ok or depth == 0:
                return ok, nodes, n
        frame = stack + (depth - 1) * _FRAME_BYTES
        if get(_node_of(columns, get(frame, FRAME.SCHEMA)), S.KIND) == ARRAY_NODE:
            step, place = _next_element(frame)
        else:
            step, place, n = _next_field(frame, base, n, columns, fields, names)
        if step == _REFUSE:
            return False, nodes, n
        if step == _CLOSE:
            node = base + get(frame, FRAME.NODE) * NODE_BYTES
            put(node, NODE.A, get(frame, FRAME.COUNT))
            put(node, NODE.END, n)
            depth -= 1
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
    fields = _Fields(address_in(ids), address_in(field_ranks))
    columns = _Columns(address_in(schema.nodes), address_in(rows.inputs))
    names_of_row = _Names(0, 0)
    stack = allocate(memory, (max_depth + 2) * _FRAME_BYTES)
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
            names_of_row = _Names(address_in(names.rank) + 8 * names.starts[d], names.starts[d + 1] - names.starts[d])
        ok, nodes, n = _assemble_row(row, stack, nodes, n, columns, fields, names_of_row, unused)
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[count] = n
    # The whole table, so that the pool knows its size; ``row_start[rows]`` of its rows are filled.
    return export_table(nodes, len(nodes))
