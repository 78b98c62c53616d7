"""Remove the dropped fields of duplicate keys from a tape, and the fields that no wanted path leads to.

Owns that step, so that no other kernel needs to know about duplicates. Leaves finding them to `tapes.parse_json`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import starmap

import numpy as np

from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.compiling import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, copy
from parquet_variant.kernels.native_vectors import Memory, address_in, new_table, new_vector
from parquet_variant.kernels.tapes.interning import HashedTable, Interned, export_hashed, hashed_table, successor
from parquet_variant.kernels.tapes.tape import DROPPED, HAS_DROPPED, PATH, SHAPE, Tape, kind_of, path_of
from parquet_variant.types.path import VariantPath


@helper
def _hashed_copy(memory: Memory, table: Int64Table, left: int, right: int) -> HashedTable:
    """Return a copy of a table with a hash table, which may grow."""
    room = 256
    while room < len(table):
        room *= 2
    copied = new_table(memory, room, table.shape[1])
    copy(address_in(copied), address_in(table), 8 * table.size)
    return hashed_table(memory, copied, len(table), left, right)


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
    new_paths = _hashed_copy(memory, paths, PATH.PARENT, PATH.KEY)
    # The keys do not change, so the paths stand in for their table, which is not used.
    tables = Interned(new_paths, new_paths, _hashed_copy(memory, shapes, SHAPE.PARENT, SHAPE.KEY))
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
    if drop_fields(tape.nodes, tape.row_start, uses) == 0:
        return tape
    count, tables = compact(tape.nodes, tape.row_start, tape.paths, tape.shapes)
    new_paths, new_shapes = starmap(adopt, tables)
    return replace(tape, nodes=tape.nodes[:count], paths=new_paths, shapes=new_shapes)


def _uses(tape: Tape, paths: Collection[VariantPath]) -> Int64s:
    """Return the use of each path of a tape."""
    uses = np.where(tape.paths[:, PATH.KEY] < 0, USE.VISITED, USE.REMOVED)  # the root and elements have no key
    for path in paths:
        segments = path.segments
        for depth in range(len(segments) + 1):
            number = tape.find_path(segments[:depth])
            if number is None:
                break
            uses[number] = max(uses[number], USE.VISITED if depth < len(segments) else USE.WHOLE)
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
