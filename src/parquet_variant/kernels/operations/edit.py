"""Changes to a batch of values, as changes to tables of nodes; the fast twin of `encoding.edits`.

Owns splicing nodes in and out, and stripping nulls. Nodes are those of `canonical_nodes`.
A field's id is its rank among all names of the batch, so that values and what is inserted into them agree. Leaves
malformed values, paths that do not fit and everything else that raises to the scalar fallback: those rows are marked.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.edits import EditKind
from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.native_vectors import export_table, free, new_table, new_vector, reserve_rows
from parquet_variant.kernels.tapes.tape import put_node
from parquet_variant.machine_code.signatures import Int64s, Int64Table, UInt8s

UNCHANGED, CHANGED, LEFT = range(3)

_MAX_DEPTH = 1000
_PADDING_BYTES = 5
_INSERT, _SET = int(EditKind.INSERT), int(EditKind.SET)
_REPLACE, _APPEND, _DELETE = int(EditKind.REPLACE), int(EditKind.APPEND), int(EditKind.DELETE)


class Change(NamedTuple):
    """One change of values."""

    kind: int  # An `EditKind`.
    segments: Int64s  # The path: the rank of a key, or -1 - index.
    # The nodes to put in, by row; those of row 0 everywhere if ``one_value``.
    values: Int64Table
    value_start: Int64s
    one_value: bool  # Whether there is one value for all rows.
    max_size: int  # The most bytes of a changed value.


@helper
def _find(nodes, at, segment):
    """``(there, place, position)``: where a field or element is, or would be, in the container at a node."""
    kid, position = at + 1, 0
    if segment >= 0:
        while kid < nodes[at, 3] and nodes[kid, 0] >> 16 < segment:
            kid = nodes[kid, 3]
        return kid < nodes[at, 3] and nodes[kid, 0] >> 16 == segment, kid, 0
    index = -1 - segment
    while position < index and kid < nodes[at, 3]:
        kid = nodes[kid, 3]
        position += 1
    return kid < nodes[at, 3], kid, position


@helper
def _copied(nodes, first, last, out, used):
    """Append some nodes to a table that has room; returns the number of nodes there."""
    moved = used - first
    for j in range(first, last):
        put_node(out, used, nodes[j, 0], nodes[j, 1], nodes[j, 2])
        out[used, 3] = nodes[j, 3] + moved
        used += 1
    return used


@helper
def _nulls(count, out, used):
    for _ in range(count):
        put_node(out, used, KIND.NULL, 0, 0)
        used += 1
    return used


@helper
def _walk_down(nodes, at, kind, segments, path):
    """``(fits, there, depth, place, position)``: as far down a path as there is something; fills ``path``.

    ``fits``: no step meets a value of another kind. ``there``: something is at the end, which is ``place``.
    """
    depth = position = 0
    fits = there = True
    place = at
    last = len(segments) if kind == _APPEND else len(segments) - 1
    while depth < len(segments):
        path[depth] = at
        fits = nodes[at, 0] & 0xFF == (KIND.OBJECT if segments[depth] >= 0 else KIND.ARRAY)
        if not fits:
            break
        there, place, position = _find(nodes, at, segments[depth])
        if not there or depth == last:
            break
        at = place
        depth += 1
    if kind == _APPEND and fits and there:
        path[depth] = at
        fits = nodes[at, 0] & 0xFF == KIND.ARRAY
        place = nodes[at, 3]
    return fits, there, depth, place, position


@helper
def _wrapping(segments, depth, max_size):
    """How many nodes the containers take that are missing on the way, each with its own nulls."""
    count = 0
    for i in range(depth + 1, len(segments)):
        count += 1
        if segments[i] < 0 and count <= max_size:
            count += -1 - segments[i]
    return count


@helper
def _put_containers(segments, depth, field, stop, out, n):
    """``(field, n)`` after the containers that are missing on the way; the field id is that of what comes next."""
    for i in range(depth + 1, len(segments)):
        is_key = segments[i] >= 0
        put_node(out, n, field | (KIND.OBJECT if is_key else KIND.ARRAY), 1 if is_key else -segments[i], 0)
        out[n, 3] = stop
        n += 1
        field = 0
        if is_key:
            field = segments[i] << 16
        else:
            n = _nulls(-1 - segments[i], out, n)
    return field, n


@helper
def _difference(nodes, change, there, depth, place, position):
    """Nodes that go, nulls up to an index that come, and nodes of the containers that are missing on the way."""
    kind, segments = change.kind, change.segments
    removed = padding = wrapping = 0
    if kind == _DELETE or (there and (kind == _SET or kind == _REPLACE)):
        removed = nodes[place, 3] - place
    if not there:
        padding = 0 if segments[depth] >= 0 else -1 - segments[depth] - position
        wrapping = _wrapping(segments, depth, change.max_size)
    return removed, padding, wrapping


@kernel
def edit_rows(
    nodes: Int64Table, row_start: Int64s, change: Change, keep: bool, out_start: Int64s, state: UInt8s
) -> tuple[int, int, int]:
    """Make one change to every value of a table; returns the new table for `adopt`.

    ``state`` comes with rows that are LEFT, whose nodes are empty, and gets CHANGED and more LEFT. Rows that never
    changed have no nodes in the result, unless ``keep`` asks for them.
    """
    n = 0
    kind, segments = change.kind, change.segments
    path = new_vector(len(segments) + 1)
    out = new_table(len(nodes) + 2 * len(row_start), 4)
    for row in range(len(row_start) - 1):
        out_start[row] = n
        begin, end = row_start[row], row_start[row + 1]
        if begin == end or state[row] == LEFT:
            continue
        source = 0 if change.one_value else row
        value_begin, value_end = change.value_start[source], change.value_start[source + 1]
        fits, there, depth, place, position = _walk_down(nodes, begin, kind, segments, path)
        is_key = depth < len(segments) and segments[depth] >= 0
        if kind != _DELETE and (not fits or (kind == _INSERT and there and is_key)):
            state[row] = LEFT
            continue
        if not fits or (not there and (kind == _DELETE or kind == _REPLACE or kind == _APPEND)):  # nothing to change
            if keep or state[row] == CHANGED:
                out = reserve_rows(out, n + end - begin)
                n = _copied(nodes, begin, end, out, n)
            continue
        removed, padding, wrapping = _difference(nodes, change, there, depth, place, position)
        if (padding + wrapping) * _PADDING_BYTES > change.max_size:
            state[row] = LEFT
            continue
        added = 0 if kind == _DELETE else padding + wrapping + value_end - value_begin
        out = reserve_rows(out, n + end - begin - removed + added)
        moved = n - begin
        n = _copied(nodes, begin, place, out, n)
        if kind != _DELETE:
            n = _nulls(padding, out, n)
            field = segments[depth] << 16 if is_key else 0
            if not there:
                field, n = _put_containers(segments, depth, field, n + wrapping + value_end - value_begin, out, n)
            out_at = n
            n = _copied(change.values, value_begin, value_end, out, n)
            out[out_at, 0] = (out[out_at, 0] & 0xFFFF) | field
        n = _copied(nodes, place + removed, end, out, n)
        for i in range(depth + 1):
            out[path[i] + moved, 3] += added - removed
        if kind == _DELETE:
            out[path[depth] + moved, 1] -= 1
        elif removed == 0:
            out[path[depth] + moved, 1] += padding + 1
        state[row] = CHANGED
    out_start[len(row_start) - 1] = n
    free(path)
    return export_table(out, n)


@kernel
def strip_rows(
    nodes: Int64Table, row_start: Int64s, arrays: bool, out: Int64Table, out_start: Int64s, state: UInt8s
) -> int:
    """Remove null fields, and null elements if ``arrays``, from every value; ``out`` has as much room as ``nodes``."""
    n = 0
    stack = new_table(64, 2)  # open containers: where they end, and their node in `out`
    for row in range(len(row_start) - 1):
        out_start[row] = n
        begin, end = row_start[row], row_start[row + 1]
        depth = 0
        for j in range(begin, end):
            while depth > 0 and stack[depth - 1, 0] == j:
                depth -= 1
                out[stack[depth, 1], 3] = n
            kind = nodes[j, 0] & 0xFF
            if kind == KIND.NULL and depth > 0:
                parent = stack[depth - 1, 1]
                if arrays or out[parent, 0] & 0xFF == KIND.OBJECT:
                    out[parent, 1] -= 1
                    state[row] = CHANGED
                    continue
            put_node(out, n, nodes[j, 0], nodes[j, 1], nodes[j, 2])
            if kind == KIND.OBJECT or kind == KIND.ARRAY:
                if depth + 1 > len(stack):
                    stack = reserve_rows(stack, depth + 1)
                stack[depth, 0] = nodes[j, 3]
                stack[depth, 1] = n
                depth += 1
            n += 1
        while depth > 0:
            depth -= 1
            out[stack[depth, 1], 3] = n
    out_start[len(row_start) - 1] = n
    free(stack)
    return n
