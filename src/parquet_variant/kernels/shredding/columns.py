"""The buffers of shredded values, as Arrow arrays or as the leaves of a file.

Owns allocation of the buffers, their assembly into Arrow structs, and the choice of buffers for each leaf column.
Leaves filling them to `shred_tape` and `shred`, which share the count and address tables, and levels to `node_levels`.
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
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.shredding.node_levels import (
    E_GROUP,
    E_PRESENT,
    E_TYPED,
    E_VALUE,
    ENTRY_COLUMNS,
    ENTRY_ROWS,
    LEAF_COLUMNS,
    FilledColumns,
    node_levels,
)
from parquet_variant.kernels.shredding.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    VARIANT_NODE,
    S,
    SchemaTable,
)
from parquet_variant.kernels.shredding.shred_tape import BUFFERS, COUNTS
from parquet_variant.types import MAX_OFFSET

Int64s = npt.NDArray[np.int64]
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


class ColumnBuffers:
    """The buffers of one shredded storage, before they become Arrow arrays.

    `counts` is ``int64[schema nodes, 4]``, as `measure` fills it; `levels` has the entries of each level; `exported` is
    the addresses of buffers that `shred` has filled; without it, buffers are allocated for `shred_tape.fill`. Raises
    `VariantError` with reason ``too-large`` if one column would hold more than 2 GiB: the caller works on fewer rows.
    """

    def __init__(
        self, table: SchemaTable, counts: Int64s, levels: Int64s, exported: npt.NDArray[np.int64] | None = None
    ) -> None:
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

    def storage(self, metadata: pa.Array, valid: npt.NDArray[np.uint8] | None) -> pa.StructArray:
        """Return the whole storage struct: metadata, value and, unless nothing is shredded, typed_value.

        ``valid`` is one byte per row, 0 for SQL NULL; None if no row is NULL.
        """
        storage = self.table.storage
        if metadata.type != storage.field(0).type:
            storage = pa.struct([pa.field("metadata", metadata.type, nullable=False), *self.table.groups[0]])
        return pa.Array.from_buffers(storage, len(metadata), [bitmap(valid)], children=[metadata, *self._columns(0)])

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the Arrow storage, without its metadata."""
        entries = self._slots[self.table.nodes[:, S.LEVEL]]
        return int(entries @ self.table.slot_bytes) + int(
            self._count_table[:, (COUNTS.VALUE_BYTES, COUNTS.TYPED_BYTES)].sum()
        )

    def leaves(self, valid: npt.NDArray[np.uint8] | None) -> NodeLeaves:
        """Return the leaf columns of a file. `valid` is the same as in `storage`.

        The buffers are changed, so that nothing else can be made of them afterwards.
        """
        entries = np.empty((ENTRY_ROWS * len(self._kinds), ENTRY_COLUMNS), np.int64)
        columns = FilledColumns(self.table.nodes, self._count_table, self.addresses, self._slots)
        address = 0 if valid is None else address_of(valid)
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
