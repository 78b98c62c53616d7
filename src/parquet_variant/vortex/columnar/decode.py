"""The columnar encoding to Variants: nodes in document order, then bytes.

Owns placing every value of every path among the nodes of its row. Leaves writing the bytes to
`kernels.values.value_nodes`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import metadata_of_all, storage_of
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.columns.column_slots import slots_of_column
from parquet_variant.kernels.arrow_buffers import offsets_of
from parquet_variant.kernels.kinds import OBJECT
from parquet_variant.kernels.values.value_nodes import value_array
from parquet_variant.types import PrimitiveId
from parquet_variant.vortex.columnar.column import BOOLEAN, Column

Int64s = npt.NDArray[np.int64]


def decode_columnar(size: int, root: Column, present: Int64s, names: Sequence[str] | None = None) -> VariantArray:
    """The values of the rows that are present, of so many, as an unshredded array; its rows share one dictionary.

    That has the ``names``, sorted, which encoded values among the children (`RAW`) refer to; by default all that fields
    have.
    """
    columns = _columns(root)
    if names is None:
        names = sorted({name for column in columns for child in column.children for name in child.fields})
    ids = {name: number for number, name in enumerate(names)}
    sizes = _sizes(columns)
    lengths = np.zeros(size, np.int64)
    lengths[present] = sizes[id(root)]
    row_start = offsets_of(lengths)
    nodes = np.zeros((int(row_start[-1]), 4), np.int64)
    starts = {id(root): row_start[:-1][present]}
    keys = {id(root): 0}
    kept = []
    for column in columns:
        at = starts.pop(id(column))
        kept.append(_place(column, at, keys.pop(id(column)), sizes, starts, keys, ids, nodes))
    mask = None if len(present) == size else pa.array(lengths == 0)
    return VariantArray(storage_of(metadata_of_all(names, size), value_array(nodes, row_start), mask))


def _columns(root: Column) -> list[Column]:
    """All columns, parents first."""
    columns = [root]
    for column in columns:  # the list grows while it is read
        for child in column.children:
            if child.elements is not None:
                columns.append(child.elements)
            columns.extend(each.column for each in child.fields.values())
    return columns


def _sizes(columns: list[Column]) -> dict[int, Int64s]:
    """For each column (by identity) the number of nodes of each value."""
    sizes: dict[int, Int64s] = {}
    for column in reversed(columns):
        size = np.ones(column.size, np.int64)
        for index, child in enumerate(column.children):
            if child.elements is not None and child.offsets is not None:
                ends = offsets_of(sizes[id(child.elements)])
                size[column.positions(index)] += np.diff(ends[child.offsets])
            elif child.kind == OBJECT:
                own = np.zeros(child.size, np.int64)
                for each in child.fields.values():
                    own[each.places(child.size)] += sizes[id(each.column)]
                size[column.positions(index)] += own
        sizes[id(column)] = size
    return sizes


def _place(
    column: Column,
    at: Int64s,
    key: int,
    sizes: dict[int, Int64s],
    starts: dict[int, Int64s],
    keys: dict[int, int],
    ids: dict[str, int],
    nodes: Int64s,
) -> list[pa.Array]:
    """Write the nodes of a column and say where those of the columns below begin."""
    kept = []
    nodes[at, 3] = at + sizes[id(column)]
    for index, child in enumerate(column.children):
        own = at[column.positions(index)]
        nodes[own, 0] = child.kind | child.code >> 8 << 8 | key << 16
        if child.values is not None:
            slots = slots_of_column(child.values)
            kept.append(slots.owner)
            nodes[own, 1], nodes[own, 2] = slots.a, slots.b
            if child.code == BOOLEAN:
                nodes[own, 0] = slots.kinds.astype(np.int64) | key << 16
        elif child.elements is not None and child.offsets is not None:
            lengths = np.diff(child.offsets)
            nodes[own, 1] = lengths
            ends = offsets_of(sizes[id(child.elements)])
            starts[id(child.elements)] = ends[:-1] + np.repeat(own + 1 - ends[child.offsets[:-1]], lengths)
            keys[id(child.elements)] = 0
        elif child.kind == OBJECT:
            cursor = own + 1
            for name, each in child.fields.items():
                places = each.places(child.size)
                nodes[own[places], 1] += 1
                starts[id(each.column)] = cursor[places]
                cursor[places] += sizes[id(each.column)]
                keys[id(each.column)] = ids[name]
        else:
            assert child.kind == PrimitiveId.NULL
    return kept
