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
    records: int  # The buffers of each column, `BUFFERS`.
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
def _record_of(columns: GrowingColumns, s: int, typed: int) -> int:
    """Return the address of the buffers of a column of a schema node: ``value`` (0) or ``typed_value`` (1)."""
    return columns.records + (2 * s + typed) * _RECORD_BYTES


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
def _resize(memory: Memory, record: int, buffer: int, filled: int, size: int) -> None:
    """Give a buffer room for some bytes; new bytes are zero."""
    address = get(record, buffer)
    address = reallocate(address, size) if address != 0 else allocate(memory, size)
    put(record, buffer, address)
    _clear(address + filled, address + size)


@helper
def _resize_entries(columns: GrowingColumns, s: int, typed: int, room: int) -> None:
    """Make room for some entries of a column."""
    record = _record_of(columns, s, typed)
    entries, width = get(record, BUFFERS.ROOM), get(node_of(columns, s), S.SLOT_BYTES) if typed else 4
    _resize(columns.memory, record, BUFFERS.VALID, entries, room)
    if width > 0:
        _resize(columns.memory, record, BUFFERS.SLOTS, entries * width, room * width)
    put(record, BUFFERS.ROOM, room)


@helper(inline=True)
def _add_entry(columns: GrowingColumns, s: int, typed: int, at: int) -> int:
    """Add an entry to a column, whose slot is set by the caller; return the address of its buffers."""
    record = _record_of(columns, s, typed)
    room = get(record, BUFFERS.ROOM)
    if at >= room:
        is_top = get(node_of(columns, s), S.LEVEL) == 0
        _resize_entries(columns, s, typed, columns.rows if is_top else max(at + 1, 2 * room, _FEWEST_ENTRIES))
    put(record, BUFFERS.COUNT, get(record, BUFFERS.COUNT) + 1)
    store_u8(get(record, BUFFERS.VALID) + at, 1)
    return record


@helper
def _grow_bytes(columns: GrowingColumns, record: int, size: int) -> None:
    """Make room for ``size`` more bytes of a column: the expected room, or enough for all rows if they are like those
    so far, but at most eight times the earlier room, because a first row may be far larger than the others.
    """
    address, expected_bytes = get(record, BUFFERS.BEGIN), get(record, BUFFERS.BYTES)
    filled, room = get(record, BUFFERS.DATA) - address, get(record, BUFFERS.END) - address
    expected = (filled + size) * columns.rows // max(get(columns.entries, 0), 1)
    guess = max(2 * room, min(expected + expected // 8, 8 * room), _FEWEST_BYTES)
    room = max(filled + size, expected_bytes if expected_bytes > 0 else guess)
    address = reallocate(address, room) if address != 0 else allocate(columns.memory, room)
    put(record, BUFFERS.BEGIN, address)
    put(record, BUFFERS.END, address + room)
    put(record, BUFFERS.DATA, address + filled)


@helper(inline=True)
def _add_bytes(columns: GrowingColumns, s: int, typed: int, at: int, size: int) -> int:
    """Add an entry of some bytes to a column; return the address for the bytes."""
    record = _add_entry(columns, s, typed, at)
    if size > get(record, BUFFERS.END) - get(record, BUFFERS.DATA):
        _grow_bytes(columns, record, size)
    store_u32(get(record, BUFFERS.SLOTS) + at * 4, size)
    target = get(record, BUFFERS.DATA)
    put(record, BUFFERS.DATA, target + size)
    return target


@helper
def put_value(columns: GrowingColumns, s: int, at: int, size: int) -> int:
    """Add an entry to the ``value`` column of a schema node; return the address for its bytes."""
    return _add_bytes(columns, s, 0, at, size)


@helper
def put_object(columns: GrowingColumns, s: int, at: int) -> None:
    """Add an object to the ``typed_value`` column of a schema node."""
    _add_entry(columns, s, 1, at)


@helper
def put_array(columns: GrowingColumns, s: int, at: int, count: int) -> None:
    """Add an array of ``count`` elements."""
    store_u32(get(_add_entry(columns, s, 1, at), BUFFERS.SLOTS) + at * 4, count)


@helper
def put_bytes(columns: GrowingColumns, s: int, at: int, begin: int, size: int) -> None:
    """Add a string or binary value."""
    copy(_add_bytes(columns, s, 1, at, size), begin, size)


@helper
def put_slot(columns: GrowingColumns, s: int, at: int, low: int, high: int) -> None:
    """Add a value of a fixed width; a UUID is at the address ``low``."""
    node = node_of(columns, s)
    width = get(node, S.WIDTH)
    target = get(_add_entry(columns, s, 1, at), BUFFERS.SLOTS) + at * width
    if get(node, S.CODE) == KIND.UUID:
        copy(target, low, 16)
    else:
        store_slot(target, width, low, high)


@helper
def finish(columns: GrowingColumns, out: FilledBuffers) -> None:
    """Cut all buffers to their contents, and export the buffers that `ShreddedRows` needs."""
    out.levels[0] = columns.rows
    for column in range(2 * columns.node_count):
        s, typed = column >> 1, column & 1
        record = _record_of(columns, s, typed)
        if get(record, BUFFERS.COUNT) > 0:
            _resize_entries(columns, s, typed, get(columns.entries, get(node_of(columns, s), S.LEVEL)))
        size = get(record, BUFFERS.DATA) - get(record, BUFFERS.BEGIN)
        if size > 0:
            put(record, BUFFERS.BEGIN, reallocate(get(record, BUFFERS.BEGIN), size))
        put(record, BUFFERS.DATA, get(record, BUFFERS.BEGIN))
        put(record, BUFFERS.BYTES, size)
    # Exported at the end, when nothing can fail any more; the other buffers are freed with the memory of the kernel.
    for column in range(2 * columns.node_count):
        record = _record_of(columns, column >> 1, column & 1)
        count = get(record, BUFFERS.COUNT)
        if count == get(columns.entries, get(node_of(columns, column >> 1), S.LEVEL)):
            put(record, BUFFERS.VALID, 0)
        for buffer in range(BUFFERS.DATA + 1):
            if count == 0:
                put(record, buffer, 0)
            elif get(record, buffer) != 0:
                disown(get(record, buffer))
