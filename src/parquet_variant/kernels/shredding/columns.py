"""The buffers of shredded values, as Arrow arrays or as the leaves of a file.

Owns allocation of the buffers, their assembly into Arrow structs, and the leaf columns: levels and values without gaps,
made in one call without Arrow arrays in between. Levels are the same as `pages.levels` makes of Arrow columns, and are
shared by columns where possible: a field that no object lacks, and a field that every object lacks, have the levels of
the object. Leaves filling the buffers to `shred_tape` and `shred`, and pages to `files.parquet.pages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import binary_array, bitmap
from parquet_variant.kernels.buffer_pool import adopt_bytes
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import address_of, load_u8, load_u32, move, store_u8
from parquet_variant.kernels.native_vectors import Memory, allocate, export_bytes, filled_vector, reserve_bytes
from parquet_variant.kernels.shredding.schema_table import (
    ARRAY_NODE,
    BUFFERS,
    COUNTS,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    VARIANT_NODE,
    S,
    SchemaTable,
)
from parquet_variant.types import MAX_OFFSET

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


_BLOB = pa.binary()
_NOTHING, _NO_LENGTHS = np.zeros(0, np.uint8), np.zeros(0, np.int32)


class NodeLeaf(NamedTuple):
    """A leaf column of shredded nodes: its entries (see `node_levels`), and its values, one after the other."""

    entries: tuple[int, ...]
    width: int  # Bytes of one value; 0 for byte arrays.
    data: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int32] | None = None  # Lengths of byte arrays.


class NodeLeaves(NamedTuple):
    """The levels of all entries, the entries of the rows, and the leaves except metadata, in the order of a file."""

    levels: npt.NDArray[np.uint8]
    group: tuple[int, ...]
    leaves: list[NodeLeaf]


class ShreddedRows:
    """Rows under a schema, in buffers that become either an Arrow storage or the leaves of a file.

    `valid` is one byte per row, 0 for SQL NULL, or None if no row is NULL. `counts` is ``int64[schema nodes, 4]``, as
    `measure` fills it. `levels` has the entries of each level. `exported` has the addresses of buffers that `shred` has
    filled; without it, buffers are allocated for `shred_tape.fill`. Raises `VariantError` with reason ``too-large`` if
    one column would hold more than 2 GiB: the caller works on fewer rows.
    """

    def __init__(
        self,
        table: SchemaTable,
        metadata: pa.DictionaryArray,
        valid: npt.NDArray[np.uint8] | None,
        counts: Int64s,
        levels: Int64s,
        exported: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.metadata, self.valid = metadata, valid
        self.table = table
        self._count_table, self._slots = counts, levels
        self.counts: list[list[int]] = counts.tolist()
        # Lists, because indexing a NumPy array from Python is five times slower.
        self._entries: list[int] = levels[table.nodes[:, S.LEVEL]].tolist()
        self._kinds, self._widths = table.kinds, table.widths
        self._nulls: dict[tuple[int, int], pa.Array] = {}
        self.addresses = np.zeros((len(table.nodes), len(BUFFERS)), np.int64) if exported is None else exported
        # Each buffer is released when it becomes part of an array. Exported buffers are adopted first, because the
        # check may raise.
        self._buffers: dict[tuple[int, int], npt.NDArray[Any]] = {} if exported is None else self._adopted()
        if counts.max(initial=0) > MAX_OFFSET or levels.max() > MAX_OFFSET:
            raise VariantError(
                "a column of these rows would hold more than 2 GiB: shred fewer rows at a time, such as array[:1000]",
                reason="too-large",
            )
        for s, column, dtype, size in self._needed():
            if (s, column) not in self._buffers:
                # The bytes of strings and values need not be zero.
                is_bytes = column in (BUFFERS.VALUE_DATA, BUFFERS.TYPED_DATA)
                self._buffers[s, column] = np.empty(size, dtype) if is_bytes else np.zeros(size, dtype)
                self.addresses[s, column] = address_of(self._buffers[s, column])

    def _needed(self) -> Iterator[tuple[int, int, type[np.generic], int]]:
        """Yield schema node, column, type and size of each buffer that is needed."""
        for s, (entries, sizes) in enumerate(zip(self._entries, self.counts, strict=True)):
            if sizes[COUNTS.VALUE_COUNT] or self._is_required(s):
                yield s, BUFFERS.VALUE_LENGTHS, np.int32, entries
                yield s, BUFFERS.VALUE_VALID, np.uint8, entries
                yield s, BUFFERS.VALUE_DATA, np.uint8, sizes[COUNTS.VALUE_BYTES]
            if not sizes[COUNTS.TYPED_COUNT]:
                continue
            kind, width = self._kinds[s], self._widths[s]
            if sizes[COUNTS.TYPED_COUNT] < entries:
                yield s, BUFFERS.TYPED_VALID, np.uint8, entries
            if kind == ARRAY_NODE or (kind == PRIMITIVE_NODE and width == 0):
                yield s, BUFFERS.LENGTHS, np.int32, entries
            if kind == PRIMITIVE_NODE and width == 0:
                yield s, BUFFERS.TYPED_DATA, np.uint8, sizes[COUNTS.TYPED_BYTES]
            elif kind == PRIMITIVE_NODE:
                yield s, BUFFERS.CELLS, np.uint8, entries * width

    def _adopted(self) -> dict[tuple[int, int], npt.NDArray[Any]]:
        """Return the buffers that a kernel has exported."""
        addresses = self.addresses.tolist()
        return {
            (s, column): adopt_bytes(addresses[s][column], size * np.dtype(dtype).itemsize).view(dtype)
            for s, column, dtype, size in self._needed()
            if addresses[s][column]
        }

    def _is_required(self, s: int) -> bool:
        """Return whether the ``value`` column must not be null, because nothing is shredded."""
        return s == 0 and self.table.schema.kind == "variant"

    def _value(self, s: int) -> pa.Array:
        if self._is_required(s):
            return binary_array(
                self._buffers[s, BUFFERS.VALUE_LENGTHS], self._buffers[s, BUFFERS.VALUE_DATA], None, _BLOB
            )
        if not self.counts[s][COUNTS.VALUE_COUNT]:
            return self._nothing(s, _BLOB)
        valid = self._buffers.pop((s, BUFFERS.VALUE_VALID))
        is_full = self.counts[s][COUNTS.VALUE_COUNT] == self._entries[s]
        lengths, data = self._buffers.pop((s, BUFFERS.VALUE_LENGTHS)), self._buffers.pop((s, BUFFERS.VALUE_DATA))
        return binary_array(lengths, data, None if is_full else valid, _BLOB)

    def _nothing(self, s: int, kind: pa.DataType) -> pa.Array:
        """Return a column without values; such columns of a level and type are shared."""
        # A type's own hash is slow, and the table keeps the type alive.
        key = self._entries[s], id(kind)
        if key not in self._nulls:
            self._nulls[key] = pa.nulls(key[0], kind)
        return self._nulls[key]

    def _typed(self, s: int) -> pa.Array:
        node_type, entries = self.table.typed[s], self._entries[s]
        valid = self._buffers.pop((s, BUFFERS.TYPED_VALID), None)
        kind = self._kinds[s]
        if kind == OBJECT_NODE:
            groups = [self._group(c) for c in self.table.children[s]]
            if not self.counts[s][COUNTS.TYPED_COUNT]:
                valid = np.zeros(entries, np.uint8)
            return pa.Array.from_buffers(node_type, entries, [bitmap(valid)], children=groups)
        if kind == ARRAY_NODE:
            element = self._group(self.table.children[s][0])
            lengths = self._buffers.pop((s, BUFFERS.LENGTHS), None)
            if lengths is None:
                lengths, valid = np.zeros(entries, np.int32), np.zeros(entries, np.uint8)
            offsets = np.zeros(entries + 1, np.int32)
            np.cumsum(lengths, dtype=np.int32, out=offsets[1:])
            return pa.Array.from_buffers(node_type, entries, [bitmap(valid), pa.py_buffer(offsets)], children=[element])
        if not self.counts[s][COUNTS.TYPED_COUNT]:
            return self._nothing(s, node_type)
        if self._widths[s] == 0:
            return binary_array(
                self._buffers.pop((s, BUFFERS.LENGTHS)), self._buffers.pop((s, BUFFERS.TYPED_DATA)), valid, node_type
            )
        slots = self._buffers.pop((s, BUFFERS.CELLS))
        if node_type == pa.bool_():
            return pa.Array.from_buffers(node_type, entries, [bitmap(valid), bitmap(slots)])
        storage = node_type.storage_type if isinstance(node_type, pa.BaseExtensionType) else node_type
        array = pa.Array.from_buffers(storage, entries, [bitmap(valid), pa.py_buffer(slots)])
        return array if storage is node_type else pa.ExtensionArray.from_storage(node_type, array)

    def _columns(self, s: int) -> list[pa.Array]:
        return [self._value(s)] if self._kinds[s] == VARIANT_NODE else [self._value(s), self._typed(s)]

    def _group(self, s: int) -> pa.Array:
        return pa.Array.from_buffers(self.table.groups[s], self._entries[s], [None], children=self._columns(s))

    def __len__(self) -> int:
        return len(self.metadata)

    @property
    def null_count(self) -> int:
        """Number of SQL NULL rows."""
        return 0 if self.valid is None else len(self) - int(self.valid.sum())

    def storage(self) -> pa.StructArray:
        """Return the whole storage struct: metadata, value and, unless nothing is shredded, typed_value."""
        storage, metadata = self.table.storage, self.metadata
        if metadata.type != storage.field(0).type:
            storage = pa.struct([pa.field("metadata", metadata.type, nullable=False), *self.table.groups[0]])
        return pa.Array.from_buffers(storage, len(self), [bitmap(self.valid)], children=[metadata, *self._columns(0)])

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the Arrow storage."""
        entries = self._slots[self.table.nodes[:, S.LEVEL]]
        data = self._count_table[:, (COUNTS.VALUE_BYTES, COUNTS.TYPED_BYTES)].sum()
        return int(entries @ self.table.slot_bytes) + int(data) + int(self.metadata.nbytes)

    def leaves(self) -> NodeLeaves:
        """Return the leaf columns of a file.

        The buffers are changed, so that nothing else can be made of them afterwards.
        """
        entries = np.empty((ENTRY_ROWS * len(self._kinds), ENTRY_COLUMNS), np.int64)
        columns = FilledColumns(self.table.nodes, self._count_table, self.addresses, self._slots)
        address = 0 if self.valid is None else address_of(self.valid)
        levels = adopt_bytes(*node_levels(columns, address, self._is_required(0), entries))
        rows = list(map(tuple, entries[:, :LEAF_COLUMNS].tolist()))
        leaves, pop = [], self._buffers.pop
        for s, (kind, width) in enumerate(zip(self._kinds, self._widths, strict=True)):
            value, typed = rows[ENTRY_ROWS * s + E_VALUE], rows[ENTRY_ROWS * s + E_TYPED]
            lengths = pop((s, BUFFERS.VALUE_LENGTHS), _NO_LENGTHS)[: value[E_PRESENT]]
            leaves.append(NodeLeaf(value, 0, pop((s, BUFFERS.VALUE_DATA), _NOTHING), lengths))
            if kind == PRIMITIVE_NODE and width:
                leaves.append(NodeLeaf(typed, width, pop((s, BUFFERS.CELLS), _NOTHING)[: typed[E_PRESENT] * width]))
            elif kind == PRIMITIVE_NODE:
                lengths = pop((s, BUFFERS.LENGTHS), _NO_LENGTHS)[: typed[E_PRESENT]]
                leaves.append(NodeLeaf(typed, 0, pop((s, BUFFERS.TYPED_DATA), _NOTHING), lengths))
        return NodeLeaves(levels, rows[E_GROUP], leaves)
