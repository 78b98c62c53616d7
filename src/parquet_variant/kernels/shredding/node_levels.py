"""Definition and repetition levels of the columns of shredded nodes, and their values without gaps, in one call.

Owns the way from the buffers that `shred_tape.fill` has filled to the input of pages, without Arrow arrays in between.
Levels are the same as `pages.levels` makes of Arrow columns, and are shared by columns where possible: a field that no
object lacks, and a field that every object lacks, have the levels of the object. Leaves the buffers to `columns` and
pages to `files.parquet.pages`.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import load_u8, load_u32, move, store_u8
from parquet_variant.kernels.native_vectors import export_bytes, filled_vector, reserve_bytes
from parquet_variant.kernels.ownership import Memory, allocate
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, PRIMITIVE_NODE, VARIANT_NODE, S
from parquet_variant.kernels.shredding.shred_tape import BUFFERS, COUNTS

# Rows of the table of entries: three per schema node, for its group and for the two columns of the group.
E_GROUP, E_VALUE, E_TYPED = range(3)
ENTRY_ROWS = 3
# Columns of the table of entries. Levels are positions among all levels, or -1 - level if all levels are the same.
# LEAST and MOST are those of `pages.levels`; FILLED are the levels of an optional field that is never null, -1 until
# needed.
E_COUNT, E_DEFINITION, E_REPETITION, E_LEAST, E_MOST, E_PRESENT, E_DEPTH, E_FILLED = range(8)
ENTRY_COLUMNS = 8
LEAF_COLUMNS = E_PRESENT + 1  # Columns that a leaf needs.
# The buffer of all levels: its address, its bytes, and the bytes in use.
L_ADDRESS, L_ROOM, L_USED = range(3)


class FilledColumns(NamedTuple):
    """The output of `shred_tape.fill`: the schema's nodes, counts and addresses of each, and slots of each level."""

    table: Int64Table
    counts: Int64Table
    addresses: Int64Table
    slots: Int64s


@helper
def _reserve_levels(levels: Int64s, size: int) -> int:
    """Reserve room for the next levels; return their position, counted from the first level."""
    used_bytes = levels[L_USED]
    levels[L_ADDRESS], levels[L_ROOM] = reserve_bytes(levels[L_ADDRESS], levels[L_ROOM], used_bytes + size)
    levels[L_USED] = used_bytes + size
    return used_bytes


@helper
def _copy_levels(entries: Int64Table, row: int, above: int, present_level: int, present: int) -> None:
    """Fill entries with the levels of the entries above them."""
    for column in range(E_FILLED):
        entries[row, column] = entries[above, column]
    entries[row, E_MOST], entries[row, E_PRESENT], entries[row, E_FILLED] = present_level, present, -1


@helper
def _write_optional_levels(address: int, entries: Int64Table, above: int, valid: int, start: int) -> int:
    """Write the levels of an optional field, with one validity byte per slot (0: all valid).

    Return the number of values.
    """
    source, slot_level, present_level = entries[above, E_DEFINITION], entries[above, E_LEAST], entries[above, E_MOST]
    slot = present = 0
    for i in range(entries[above, E_COUNT]):
        level = present_level if source < 0 else load_u8(address + source + i)
        if level >= slot_level:
            if level == present_level and (valid == 0 or load_u8(valid + slot) != 0):
                level += 1
                present += 1
            slot += 1
        store_u8(address + start + i, level)
    return present


@helper
def _optional(levels: Int64s, entries: Int64Table, above: int, row: int, present: int, slots: int, valid: int) -> None:
    """Fill the entries of an optional field, of whose ``slots`` ``present`` are not null."""
    present_level = entries[above, E_MOST]
    if present == 0 or entries[above, E_PRESENT] == 0:
        _copy_levels(entries, row, above, present_level + 1, 0)
        return
    is_filled = present == slots
    _copy_levels(entries, row, above, present_level + 1, entries[above, E_PRESENT])
    if is_filled and entries[above, E_DEFINITION] < 0:
        entries[row, E_DEFINITION] = -2 - present_level
    elif is_filled and entries[above, E_FILLED] >= 0:
        entries[row, E_DEFINITION] = entries[above, E_FILLED]
    else:
        start = _reserve_levels(levels, entries[above, E_COUNT])
        bits = 0 if is_filled else valid
        entries[row, E_PRESENT] = _write_optional_levels(levels[L_ADDRESS], entries, above, bits, start)
        entries[row, E_DEFINITION] = start
        if is_filled:
            entries[above, E_FILLED] = start


@helper
def _expand(
    address: int, entries: Int64Table, above: int, lengths: int, start: int, repetition: int
) -> tuple[int, int]:
    """Write the levels of a list's elements from ``start`` and ``repetition`` on; return ``(entries, elements)``."""
    source, repeated = entries[above, E_DEFINITION], entries[above, E_REPETITION]
    slot_level, present_level, depth = entries[above, E_LEAST], entries[above, E_MOST], entries[above, E_DEPTH] + 1
    slot = count = elements = 0
    for i in range(entries[above, E_COUNT]):
        level = -1 - source if source < 0 else load_u8(address + source + i)
        before = 0 if repeated < 0 else load_u8(address + repeated + i)
        size = 0
        if level >= slot_level:
            if level == present_level:
                size = load_u32(lengths + slot * 4)
            slot += 1
        for k in range(size):
            store_u8(address + start + count + k, present_level + 1)
            store_u8(address + repetition + count + k, depth)
        if size == 0:
            store_u8(address + start + count, level)
        store_u8(address + repetition + count, before)
        count += max(size, 1)
        elements += size
    return count, elements


@helper
def _elements(levels: Int64s, entries: Int64Table, above: int, row: int, lengths: int, slots: int) -> None:
    """Fill the entries of the elements of lists; the lists have ``slots`` elements."""
    present_level = entries[above, E_MOST] + 1
    _copy_levels(entries, row, above, present_level, 0)
    entries[row, E_LEAST] = present_level
    entries[row, E_DEPTH] += 1
    if entries[above, E_PRESENT] == 0:
        return
    longest = entries[above, E_COUNT] + slots
    start = _reserve_levels(levels, 2 * longest)
    count, elements = _expand(levels[L_ADDRESS], entries, above, lengths, start, start + longest)
    entries[row, E_COUNT], entries[row, E_PRESENT] = count, elements
    entries[row, E_DEFINITION], entries[row, E_REPETITION] = start, start + longest


@helper
def _root(levels: Int64s, entries: Int64Table, rows: int, valid: int) -> None:
    """Fill the entries of the rows that are not SQL NULL."""
    for column in range(ENTRY_COLUMNS):
        entries[E_TYPED, column] = 0
    entries[E_TYPED, E_COUNT] = entries[E_TYPED, E_PRESENT] = present = rows
    entries[E_TYPED, E_DEFINITION] = entries[E_TYPED, E_REPETITION] = entries[E_TYPED, E_FILLED] = -1
    if valid != 0:
        present = 0
        for row in range(rows):
            present += load_u8(valid + row)
    _optional(levels, entries, E_TYPED, E_GROUP, present, rows, valid)


@helper
def _close_gaps(start: int, width: int, valid: int, slots: int) -> None:
    """Move the values whose validity byte is set to the first slots."""
    at = start
    for slot in range(slots):
        if load_u8(valid + slot) != 0:
            move(at, start + slot * width, width)
            at += width


@kernel
def node_levels(
    memory: Memory, columns: FilledColumns, valid: int, is_required: bool, entries: Int64Table
) -> tuple[int, int]:
    """Fill the ``entries`` of each schema node; return ``(address, bytes)`` of their levels, for `adopt_bytes`.

    ``valid`` is the address of one byte per row, 0 for SQL NULL (an address of 0: no row is NULL). ``is_required``
    means that the ``value`` of the root must not be null. Lengths and slots of columns with nulls are moved together in
    place.
    """
    table, counts, addresses = columns.table, columns.counts, columns.addresses
    levels = filled_vector(memory, 3, 0)
    levels[L_ROOM] = 4 * columns.slots[0] + 64
    levels[L_ADDRESS] = allocate(memory, levels[L_ROOM])
    _root(levels, entries, columns.slots[0], valid)
    for s in range(len(table)):
        kind, slots, above = table[s, S.KIND], columns.slots[table[s, S.LEVEL]], table[s, S.PARENT]
        row = ENTRY_ROWS * s
        # Fields share the group of their object.
        group = row if s == 0 or table[above, S.KIND] == ARRAY_NODE else ENTRY_ROWS * above + E_TYPED
        if s > 0 and group == row:
            _elements(levels, entries, ENTRY_ROWS * above + E_TYPED, group, addresses[above, BUFFERS.LENGTHS], slots)
        entry_count, bits = counts[s, COUNTS.VALUE_COUNT], addresses[s, BUFFERS.VALUE_VALID]
        if s == 0 and is_required:
            _copy_levels(entries, E_VALUE, E_GROUP, entries[E_GROUP, E_MOST], entries[E_GROUP, E_PRESENT])
        else:
            _optional(levels, entries, group, row + E_VALUE, entry_count, slots, bits)
        if 0 < entry_count < slots:
            _close_gaps(addresses[s, BUFFERS.VALUE_LENGTHS], 4, bits, slots)
        if kind == VARIANT_NODE:
            continue
        entry_count, bits = counts[s, COUNTS.TYPED_COUNT], addresses[s, BUFFERS.TYPED_VALID]
        _optional(levels, entries, group, row + E_TYPED, entry_count, slots, bits)
        if kind == PRIMITIVE_NODE and 0 < entry_count < slots:
            width = table[s, S.WIDTH]
            _close_gaps(addresses[s, BUFFERS.CELLS if width else BUFFERS.LENGTHS], width if width else 4, bits, slots)
    return export_bytes(levels[L_ADDRESS], levels[L_USED])
