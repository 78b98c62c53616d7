"""Remove the fields of a tape that no wanted path leads to.

Owns which fields are kept, and marking the others. Leaves removing them to `compact`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import starmap

import numpy as np

from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.compiling import kernel, numbered
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.tapes.compact import compact
from parquet_variant.kernels.tapes.tape import DROPPED, HAS_DROPPED, PATH, Tape, kind_of, path_of
from parquet_variant.path import VariantPath

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
