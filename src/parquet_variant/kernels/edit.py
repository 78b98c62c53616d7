"""Changes to a batch of values, as changes to tables of nodes; the fast twin of `encoding.edits`.

Owns gathering values in canonical order, splicing nodes in and out, and stripping nulls. Nodes are those of `unshred`.
A field's id is its rank among all names of the batch, so that values and what is inserted into them agree. Leaves
malformed values, paths that do not fit and everything else that raises to the scalar fallback: those rows are marked.
"""

from __future__ import annotations

from parquet_variant.encoding.edits import EditKind
from parquet_variant.kernels.compiling import Int64s, Int64Table, ReadOnlyInt32s, UInt8s, helper, kernel
from parquet_variant.kernels.memory import load_u8, load_uint
from parquet_variant.kernels.native_vectors import export_table, free, new_table, new_vector, reserve, reserve_rows
from parquet_variant.kernels.scalar_slots import NULL, STRING
from parquet_variant.kernels.sorting import sort_with
from parquet_variant.kernels.tape import ARRAY, OBJECT, put_node
from parquet_variant.kernels.unshred import RAW
from parquet_variant.kernels.validate import scalar_is_valid
from parquet_variant.kernels.values import MALFORMED, container, scalar, value_kind, value_size

__all__ = ["CHANGED", "LEFT", "UNCHANGED", "edit_rows", "gather_canonical", "strip_rows"]

UNCHANGED, CHANGED, LEFT = range(3)

_MAX_DEPTH = 1000
_PADDING_BYTES = 5
_INSERT, _SET = int(EditKind.INSERT), int(EditKind.SET)
_REPLACE, _APPEND, _DELETE = int(EditKind.REPLACE), int(EditKind.APPEND), int(EditKind.DELETE)
# Columns of a frame: an open container, and where its fields' order is (-1: as they are).
_IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, _END, _COUNT, _NEXT, _NODE, _ORDER = range(10)


@helper
def _field_order(ids, id_width, count, first, last, id_map, order, used):
    """``(status, order)``: 0 where the fields are in order, 1 where ``order[used:]`` now says it, -1 for bad ids."""
    previous = -1
    in_order = True
    for i in range(count):
        field_id = first + load_uint(ids + i * id_width, id_width)
        if field_id >= last:
            return -1, order
        if id_map[field_id] <= previous:
            in_order = False
        previous = id_map[field_id]
    if in_order:
        return 0, order
    order = reserve(order, used + 2 * count)  # the second half is for the ranks
    ranks = order[used + count :]
    for i in range(count):
        order[used + i] = i
        ranks[i] = id_map[first + load_uint(ids + i * id_width, id_width)]
    sort_with(ranks, order[used:], 0, count)
    for i in range(1, count):
        if ranks[i] == ranks[i - 1]:
            return -1, order
    return 1, order


@kernel
def gather_canonical(
    starts: Int64s,
    stops: Int64s,
    dictionary_of: ReadOnlyInt32s,
    map_starts: Int64s,
    id_map: Int64s,
    row_start: Int64s,
    refused: UInt8s,
) -> tuple[int, int, int]:
    """Gather the nodes of every value, fields in order; returns their table for `adopt`.

    A value lies from ``starts`` to ``stops``; none where start is -1. Id i of dictionary d becomes
    ``id_map[map_starts[d] + i]``.
    """
    stack = new_table(_MAX_DEPTH, 10)
    nodes = new_table(max(64, 4 * len(starts)), 4)
    order = new_vector(64)
    n = 0
    for row in range(len(starts)):
        row_start[row] = n
        if starts[row] < 0:
            continue
        first = last = 0
        if dictionary_of[row] >= 0:
            first, last = map_starts[dictionary_of[row]], map_starts[dictionary_of[row] + 1]
        # Values that share bytes could stand for any number of values: each byte may be met once.
        budget = stops[row] - starts[row]
        at, end, field = starts[row], stops[row], 0
        depth = ordered = 0
        ok = True
        while ok:
            size = value_size(at, end)
            if size == MALFORMED:
                ok = False
                break
            if n + 1 > len(nodes):
                nodes = reserve_rows(nodes, n + 1)
            kind = value_kind(load_u8(at))
            if kind < ARRAY:
                budget -= size
                kind, a, b, scale = scalar(at, end)
                if budget < 0 or not scalar_is_valid(kind, a, b, scale, False):
                    ok = False
                    break
                if kind == STRING or kind == NULL:
                    put_node(nodes, n, kind | (field << 16), a, b)
                else:
                    put_node(nodes, n, RAW | (field << 16), at, size)
            else:
                _, count, ids, id_width, offsets, offset_width, values, data = container(at, end)
                budget -= values - at
                if budget < 0 or depth == _MAX_DEPTH:
                    ok = False
                    break
                stack[depth, _ORDER] = -1
                if kind == OBJECT:
                    status, order = _field_order(ids, id_width, count, first, last, id_map, order, ordered)
                    if status < 0:
                        ok = False
                        break
                    if status == 1:
                        stack[depth, _ORDER] = ordered
                        ordered += count
                put_node(nodes, n, kind | (field << 16), count, 0)
                stack[depth, _IDS] = ids
                stack[depth, _ID_WIDTH] = id_width
                stack[depth, _OFFSETS] = offsets
                stack[depth, _OFFSET_WIDTH] = offset_width
                stack[depth, _VALUES] = values
                stack[depth, _END] = values + data
                stack[depth, _COUNT] = count
                stack[depth, _NEXT] = 0
                stack[depth, _NODE] = n
                depth += 1
            n += 1
            while depth > 0 and stack[depth - 1, _NEXT] == stack[depth - 1, _COUNT]:
                depth -= 1
                nodes[stack[depth, _NODE], 3] = n
                if stack[depth, _ORDER] >= 0:
                    ordered = stack[depth, _ORDER]
            if depth == 0:
                break
            top = depth - 1
            i = stack[top, _NEXT]
            stack[top, _NEXT] = i + 1
            if stack[top, _ORDER] >= 0:
                i = order[stack[top, _ORDER] + i]
            field = 0
            if stack[top, _ID_WIDTH] > 0:
                field = id_map[first + load_uint(stack[top, _IDS] + i * stack[top, _ID_WIDTH], stack[top, _ID_WIDTH])]
            width = stack[top, _OFFSET_WIDTH]
            at = stack[top, _VALUES] + load_uint(stack[top, _OFFSETS] + i * width, width)
            end = stack[top, _END]
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[len(starts)] = n
    free(stack)
    free(order)
    return export_table(nodes, n)


@helper
def _find(nodes, at, segment):
    """``(there, place, position)``: where a field or element is, or would be, in the container at a node."""
    kid, position = at + 1, 0
    if segment >= 0:
        while kid < nodes[at, 3] and nodes[kid, 0] >> 16 < segment:
            kid = nodes[kid, 3]
        return kid < nodes[at, 3] and nodes[kid, 0] >> 16 == segment, kid, 0
    wanted = -1 - segment
    while position < wanted and kid < nodes[at, 3]:
        kid = nodes[kid, 3]
        position += 1
    return kid < nodes[at, 3], kid, position


@helper
def _copied(nodes, first, last, out, used):
    """Append some nodes to a table that has room; returns the number of nodes there."""
    moved = used - first
    for j in range(first, last):
        out[used, 0] = nodes[j, 0]
        out[used, 1] = nodes[j, 1]
        out[used, 2] = nodes[j, 2]
        out[used, 3] = nodes[j, 3] + moved
        used += 1
    return used


@helper
def _nulls(count, out, used):
    for _ in range(count):
        out[used, 0] = NULL
        out[used, 1] = 0
        out[used, 2] = 0
        out[used, 3] = used + 1
        used += 1
    return used


@kernel
def edit_rows(
    nodes: Int64Table,
    row_start: Int64s,
    kind: int,
    segments: Int64s,
    values: Int64Table,
    value_start: Int64s,
    one_value: bool,
    max_size: int,
    keep: bool,
    out_start: Int64s,
    state: UInt8s,
) -> tuple[int, int, int]:
    """Make one change to every value of a table; returns the new table for `adopt`.

    ``segments``: the rank of a key, or -1 - index. ``values`` are the nodes to put in, those of row 0 everywhere if
    ``one_value``. ``state`` comes with rows that are LEFT, whose nodes are empty, and gets CHANGED and more LEFT. Rows
    that never changed have no nodes in the result, unless ``keep`` asks for them.
    """
    n = 0
    path = new_vector(len(segments) + 1)
    out = new_table(len(nodes) + 2 * len(row_start), 4)
    for row in range(len(row_start) - 1):
        out_start[row] = n
        begin, end = row_start[row], row_start[row + 1]
        if begin == end or state[row] == LEFT:
            continue
        source = 0 if one_value else row
        value_begin, value_end = value_start[source], value_start[source + 1]
        # Walk down as far as there is something.
        at = begin
        depth = 0
        fits = there = True
        place, position = at, 0
        last = len(segments) if kind == _APPEND else len(segments) - 1
        while depth < len(segments):
            path[depth] = at
            fits = nodes[at, 0] & 0xFF == (OBJECT if segments[depth] >= 0 else ARRAY)
            if not fits:
                break
            there, place, position = _find(nodes, at, segments[depth])
            if not there or depth == last:
                break
            at = place
            depth += 1
        if kind == _APPEND and fits and there:
            path[depth] = at
            fits = nodes[at, 0] & 0xFF == ARRAY
            place = nodes[at, 3]
        is_key = depth < len(segments) and segments[depth] >= 0
        if kind == _DELETE:
            nothing = not fits or not there
        else:
            if not fits or (kind == _INSERT and there and is_key):
                state[row] = LEFT
                continue
            nothing = not there and (kind == _REPLACE or kind == _APPEND)
        nodes_before = end - begin
        if nothing:
            if keep or state[row] == CHANGED:
                if n + nodes_before > len(out):
                    out = reserve_rows(out, n + nodes_before)
                n = _copied(nodes, begin, end, out, n)
            continue
        removed = 0
        if kind == _DELETE or (there and (kind == _SET or kind == _REPLACE)):
            removed = nodes[place, 3] - place
        # What goes in: nulls up to the index, the containers that are missing, each with its own nulls, the value.
        padding = wrapping = 0
        if not there:
            if not is_key:
                padding = -1 - segments[depth] - position
            for i in range(depth + 1, len(segments)):
                wrapping += 1
                if segments[i] < 0 and wrapping <= max_size:
                    wrapping += -1 - segments[i]
        added = 0 if kind == _DELETE else padding + wrapping + value_end - value_begin
        if (padding + wrapping) * _PADDING_BYTES > max_size:
            state[row] = LEFT
            continue
        if n + nodes_before - removed + added > len(out):
            out = reserve_rows(out, n + nodes_before - removed + added)
        start = n
        n = _copied(nodes, begin, place, out, n)
        if kind != _DELETE:
            n = _nulls(padding, out, n)
            field = segments[depth] << 16 if is_key else 0
            stop = n + wrapping + value_end - value_begin
            if not there:
                for i in range(depth + 1, len(segments)):
                    out[n, 1] = 1 if segments[i] >= 0 else -segments[i]
                    out[n, 2] = 0
                    out[n, 3] = stop
                    out[n, 0] = field | (OBJECT if segments[i] >= 0 else ARRAY)
                    n += 1
                    field = 0
                    if segments[i] >= 0:
                        field = segments[i] << 16
                    else:
                        n = _nulls(-1 - segments[i], out, n)
            root = n
            n = _copied(values, value_begin, value_end, out, n)
            out[root, 0] = (out[root, 0] & 0xFFFF) | field
        n = _copied(nodes, place + removed, end, out, n)
        for i in range(depth + 1):
            out[start + path[i] - begin, 3] += added - removed
        parent = start + path[depth] - begin
        if kind == _DELETE:
            out[parent, 1] -= 1
        elif removed == 0:
            out[parent, 1] += padding + 1
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
            if kind == NULL and depth > 0:
                parent = stack[depth - 1, 1]
                if arrays or out[parent, 0] & 0xFF == OBJECT:
                    out[parent, 1] -= 1
                    state[row] = CHANGED
                    continue
            out[n, 0] = nodes[j, 0]
            out[n, 1] = nodes[j, 1]
            out[n, 2] = nodes[j, 2]
            out[n, 3] = n + 1
            if kind == OBJECT or kind == ARRAY:
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
