"""From Variant bytes to typed columns (final layout), guided by the schema.

Values that are not shredded are not walked.

Owns the walk. Leaves slots to `scalar_slots` and buffers to `growing_columns`. Malformed rows are marked for the scalar
fallback.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.json.scan import is_utf8
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, UInt8s
from parquet_variant.kernels.memory import KIND, copy, get, load_u8, load_uint, put, store_uint
from parquet_variant.kernels.native_vectors import Memory, address_in, allocate, filled_vector, new_vector, reallocate
from parquet_variant.kernels.shredding.growing_columns import (
    GrowingColumns,
    finish,
    new_columns,
    node_of,
    put_array,
    put_bytes,
    put_object,
    put_slot,
    put_value,
)
from parquet_variant.kernels.shredding.schema_table import (
    ARRAY_NODE,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    FilledBuffers,
    NamedNodes,
    S,
)
from parquet_variant.kernels.values.reading import (
    FIELD,
    FIELD_BYTES,
    MALFORMED,
    UNUSABLE,
    EncodedValues,
    NameTable,
    container,
    put_field,
    resolve_names,
    scalar_of_size,
    sort_fields,
    value_size,
    widest_dictionary,
)
from parquet_variant.kernels.values.scalar_slots import begin_object, exact_slot, object_size

# Columns of the frame of an open container. OFFSETS, LEFT and AT advance over the elements of an array; AT is the entry
# of the next element, and SCHEMA the schema node of elements. ROOM is the bytes that the children may still take,
# because children that share bytes could represent any number of values. IDS is 0 in an array.
FRAME = numbered("SCHEMA AT LEFT OFFSETS OFFSET_WIDTH VALUES END ROOM IDS ID_WIDTH")
# Columns of the state of the walk: addresses and rooms of the frames and of the residual's fields, the number of open
# frames, the number of objects so far, and the ranks of the names of the row's dictionary.
STATE = numbered("FRAMES FRAME_ROOM DEPTH FIELDS FIELD_ROOM OBJECTS RANKS NAME_COUNT")
_FRAME_BYTES = 8 * len(FRAME)
_FEWEST_FRAMES = 64


class _Fields(NamedTuple):
    """The fields of the schema by their ids in the dictionary of a row; all are addresses.

    ``first_of_id`` and ``next_of_node`` chain the schema nodes of one name. ``seen`` is the number of the object in
    which each schema node was last seen, to detect duplicate names.
    """

    first_of_id: int
    next_of_node: int
    seen: int


class _Residual(NamedTuple):
    """The fields of an object that are not shredded: their number, the bytes of their values, and the largest id."""

    count: int  # type: ignore[assignment]
    bytes: int
    largest_id: int


@helper
def _put_residual(fields: int, residual: _Residual, columns: GrowingColumns, s: int, at: int) -> None:
    """Add the residual of an object."""
    count, total, largest_id = residual.count, residual.bytes, residual.largest_id
    target = put_value(columns, s, at, object_size(count, largest_id, total))
    ids, id_width, offsets, offset_width, values = begin_object(target, count, largest_id, total)
    written = 0
    for j in range(count):
        field = fields + j * FIELD_BYTES
        store_uint(ids, get(field, FIELD.ID), id_width)
        ids += id_width
        store_uint(offsets, written, offset_width)
        offsets += offset_width
        copy(values + written, get(field, FIELD.BEGIN), get(field, FIELD.SIZE))
        written += get(field, FIELD.SIZE)
    store_uint(offsets, written, offset_width)


@helper
def _put_scalar(columns: GrowingColumns, s: int, at: int, begin: int, size: int) -> bool:
    """Add a scalar to the column of a primitive schema node, typed if it fits; return False if it is malformed."""
    node = node_of(columns, s)
    code, header = get(node, S.CODE), load_u8(begin)
    if code == KIND.STRING:  # most columns are strings, so `scalar_of_size` is avoided
        if header & 3 == 1 or header == KIND.STRING << 2:
            a = begin + (1 if header & 3 == 1 else 5)
            if not is_utf8(a, begin + size):
                return False
            put_bytes(columns, s, at, a, begin + size - a)
            return True
    else:
        kind, a, b, scale = scalar_of_size(begin, size)
        if kind == KIND.TIME and code == KIND.TIME and not 0 <= a < MICROS_PER_DAY:
            return False
        fits, low, high = exact_slot(kind, a, b, scale, code, get(node, S.PRECISION), get(node, S.SCALE))
        if fits:
            if code == KIND.BINARY:
                put_bytes(columns, s, at, a, b)
            else:
                put_slot(columns, s, at, low, high)
            return True
    copy(put_value(columns, s, at, size), begin, size)
    return True


@helper
def _put_container(columns: GrowingColumns, state: int, s: int, at: int, begin: int, end: int) -> int:
    """Add a container that the schema shreds, and push its frame; return its bytes, or MALFORMED."""
    parts = container(begin, end)
    if not parts.ok:
        return MALFORMED
    node, element = s, at
    if parts.id_width == 0:
        put_array(columns, s, at, parts.count)
        node = s + 1
        level = get(node_of(columns, node), S.LEVEL)
        element = get(columns.entries, level)
        put(columns.entries, level, element + parts.count)
    else:
        put_object(columns, s, at)
    depth = get(state, STATE.DEPTH)
    if depth == get(state, STATE.FRAME_ROOM):
        put(state, STATE.FRAME_ROOM, 2 * depth)
        put(state, STATE.FRAMES, reallocate(get(state, STATE.FRAMES), 2 * depth * _FRAME_BYTES))
    put(state, STATE.DEPTH, depth + 1)
    frame = get(state, STATE.FRAMES) + depth * _FRAME_BYTES
    put(frame, FRAME.SCHEMA, node)
    put(frame, FRAME.AT, element)
    put(frame, FRAME.LEFT, parts.count)
    put(frame, FRAME.OFFSETS, parts.offsets)
    put(frame, FRAME.OFFSET_WIDTH, parts.offset_width)
    put(frame, FRAME.VALUES, parts.values)
    put(frame, FRAME.END, parts.values + parts.size)
    put(frame, FRAME.ROOM, parts.size)
    put(frame, FRAME.IDS, parts.ids if parts.id_width else 0)
    put(frame, FRAME.ID_WIDTH, parts.id_width)
    return parts.values + parts.size - begin


@helper
def _put_child(columns: GrowingColumns, state: int, s: int, at: int, begin: int, end: int) -> int:
    """Add a value to the columns of a schema node; return its bytes, or MALFORMED."""
    if begin >= end:
        return MALFORMED
    basic, shape = load_u8(begin) & 3, get(node_of(columns, s), S.KIND)
    if (shape == OBJECT_NODE and basic == 2) or (shape == ARRAY_NODE and basic == 3):
        return _put_container(columns, state, s, at, begin, end)
    size = value_size(begin, end)
    if size == MALFORMED:
        return MALFORMED
    if shape == PRIMITIVE_NODE and basic & 2 == 0:
        return size if _put_scalar(columns, s, at, begin, size) else MALFORMED
    copy(put_value(columns, s, at, size), begin, size)
    return size


@helper
def _put_elements(columns: GrowingColumns, state: int) -> bool:
    """Add the elements at the top up to the next container that the schema shreds; return False if one is malformed."""
    depth = get(state, STATE.DEPTH)
    frame = get(state, STATE.FRAMES) + (depth - 1) * _FRAME_BYTES
    s, at, offsets, width = (
        get(frame, FRAME.SCHEMA), get(frame, FRAME.AT), get(frame, FRAME.OFFSETS), get(frame, FRAME.OFFSET_WIDTH)
    )  # fmt: skip
    values, room, remaining = get(frame, FRAME.VALUES), get(frame, FRAME.ROOM), get(frame, FRAME.LEFT)
    end = get(frame, FRAME.END)
    while remaining > 0 and get(state, STATE.DEPTH) == depth:
        size = _put_child(columns, state, s, at, values + load_uint(offsets, width), end)
        if size == MALFORMED or size > room:
            return False
        offsets += width
        room -= size
        remaining -= 1
        at += 1
    if remaining == 0 and get(state, STATE.DEPTH) == depth:
        put(state, STATE.DEPTH, depth - 1)
        return True
    frame = get(state, STATE.FRAMES) + (depth - 1) * _FRAME_BYTES
    put(frame, FRAME.LEFT, remaining)
    put(frame, FRAME.AT, at)
    put(frame, FRAME.OFFSETS, offsets)
    put(frame, FRAME.ROOM, room)
    return True


@helper
def _child_of(columns: GrowingColumns, fields: _Fields, s: int, field_id: int) -> int:
    """Return the schema node of a field of schema node ``s``; -1 if the field is not shredded."""
    child = get(fields.first_of_id, field_id)
    while child >= 0 and get(node_of(columns, child), S.PARENT) != s:
        child = get(fields.next_of_node, child)
    return child


@helper
def _put_fields(columns: GrowingColumns, state: int, fields: _Fields) -> bool:
    """Add the fields of the object at the top, push shredded containers; False for a malformed or repeated field."""
    depth = get(state, STATE.DEPTH) - 1
    put(state, STATE.DEPTH, depth)
    frame = get(state, STATE.FRAMES) + depth * _FRAME_BYTES
    s, at, count = get(frame, FRAME.SCHEMA), get(frame, FRAME.AT), get(frame, FRAME.LEFT)
    ids, id_width = get(frame, FRAME.IDS), get(frame, FRAME.ID_WIDTH)
    offsets, width = get(frame, FRAME.OFFSETS), get(frame, FRAME.OFFSET_WIDTH)
    values, room = get(frame, FRAME.VALUES), get(frame, FRAME.ROOM)
    end = values + room
    ranks, name_count = get(state, STATE.RANKS), get(state, STATE.NAME_COUNT)
    serial = get(state, STATE.OBJECTS) + 1
    put(state, STATE.OBJECTS, serial)
    residual_count = kept_bytes = largest_id = 0
    last_rank, is_sorted = -1, True
    for _ in range(count):
        field_id = load_uint(ids, id_width)
        ids += id_width
        begin = values + load_uint(offsets, width)
        offsets += width
        if field_id >= name_count:
            return False
        child = _child_of(columns, fields, s, field_id)
        if child >= 0:
            if get(fields.seen, child) == serial:
                return False
            put(fields.seen, child, serial)
            size = _put_child(columns, state, child, at, begin, end)
        else:
            size = value_size(begin, end)
            rank = get(ranks, field_id)
            if residual_count == get(state, STATE.FIELD_ROOM):
                put(state, STATE.FIELD_ROOM, 2 * residual_count)
                put(state, STATE.FIELDS, reallocate(get(state, STATE.FIELDS), 2 * residual_count * FIELD_BYTES))
            put_field(get(state, STATE.FIELDS) + residual_count * FIELD_BYTES, rank, field_id, begin, size)
            is_sorted = is_sorted and rank > last_rank
            last_rank = rank
            residual_count += 1
            kept_bytes += size
            largest_id = max(largest_id, field_id)
        if size == MALFORMED or size > room:
            return False
        room -= size
    if residual_count > 0:
        if not is_sorted and not sort_fields(get(state, STATE.FIELDS), residual_count):
            return False
        _put_residual(get(state, STATE.FIELDS), _Residual(residual_count, kept_bytes, largest_id), columns, s, at)
    return True


@helper
def _put_row(columns: GrowingColumns, state: int, fields: _Fields, row: int, begin: int, end: int) -> bool:
    """Add a row, the value between two addresses; return False if it is malformed."""
    put(state, STATE.DEPTH, 0)
    if _put_child(columns, state, 0, row, begin, end) == MALFORMED:
        return False
    while get(state, STATE.DEPTH) > 0:
        frame = get(state, STATE.FRAMES) + (get(state, STATE.DEPTH) - 1) * _FRAME_BYTES
        if get(frame, FRAME.IDS) == 0:
            if not _put_elements(columns, state):
                return False
        elif not _put_fields(columns, state, fields):
            return False
    return True


@helper
def _chain_children(fields: _Fields, ids: Int64s) -> None:
    """Chain the schema nodes of the same name, by its field id; `_child_of` follows the chain."""
    for s in range(len(ids)):
        if ids[s] >= 0:
            put(fields.next_of_node, s, get(fields.first_of_id, ids[s]))
            put(fields.first_of_id, ids[s], s)


@helper
def _new_state(memory: Memory) -> int:
    """Return the address of the state of a walk."""
    state = allocate(memory, 8 * len(STATE))
    put(state, STATE.FRAMES, allocate(memory, _FEWEST_FRAMES * _FRAME_BYTES))
    put(state, STATE.FIELDS, allocate(memory, _FEWEST_FRAMES * FIELD_BYTES))
    put(state, STATE.FRAME_ROOM, _FEWEST_FRAMES)
    put(state, STATE.FIELD_ROOM, _FEWEST_FRAMES)
    put(state, STATE.OBJECTS, 0)
    return state


@kernel
def shred_rows(
    memory: Memory,
    values: EncodedValues,
    schema: NamedNodes,
    names: NameTable,
    refused: UInt8s,
    out: FilledBuffers,
) -> None:
    """Fill the columns, and mark malformed rows in ``refused``, of which any part may have been added."""
    nodes, rows = schema.nodes, len(values.dictionary_of)
    columns = new_columns(memory, nodes, out, rows)
    ids, field_ranks = filled_vector(memory, len(nodes), -1), new_vector(memory, len(nodes))
    fields = _Fields(
        address_in(filled_vector(memory, widest_dictionary(names), -1)),
        allocate(memory, 8 * len(nodes)),
        address_in(filled_vector(memory, len(nodes), 0)),
    )
    state = _new_state(memory)
    current = -1
    for row in range(rows):
        if (len(values.valid) > 0 and values.valid[row] == 0) or refused[row] != 0:
            continue
        d = values.dictionary_of[row]
        if d < 0 or names.state[d] == UNUSABLE:
            refused[row] = 1
            continue
        if d != current:
            current = d
            for s in range(len(ids)):  # undo `_chain_children`
                if ids[s] >= 0:
                    put(fields.first_of_id, ids[s], -1)
            resolve_names(schema, names, d, ids, field_ranks)
            _chain_children(fields, ids)
            put(state, STATE.RANKS, address_in(names.rank) + 8 * names.starts[d])
            put(state, STATE.NAME_COUNT, names.starts[d + 1] - names.starts[d])
        begin, end = values.base + values.offsets[row], values.base + values.offsets[row + 1]
        out.levels[0] = row + 1
        if not _put_row(columns, state, fields, row, begin, end):
            refused[row] = 1
    finish(columns, out)
