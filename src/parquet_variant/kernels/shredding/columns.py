"""Arrow arrays around the buffers that kernels fill.

Owns allocation of the buffers of a shredded storage and their assembly into Arrow structs. Leaves filling them to
`shred_tape` and `shred`, which share the count and address tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import binary_array, bitmap, offsets_of
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.shredding.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    S_END,
    S_KIND,
    S_LEVEL,
    S_PARENT,
    S_WIDTH,
    SchemaTable,
)
from parquet_variant.kernels.shredding.shred_tape import (
    C_CELLS,
    C_LENGTHS,
    C_TYPED_BYTES,
    C_TYPED_COUNT,
    C_TYPED_DATA,
    C_TYPED_VALID,
    C_VALUE_BYTES,
    C_VALUE_COUNT,
    C_VALUE_DATA,
    C_VALUE_LENGTHS,
    C_VALUE_VALID,
)
from parquet_variant.types import MAX_OFFSET

__all__ = ["ColumnBuffers"]

Int64s = npt.NDArray[np.int64]


class ColumnBuffers:
    """The buffers of one shredded storage, before they become Arrow.

    Parameters
    ----------
    table
        The schema.
    counts
        ``int64[schema nodes, 4]``, as `measure` fills it.
    levels
        ``int64[levels]``: entries of each level.

    Raises
    ------
    VariantError
        With reason ``too-large``, if one column would hold more than 2 GiB: the caller works on fewer rows.
    """

    def __init__(self, table: SchemaTable, counts: Int64s, levels: Int64s) -> None:
        self.table = table
        self.counts = counts
        self.levels = levels
        # Each is let go once it is in an array.
        self._kept: dict[tuple[int, int], npt.NDArray[Any]] = {}
        self._nulls: dict[tuple[int, pa.DataType], pa.Array] = {}
        self.addresses = np.zeros((len(table.nodes), 7), np.int64)
        if counts[:, (C_VALUE_BYTES, C_TYPED_BYTES)].max(initial=0) > MAX_OFFSET or levels.max() > MAX_OFFSET:
            raise VariantError(
                "a column of these rows would hold more than 2 GiB: shred fewer rows at a time, such as array[:1000]",
                reason="too-large",
            )
        for s in range(len(table.nodes)):
            entries = self._entries(s)
            if counts[s, C_VALUE_COUNT] or self._is_required(s):
                self._allocate(s, C_VALUE_LENGTHS, np.zeros(entries, np.int32))
                self._allocate(s, C_VALUE_VALID, np.zeros(entries, np.uint8))
                self._allocate(s, C_VALUE_DATA, np.empty(int(counts[s, C_VALUE_BYTES]), np.uint8))
            if not counts[s, C_TYPED_COUNT]:
                continue
            kind, width = int(table.nodes[s, S_KIND]), int(table.nodes[s, S_WIDTH])
            if counts[s, C_TYPED_COUNT] < entries:
                self._allocate(s, C_TYPED_VALID, np.zeros(entries, np.uint8))
            if kind == ARRAY_NODE or (kind == PRIMITIVE_NODE and width == 0):
                self._allocate(s, C_LENGTHS, np.zeros(entries, np.int32))
            if kind == PRIMITIVE_NODE and width == 0:
                self._allocate(s, C_TYPED_DATA, np.empty(int(counts[s, C_TYPED_BYTES]), np.uint8))
            elif kind == PRIMITIVE_NODE:
                self._allocate(s, C_CELLS, np.zeros(entries * width, np.uint8))

    def _entries(self, s: int) -> int:
        return int(self.levels[self.table.nodes[s, S_LEVEL]])

    def _allocate(self, s: int, column: int, array: npt.NDArray[Any]) -> None:
        self._kept[s, column] = array
        self.addresses[s, column] = address_of(array)

    def _is_required(self, s: int) -> bool:
        """Whether the ``value`` column may not be null: where nothing is shredded at all."""
        return s == 0 and self.table.schema.kind == "variant"

    def _value(self, s: int) -> pa.Array:
        if self._is_required(s):
            return binary_array(self._kept[s, C_VALUE_LENGTHS], self._kept[s, C_VALUE_DATA], None, pa.binary())
        if not self.counts[s, C_VALUE_COUNT]:
            return self._nothing(s, pa.binary())
        valid = self._kept.pop((s, C_VALUE_VALID))
        is_full = self.counts[s, C_VALUE_COUNT] == self._entries(s)
        lengths, data = self._kept.pop((s, C_VALUE_LENGTHS)), self._kept.pop((s, C_VALUE_DATA))
        return binary_array(lengths, data, None if is_full else valid, pa.binary())

    def _nothing(self, s: int, kind: pa.DataType) -> pa.Array:
        """A column without values; those of a level share one."""
        key = self._entries(s), kind
        if key not in self._nulls:
            self._nulls[key] = pa.nulls(*key)
        return self._nulls[key]

    def _children(self, s: int) -> list[int]:
        nodes = self.table.nodes
        return [c for c in range(s + 1, int(nodes[s, S_END])) if nodes[c, S_PARENT] == s]

    def _typed(self, s: int) -> pa.Array:
        node, entries = self.table.schemas[s], self._entries(s)
        valid = self._kept.pop((s, C_TYPED_VALID), None)
        kind = int(self.table.nodes[s, S_KIND])
        if kind == OBJECT_NODE:
            groups = [(self.table.names[c], self._group(c)) for c in self._children(s)]
            fields = [pa.field(name, group.type, nullable=False) for name, group in groups]
            if not self.counts[s, C_TYPED_COUNT]:
                valid = np.zeros(entries, np.uint8)
            return pa.Array.from_buffers(
                pa.struct(fields), entries, [bitmap(valid)], children=[group for _, group in groups]
            )
        if kind == ARRAY_NODE:
            element = self._group(self._children(s)[0])
            list_type = pa.list_(pa.field("element", element.type, nullable=False))
            lengths = self._kept.pop((s, C_LENGTHS), None)
            if lengths is None:
                lengths, valid = np.zeros(entries, np.int32), np.zeros(entries, np.uint8)
            buffers = [bitmap(valid), pa.py_buffer(offsets_of(lengths).astype(np.int32))]
            return pa.Array.from_buffers(list_type, entries, buffers, children=[element])
        assert node.type is not None
        if not self.counts[s, C_TYPED_COUNT]:
            return self._nothing(s, node.type)
        if self.table.nodes[s, S_WIDTH] == 0:
            return binary_array(self._kept.pop((s, C_LENGTHS)), self._kept.pop((s, C_TYPED_DATA)), valid, node.type)
        slots = self._kept.pop((s, C_CELLS))
        if node.type == pa.bool_():
            return pa.Array.from_buffers(node.type, entries, [bitmap(valid), bitmap(slots)])
        storage = node.type.storage_type if isinstance(node.type, pa.BaseExtensionType) else node.type
        array = pa.Array.from_buffers(storage, entries, [bitmap(valid), pa.py_buffer(slots)])
        return array if storage is node.type else pa.ExtensionArray.from_storage(node.type, array)

    def _group(self, s: int) -> pa.Array:
        arrays, fields = [self._value(s)], [pa.field("value", pa.binary(), nullable=not self._is_required(s))]
        if self.table.schemas[s].kind != "variant":
            typed = self._typed(s)
            arrays.append(typed)
            fields.append(pa.field("typed_value", typed.type))
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def storage(self, metadata: pa.Array, valid: npt.NDArray[np.uint8] | None) -> pa.StructArray:
        """The whole storage struct: metadata, value and, unless nothing is shredded, typed_value.

        ``valid`` is a byte a row, 0 for SQL NULL; None if there is none.
        """
        group = self._group(0)
        names = [field.name for field in group.type]
        fields = [pa.field("metadata", metadata.type, nullable=False), *group.type]
        arrays = [metadata, *(group.field(name) for name in names)]
        return pa.Array.from_buffers(pa.struct(fields), len(metadata), [bitmap(valid)], children=arrays)
