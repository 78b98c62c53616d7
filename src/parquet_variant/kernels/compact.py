"""Removing the dropped fields of duplicated keys from a tape.

Owns that one step, so that no other kernel needs to know of duplicates. Leaves finding them to `parse_json`.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.compiling import njit
from parquet_variant.kernels.parse_json import empty_slots, find_pair, successor
from parquet_variant.kernels.tape import (
    DROPPED,
    HAS_DROPPED,
    PATH_KEY,
    PATH_ROOT_SHAPE,
    SHAPE_KEY,
    SHAPE_PARENT,
    path_of,
)

__all__ = ["compact"]


@njit
def _slots_of(table, left, right):
    slots = empty_slots(max(1024, 4 * (1 << int(np.ceil(np.log2(len(table) + 1))))))
    for row in range(len(table)):
        slots[-1 - find_pair(table, slots, left, right, table[row, left], table[row, right])] = row
    return slots


@njit
def compact(nodes, row_start, paths, shapes):
    """Move the nodes that stay to the front, in place; returns ``(nodes left, paths, shapes)``.

    An object that lost fields gets the shape of those that stay.
    """
    path_slots, shape_slots = _slots_of(paths, 0, 1), _slots_of(shapes, SHAPE_PARENT, SHAPE_KEY)
    path_count, shape_count = len(paths), len(shapes)
    kept = 0
    moved = np.empty(row_start[len(row_start) - 1] + 1, np.int64)  # new index of each node, for the ends
    for row in range(len(row_start) - 1):
        begin, stop = row_start[row], row_start[row + 1]
        row_start[row] = kept
        i = begin
        while i < stop:
            moved[i] = kept
            if nodes[i, 0] & DROPPED:
                end = nodes[i, 3]
                moved[i:end] = kept
                i = end
                continue
            if nodes[i, 0] & HAS_DROPPED:
                path = path_of(nodes[i, 0])
                shape = paths[path, PATH_ROOT_SHAPE]
                kid = i + 1
                while kid < nodes[i, 3]:
                    if not nodes[kid, 0] & DROPPED:
                        key = paths[path_of(nodes[kid, 0]), PATH_KEY]
                        shape, shapes, shape_slots, shape_count, paths, path_slots, path_count = successor(
                            shapes, shape_slots, shape_count, paths, path_slots, path_count, shape, key, path
                        )
                    kid = nodes[kid, 3]
                nodes[i, 2] = shape
                nodes[i, 0] &= ~HAS_DROPPED
            nodes[kept] = nodes[i]
            kept += 1
            i += 1
    moved[row_start[len(row_start) - 1]] = kept
    row_start[len(row_start) - 1] = kept
    for i in range(kept):
        nodes[i, 3] = moved[nodes[i, 3]]
    return kept, paths[:path_count], shapes[:shape_count]
