"""Shredded columns back to Variant bytes (final layout).

Owns putting each row together as nodes (`values.value_nodes`) in the order in which they will lie in the value. Leaves
the rows that the specification calls INVALID, and metadata that lacks a shredded name, to the scalar fallback: the
kernel lists them and goes on.

Fields of an object are put in the order of their names while they are gathered: schema fields are sorted already, and
so are most residuals.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    NODE,
    NODE_BYTES,
    get,
    load_u8,
    load_u64,
    load_uint,
    put,
    put_node,
)
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    allocate,
    export_table,
    new_table,
    new_vector,
    pooled_table,
    reserve_rows,
)
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, OBJECT_NODE, NamedNodes, S
from parquet_variant.kernels.values.reading import (
    FIELD,
    FIELD_BYTES,
    MALFORMED,
    UNUSABLE,
    NameTable,
    container,
    load_fixed,
    put_field,
    resolve_names,
    sort_fields,
    value_kind,
    value_size,
)
from parquet_variant.kernels.values.value_nodes import RAW

# Columns of the input table, which has one row per schema node: addresses of buffers, 0 for missing buffers. Validity
# is one byte per entry; its address is 0 if all entries are valid, and -1 if none is valid (or the column is missing).
# Offsets are int64.
INPUT = numbered("VALUE_VALID VALUE_OFFSETS VALUE_DATA TYPED_VALID TYPED_OFFSETS TYPED_DATA SLOTS GROUP_VALID")

# Columns of the frame of an open container in `assemble`. All containers: schema node, entry (in an array the next
# entry), next schema node (in an array the entry after the last), node, number of children, and the next field of the
# residual and the one after the last, in the table of such fields.
FRAME = numbered("SCHEMA AT STOP NODE COUNT FIELD LAST_FIELD")
_FRAME_BYTES, _INPUT_BYTES, _SCHEMA_BYTES = 8 * len(FRAME), 8 * len(INPUT), 8 * len(S)
# Steps: visit a place, ask again, close the container at the top, or leave the row to the scalar fallback.
_ENTER, _AGAIN, _CLOSE, _REFUSE = range(4)


class ShreddedColumns(NamedTuple):
    """A shredded storage."""

    valid: UInt8s  # One byte per row, 0 for SQL NULL; empty if all rows are valid.
    dictionary_of: ReadOnlyInt32s  # Index of the metadata of each row; -1 for null.
    inputs: Int64Table  # Columns as described above.


class _Columns(NamedTuple):
    """Addresses of the nodes of the schema and of the input table, and the names of the dictionary of a row.

    ``ids`` and ``field_ranks`` are the field id and the rank of each schema node's name, -1 for names that it
    lacks; ``ranks`` are the ranks of its ``name_count`` names. All except the number are addresses.
    """

    nodes: int
    inputs: int
    ids: int
    field_ranks: int
    ranks: int
    name_count: int


class _Place(NamedTuple):
    """An entry of a schema node, the field id of its value, and whether a value is required."""

    s: int
    at: int
    field: int
    required: bool


@helper
def _node_of(columns: _Columns, s: int) -> int:
    """Return the address of a schema node."""
    return columns.nodes + s * _SCHEMA_BYTES


@helper
def _input_of(columns: _Columns, s: int) -> int:
    """Return the address of the buffers of a schema node."""
    return columns.inputs + s * _INPUT_BYTES


@helper(inline=True)
def _is_set(address: int, at: int) -> bool:
    """Return whether an entry of a validity column is set."""
    return address == 0 or (address != -1 and load_u8(address + at) != 0)


@helper(inline=True)
def _slot(columns: _Columns, s: int, at: int) -> tuple[int, int, int, int]:
    """Return ``(kind, a, b, scale)`` of a typed slot; the kind is MALFORMED if the column's type cannot hold it."""
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


@helper(inline=True)
def _open_residual(
    frame: int, begin: int, size: int, columns: _Columns, residuals: Int64Table
) -> tuple[bool, Int64Table]:
    """Append the fields of a partial object to the table of fields, sorted by name; return ``(ok, residuals)``."""
    if value_kind(load_u8(begin)) != KIND.OBJECT:
        return False, residuals
    parts = container(begin, begin + size)
    first = get(frame, FRAME.LAST_FIELD)
    put(frame, FRAME.LAST_FIELD, first + parts.count)
    residuals = reserve_rows(residuals, first + parts.count)
    fields = address_in(residuals) + first * FIELD_BYTES
    ok, in_order, previous, room = True, True, -1, parts.size
    for j in range(parts.count):
        field_id = load_uint(parts.ids + j * parts.id_width, parts.id_width)
        at = parts.values + load_uint(parts.offsets + j * parts.offset_width, parts.offset_width)
        bytes_of_value = value_size(at, parts.values + parts.size)
        room -= bytes_of_value
        ok = field_id < columns.name_count and bytes_of_value >= 0 and room >= 0
        if not ok:
            break
        rank = get(columns.ranks, field_id)
        put_field(fields + j * FIELD_BYTES, rank, field_id, at, bytes_of_value)
        in_order = in_order and rank > previous
        previous = rank
    return ok and (in_order or sort_fields(fields, parts.count)), residuals


@helper(inline=True)
def _put_untyped(place: _Place, shape: int, begin: int, size: int, nodes: int, n: int) -> tuple[bool, int]:
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
def _open(frame: int, place: _Place, n: int, at: int, stop: int, count: int) -> None:
    """Push the frame of a container."""
    put(frame, FRAME.SCHEMA, place.s)
    put(frame, FRAME.AT, at)
    put(frame, FRAME.STOP, stop)
    put(frame, FRAME.NODE, n)
    put(frame, FRAME.COUNT, count)
    # Frames start one place after the beginning of the stack, so that the first has one before it.
    put(frame, FRAME.FIELD, get(frame - _FRAME_BYTES, FRAME.LAST_FIELD))
    put(frame, FRAME.LAST_FIELD, get(frame, FRAME.FIELD))


@helper(inline=True)
def _visit(
    place: _Place, stack: int, depth: int, nodes: int, n: int, columns: _Columns, residuals: Int64Table
) -> tuple[bool, int, int, Int64Table]:
    """Turn an entry into a node or an open container, or skip a missing one; return ``(ok, depth, n, residuals)``."""
    s, at, frame = place.s, place.at, stack + depth * _FRAME_BYTES
    shape = get(_node_of(columns, s), S.KIND)
    is_present = _is_set(get(_input_of(columns, s), INPUT.GROUP_VALID), at)
    begin = size = 0
    if is_present and _is_set(get(_input_of(columns, s), INPUT.VALUE_VALID), at):
        begin, size = _value_at(columns, s, at)
        if size < 0:
            return False, depth, n, residuals
    if not (is_present and _is_set(get(_input_of(columns, s), INPUT.TYPED_VALID), at)):
        ok, after = _put_untyped(place, shape, begin, size, nodes, n)
        if ok and after == n:
            put(frame - _FRAME_BYTES, FRAME.COUNT, get(frame - _FRAME_BYTES, FRAME.COUNT) - 1)
        return ok, depth, after, residuals
    if shape == OBJECT_NODE:
        _open(frame, place, n, at, s + 1, 0)
        ok = True
        if size > 0:
            ok, residuals = _open_residual(frame, begin, size, columns, residuals)
        put(nodes + n * NODE_BYTES, NODE.TAG, KIND.OBJECT | (place.field << 16))
        return ok, depth + 1, n + 1, residuals
    if size > 0:
        return False, depth, n, residuals
    if shape == ARRAY_NODE:
        first = load_u64(get(_input_of(columns, s), INPUT.TYPED_OFFSETS) + at * 8)
        last = load_u64(get(_input_of(columns, s), INPUT.TYPED_OFFSETS) + at * 8 + 8)
        _open(frame, place, n, first, last, last - first)
        put(nodes + n * NODE_BYTES, NODE.TAG, KIND.ARRAY | (place.field << 16))
        return True, depth + 1, n + 1, residuals
    kind, a, b, scale = _slot(columns, s, at)
    put_node(nodes, n, kind | (scale << 8) | (place.field << 16), a, b)
    return kind != MALFORMED, depth, n + 1, residuals


@helper(inline=True)
def _next_element(frame: int) -> tuple[int, _Place]:
    """Return ``(step, place)`` of the array at the top."""
    s, at = get(frame, FRAME.SCHEMA), get(frame, FRAME.AT)
    if at == get(frame, FRAME.STOP):
        return _CLOSE, _Place(0, 0, 0, True)
    put(frame, FRAME.AT, at + 1)
    return _ENTER, _Place(s + 1, at, 0, True)


@helper(inline=True)
def _next_field(frame: int, nodes: int, n: int, columns: _Columns, residuals: int) -> tuple[int, _Place, int]:
    """Return ``(step, place, n)`` of the object at the top: its next field by name, shredded or in the residual."""
    s, at, child = get(frame, FRAME.SCHEMA), get(frame, FRAME.AT), get(frame, FRAME.STOP)
    nowhere = _Place(0, 0, 0, False)
    if child < get(_node_of(columns, s), S.END) and get(columns.ids, child) < 0:
        # The metadata lacks the name, which is valid only if the field is missing too.
        buffers = _input_of(columns, child)
        if _is_set(get(buffers, INPUT.GROUP_VALID), at) and (
            _is_set(get(buffers, INPUT.VALUE_VALID), at) or _is_set(get(buffers, INPUT.TYPED_VALID), at)
        ):
            return _REFUSE, nowhere, n
        put(frame, FRAME.STOP, get(_node_of(columns, child), S.END))
        return _AGAIN, nowhere, n
    has_child = child < get(_node_of(columns, s), S.END)
    if get(frame, FRAME.FIELD) < get(frame, FRAME.LAST_FIELD):
        field = residuals + get(frame, FRAME.FIELD) * FIELD_BYTES
        if not has_child or get(field, FIELD.RANK) < get(columns.field_ranks, child):
            put_node(nodes, n, RAW | (get(field, FIELD.ID) << 16), get(field, FIELD.BEGIN), get(field, FIELD.SIZE))
            put(frame, FRAME.FIELD, get(frame, FRAME.FIELD) + 1)
            put(frame, FRAME.COUNT, get(frame, FRAME.COUNT) + 1)
            return _AGAIN, nowhere, n + 1
        if get(field, FIELD.RANK) == get(columns.field_ranks, child):
            return _REFUSE, nowhere, n  # a shredded field in the residual
    elif not has_child:
        return _CLOSE, nowhere, n
    put(frame, FRAME.STOP, get(_node_of(columns, child), S.END))
    put(frame, FRAME.COUNT, get(frame, FRAME.COUNT) + 1)
    return _ENTER, _Place(child, at, get(columns.ids, child), False), n


@helper(inline=True)
def _assemble_row(
    row: int, stack: int, nodes: Int64Table, n: int, columns: _Columns, residuals: Int64Table
) -> tuple[bool, Int64Table, int, Int64Table]:
    """Write the nodes of a row; return ``(ok, nodes, n, residuals)``."""
    place = _Place(0, row, 0, True)
    step, depth = _ENTER, 0
    while True:
        if n + 2 > len(nodes):
            nodes = reserve_rows(nodes, n + 2)
        base = address_in(nodes)
        if step == _ENTER:
            ok, depth, n, residuals = _visit(place, stack, depth, base, n, columns, residuals)
            if not ok or depth == 0:
                return ok, nodes, n, residuals
        frame = stack + (depth - 1) * _FRAME_BYTES
        if get(_node_of(columns, get(frame, FRAME.SCHEMA)), S.KIND) == ARRAY_NODE:
            step, place = _next_element(frame)
        else:
            step, place, n = _next_field(frame, base, n, columns, address_in(residuals))
        if step == _REFUSE:
            return False, nodes, n, residuals
        if step == _CLOSE:
            node = base + get(frame, FRAME.NODE) * NODE_BYTES
            put(node, NODE.A, get(frame, FRAME.COUNT))
            put(node, NODE.END, n)
            depth -= 1
            if depth == 0:
                return True, nodes, n, residuals


@kernel
def assemble(
    memory: Memory,
    rows: ShreddedColumns,
    schema: NamedNodes,
    names: NameTable,
    row_start: Int64s,
    refused: UInt8s,
    max_depth: int,
    block: tuple[int, int],
) -> tuple[int, int, int]:
    """Write the nodes of every row; return their table for `adopt`.

    Rows that the kernel cannot decide have no nodes and are marked in ``refused``. ``block`` is memory of the pool for
    the nodes.
    """
    count = len(rows.dictionary_of)
    nodes = pooled_table(memory, block, 4, max(64, 2 * count))
    ids, field_ranks = new_vector(memory, len(schema.nodes)), new_vector(memory, len(schema.nodes))
    columns = _Columns(
        address_in(schema.nodes), address_in(rows.inputs), address_in(ids), address_in(field_ranks), 0, 0
    )
    stack = allocate(memory, (max_depth + 3) * _FRAME_BYTES) + _FRAME_BYTES
    put(stack - _FRAME_BYTES, FRAME.LAST_FIELD, 0)
    residuals = new_table(memory, 64, len(FIELD))
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
            ranks, name_count = address_in(names.rank) + 8 * names.starts[d], names.starts[d + 1] - names.starts[d]
            columns = _Columns(columns.nodes, columns.inputs, columns.ids, columns.field_ranks, ranks, name_count)
        ok, nodes, n, residuals = _assemble_row(row, stack, nodes, n, columns, residuals)
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[count] = n
    # The whole table, so that the pool knows its size; ``row_start[rows]`` of its rows are filled.
    return export_table(nodes, len(nodes))
