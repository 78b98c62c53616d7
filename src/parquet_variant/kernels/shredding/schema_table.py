"""A shredding schema as a flat table, so that one kernel serves any schema, and rows under a schema.

Owns the numbering of schema nodes (depth first, as `ShreddingSchema.walk` yields them) and of levels: level 0 counts
rows, and every array opens a level that counts its elements. Owns also the buffers of shredded values, as Arrow arrays
or as columns of which `files.parquet.pages` makes pages. Leaves filling the buffers to `shred_tape` and `shred`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import bitmap, offsets_of
from parquet_variant.kernels.buffer_pool import adopt_bytes
from parquet_variant.kernels.machine_code.functions import numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import address_of
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import MAX_OFFSET, TYPE_OF_ARROW, TYPES, decimal_type_for_precision
from parquet_variant.types.path import WILDCARD

VARIANT_NODE, PRIMITIVE_NODE, ARRAY_NODE, OBJECT_NODE = range(4)
_KINDS = {"variant": VARIANT_NODE, "primitive": PRIMITIVE_NODE, "array": ARRAY_NODE, "object": OBJECT_NODE}

# Columns of the table. CODE is the PrimitiveId of a primitive (true stands for boolean); WIDTH the bytes of one slot of
# its Arrow array, 0 for strings and binary; SLOT_BYTES those of an entry of the buffer SLOTS, 0 without it; END
# the first node after the subtree; LEVEL where the node's entries count.
S = numbered("KIND CODE PRECISION SCALE WIDTH SLOT_BYTES LEVEL PARENT END")
# Columns of the records of buffers, two per schema node, for ``value`` and ``typed_value``: the addresses of validity,
# slots (values of a fixed width, or the lengths of strings, binary and arrays) and bytes, 0 for missing buffers; and
# the numbers of values and bytes. While buffers grow (`growing_columns`), DATA is the address of the next byte, BYTES
# the expected number of bytes, ROOM the number of entries that have room; BEGIN and END limit the room for bytes.
BUFFERS = numbered("VALID SLOTS DATA COUNT BYTES ROOM BEGIN END")
_OFFSET_BYTES = 4


def _slot_width(arrow_type: pa.DataType) -> int:
    if arrow_type == pa.bool_():
        return 1  # a byte in kernels, a bit in Arrow
    if arrow_type in (pa.string(), pa.binary()):
        return 0
    return int(arrow_type.bit_width) // 8


class NamedNodes(NamedTuple):
    """The nodes of a schema as kernels take them."""

    nodes: Int64Table  # ``int64[n, 9]``, columns as named above.
    # Address and length of each node's field name in UTF-8; the length is -1 for the root and for array elements.
    addresses: Int64s
    lengths: Int64s
    owner: object  # Keeps the names alive.


class SchemaTable(Record, eq=False):
    """The nodes of a schema."""

    schema: ShreddingSchema  # The schema itself.
    nodes: npt.NDArray[np.int64]  # ``int64[n, 9]``, columns as named above.
    names: tuple[str | None, ...]  # The field name of each node; None for the root and for array elements.
    schemas: tuple[ShreddingSchema, ...]  # The `ShreddingSchema` of each node.
    levels: int  # Number of levels.

    @cached_property
    def parents(self) -> list[int]:
        """The parent of each node; -1 for the root."""
        parents: list[int] = self.nodes[:, S.PARENT].tolist()
        return parents

    @cached_property
    def children(self) -> list[list[int]]:
        """The children of each node."""
        children: list[list[int]] = [[] for _ in self.names]
        for s, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(s)
        return children

    @cached_property
    def groups(self) -> list[pa.StructType]:
        """The Arrow type of each node's columns: ``value``, and ``typed_value`` if the node is shredded."""
        groups: list[pa.StructType] = [None] * len(self.names)
        for s in range(len(self.names) - 1, -1, -1):
            node = self.schemas[s]
            fields = [pa.field("value", pa.binary(), nullable=s > 0 or node.kind != "variant")]
            names = ((c, "element" if self.names[c] is None else self.names[c]) for c in self.children[s])
            inner_groups = [pa.field(name, groups[c], nullable=False) for c, name in names]
            if node.kind != "variant":
                typed = {"object": pa.struct, "array": lambda fields: pa.list_(*fields)}.get(node.kind)
                fields.append(pa.field("typed_value", typed(inner_groups) if typed else node.type))
            groups[s] = pa.struct(fields)
        return groups

    @cached_property
    def storage(self) -> pa.StructType:
        """The Arrow type of the storage, with metadata that kernels have made."""
        metadata = pa.field("metadata", pa.dictionary(pa.int32(), pa.binary()), nullable=False)
        return pa.struct([metadata, *self.groups[0]])

    @cached_property
    def kinds(self) -> list[int]:
        """The kind of each node, as a list, because indexing a NumPy array from Python is five times slower."""
        kinds: list[int] = self.nodes[:, S.KIND].tolist()
        return kinds

    @cached_property
    def widths(self) -> list[int]:
        """The width of each node, as a list."""
        widths: list[int] = self.nodes[:, S.WIDTH].tolist()
        return widths

    @cached_property
    def typed(self) -> list[pa.DataType]:
        """The Arrow type of each node's ``typed_value``, or of ``value`` if not shredded.

        Equal types are one object.
        """
        shared: dict[pa.DataType, pa.DataType] = {}
        types = (group.field(group.num_fields - 1).type for group in self.groups)
        return [shared.setdefault(arrow_type, arrow_type) for arrow_type in types]

    @cached_property
    def slot_bytes(self) -> npt.NDArray[np.float64]:
        """Bytes of a slot of each node's Arrow columns, without the bytes of strings."""
        return self.nodes[:, S.SLOT_BYTES].astype(np.float64) + _OFFSET_BYTES + 2 / 8

    @cached_property
    def named(self) -> NamedNodes:
        """The nodes with their names."""
        owner = [np.frombuffer((name or "").encode() + b"\0", np.uint8) for name in self.names]
        lengths = [-1 if name is None else len(text) - 1 for name, text in zip(self.names, owner, strict=True)]
        addresses = np.array([address_of(text) for text in owner], np.int64)
        return NamedNodes(self.nodes, addresses, np.array(lengths, np.int64), owner)


@lru_cache(maxsize=64)
def _numbered(schema: ShreddingSchema) -> SchemaTable:
    walked = list(schema.walk())
    nodes = np.zeros((len(walked), len(S)), np.int64)
    index = {path: i for i, (path, _) in enumerate(walked)}
    levels = 1
    for i, (path, node) in enumerate(walked):
        parent = index[path.parent] if i else -1
        nodes[i, S.KIND] = _KINDS[node.kind]
        nodes[i, S.PARENT] = parent
        nodes[i, S.END] = i + 1
        nodes[i, S.SLOT_BYTES] = _OFFSET_BYTES if node.kind == "array" else 0
        if parent >= 0:
            nodes[i, S.LEVEL] = nodes[parent, S.LEVEL]
            if path.segments[-1] is WILDCARD:
                nodes[i, S.LEVEL] = levels
                levels += 1
        if node.type is not None:
            is_decimal = pa.types.is_decimal128(node.type)
            info = TYPES[decimal_type_for_precision(node.type.precision)] if is_decimal else TYPE_OF_ARROW[node.type]
            nodes[i, S.CODE] = info.ids[0]
            nodes[i, S.WIDTH] = _slot_width(node.type)
            nodes[i, S.SLOT_BYTES] = nodes[i, S.WIDTH] or _OFFSET_BYTES
            if is_decimal:
                nodes[i, S.PRECISION], nodes[i, S.SCALE] = node.type.precision, node.type.scale
    for i in range(len(walked) - 1, 0, -1):
        parent = nodes[i, S.PARENT]
        nodes[parent, S.END] = max(nodes[parent, S.END], nodes[i, S.END])
    names = tuple(next((s for s in path.segments[-1:] if isinstance(s, str)), None) for path, _ in walked)
    return SchemaTable(schema, nodes, names, tuple(node for _, node in walked), levels)


# The latest storage types with their tables: comparing types takes much less time than Arrow's hash of one.
_latest_types: list[tuple[pa.DataType, SchemaTable]] = []


def schema_table(schema: ShreddingSchema | pa.StructType) -> SchemaTable:
    """Number the nodes of a schema, or of the schema of a storage type in any layout."""
    if isinstance(schema, ShreddingSchema):
        return _numbered(schema)
    table = next((table for latest, table in _latest_types if latest == schema), None)
    if table is None:
        table = _numbered(ShreddingSchema.from_storage(schema))
        _latest_types[:] = [(schema, table), *_latest_types[:7]]
    return table


class FilledBuffers(NamedTuple):
    """The columns that a kernel fills: the records of their buffers (`BUFFERS`), and the entries of each level."""

    records: Int64Table
    levels: Int64s

    @classmethod
    def of(cls, table: SchemaTable) -> FilledBuffers:
        """Return empty columns for the nodes of a schema."""
        return cls(np.zeros((2 * len(table.nodes), len(BUFFERS)), np.int64), np.zeros(table.levels, np.int64))


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


def _adopt(address: int, size: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a buffer, which are zeros if the kernel did not allocate it."""
    return adopt_bytes(address, size) if address else np.zeros(size, np.uint8)


class ShreddedRows:
    """Rows under a schema, in buffers that become either an Arrow storage or the leaves of a file.

    `valid` is one byte per row, 0 for SQL NULL, or None if no row is NULL; `filled` are the buffers of a kernel. Raises
    `VariantError` with reason ``too-large`` if a column holds more than 2 GiB: the caller works on fewer rows.
    """

    def __init__(
        self,
        table: SchemaTable,
        metadata: pa.DictionaryArray,
        valid: npt.NDArray[np.uint8] | None,
        filled: FilledBuffers,
    ) -> None:
        self.metadata, self.valid = metadata, valid
        self.table = table
        # Lists, because indexing a NumPy array from Python is five times slower.
        self._records: list[list[int]] = filled.records.tolist()
        self._entries: list[int] = filled.levels[table.nodes[:, S.LEVEL]].tolist()
        self._nulls: dict[tuple[int, int], pa.Array] = {}
        # Each buffer is released when it becomes part of an array. All are adopted first, because the check may raise.
        self._buffers = dict(enumerate(map(self._adopted, range(len(self._records)))))
        if max(*(record[BUFFERS.BYTES] for record in self._records), *self._entries) > MAX_OFFSET:
            raise VariantError(
                "a column of these rows would hold more than 2 GiB: shred fewer rows at a time, such as array[:1000]",
                reason="too-large",
            )

    def _adopted(self, number: int) -> tuple[npt.NDArray[np.uint8] | None, Any, npt.NDArray[np.uint8] | None]:
        """Return the validity, slots and bytes of a record; None for buffers that are not needed."""
        record, (s, is_typed) = self._records[number], divmod(number, 2)
        kind, entries, width = self.table.kinds[s], self._entries[s], self.table.widths[s] if is_typed else 0
        if not record[BUFFERS.COUNT] and (is_typed or not self.is_required(s)):
            return None, None, None
        valid = _adopt(record[BUFFERS.VALID], entries) if record[BUFFERS.COUNT] < entries else None
        slots = _adopt(record[BUFFERS.SLOTS], entries * (width or 4)) if not is_typed or kind != OBJECT_NODE else None
        has_data = not is_typed or (kind == PRIMITIVE_NODE and not width)
        data = _adopt(record[BUFFERS.DATA], record[BUFFERS.BYTES]) if has_data else None
        return valid, slots if slots is None or width else slots.view(np.int32), data

    def is_required(self, s: int) -> bool:
        """Return whether the ``value`` column must not be null, because nothing is shredded."""
        return s == 0 and self.table.schema.kind == "variant"

    def column(self, s: int, is_typed: bool) -> NodeColumn:
        """Return the column ``value`` or ``typed_value`` of a schema node, whose buffers the caller gets."""
        number, slots, width = 2 * s + is_typed, self._entries[s], self.table.widths[s] if is_typed else 0
        valid, lengths, data = self._buffers.pop(number)
        present = self._records[number][BUFFERS.COUNT]
        validity = bitmap(valid) if 0 < present < slots else None
        if width:
            lengths, data = None, lengths
        return NodeColumn(slots, present, validity, width, _NOTHING if data is None else data, lengths)

    def _array(self, s: int, is_typed: bool) -> pa.Array:
        """Return the column ``value`` or ``typed_value`` of a schema node as an Arrow array."""
        node_type, kind = (self.table.typed[s], self.table.kinds[s]) if is_typed else (_BLOB, PRIMITIVE_NODE)
        is_required = not is_typed and self.is_required(s)
        if not self._records[2 * s + is_typed][BUFFERS.COUNT] and kind == PRIMITIVE_NODE and not is_required:
            # Such columns of a level and type are shared. A type's own hash is slow, and the table keeps it alive.
            key = self._entries[s], id(node_type)
            if key not in self._nulls:
                self._nulls[key] = pa.nulls(self._entries[s], node_type)
            return self._nulls[key]
        slots, present, validity, _, data, lengths = self.column(s, is_typed)
        if is_required:
            validity = None
        elif not present:
            validity, lengths = bitmap(np.zeros(slots, np.uint8)), np.zeros(slots, np.int32)
        children = [self._group(child) for child in self.table.children[s]] if kind != PRIMITIVE_NODE else None
        buffers = [validity]
        if kind != OBJECT_NODE and lengths is not None:
            buffers.append(pa.py_buffer(offsets_of(lengths, np.int32)))
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
        data = sum(record[BUFFERS.BYTES] for record in self._records)
        return int(self._entries @ self.table.slot_bytes) + data + int(self.metadata.nbytes)
