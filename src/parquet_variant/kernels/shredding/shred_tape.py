"""From a tape to Variant bytes and typed columns, under any shredding schema, in two passes.

Owns the destination of every node of the tape: a typed slot, a `value` blob, or the blob of an ancestor. With the
schema that shreds nothing this is the plain encoder. Leaves the layout of Arrow arrays to `schema_table` and
scalars to `values.scalar_slots`.

Pass one (`_measure`) walks the nodes backwards, children before parents, and computes the sizes of blobs. Pass
two (`_fill`) walks them forwards, parents before children: an object writes its header and assigns the
place of each field, so that no value is moved.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.json.scan import STATUS
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table
from parquet_variant.kernels.memory import (
    KIND,
    NODE,
    NODE_BYTES,
    get,
    load_s32,
    put,
    store_u32,
    store_uint,
)
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    disown,
    filled_vector,
    new_vector,
    own,
    reserve,
    sort_with,
)
from parquet_variant.kernels.shredding.growing_columns import (
    GrowingColumns,
    finish,
    new_columns,
    put_array,
    put_bytes,
    put_object,
    put_slot,
    put_value,
)
from parquet_variant.kernels.shredding.schema_table import (
    ARRAY_NODE,
    BUFFERS,
    OBJECT_NODE,
    PRIMITIVE_NODE,
    FilledBuffers,
    S,
)
from parquet_variant.kernels.tapes.dictionaries import Sets, assign_dictionaries
from parquet_variant.kernels.tapes.tape import PATH, PATH_BYTES, SHAPE, kind_of, path_of, scale_of
from parquet_variant.kernels.values.scalar_slots import (
    array_size,
    begin_array,
    begin_object,
    exact_slot,
    object_size,
    scalar_size,
    write_scalar,
)

# Size of a node that is stored in typed columns only.
_TYPED = -1
_SCHEMA_BYTES = 8 * len(S)


class ShreddedTape(NamedTuple):
    """A tape, and the schema under which it is shredded."""

    nodes: Int64Table
    row_start: Int64s
    paths: Int64Table
    shapes: Int64Table
    schema_of: Int64s  # The schema node of each path, -1 for none, which `shred_nodes` fills.
    table: Int64Table  # The nodes of the schema.
    of_row: Int32s  # The dictionary of each row, which `shred_nodes` fills.


class _Tape(NamedTuple):
    """Addresses: the nodes of a tape, their sizes (``int32``) and places, paths, and the schema.

    ``schema_of`` is the schema node of each path, ``table`` the nodes of the schema, and ``local`` the field id of each
    key in the dictionary of the row.
    """

    nodes: int
    sizes: int
    places: int
    paths: int
    schema_of: int
    table: int
    local: int


@helper
def _node(tape: _Tape, i: int) -> int:
    """Return the address of a node."""
    return tape.nodes + i * NODE_BYTES


@helper
def _size_of(tape: _Tape, i: int) -> int:
    """Return the size of a node; _TYPED if it is in typed columns only."""
    return load_s32(tape.sizes + 4 * i)


@helper
def _key_of(tape: _Tape, tag: int) -> int:
    """Return the key of a node with a tag; negative for elements and rows."""
    return get(tape.paths + path_of(tag) * PATH_BYTES, PATH.KEY)


@helper
def _schema_node(tape: _Tape, s: int) -> int:
    """Return the address of a schema node."""
    return tape.table + s * _SCHEMA_BYTES


@helper
def _map_paths(paths: Int64Table, nodes_of_schema: Int64Table, name_keys: Int64s, schema_of: Int64s) -> None:
    """Fill ``schema_of`` (-1: none); ``name_keys``: the key id of each name, -1 for elements, -2 for missing names."""
    schema_of[0] = 0
    for p in range(1, len(paths)):
        schema_of[p] = -1
        above = schema_of[paths[p, PATH.PARENT]]
        if above < 0:
            continue
        key = paths[p, PATH.KEY]
        kind = nodes_of_schema[above, S.KIND]
        if (key < 0) != (kind == ARRAY_NODE) or (kind != ARRAY_NODE and kind != OBJECT_NODE):
            continue
        for s in range(above + 1, len(nodes_of_schema)):
            if nodes_of_schema[s, S.PARENT] == above and name_keys[s] == key:
                schema_of[p] = s
                break


@helper
def _fields_left(tape: _Tape, i: int, partial: bool) -> tuple[int, int, int]:
    """Return ``(count, largest id, bytes)`` of the fields of an object's blob; if ``partial``, of residual ones."""
    count = data = largest = 0
    kid, end = i + 1, get(_node(tape, i), NODE.END)
    while kid < end:
        node = _node(tape, kid)
        tag = get(node, NODE.TAG)
        if not partial or get(tape.schema_of, path_of(tag)) < 0:
            count += 1
            data += _size_of(tape, kid)
            largest = max(largest, get(tape.local, _key_of(tape, tag)))
        kid = get(node, NODE.END)
    return count, largest, data


@helper
def _elements_size(tape: _Tape, i: int) -> int:
    """Return the bytes of the elements of an array."""
    data = 0
    kid, end = i + 1, get(_node(tape, i), NODE.END)
    while kid < end:
        data += _size_of(tape, kid)
        kid = get(_node(tape, kid), NODE.END)
    return data


@helper
def _field_ids(dictionary: int, sets: Sets, local: Int64s) -> None:
    """Fill the field id of each key of a dictionary."""
    for i in range(sets.starts[dictionary], sets.starts[dictionary + 1]):
        local[sets.values[i]] = i - sets.starts[dictionary]


@helper
def _is_typed(tape: _Tape, i: int, s: int) -> tuple[bool, bool]:
    """Return whether a node is stored in typed columns only, and whether it is an object that is shredded in part."""
    node, schema = _node(tape, i), _schema_node(tape, s)
    kind, shape = kind_of(get(node, NODE.TAG)), get(schema, S.KIND)
    if shape == PRIMITIVE_NODE:
        return kind < KIND.ARRAY and _exact_slot_of(node, schema)[0], False
    return shape == ARRAY_NODE and kind == KIND.ARRAY, shape == OBJECT_NODE and kind == KIND.OBJECT


@helper
def _exact_slot_of(node: int, schema: int) -> tuple[bool, int, int]:
    """Return ``(ok, low, high)`` of a scalar node as the type of a schema node."""
    tag = get(node, NODE.TAG)
    return exact_slot(
        kind_of(tag), get(node, NODE.A), get(node, NODE.B), scale_of(tag),
        get(schema, S.CODE), get(schema, S.PRECISION), get(schema, S.SCALE),
    )  # fmt: skip


@helper
def _blob_size(tape: _Tape, i: int, partial: bool) -> int:
    """Return the bytes of a node in its blob; _TYPED for an object of which no field is left."""
    node = _node(tape, i)
    kind = kind_of(get(node, NODE.TAG))
    if kind == KIND.OBJECT:
        fields, largest, data = _fields_left(tape, i, partial)
        return _TYPED if partial and fields == 0 else object_size(fields, largest, data)
    if kind == KIND.ARRAY:
        return array_size(get(node, NODE.A), _elements_size(tape, i))
    return scalar_size(kind, get(node, NODE.B))


@helper
def _measure(tape: _Tape, shredded: ShreddedTape, sets: Sets, local: Int64s, max_size: int, out: FilledBuffers) -> int:
    """Fill the sizes of nodes and the bytes of ``value`` columns; return a row that is too large, or -1."""
    row_start, current = shredded.row_start, -1
    for row in range(len(row_start) - 2, -1, -1):
        if row_start[row] == row_start[row + 1]:
            continue
        if shredded.of_row[row] != current:
            current = shredded.of_row[row]
            _field_ids(current, sets, local)
        for i in range(row_start[row + 1] - 1, row_start[row] - 1, -1):
            s = get(tape.schema_of, path_of(get(_node(tape, i), NODE.TAG)))
            typed = partial = False
            if s >= 0:
                typed, partial = _is_typed(tape, i, s)
            size = _TYPED if typed else _blob_size(tape, i, partial)
            if size > max_size:
                return row
            store_u32(tape.sizes + 4 * i, size)
            if s >= 0 and size != _TYPED:
                out.records[2 * s, BUFFERS.BYTES] += size
    return -1


@helper
def _shape_order(
    shape: int, count: int, shapes: Int64Table, rank: Int64s, orders: Int64s, order_start: Int64s, order_count: int
) -> tuple[Int64s, int]:
    """Store the positions of a shape's fields by name from ``order_start[shape]``; return ``(orders, order_count)``."""
    orders = reserve(orders, order_count + 2 * count)  # the second half is for the ranks
    at = shape
    for j in range(count - 1, -1, -1):
        orders[order_count + j] = j
        orders[order_count + count + j] = rank[shapes[at, SHAPE.KEY]]
        at = shapes[at, SHAPE.PARENT]
    order_start[shape] = order_count
    sort_with(orders[order_count + count :], orders[order_count:], 0, count)
    return orders, order_count + count


@helper
def _write_object(tape: _Tape, i: int, partial: bool, kids: int, order: int) -> None:
    """Write an object's header and offsets, and assign the places of its fields.

    ``kids`` has room for the numbers of the fields, and ``order`` is their order by name; both are addresses.
    """
    count = get(_node(tape, i), NODE.A)
    kid = i + 1
    for j in range(count):
        put(kids, j, kid)
        kid = get(_node(tape, kid), NODE.END)
    field_count, largest, data = _fields_left(tape, i, partial)
    ids, id_width, offsets, offset_width, values = begin_object(get(tape.places, i), field_count, largest, data)
    at = 0
    for j in range(count):
        kid = get(kids, get(order, j))
        tag = get(_node(tape, kid), NODE.TAG)
        if not partial or get(tape.schema_of, path_of(tag)) < 0:
            store_uint(ids, get(tape.local, _key_of(tape, tag)), id_width)
            ids += id_width
            store_uint(offsets, at, offset_width)
            offsets += offset_width
            put(tape.places, kid, values + at)
            at += _size_of(tape, kid)
    store_uint(offsets, at, offset_width)


@helper
def _write_array(tape: _Tape, i: int) -> None:
    """Write an array's header and offsets, and assign the places of its elements."""
    node = _node(tape, i)
    kid, end = i + 1, get(node, NODE.END)
    offsets, width, values = begin_array(get(tape.places, i), get(node, NODE.A), _elements_size(tape, i))
    at = 0
    while kid < end:
        store_uint(offsets, at, width)
        offsets += width
        put(tape.places, kid, values + at)
        at += _size_of(tape, kid)
        kid = get(_node(tape, kid), NODE.END)
    store_uint(offsets, at, width)


@helper
def _put_entry(columns: GrowingColumns, tape: _Tape, i: int, s: int) -> bool:
    """Add a node to the columns of a schema node, and set its place; return whether it is shredded in part."""
    node, schema, size = _node(tape, i), _schema_node(tape, s), _size_of(tape, i)
    tag, level, shape = get(node, NODE.TAG), get(schema, S.LEVEL), get(schema, S.KIND)
    if s > 0 and _key_of(tape, tag) < 0:
        put(columns.entries, level, get(columns.entries, level) + 1)
    at = get(columns.entries, level) - 1
    partial = shape == OBJECT_NODE and kind_of(tag) == KIND.OBJECT
    if partial:
        put_object(columns, s, at)
    elif size == _TYPED:
        if shape == ARRAY_NODE:
            put_array(columns, s, at, get(node, NODE.A))
        elif get(schema, S.WIDTH) == 0:
            put_bytes(columns, s, at, get(node, NODE.A), get(node, NODE.B))
        else:
            _, low, high = _exact_slot_of(node, schema)
            put_slot(columns, s, at, low, high)
    if size != _TYPED:
        put(tape.places, i, put_value(columns, s, at, size))
    return partial


@helper
def _fill(
    memory: Memory,
    tape: _Tape,
    shredded: ShreddedTape,
    sets: Sets,
    rank: Int64s,
    local: Int64s,
    out: FilledBuffers,
) -> None:
    """Add every node to the columns. A blob is complete before the next one of its column, which may move it."""
    row_start, shapes = shredded.row_start, shredded.shapes
    columns = new_columns(memory, shredded.table, out, len(row_start) - 1)
    order_start = filled_vector(memory, len(shapes), -1)
    orders, kids = new_vector(memory, 256), new_vector(memory, 256)
    order_count = 0
    current = -1
    for row in range(len(row_start) - 1):
        if row_start[row] == row_start[row + 1]:
            continue
        if shredded.of_row[row] != current:
            current = shredded.of_row[row]
            _field_ids(current, sets, local)
        out.levels[0] = row + 1
        for i in range(row_start[row], row_start[row + 1]):
            node = _node(tape, i)
            tag = get(node, NODE.TAG)
            kind, s = kind_of(tag), get(tape.schema_of, path_of(tag))
            partial = False
            if s >= 0:
                partial = _put_entry(columns, tape, i, s)
                if _size_of(tape, i) == _TYPED:
                    continue
            if kind == KIND.OBJECT:
                count, shape = get(node, NODE.A), get(node, NODE.B)
                kids = reserve(kids, count)
                if order_start[shape] < 0:
                    orders, order_count = _shape_order(shape, count, shapes, rank, orders, order_start, order_count)
                _write_object(tape, i, partial, address_in(kids), address_in(orders) + 8 * order_start[shape])
            elif kind == KIND.ARRAY:
                _write_array(tape, i)
            else:
                write_scalar(get(tape.places, i), kind, get(node, NODE.A), get(node, NODE.B), scale_of(tag))
    finish(columns, out)


@kernel
def shred_nodes(
    memory: Memory,
    shredded: ShreddedTape,
    key_table: Int64Table,
    name_keys: Int64s,
    per_batch: bool,
    max_size: int,
    sizes: Int32s,
    places: Int64s,
    out: FilledBuffers,
    block: tuple[int, int],
) -> tuple[int, int, int, tuple[int, int]]:
    """Fill the columns, ``schema_of`` and ``of_row``; ``sizes`` and ``places`` are scratch space for each node.

    ``name_keys`` is the key id of each schema node's name, -1 for elements, -2 for names that the batch lacks.
    ``block`` is the first room for the bytes of the values, from `result_block`.
    Returns ``(status, row, dictionaries, data)``: the row is one that is too large, -1 for the metadata; the data are
    the metadata, as `write_dictionaries` writes them, for `adopt_bytes`.
    """
    if block[0] != 0:
        own(memory, block[0])
        out.records[0, BUFFERS.BEGIN] = out.records[0, BUFFERS.DATA] = block[0]
        out.records[0, BUFFERS.END] = block[0] + block[1]
    _map_paths(shredded.paths, shredded.table, name_keys, shredded.schema_of)
    rank = new_vector(memory, len(key_table))
    dictionaries, sets, data = assign_dictionaries(
        memory,
        shredded.nodes,
        shredded.row_start,
        shredded.shapes,
        key_table,
        per_batch,
        max_size,
        shredded.of_row,
        rank,
    )
    if data[1] < 0:
        return STATUS.SIZE, -1, 0, data
    local = filled_vector(memory, len(key_table) + 1, 0)
    tape = _Tape(
        address_in(shredded.nodes), address_in(sizes), address_in(places), address_in(shredded.paths),
        address_in(shredded.schema_of), address_in(shredded.table), address_in(local),
    )  # fmt: skip
    row = _measure(tape, shredded, sets, local, max_size, out)
    if row >= 0:
        return STATUS.SIZE, row, 0, (0, 0)
    _fill(memory, tape, shredded, sets, rank, local, out)
    disown(data[0])
    return STATUS.OK, 0, dictionaries, data
