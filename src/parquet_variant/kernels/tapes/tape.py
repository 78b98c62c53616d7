"""The tape: a batch of parsed values as one flat table of nodes.

Owns the layout of the tape (described in docs/architecture.md), its tables of keys, paths and sequences of keys
("shapes") while they grow, with the prediction of the next key, and the removal of fields. A shape is a node in a trie
of key sequences with one root per path, and remembers which key followed most recently, so that a key usually costs one
comparison and no hash. Leaves filling the tape to `parse_json` and `decode`, and reading it to `shredding.shred_tape`
and `profile`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.buffer_pool import adopt, release
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, MIX_A, MIX_B, copy, copy_spans, equal
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    export_table,
    filled_vector,
    new_table,
    new_vector,
    refilled_vector,
    reserve_rows,
)
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types.path import VariantPath

# Flag bits of a node's tag.
DROPPED = 1 << 48  # a field whose key occurs again later in the object
HAS_DROPPED = 1 << 49  # an object with such a field

# Columns of the key table.
KEY = numbered("ADDRESS LENGTH HASH")
# Columns of the path table.
PATH = numbered("PARENT KEY ELEMENT ROOT_SHAPE LAST_NODE")
# Columns of the shape table: a trie of key sequences with one root per path. SIZE is the bytes between the last key's
# value and the value or bracket before the key, and TEXT the first of four columns with these bytes.
SHAPE = numbered("PARENT KEY PATH NEXT SIZE TEXT TEXT_2 TEXT_3 TEXT_4")
PATH_BYTES, SHAPE_BYTES = 8 * len(PATH), 8 * len(SHAPE)


@helper(inline=True)
def kind_of(tag: int) -> int:
    """Return the kind of a node."""
    return tag & 0xFF


@helper(inline=True)
def scale_of(tag: int) -> int:
    """Return the decimal scale of a node."""
    return (tag >> 8) & 0xFF


@helper(inline=True)
def path_of(tag: int) -> int:
    """Return the path id of a node."""
    return (tag >> 16) & 0xFFFFFFFF


def path_ids(tags: Int64s) -> Int64s:
    """Return the path ids of nodes, of which `tags` is column 0."""
    return tags >> 16 & 0xFFFFFFFF


class Tape(Record, frozen=False, eq=False):
    """A batch of parsed values."""

    nodes: Int64s  # ``int64[n, 4]``: tag, a, b, end.
    # ``int64[rows + 1]``: the nodes of row r are ``row_start[r]`` to ``row_start[r + 1]``; a null row has none.
    row_start: Int64s
    # Tables that node tags and payloads refer to; their columns are named above.
    keys: Int64s
    paths: Int64s
    shapes: Int64s
    owners: tuple[Any, ...] = field(repr=False)  # Objects whose buffers the addresses point into.
    text_bytes: int = 0  # Bytes of the JSON text; encoded values usually take 0.7 to 0.85 of it.

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_start) - 1

    def release(self) -> None:
        """Make the memory of the nodes available to the next batch; the tape must not be used any more."""
        release(self.nodes)

    def find_path(self, segments: Sequence[object], number: int = 0) -> int | None:
        """Return the id of a path below path `number`, or None if no value has it; any segment but a key is `[*]`."""
        for segment in segments:
            is_step = self.paths[:, PATH.KEY] < 0
            if isinstance(segment, str):
                name = segment.encode("utf-8", "surrogatepass")
                if name not in self.key_list:
                    return None
                is_step = self.paths[:, PATH.KEY] == self.key_list.index(name)
            is_step &= self.paths[:, PATH.PARENT] == number
            is_step[0] = False  # the root
            children = np.flatnonzero(is_step)
            if not len(children):
                return None
            number = int(children[0])
        return number

    @cached_property
    def key_array(self) -> pa.BinaryArray:
        """The keys as an array, by key id."""
        addresses, lengths = self.keys[:, KEY.ADDRESS].copy(), self.keys[:, KEY.LENGTH].copy()
        return filled_binary(lengths, partial(copy_spans, addresses, lengths))

    @cached_property
    def key_list(self) -> list[bytes]:
        """The keys as bytes, by key id."""
        keys: list[bytes] = self.key_array.to_pylist()
        return keys


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
def add_key(keys: HashedTable, address: int, length: int, hashed: int) -> tuple[int, HashedTable]:
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
    slots[free_slot] = count
    return count, HashedTable(rows, slots, count + 1)


# Paths and shapes are found by a pair of numbers, their first two columns: the parent, and the key that leads from the
# parent to them. `tapes.dictionaries` finds sets of numbers in the same way.


@helper(inline=True)
def _find_pair(rows: Int64Table, slots: Int64s, left: int, right: int) -> int:
    """Return the row of a table that holds a pair, or -1 - slot where it would be stored."""
    mask = len(slots) - 1
    hashed = (left * MIX_A + right) * MIX_B
    slot = (hashed ^ (hashed >> 31) & 0x1FFFFFFFF) & mask
    while slots[slot] >= 0:
        row = slots[slot]
        if rows[row, 0] == left and rows[row, 1] == right:
            return row
        slot = (slot + 1) & mask
    return -1 - slot


@helper
def _fill_slots(rows: Int64Table, slots: Int64s, count: int) -> None:
    """Store the rows of a table in an empty hash table."""
    for row in range(count):
        slots[-1 - _find_pair(rows, slots, rows[row, 0], rows[row, 1])] = row


@helper
def pair_row(table: HashedTable, left: int, right: int) -> tuple[int, HashedTable]:
    """Find or add the row of a pair; return ``(row, table)``. The other columns of a new row are -1."""
    rows, slots, count = table.rows, table.slots, table.count
    row = _find_pair(rows, slots, left, right)
    if row >= 0:
        return row, table
    if count == len(rows):
        rows = reserve_rows(rows, count + 1)
        slots = refilled_vector(slots, 4 * len(rows), -1)
        _fill_slots(rows, slots, count)
        row = _find_pair(rows, slots, left, right)
    slots[-1 - row] = count
    rows[count, 0], rows[count, 1] = left, right
    for column in range(2, rows.shape[1]):
        rows[count, column] = -1
    return count, HashedTable(rows, slots, count + 1)


@helper
def no_pairs(memory: Memory, columns: int) -> HashedTable:
    """Return an empty table of pairs."""
    return HashedTable(new_table(memory, 16, columns), filled_vector(memory, 64, -1), 0)


@helper
def _add_children(tables: Interned, path: int, kind: int) -> Interned:
    """Return the tables with the root shape or element path that `children_of` looks for."""
    if kind == KIND.OBJECT:
        # A root has no parent; -1 - path distinguishes the roots of different paths.
        shape, shapes = pair_row(tables.shapes, -1 - path, _ELEMENT_KEY)
        shapes.rows[shape, SHAPE.PATH] = path
        tables.paths.rows[path, PATH.ROOT_SHAPE] = shape
        return Interned(tables.keys, tables.paths, shapes)
    element, paths = pair_row(tables.paths, path, _ELEMENT_KEY)
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
    next_shape, shapes = pair_row(tables.shapes, shape, key)
    paths = tables.paths
    if shapes.count > tables.shapes.count:
        shapes.rows[next_shape, SHAPE.PATH], paths = pair_row(paths, path, key)
    return next_shape, Interned(tables.keys, paths, shapes)


@helper(inline=True)
def shape_after(tables: Interned, shape: int, key: int, path: int) -> tuple[int, Interned]:
    """Do the same as `successor`, and predict that this key will follow again."""
    shapes = tables.shapes
    following = _find_pair(shapes.rows, shapes.slots, shape, key)
    if following < 0:
        following, tables = successor(tables, shape, key, path)
    tables.shapes.rows[shape, SHAPE.NEXT] = following
    return following, tables


@helper
def new_tables(memory: Memory) -> Interned:
    """Return empty tables of keys and shapes, and a table of paths with the root, which is path 0."""
    _, paths = pair_row(no_pairs(memory, len(PATH)), _ELEMENT_KEY, _ELEMENT_KEY)
    return Interned(no_pairs(memory, len(KEY)), paths, no_pairs(memory, len(SHAPE)))


@helper
def export_hashed(table: HashedTable) -> tuple[int, int, int]:
    """Export the rows of a table for `adopt`."""
    return export_table(table.rows, table.count)


@helper
def export_tables(tables: Interned) -> tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]:
    """Export the tables for `adopt`."""
    return export_hashed(tables.keys), export_hashed(tables.paths), export_hashed(tables.shapes)


@helper
def _hashed_copy(memory: Memory, table: Int64Table) -> HashedTable:
    """Return a copy of a table with a hash table, which may grow."""
    room = 256
    while room < len(table):
        room *= 2
    copied = new_table(memory, room, table.shape[1])
    copy(address_in(copied), address_in(table), 8 * table.size)
    slots = filled_vector(memory, 4 * room, -1)
    _fill_slots(copied, slots, len(table))
    return HashedTable(copied, slots, len(table))


@helper
def _put_shape(nodes: Int64Table, container: int, tables: Interned) -> Interned:
    """Give an object that lost fields the shape of its remaining fields; return the tables, which may have grown."""
    path = path_of(nodes[container, 0])
    shape = tables.paths.rows[path, PATH.ROOT_SHAPE]
    kid = container + 1
    while kid < nodes[container, 3]:
        if not nodes[kid, 0] & DROPPED:
            key = tables.paths.rows[path_of(nodes[kid, 0]), PATH.KEY]
            shape, tables = successor(tables, shape, key, path)
        kid = nodes[kid, 3]
    nodes[container, 2] = shape
    nodes[container, 0] &= ~HAS_DROPPED
    return tables


@kernel
def compact(
    memory: Memory, nodes: Int64Table, row_start: Int64s, paths: Int64Table, shapes: Int64Table
) -> tuple[int, tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Move the remaining nodes to the front, in place; return their number, and new tables of paths and shapes.

    An object that lost fields gets the shape of its remaining fields.
    """
    new_paths = _hashed_copy(memory, paths)
    # The keys do not change, so the paths stand in for their table, which is not used.
    tables = Interned(new_paths, new_paths, _hashed_copy(memory, shapes))
    count, longest_row = 0, 0
    for row in range(len(row_start) - 1):
        longest_row = max(longest_row, row_start[row + 1] - row_start[row])
    moved = new_vector(memory, longest_row + 1)  # new index of each node of a row, to update the ends
    for row in range(len(row_start) - 1):
        begin, stop, first = row_start[row], row_start[row + 1], count
        row_start[row] = count
        i = begin
        while i < stop:
            moved[i - begin] = count
            if nodes[i, 0] & DROPPED:
                i = nodes[i, 3]
                continue
            if nodes[i, 0] & HAS_DROPPED:
                tables = _put_shape(nodes, i, tables)
            for column in range(3):
                nodes[count, column] = nodes[i, column]
            nodes[count, 3] = nodes[i, 3] - begin
            count += 1
            i += 1
        moved[stop - begin] = count
        for i in range(first, count):
            nodes[i, 3] = moved[nodes[i, 3]]
    row_start[len(row_start) - 1] = count
    return count, (export_hashed(tables.paths), export_hashed(tables.shapes))


# What happens to the values at a path: removed, visited because a wanted path goes through them, or kept whole.
USE = numbered("REMOVED VISITED WHOLE")


def project(tape: Tape, paths: Collection[VariantPath]) -> Tape:
    """Return a tape with the values at some paths; the fields of other paths are missing from their objects.

    The values at `paths` are those of `tape`, which must not be used any more. Arrays keep all elements, because paths
    count them.
    """
    uses = _uses(tape, paths)
    return without_dropped(tape) if drop_fields(tape.nodes, tape.row_start, uses) else tape


def without_dropped(tape: Tape) -> Tape:
    """Return a tape without the fields that are marked as dropped; `tape` must not be used any more."""
    count, tables = compact(tape.nodes, tape.row_start, tape.paths, tape.shapes)
    new_paths, new_shapes = starmap(adopt, tables)
    return replace(tape, nodes=tape.nodes[:count], paths=new_paths, shapes=new_shapes)


def _uses(tape: Tape, paths: Collection[VariantPath]) -> Int64s:
    """Return the use of each path of a tape."""
    uses = np.where(tape.paths[:, PATH.KEY] < 0, USE.VISITED, USE.REMOVED)  # the root and elements have no key
    for path in paths:
        number = 0
        for segment in path.segments:
            uses[number] = max(uses[number], USE.VISITED)
            if (child := tape.find_path((segment,), number)) is None:
                break
            number = child
        else:
            uses[number] = USE.WHOLE
    return uses.astype(np.int64)


@kernel
def drop_fields(nodes: Int64Table, row_start: Int64s, uses: Int64s) -> int:
    """Mark the fields whose path is removed as dropped, for `compact`; return their number."""
    dropped = 0
    i, stop = row_start[0], row_start[len(row_start) - 1]
    while i < stop:
        tag = nodes[i, 0]
        if tag & DROPPED or uses[path_of(tag)] == USE.WHOLE:
            i = nodes[i, 3]
            continue
        if kind_of(tag) == KIND.OBJECT:
            remaining, kid = nodes[i, 1], i + 1
            while kid < nodes[i, 3]:
                if uses[path_of(nodes[kid, 0])] == USE.REMOVED:
                    nodes[kid, 0] |= DROPPED
                    remaining -= 1
                kid = nodes[kid, 3]
            if remaining < nodes[i, 1]:
                dropped += nodes[i, 1] - remaining
                nodes[i, 0] |= HAS_DROPPED
                nodes[i, 1] = remaining
        i += 1
    return dropped
