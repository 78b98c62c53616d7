"""A shredding schema as a flat table, so that one kernel serves any schema.

Owns the numbering of schema nodes (depth first, as `ShreddingSchema.walk` yields them) and of levels: level 0 counts
rows, and every array opens a level that counts its elements. Leaves the choice of shredded paths to `schema`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.machine_code.functions import numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import address_of
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types import TYPE_OF_ARROW, TYPES, PrimitiveId, decimal_type_for_precision
from parquet_variant.types.path import WILDCARD

VARIANT_NODE, PRIMITIVE_NODE, ARRAY_NODE, OBJECT_NODE = range(4)
_KINDS = {"variant": VARIANT_NODE, "primitive": PRIMITIVE_NODE, "array": ARRAY_NODE, "object": OBJECT_NODE}

# Columns of the table. CODE is the PrimitiveId of a primitive (true stands for boolean); WIDTH the bytes of one slot of
# its Arrow array, 0 for strings and binary; END the first node after the subtree; LEVEL where the node's entries count.
S = numbered("KIND CODE PRECISION SCALE WIDTH LEVEL PARENT END")
# Columns of the table of counts, which has one row per schema node.
COUNTS = numbered("VALUE_COUNT VALUE_BYTES TYPED_COUNT TYPED_BYTES")
# Columns of the table of addresses of the buffers of each schema node; 0 for missing buffers.
BUFFERS = numbered("VALUE_LENGTHS VALUE_VALID VALUE_DATA TYPED_VALID LENGTHS CELLS TYPED_DATA")
_OFFSET_BYTES = 4


def primitive_code(arrow_type: pa.DataType) -> PrimitiveId:
    """Return the PrimitiveId that stands for a shredded type; for decimals by precision."""
    if pa.types.is_decimal128(arrow_type):
        return TYPES[decimal_type_for_precision(arrow_type.precision)].ids[0]
    return TYPE_OF_ARROW[arrow_type].ids[0]


def _slot_width(arrow_type: pa.DataType) -> int:
    if arrow_type == pa.bool_():
        return 1  # a byte in kernels, a bit in Arrow
    if arrow_type in (pa.string(), pa.binary()):
        return 0
    return int(arrow_type.bit_width) // 8


class NamedNodes(NamedTuple):
    """The nodes of a schema as kernels take them."""

    nodes: Int64Table  # ``int64[n, 8]``, columns as named above.
    # Address and length of each node's field name in UTF-8; the length is -1 for the root and for array elements.
    addresses: Int64s
    lengths: Int64s
    owner: object  # Keeps the names alive.


@dataclass(frozen=True, eq=False)
class SchemaTable:
    """The nodes of a schema."""

    schema: ShreddingSchema  # The schema itself.
    nodes: npt.NDArray[np.int64]  # ``int64[n, 8]``, columns as named above.
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
        kinds, widths = self.nodes[:, S.KIND], self.nodes[:, S.WIDTH].astype(np.float64)
        widths[(kinds == ARRAY_NODE) | ((kinds == PRIMITIVE_NODE) & (widths == 0))] = _OFFSET_BYTES
        return _OFFSET_BYTES + widths + 2 / 8

    @cached_property
    def named(self) -> NamedNodes:
        """The nodes with their names."""
        owner = [np.frombuffer((name or "").encode() + b"\0", np.uint8) for name in self.names]
        lengths = [-1 if name is None else len(text) - 1 for name, text in zip(self.names, owner, strict=True)]
        addresses = np.array([address_of(text) for text in owner], np.int64)
        return NamedNodes(self.nodes, addresses, np.array(lengths, np.int64), owner)


@lru_cache(maxsize=64)
def schema_table(schema: ShreddingSchema) -> SchemaTable:
    """Number the nodes of a schema."""
    walked = list(schema.walk())
    nodes = np.zeros((len(walked), len(S)), np.int64)
    index = {path: i for i, (path, _) in enumerate(walked)}
    levels = 1
    for i, (path, node) in enumerate(walked):
        parent = index[path.parent] if i else -1
        nodes[i, S.KIND] = _KINDS[node.kind]
        nodes[i, S.PARENT] = parent
        nodes[i, S.END] = i + 1
        if parent >= 0:
            nodes[i, S.LEVEL] = nodes[parent, S.LEVEL]
            if path.segments[-1] is WILDCARD:
                nodes[i, S.LEVEL] = levels
                levels += 1
        if node.type is not None:
            nodes[i, S.CODE] = primitive_code(node.type)
            nodes[i, S.WIDTH] = _slot_width(node.type)
            if pa.types.is_decimal128(node.type):
                nodes[i, S.PRECISION], nodes[i, S.SCALE] = node.type.precision, node.type.scale
    for i in range(len(walked) - 1, 0, -1):
        parent = nodes[i, S.PARENT]
        nodes[parent, S.END] = max(nodes[parent, S.END], nodes[i, S.END])
    names = tuple(next((s for s in path.segments[-1:] if isinstance(s, str)), None) for path, _ in walked)
    return SchemaTable(schema, nodes, names, tuple(node for _, node in walked), levels)
