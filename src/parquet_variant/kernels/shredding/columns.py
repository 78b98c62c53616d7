"""The buffers of shredded values, as Arrow arrays or as the leaves of a file.

Owns allocation of the buffers, their assembly into Arrow structs, and the columns with a slot per entry of which
`files.parquet.pages` makes pages without Arrow arrays in between. Leaves filling the buffers to `shred_tape` and
`shred`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.kernels.buffer_pool import adopt_bytes
from parquet_variant.kernels.machine_code.signatures import Int64s
from parquet_variant.kernels.memory import address_of
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

_BLOB = pa.binary()
_NOTHING = np.zeros(0, np.uint8)


class NodeColumn(NamedTuple):
    """The column ``value`` or ``typed_value`` of a schema node, with a slot for each entry of its level."""

    slots: int
    present: int  # Number of slots that are not null.
    validity: pa.Buffer | None  # Arrow's bits if some slots are null, but not all.
    width: int  # Bytes of a slot; 0 for byte arrays, and for columns without values of their own.
    data: npt.NDArray[np.uint8]
    lengths: npt.NDArray[np.int32] | None  # Lengths of byte arrays and lists.

    @property
    def nulls(self) -> int:
        """Number of slots that are null."""
        return self.slots - self.present


# Buffers of the columns ``value`` and ``typed_value``: validity, lengths and bytes, and the number of values.
_PARTS = (
    (BUFFERS.VALUE_VALID, BUFFERS.VALUE_LENGTHS, BUFFERS.VALUE_DATA, COUNTS.VALUE_COUNT),
    (BUFFERS.TYPED_VALID, BUFFERS.LENGTHS, BUFFERS.TYPED_DATA, COUNTS.TYPED_COUNT),
)


def _offset_buffer(lengths: npt.NDArray[np.int32]) -> pa.Buffer:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, dtype=np.int32, out=offsets[1:])
    return pa.py_buffer(offsets)


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
        nodes = zip(self.table.kinds, self.table.widths, self._entries, self.counts, strict=True)
        for s, (kind, width, entries, sizes) in enumerate(nodes):
            if sizes[COUNTS.VALUE_COUNT] or self.is_required(s):
                yield s, BUFFERS.VALUE_LENGTHS, np.int32, entries
                yield s, BUFFERS.VALUE_VALID, np.uint8, entries
                yield s, BUFFERS.VALUE_DATA, np.uint8, sizes[COUNTS.VALUE_BYTES]
            if not sizes[COUNTS.TYPED_COUNT]:
                continue
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

    def is_required(self, s: int) -> bool:
        """Return whether the ``value`` column must not be null, because nothing is shredded."""
        return s == 0 and self.table.schema.kind == "variant"

    def column(self, s: int, is_typed: bool) -> NodeColumn:
        """Return the column ``value`` or ``typed_value`` of a schema node, whose buffers the caller gets."""
        valid, lengths, data, count = _PARTS[is_typed]
        slots, present = self._entries[s], self.counts[s][count]
        width = self.table.widths[s] if is_typed else 0
        bits = self._buffers.pop((s, valid), None)
        return NodeColumn(
            slots,
            present,
            bitmap(bits) if 0 < present < slots else None,
            width,
            self._buffers.pop((s, BUFFERS.CELLS if width else data), _NOTHING),
            self._buffers.pop((s, lengths), None),
        )

    def _array(self, s: int, is_typed: bool) -> pa.Array:
        """Return the column ``value`` or ``typed_value`` of a schema node as an Arrow array."""
        node_type, kind = (self.table.typed[s], self.table.kinds[s]) if is_typed else (_BLOB, PRIMITIVE_NODE)
        slots, present, validity, _, data, lengths = self.column(s, is_typed)
        if not is_typed and self.is_required(s):
            validity = None
        elif not present and kind == PRIMITIVE_NODE:
            # Such columns of a level and type are shared. A type's own hash is slow, and the table keeps it alive.
            key = slots, id(node_type)
            if key not in self._nulls:
                self._nulls[key] = pa.nulls(slots, node_type)
            return self._nulls[key]
        elif not present:
            validity, lengths = bitmap(np.zeros(slots, np.uint8)), np.zeros(slots, np.int32)
        children = [self._group(child) for child in self.table.children[s]] if kind != PRIMITIVE_NODE else None
        buffers = [validity]
        if kind != OBJECT_NODE and lengths is not None:
            buffers.append(_offset_buffer(lengths))
        if kind == PRIMITIVE_NODE:
            buffers.append(bitmap(data) if node_type == pa.bool_() else pa.py_buffer(data))
        storage = node_type.storage_type if isinstance(node_type, pa.BaseExtensionType) else node_type
        array = pa.Array.from_buffers(storage, slots, buffers, children=children)
        return array if storage is node_type else pa.ExtensionArray.from_storage(node_type, array)

    def _columns(self, s: int) -> list[pa.Array]:
        is_shredded = self.table.kinds[s] != VARIANT_NODE
        return [self._array(s, is_typed) for is_typed in (False, True)[: 1 + is_shredded]]

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
