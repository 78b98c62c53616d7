"""Edit a batch of values as tables of nodes; the fast counterpart of `encoding.edits`.

Owns splicing nodes in and out, stripping nulls, and the metadata that hold only the names of a value. Nodes are made
by `value_nodes`. The id of a field is its rank among all names of the batch, so that values and inserted values
agree. Rows with malformed values, mismatched paths and everything else that raises are marked for the scalar fallback.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.encoding.edits import EditKind
from parquet_variant.errors import VariantError
from parquet_variant.kernels.buffer_pool import adopt_bytes
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import KIND, put_node
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    disown,
    export_table,
    filled_vector,
    new_table,
    new_vector,
    reserve_rows,
    sort_with,
)
from parquet_variant.kernels.tapes.dictionaries import add_set, metadata_column, no_sets, write_dictionaries
from parquet_variant.kernels.values.reading import NameTable, metadata_header, widest_dictionary
from parquet_variant.types import MAX_OFFSET

UNCHANGED, CHANGED, LEFT = range(3)

_MAX_DEPTH = 1000
_PADDING_BYTES = 5
_INSERT, _SET = int(EditKind.INSERT), int(EditKind.SET)
_REPLACE, _APPEND, _DELETE = int(EditKind.REPLACE), int(EditKind.APPEND), int(EditKind.DELETE)


class Change(NamedTuple):
    """One edit of all values."""

    kind: int  # An `EditKind`.
    segments: Int64s  # Steps of the path: the rank of a key, or -1 - index.
    # The nodes to insert into each row; the nodes of row 0 are inserted into all rows if ``one_value``.
    values: Int64Table
    value_start: Int64s
    one_value: bool  # Whether all rows get the same value.
    max_size: int  # Maximum bytes of a changed value.


@helper
def _find(nodes: Int64Table, at: int, segment: int) -> tuple[bool, int, int]:
    """Return ``(exists, place, position)`` of a field or element in a container; the place is where it would be."""
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
def _copied(nodes: Int64Table, first: int, last: int, out: Int64Table, node_count: int) -> int:
    """Append nodes to a table with room; return the number of nodes in the table."""
    moved = node_count - first
    for j in range(first, last):
        put_node(address_in(out), node_count, nodes[j, 0], nodes[j, 1], nodes[j, 2])
        out[node_count, 3] = nodes[j, 3] + moved
        node_count += 1
    return node_count


@helper
def _nulls(count: int, out: Int64Table, node_count: int) -> int:
    """Append null nodes; return the number of nodes in the table."""
    for _ in range(count):
        put_node(address_in(out), node_count, KIND.NULL, 0, 0)
        node_count += 1
    return node_count


@helper
def _walk_down(
    nodes: Int64Table, at: int, kind: int, segments: Int64s, path: Int64s
) -> tuple[bool, bool, int, int, int]:
    """Follow a path as far as it exists; fill ``path``; return ``(fits, exists, depth, place, position)``.

    ``fits``: no step meets a value of another kind. ``exists``: there is a value at the end, which is ``place``.
    """
    depth = position = 0
    fits = exists = True
    place = at
    last = len(segments) if kind == _APPEND else len(segments) - 1
    while depth < len(segments):
        path[depth] = at
        fits = nodes[at, 0] & 0xFF == (KIND.OBJECT if segments[depth] >= 0 else KIND.ARRAY)
        if not fits:
            break
        exists, place, position = _find(nodes, at, segments[depth])
        if not exists or depth == last:
            break
        at = place
        depth += 1
    if kind == _APPEND and fits and exists:
        path[depth] = at
        fits = nodes[at, 0] & 0xFF == KIND.ARRAY
        place = nodes[at, 3]
    return fits, exists, depth, place, position


@helper
def _wrapping(segments: Int64s, depth: int, max_size: int) -> int:
    """Return the number of nodes of the missing containers on the path, including the nulls in them."""
    count = 0
    for i in range(depth + 1, len(segments)):
        count += 1
        if segments[i] < 0 and count <= max_size:
            count += -1 - segments[i]
    return count


@helper
def _put_containers(segments: Int64s, depth: int, field: int, stop: int, out: Int64Table, n: int) -> tuple[int, int]:
    """Write the missing containers on the path; return ``(field, n)``, the field id of the next node."""
    for i in range(depth + 1, len(segments)):
        is_key = segments[i] >= 0
        put_node(address_in(out), n, field | (KIND.OBJECT if is_key else KIND.ARRAY), 1 if is_key else -segments[i], 0)
        out[n, 3] = stop
        n += 1
        field = 0
        if is_key:
            field = segments[i] << 16
        else:
            n = _nulls(-1 - segments[i], out, n)
    return field, n


@helper
def _difference(
    nodes: Int64Table, change: Change, exists: bool, depth: int, place: int, position: int
) -> tuple[int, int, int]:
    """Return the number of removed nodes, of nulls before an index, and of nodes of missing containers on the path."""
    kind, segments = change.kind, change.segments
    removed = padding = wrapping = 0
    if kind == _DELETE or (exists and (kind == _SET or kind == _REPLACE)):
        removed = nodes[place, 3] - place
    if not exists:
        padding = 0 if segments[depth] >= 0 else -1 - segments[depth] - position
        wrapping = _wrapping(segments, depth, change.max_size)
    return removed, padding, wrapping


@kernel
def edit_rows(
    memory: Memory, nodes: Int64Table, row_start: Int64s, change: Change, keep: bool, out_start: Int64s, state: UInt8s
) -> tuple[int, int, int]:
    """Make one change to every value of a table; return the new table for `adopt`.

    ``state`` marks rows as LEFT (without nodes) on entry, and gets CHANGED and more LEFT. Unchanged rows have no nodes
    in the result, unless ``keep`` is set.
    """
    n = 0
    kind, segments = change.kind, change.segments
    path = new_vector(memory, len(segments) + 1)
    out = new_table(memory, len(nodes) + 2 * len(row_start), 4)
    for row in range(len(row_start) - 1):
        out_start[row] = n
        begin, end = row_start[row], row_start[row + 1]
        if begin == end or state[row] == LEFT:
            continue
        source = 0 if change.one_value else row
        value_begin, value_end = change.value_start[source], change.value_start[source + 1]
        fits, exists, depth, place, position = _walk_down(nodes, begin, kind, segments, path)
        is_key = depth < len(segments) and segments[depth] >= 0
        if kind != _DELETE and (not fits or (kind == _INSERT and exists and is_key)):
            state[row] = LEFT
            continue
        if not fits or (not exists and (kind == _DELETE or kind == _REPLACE or kind == _APPEND)):  # nothing to change
            if keep or state[row] == CHANGED:
                out = reserve_rows(out, n + end - begin)
                n = _copied(nodes, begin, end, out, n)
            continue
        removed, padding, wrapping = _difference(nodes, change, exists, depth, place, position)
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
            if not exists:
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
    return export_table(out, n)


@kernel
def strip_rows(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    arrays: bool,
    out: Int64Table,
    out_start: Int64s,
    state: UInt8s,
) -> int:
    """Remove null fields, and null elements if ``arrays``, from every value; ``out`` has the size of ``nodes``."""
    n = 0
    stack = new_table(memory, 64, 2)  # open containers: the node after them, and their node in `out`
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
            put_node(address_in(out), n, nodes[j, 0], nodes[j, 1], nodes[j, 2])
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
    return n


@kernel
def metadata_sizes(starts: Int64s, stops: Int64s, sizes: Int64s) -> None:
    """Fill the bytes of the metadata at the start of each binary; -1 if its end is missing. Null where start is -1."""
    for i in range(len(starts)):
        sizes[i] = 0
        if starts[i] >= 0:
            ok, _, _, _, _, size = metadata_header(starts[i], stops[i])
            sizes[i] = size if ok else -1


@kernel
def least_names(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    dictionary_of: ReadOnlyInt32s,
    names: NameTable,
    of_row: Int32s,
) -> tuple[int, tuple[int, int]]:
    """Number the names that each value uses, and store the new ids in its nodes, whose ids are ranks.

    Fills the metadata of each value; returns their number, and address and size as `write_dictionaries` does.
    """
    widest = widest_dictionary(names)
    number, stamp, ranks = new_vector(memory, widest), filled_vector(memory, widest, -1), new_vector(memory, widest)
    sets, count = no_sets(memory), 0
    for row in range(len(of_row)):
        of_row[row] = size = 0
        for i in range(row_start[row], row_start[row + 1]):
            kid = i + 1
            while nodes[i, 0] & 0xFF == KIND.OBJECT and kid < nodes[i, 3]:
                rank = nodes[kid, 0] >> 16
                if stamp[rank] != row:
                    stamp[rank] = row
                    ranks[size] = rank
                    size += 1
                kid = nodes[kid, 3]
        if row_start[row] == row_start[row + 1]:
            continue
        sort_with(ranks, ranks, 0, size)
        first = names.starts[dictionary_of[row]]
        for j in range(size):
            number[ranks[j]] = j
            ranks[j] = first + names.order[first + ranks[j]]
        of_row[row], sets = add_set(sets, count, ranks, size)
        count = max(count, of_row[row] + 1)
        for i in range(row_start[row], row_start[row + 1]):
            kid = i + 1
            while nodes[i, 0] & 0xFF == KIND.OBJECT and kid < nodes[i, 3]:
                nodes[kid, 0] = (nodes[kid, 0] & 0xFFFF) | (number[nodes[kid, 0] >> 16] << 16)
                kid = nodes[kid, 3]
    if count == 0:
        count, sets = 1, add_set(sets, 0, ranks, 0)[1]
    data = write_dictionaries(memory, sets, count, names.address, names.length, MAX_OFFSET)
    if data[1] >= 0:
        disown(data[0])
    return count, data


def least_metadata(
    nodes: npt.NDArray[np.int64],
    row_start: npt.NDArray[np.int64],
    dictionary_of: npt.NDArray[np.int32],
    names: NameTable,
    valid: npt.NDArray[np.uint8] | None = None,
) -> pa.DictionaryArray:
    """Return metadata with only the names that each value uses; the ranks in its nodes become ids of that metadata.

    Raises `VariantError` with reason ``too-large`` if the distinct metadata exceed 2 GiB.
    """
    of_row = np.empty(len(dictionary_of), np.int32)
    count, exported = least_names(nodes, row_start, dictionary_of, names, of_row)
    if exported[1] < 0:
        raise VariantError("the metadata of these rows exceeds 2 GiB: edit fewer rows at a time", reason="too-large")
    return metadata_column(of_row, count, adopt_bytes(*exported), valid)
