"""The tables of a tape while they grow: each key, path and sequence of keys ("shape") of a batch, stored once.

Owns finding and adding their rows, and the prediction of the next key. A shape is a node in a trie of key sequences
with one root per path, and remembers which key followed most recently, so that a key usually costs one comparison and
no hash. Leaves the columns of the tables to `tape`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, MIX_A, MIX_B, equal
from parquet_variant.kernels.native_vectors import (
    Memory,
    export_table,
    filled_vector,
    new_table,
    refilled_vector,
    reserve_rows,
)
from parquet_variant.kernels.tapes.tape import KEY, PATH, SHAPE

_ELEMENT_KEY: Any = np.int64(-1)  # key of the root, and of paths that stand for the elements of an array

# Address and shape of the tables of keys, paths and shapes, as a kernel returns them for `adopt`.
TableExports = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]


class HashedTable(NamedTuple):
    """A growing table inside a kernel."""

    rows: Int64Table  # ``int64[at least count, columns]``.
    slots: Int64s  # Hash table of row numbers, -1 in free slots; its length is a power of two.
    count: int  # type: ignore[assignment]  # Number of rows.


class Interned(NamedTuple):
    """The three tables of a batch."""

    keys: HashedTable
    paths: HashedTable
    shapes: HashedTable


@helper
def _hash_pair(left: int, right: int) -> int:
    """Return a 62-bit hash of two numbers."""
    value = (left * MIX_A + right) * MIX_B
    value ^= (value >> 31) & 0x1FFFFFFFF
    return value & 0x3FFFFFFFFFFFFFFF


@helper(inline=True)
def find_key(rows: Int64Table, slots: Int64s, address: int, length: int, hashed: int) -> int:
    """Return the id of a key, or -1 - slot of the hash table where it would be stored."""
    mask = len(slots) - 1
    slot = hashed & mask
    while slots[slot] >= 0:
        k = slots[slot]
        if (
            rows[k, KEY.HASH] == hashed
            and rows[k, KEY.LENGTH] == length
            and equal(rows[k, KEY.ADDRESS], address, length)
        ):
            return k
        slot = (slot + 1) & mask
    return -1 - slot


@helper
def add_key(keys: HashedTable, address: int, length: int, plain: int, hashed: int) -> tuple[int, HashedTable]:
    """Add a key that the table does not have yet; return ``(key, keys)``."""
    rows, slots, count = keys.rows, keys.slots, keys.count
    if count == len(rows):
        rows = reserve_rows(rows, count + 1)
        slots = refilled_vector(slots, 4 * len(rows), -1)
        for k in range(count):
            slots[-1 - find_key(rows, slots, rows[k, KEY.ADDRESS], rows[k, KEY.LENGTH], rows[k, KEY.HASH])] = k
    free_slot = -1 - find_key(rows, slots, address, length, hashed)
    rows[count, KEY.ADDRESS] = address
    rows[count, KEY.LENGTH] = length
    rows[count, KEY.HASH] = hashed
    rows[count, KEY.PLAIN] = plain
    slots[free_slot] = count
    return count, HashedTable(rows, slots, count + 1)


# Paths and shapes are both found by a pair: the parent, and the key that leads from the parent to them.


@helper(inline=True)
def _find_pair(rows: Int64Table, slots: Int64s, left_column: int, right_column: int, left: int, right: int) -> int:
    """Return the row of a table that holds a pair, or -1 - slot where it would be stored."""
    mask = len(slots) - 1
    slot = _hash_pair(left, right) & mask
    while slots[slot] >= 0:
        row = slots[slot]
        if rows[row, left_column] == left and rows[row, right_column] == right:
            return row
        slot = (slot + 1) & mask
    return -1 - slot


@helper
def _fill_slots(rows: Int64Table, slots: Int64s, count: int, left: int, right: int) -> None:
    """Store the rows of a table in an empty hash table."""
    for row in range(count):
        slots[-1 - _find_pair(rows, slots, left, right, rows[row, left], rows[row, right])] = row


@helper
def hashed_table(memory: Memory, rows: Int64Table, count: int, left: int, right: int) -> HashedTable:
    """Make the hash table of rows, which are unique in two of their columns; `rows` may grow later."""
    slots = filled_vector(memory, 4 * len(rows), -1)
    _fill_slots(rows, slots, count, left, right)
    return HashedTable(rows, slots, count)


@helper
def _add_pair(
    table: HashedTable, left_column: int, right_column: int, left: int, right: int
) -> tuple[int, HashedTable]:
    """Add the row of a pair that the table does not have yet; return ``(row, table)``."""
    rows, slots, count = table.rows, table.slots, table.count
    if count == len(rows):
        rows = reserve_rows(rows, count + 1)
        slots = refilled_vector(slots, 4 * len(rows), -1)
        _fill_slots(rows, slots, count, left_column, right_column)
    slots[-1 - _find_pair(rows, slots, left_column, right_column, left, right)] = count
    rows[count, left_column] = left
    rows[count, right_column] = right
    return count, HashedTable(rows, slots, count + 1)


@helper
def _path(paths: HashedTable, parent: int, key: int) -> tuple[int, HashedTable]:
    """Find or add a path; return ``(path, paths)``."""
    path = _find_pair(paths.rows, paths.slots, PATH.PARENT, PATH.KEY, parent, key)
    if path >= 0:
        return path, paths
    path, paths = _add_pair(paths, PATH.PARENT, PATH.KEY, parent, key)
    paths.rows[path, PATH.ELEMENT] = -1
    paths.rows[path, PATH.ROOT_SHAPE] = -1
    paths.rows[path, PATH.LAST_NODE] = -1
    return path, paths


@helper
def _add_shape(shapes: HashedTable, parent: int, key: int, path: int) -> tuple[int, HashedTable]:
    """Add a shape; return ``(shape, shapes)``."""
    shape, shapes = _add_pair(shapes, SHAPE.PARENT, SHAPE.KEY, parent, key)
    shapes.rows[shape, SHAPE.PATH] = path
    shapes.rows[shape, SHAPE.NEXT] = -1
    return shape, shapes


@helper
def _add_children(tables: Interned, path: int, kind: int) -> Interned:
    """Return the tables with the root shape or element path that `children_of` looks for."""
    if kind == KIND.OBJECT:
        # A root has no parent; -1 - path distinguishes the roots of different paths.
        shape, shapes = _add_shape(tables.shapes, -1 - path, _ELEMENT_KEY, path)
        tables.paths.rows[path, PATH.ROOT_SHAPE] = shape
        return Interned(tables.keys, tables.paths, shapes)
    element, paths = _path(tables.paths, path, _ELEMENT_KEY)
    paths.rows[path, PATH.ELEMENT] = element
    return Interned(tables.keys, paths, tables.shapes)


@helper(inline=True)
def children_of(tables: Interned, path: int, kind: int) -> tuple[int, Interned]:
    """Return ``(place, tables)``: the shape of an object before its first key, or the path of an array's elements."""
    column = PATH.ROOT_SHAPE if kind == KIND.OBJECT else PATH.ELEMENT
    if tables.paths.rows[path, column] < 0:
        tables = _add_children(tables, path, kind)
    return tables.paths.rows[path, column], tables


@helper
def successor(tables: Interned, shape: int, key: int, path: int) -> tuple[int, Interned]:
    """Find or add the shape after one more key in an object at a path; return ``(next shape, tables)``."""
    next_shape = _find_pair(tables.shapes.rows, tables.shapes.slots, SHAPE.PARENT, SHAPE.KEY, shape, key)
    if next_shape >= 0:
        return next_shape, tables
    child, paths = _path(tables.paths, path, key)
    next_shape, shapes = _add_shape(tables.shapes, shape, key, child)
    return next_shape, Interned(tables.keys, paths, shapes)


@helper(inline=True)
def shape_after(tables: Interned, shape: int, key: int, path: int) -> tuple[int, Interned]:
    """Do the same as `successor`, and predict that this key will follow again."""
    shapes = tables.shapes
    following = _find_pair(shapes.rows, shapes.slots, SHAPE.PARENT, SHAPE.KEY, shape, key)
    if following < 0:
        following, tables = successor(tables, shape, key, path)
    tables.shapes.rows[shape, SHAPE.NEXT] = following
    return following, tables


@helper
def new_tables(memory: Memory) -> Interned:
    """Return empty tables of keys and shapes, and a table of paths with the root, which is path 0."""
    keys = HashedTable(new_table(memory, 256, 4), filled_vector(memory, 1024, -1), 0)
    paths = HashedTable(new_table(memory, 256, 5), filled_vector(memory, 1024, -1), 0)
    shapes = HashedTable(new_table(memory, 256, 4), filled_vector(memory, 1024, -1), 0)
    _, paths = _path(paths, _ELEMENT_KEY, _ELEMENT_KEY)
    return Interned(keys, paths, shapes)


@helper
def export_hashed(table: HashedTable) -> tuple[int, int, int]:
    """Export the rows of a table for `adopt`."""
    return export_table(table.rows, table.count)


@helper
def export_tables(tables: Interned) -> tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]:
    """Export the tables for `adopt`."""
    return export_hashed(tables.keys), export_hashed(tables.paths), export_hashed(tables.shapes)
