"""From a tape to Variant bytes and typed columns, under any shredding schema, in two passes.

Owns the destination of every node of the tape: a typed slot, a `value` blob, or the blob of an ancestor. With the
schema that shreds nothing this is the plain encoder. Leaves the layout of Arrow arrays to `columns` and scalars to
`values.scalar_slots`.

Pass one (`measure`) walks the nodes backwards, children before parents, and computes the sizes of blobs and the counts
of columns. Pass two (`fill`) walks them forwards, parents before children: an object writes its header and assigns the
place of each field, so that no value is moved.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper, kernel, numbered
from parquet_variant.kernels.json.scan import STATUS
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import copy, store_u8, store_u32, store_uint
from parquet_variant.kernels.native_vectors import filled_vector, new_vector, reserve
from parquet_variant.kernels.ownership import Memory
from parquet_variant.kernels.shredding.schema_table import ARRAY_NODE, OBJECT_NODE, PRIMITIVE_NODE, S
from parquet_variant.kernels.sorting import sort_with
from parquet_variant.kernels.tapes.tape import PATH, SHAPE, kind_of, path_of, scale_of
from parquet_variant.kernels.values.containers import array_size, begin_array, begin_object, object_size
from parquet_variant.kernels.values.scalar_slots import exact_slot, scalar_size, store_slot, write_scalar
from parquet_variant.machine_code.signatures import Int32s, Int64s, Int64Table

# Columns of the counts table that `measure` fills; it has one row per schema node.
COUNTS = numbered("VALUE_COUNT VALUE_BYTES TYPED_COUNT TYPED_BYTES")
# Columns of the address table of `fill`: the buffers of each schema node; 0 for missing buffers.
BUFFERS = numbered("VALUE_LENGTHS VALUE_VALID VALUE_DATA TYPED_VALID LENGTHS CELLS TYPED_DATA")

# Size of a node that is stored in typed columns only.
_TYPED = -1


class ShreddedTape(NamedTuple):
    """A tape, the schema node of each of its paths (-1 for none), and the nodes of the schema."""

    nodes: Int64Table
    row_start: Int64s
    paths: Int64Table
    schema_of: Int64s
    table: Int64Table


class RowKeys(NamedTuple):
    """The dictionary of each row, and the key ids of each dictionary; ``key_count`` is the number of all keys."""

    of_row: Int32s
    starts: Int64s
    keys: Int64s
    key_count: int


class _Objects(NamedTuple):
    """What identifies the fields of objects: the nodes, and the field id of each key in the dictionary of the row."""

    nodes: Int64Table
    schema_of: Int64s
    paths: Int64Table
    local: Int64s


@kernel
def map_paths(paths: Int64Table, nodes_of_schema: Int64Table, name_keys: Int64s, schema_of: Int64s) -> None:
    """Fill ``schema_of``: the schema node of each path, or -1.

    ``name_keys`` is the key id of each schema node's name, -1 for elements, -2 for names that the batch lacks.
    """
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


@helper(inline=True)
def _fields_left(node: int, objects: _Objects, sizes: Int32s, partial: bool) -> tuple[int, int, int]:
    """Return ``(count, largest id, bytes)`` of the fields of an object that go into its blob.

    If ``partial``, shredded fields are excluded.
    """
    count = data = largest = 0
    kid = node + 1
    end = objects.nodes[node, 3]
    while kid < end:
        path = path_of(objects.nodes[kid, 0])
        if not partial or objects.schema_of[path] < 0:
            count += 1
            data += sizes[kid]
            field_id = objects.local[objects.paths[path, PATH.KEY]]
            if field_id > largest:
                largest = field_id
        kid = objects.nodes[kid, 3]
    return count, largest, data


@helper(inline=True)
def _elements_size(node: int, nodes: Int64Table, sizes: Int32s) -> int:
    """Return the bytes of the elements of an array."""
    data = 0
    kid = node + 1
    end = nodes[node, 3]
    while kid < end:
        data += sizes[kid]
        kid = nodes[kid, 3]
    return data


@helper
def _field_ids(dictionary: int, keys: RowKeys, local: Int64s) -> None:
    """Fill the field id of each key of a dictionary."""
    for i in range(keys.starts[dictionary], keys.starts[dictionary + 1]):
        local[keys.keys[i]] = i - keys.starts[dictionary]


@helper(inline=True)
def _measure_typed(i: int, s: int, tape: ShreddedTape, counts: Int64Table, levels: Int64s) -> tuple[bool, bool]:
    """Count a node of a schema node; return ``(typed, partial)``.

    ``typed``: the node is stored in typed columns only. ``partial``: the node is an object that is shredded in part.
    """
    tag = tape.nodes[i, 0]
    kind, shape = kind_of(tag), tape.table[s, S.KIND]
    if tape.paths[path_of(tag), PATH.KEY] < 0 and s > 0:
        levels[tape.table[s, S.LEVEL]] += 1
    typed = partial = False
    if shape == PRIMITIVE_NODE:
        if kind < KIND.ARRAY:
            typed, _, _ = _exact_slot_of(i, s, tape)
            if typed and (tape.table[s, S.CODE] == KIND.STRING or tape.table[s, S.CODE] == KIND.BINARY):
                counts[s, COUNTS.TYPED_BYTES] += tape.nodes[i, 2]
    elif shape == ARRAY_NODE:
        typed = kind == KIND.ARRAY
    else:
        partial = shape == OBJECT_NODE and kind == KIND.OBJECT
    if typed or partial:
        counts[s, COUNTS.TYPED_COUNT] += 1
    return typed, partial


@helper(inline=True)
def _exact_slot_of(i: int, s: int, tape: ShreddedTape) -> tuple[bool, int, int]:
    """Return ``(ok, low, high)`` of a scalar node as the type of a schema node."""
    tag = tape.nodes[i, 0]
    return exact_slot(
        kind_of(tag), tape.nodes[i, 1], tape.nodes[i, 2], scale_of(tag),
        tape.table[s, S.CODE], tape.table[s, S.PRECISION], tape.table[s, S.SCALE],
    )  # fmt: skip


@kernel
def measure(
    memory: Memory, tape: ShreddedTape, keys: RowKeys, max_size: int, sizes: Int32s, counts: Int64Table, levels: Int64s
) -> tuple[int, int]:
    """Fill ``sizes`` (one per node), ``counts`` (one row per schema node) and ``levels`` (entries).

    Returns ``(status, row)``; the row is the first one that is too large.
    """
    nodes, row_start, schema_of = tape.nodes, tape.row_start, tape.schema_of
    local = filled_vector(memory, keys.key_count + 1, 0)
    objects = _Objects(nodes, schema_of, tape.paths, local)
    current = -1
    levels[0] = len(row_start) - 1
    for row in range(len(row_start) - 2, -1, -1):
        if row_start[row] == row_start[row + 1]:
            continue
        if keys.of_row[row] != current:
            current = keys.of_row[row]
            _field_ids(current, keys, local)
        for i in range(row_start[row + 1] - 1, row_start[row] - 1, -1):
            kind = kind_of(nodes[i, 0])
            s = schema_of[path_of(nodes[i, 0])]
            typed = partial = False
            if s >= 0:
                typed, partial = _measure_typed(i, s, tape, counts, levels)
            size = 0
            if typed:
                pass
            elif kind == KIND.OBJECT:
                fields, largest, data = _fields_left(i, objects, sizes, partial)
                typed = partial and fields == 0
                size = object_size(fields, largest, data)
            elif kind == KIND.ARRAY:
                size = array_size(nodes[i, 1], _elements_size(i, nodes, sizes))
            else:
                size = scalar_size(kind, nodes[i, 2])
            if typed:
                sizes[i] = _TYPED
                continue
            if size > max_size:
                return STATUS.SIZE, row
            sizes[i] = size
            if s >= 0:
                counts[s, COUNTS.VALUE_COUNT] += 1
                counts[s, COUNTS.VALUE_BYTES] += size
    return STATUS.OK, 0


@helper
def _shape_order(
    shape: int, count: int, shapes: Int64Table, rank: Int64s, orders: Int64s, order_start: Int64s, order_count: int
) -> tuple[Int64s, int]:
    """Store the order of a shape's fields: ``orders[order_start[shape] + j]`` is the position of field j by name.

    Returns ``(orders, order_count)``.
    """
    orders = reserve(orders, order_count + 2 * count)  # the second half is for the ranks
    at = shape
    for j in range(count - 1, -1, -1):
        orders[order_count + j] = j
        orders[order_count + count + j] = rank[shapes[at, SHAPE.KEY]]
        at = shapes[at, SHAPE.PARENT]
    order_start[shape] = order_count
    sort_with(orders[order_count + count :], orders[order_count:], 0, count)
    return orders, order_count + count


@helper(inline=True)
def _write_object(
    node: int,
    address: int,
    objects: _Objects,
    sizes: Int32s,
    places: Int64s,
    partial: bool,
    kids: Int64s,
    order: Int64s,
) -> None:
    """Write an object's header and offsets at ``address``, and assign the places of its fields."""
    nodes, schema_of, paths, local = objects.nodes, objects.schema_of, objects.paths, objects.local
    count = nodes[node, 1]
    kid = node + 1
    for j in range(count):
        kids[j] = kid
        kid = nodes[kid, 3]
    field_count, largest, data = _fields_left(node, objects, sizes, partial)
    ids, id_width, offsets, offset_width, values = begin_object(address, field_count, largest, data)
    at = 0
    for j in range(count):
        kid = kids[order[j]]
        path = path_of(nodes[kid, 0])
        if not partial or schema_of[path] < 0:
            store_uint(ids, local[paths[path, PATH.KEY]], id_width)
            ids += id_width
            store_uint(offsets, at, offset_width)
            offsets += offset_width
            places[kid] = values + at
            at += sizes[kid]
    store_uint(offsets, at, offset_width)


@helper(inline=True)
def _write_array(node: int, address: int, nodes: Int64Table, sizes: Int32s, places: Int64s) -> None:
    """Write an array's header and offsets at ``address``, and assign the places of its elements."""
    end = nodes[node, 3]
    offsets, width, values = begin_array(address, nodes[node, 1], _elements_size(node, nodes, sizes))
    at = 0
    kid = node + 1
    while kid < end:
        store_uint(offsets, at, width)
        offsets += width
        places[kid] = values + at
        at += sizes[kid]
        kid = nodes[kid, 3]
    store_uint(offsets, at, width)


@helper(inline=True)
def _store_typed(i: int, s: int, at: int, tape: ShreddedTape, addresses: Int64Table) -> None:
    """Write a node to the typed column of a schema node, as entry ``at``."""
    nodes, shape = tape.nodes, tape.table[s, S.KIND]
    if addresses[s, BUFFERS.TYPED_VALID] != 0:
        store_u8(addresses[s, BUFFERS.TYPED_VALID] + at, 1)
    if shape == ARRAY_NODE:
        store_u32(addresses[s, BUFFERS.LENGTHS] + at * 4, nodes[i, 1])
    elif shape == PRIMITIVE_NODE:
        width = tape.table[s, S.WIDTH]
        if width == 0:
            store_u32(addresses[s, BUFFERS.LENGTHS] + at * 4, nodes[i, 2])
            copy(addresses[s, BUFFERS.TYPED_DATA], nodes[i, 1], nodes[i, 2])
            addresses[s, BUFFERS.TYPED_DATA] += nodes[i, 2]
        elif kind_of(nodes[i, 0]) == KIND.UUID:
            copy(addresses[s, BUFFERS.CELLS] + at * 16, nodes[i, 1], 16)
        else:
            _, low, high = _exact_slot_of(i, s, tape)
            store_slot(addresses[s, BUFFERS.CELLS] + at * width, width, low, high)


@kernel
def fill(
    memory: Memory,
    tape: ShreddedTape,
    shapes: Int64Table,
    rank: Int64s,
    keys: RowKeys,
    sizes: Int32s,
    places: Int64s,
    addresses: Int64Table,
    level_count: int,
) -> None:
    """Write every node to the buffers at ``addresses``, which advance as blobs are written."""
    nodes, row_start = tape.nodes, tape.row_start
    local = filled_vector(memory, keys.key_count + 1, 0)
    objects = _Objects(nodes, tape.schema_of, tape.paths, local)
    order_start = filled_vector(memory, len(shapes), -1)
    orders, kids = new_vector(memory, 256), new_vector(memory, 256)
    order_count = 0
    entry = filled_vector(memory, level_count, 0)
    current = -1
    for row in range(len(row_start) - 1):
        if row_start[row] == row_start[row + 1]:
            continue
        if keys.of_row[row] != current:
            current = keys.of_row[row]
            _field_ids(current, keys, local)
        entry[0] = row + 1
        for i in range(row_start[row], row_start[row + 1]):
            tag, size = nodes[i, 0], sizes[i]
            kind, path = kind_of(tag), path_of(tag)
            s = tape.schema_of[path]
            partial = False
            if s >= 0:
                level = tape.table[s, S.LEVEL]
                if s > 0 and tape.paths[path, PATH.KEY] < 0:
                    entry[level] += 1
                at = entry[level] - 1
                partial = tape.table[s, S.KIND] == OBJECT_NODE and kind == KIND.OBJECT
                if size == _TYPED or partial:
                    _store_typed(i, s, at, tape, addresses)
                    if size == _TYPED:
                        continue
                store_u32(addresses[s, BUFFERS.VALUE_LENGTHS] + at * 4, size)
                store_u8(addresses[s, BUFFERS.VALUE_VALID] + at, 1)
                places[i] = addresses[s, BUFFERS.VALUE_DATA]
                addresses[s, BUFFERS.VALUE_DATA] += size
            if kind == KIND.OBJECT:
                kids = reserve(kids, nodes[i, 1])
                shape = nodes[i, 2]
                if order_start[shape] < 0:
                    orders, order_count = _shape_order(
                        shape, nodes[i, 1], shapes, rank, orders, order_start, order_count
                    )
                _write_object(i, places[i], objects, sizes, places, partial, kids, orders[order_start[shape] :])
            elif kind == KIND.ARRAY:
                _write_array(i, places[i], nodes, sizes, places)
            else:
                write_scalar(places[i], kind, nodes[i, 1], nodes[i, 2], scale_of(tag))
