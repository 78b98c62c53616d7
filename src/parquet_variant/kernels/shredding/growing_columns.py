"""Typed columns that grow while a kernel fills them, so that values are walked once.

Owns the memory of the columns: making room for entries and bytes, and cutting the buffers to their contents. Columns
are consistent after every addition, so that a walk may end in the middle of a row. Leaves the walks to `shred` and
`shred_tape`, and Arrow arrays to `schema_table`.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.machine_code.functions import helper
from parquet_variant.kernels.machine_code.signatures import Int64Table
from parquet_variant.kernels.memory import KIND, copy, get, put, store_u8, store_u32, store_u64
from parquet_variant.kernels.native_vectors import Memory, address_in, allocate, disown, reallocate
from parquet_variant.kernels.shredding.schema_table import BUFFERS, FilledBuffers, S
from parquet_variant.kernels.values.scalar_slots import store_slot

_FEWEST_ENTRIES, _FEWEST_BYTES = 64, 512
_RECORD_BYTES, _SCHEMA_BYTES = 8 * len(BUFFERS), 8 * len(S)


class GrowingColumns(NamedTuple):
    """The columns of a storage; all except ``rows`` are addresses of tables.

    The columns of the first level get room for all rows at once.
    """

    memory: Memory
    nodes: int  # The nodes of the schema.
    node_count: int
    records: int  # The buffers of each schema node, `BUFFERS`.
    entries: int  # The number of entries of each level; in the first level, of the rows so far.
    rows: int


@helper
def new_columns(memory: Memory, nodes: Int64Table, out: FilledBuffers, rows: int) -> GrowingColumns:
    """Return the columns of some nodes of a schema, without entries."""
    return GrowingColumns(memory, address_in(nodes), len(nodes), address_in(out.records), address_in(out.levels), rows)


@helper
def node_of(columns: GrowingColumns, s: int) -> int:
    """Return the address of a schema node."""
    return columns.nodes + s * _SCHEMA_BYTES


@helper
def _record_of(columns: GrowingColumns, s: int) -> int:
    """Return the address of the buffers of a schema node."""
    return columns.records + s * _RECORD_BYTES


@helper
def _clear(begin: int, end: int) -> None:
    """Set bytes to zero."""
    while begin + 8 <= end:
        store_u64(begin, 0)
        begin += 8
    while begin < end:
        store_u8(begin, 0)
        begin += 1


@helper
def _resize(memory: Memory, record: int, buffer: int, used: int, size: int) -> None:
    """Give a buffer room for some bytes; new bytes are zero."""
    address = get(record, buffer)
    address = reallocate(address, size) if address != 0 else allocate(memory, size)
    put(record, buffer, address)
    _clear(address + used, address + size)


@helper
def _resize_values(columns: GrowingColumns, s: int, room: int) -> None:
    """Make room for some entries of a ``value`` column."""
    record = _record_of(columns, s)
    used = get(record, BUFFERS.VALUE_ROOM)
    _resize(columns.memory, record, BUFFERS.VALUE_LENGTHS, used * 4, room * 4)
    _resize(columns.memory, record, BUFFERS.VALUE_VALID, used, room)
    put(record, BUFFERS.VALUE_ROOM, room)


@helper
def _resize_typed(columns: GrowingColumns, s: int, room: int) -> None:
    """Make room for some entries of a ``typed_value`` column."""
    record = _record_of(columns, s)
    used = get(record, BUFFERS.TYPED_ROOM)
    _resize(columns.memory, record, BUFFERS.TYPED_VALID, used, room)
    width = get(node_of(columns, s), S.SLOT_BYTES)
    if width > 0:
        _resize(columns.memory, record, BUFFERS.SLOTS, used * width, room * width)
    put(record, BUFFERS.TYPED_ROOM, room)


@helper
def _larger_room(columns: GrowingColumns, s: int, room: int, at: int) -> int:
    """Return the number of entries to make room for if entry ``at`` does not fit."""
    if get(node_of(columns, s), S.LEVEL) == 0:
        return columns.rows
    return max(at + 1, 2 * room, _FEWEST_ENTRIES)


@helper
def _grow_bytes(columns: GrowingColumns, record: int, data: int, begin: int, size: int) -> None:
    """Make room for ``size`` more bytes at the column ``data``; the limits are the columns ``begin`` and the next.

    The room is the expected one, or enough for all rows, if they are like the rows so far, but at most eight times the
    earlier room, because a first row may be far larger than the others.
    """
    address = get(record, begin)
    used, room = get(record, data) - address, get(record, begin + 1) - address
    expected = (used + size) * columns.rows // max(get(columns.entries, 0), 1)
    guess = max(2 * room, min(expected + expected // 8, 8 * room), _FEWEST_BYTES)
    known = get(record, BUFFERS.VALUE_BYTES) if data == BUFFERS.VALUE_DATA else 0
    room = max(used + size, known if known > 0 else guess)
    address = reallocate(address, room) if address != 0 else allocate(columns.memory, room)
    put(record, begin, address)
    put(record, begin + 1, address + room)
    put(record, data, address + used)


@helper
def put_value(columns: GrowingColumns, s: int, at: int, size: int) -> int:
    """Add an entry to the ``value`` column of a schema node; return the address for its bytes."""
    record = _record_of(columns, s)
    if at >= get(record, BUFFERS.VALUE_ROOM):
        _resize_values(columns, s, _larger_room(columns, s, get(record, BUFFERS.VALUE_ROOM), at))
    if size > get(record, BUFFERS.VALUE_END) - get(record, BUFFERS.VALUE_DATA):
        _grow_bytes(columns, record, BUFFERS.VALUE_DATA, BUFFERS.VALUE_BEGIN, size)
    put(record, BUFFERS.VALUE_COUNT, get(record, BUFFERS.VALUE_COUNT) + 1)
    store_u32(get(record, BUFFERS.VALUE_LENGTHS) + at * 4, size)
    store_u8(get(record, BUFFERS.VALUE_VALID) + at, 1)
    target = get(record, BUFFERS.VALUE_DATA)
    put(record, BUFFERS.VALUE_DATA, target + size)
    return target


@helper
def put_object(columns: GrowingColumns, s: int, at: int) -> None:
    """Add an entry to the ``typed_value`` column of a schema node, whose slot, if it has one, is set by the caller."""
    record = _record_of(columns, s)
    if at >= get(record, BUFFERS.TYPED_ROOM):
        _resize_typed(columns, s, _larger_room(columns, s, get(record, BUFFERS.TYPED_ROOM), at))
    put(record, BUFFERS.TYPED_COUNT, get(record, BUFFERS.TYPED_COUNT) + 1)
    store_u8(get(record, BUFFERS.TYPED_VALID) + at, 1)


@helper
def put_array(columns: GrowingColumns, s: int, at: int, count: int) -> None:
    """Add an array of ``count`` elements."""
    put_object(columns, s, at)
    store_u32(get(_record_of(columns, s), BUFFERS.SLOTS) + at * 4, count)


@helper
def put_bytes(columns: GrowingColumns, s: int, at: int, begin: int, size: int) -> None:
    """Add a string or binary value."""
    put_array(columns, s, at, size)
    record = _record_of(columns, s)
    if size > get(record, BUFFERS.TYPED_END) - get(record, BUFFERS.TYPED_DATA):
        _grow_bytes(columns, record, BUFFERS.TYPED_DATA, BUFFERS.TYPED_BEGIN, size)
    target = get(record, BUFFERS.TYPED_DATA)
    copy(target, begin, size)
    put(record, BUFFERS.TYPED_DATA, target + size)


@helper
def put_slot(columns: GrowingColumns, s: int, at: int, low: int, high: int) -> None:
    """Add a value of a fixed width; a UUID is at the address ``low``."""
    put_object(columns, s, at)
    node = node_of(columns, s)
    width = get(node, S.WIDTH)
    target = get(_record_of(columns, s), BUFFERS.SLOTS) + at * width
    if get(node, S.CODE) == KIND.UUID:
        copy(target, low, 16)
    else:
        store_slot(target, width, low, high)


@helper
def _cut_bytes(record: int, data: int, begin: int) -> int:
    """Cut a buffer of bytes to its contents and return their number; the column ``data`` gets its address."""
    size = get(record, data) - get(record, begin)
    if size > 0:
        put(record, begin, reallocate(get(record, begin), size))
    put(record, data, get(record, begin))
    return size


@helper
def finish(columns: GrowingColumns, out: FilledBuffers) -> None:
    """Cut all buffers to their contents, and export the buffers that `ShreddedRows` needs."""
    out.levels[0] = columns.rows
    for s in range(columns.node_count):
        record = _record_of(columns, s)
        entries = get(columns.entries, get(node_of(columns, s), S.LEVEL))
        values, typed = get(record, BUFFERS.VALUE_COUNT), get(record, BUFFERS.TYPED_COUNT)
        if values > 0:
            _resize_values(columns, s, entries)
        if typed > 0:
            _resize_typed(columns, s, entries)
        put(record, BUFFERS.VALUE_BYTES, _cut_bytes(record, BUFFERS.VALUE_DATA, BUFFERS.VALUE_BEGIN))
        put(record, BUFFERS.TYPED_BYTES, _cut_bytes(record, BUFFERS.TYPED_DATA, BUFFERS.TYPED_BEGIN))
    # Exported at the end, when nothing can fail any more.
    for s in range(columns.node_count):
        record = _record_of(columns, s)
        entries = get(columns.entries, get(node_of(columns, s), S.LEVEL))
        for buffer in range(BUFFERS.TYPED_DATA + 1):
            count = get(record, BUFFERS.VALUE_COUNT if buffer <= BUFFERS.VALUE_DATA else BUFFERS.TYPED_COUNT)
            if count == 0 or (buffer == BUFFERS.TYPED_VALID and count == entries):
                put(record, buffer, 0)  # freed with the other memory of the kernel
            elif get(record, buffer) != 0:
                disown(get(record, buffer))
