"""Values as nodes in the order of their bytes: made of bytes, compared, measured, and written.

Owns the walk that editing, comparing, spelling types and the drafts share; the ids of its nodes are those of another
dictionary. Malformed values, values with duplicate names and values that are nested too deep are flagged for the scalar
fallback and have no nodes. `shredding.unshred` and `operations.edit` make nodes too.

A node is ``int64[4]``: kind (bits 0-7), scale (8-15) and field id (16-47); a; b; end, as on a tape. Strings and nulls
have their own kinds, other scalars are raw bytes.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.int128 import divide_by_power
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    NODE,
    NODE_BYTES,
    copy,
    equal,
    get,
    load_f32,
    load_f64,
    load_u8,
    load_uint,
    put,
    put_node,
    store_uint,
)
from parquet_variant.kernels.native_vectors import (
    Memory,
    address_in,
    export_table,
    new_table,
    new_vector,
    reserve,
    reserve_rows,
    sort_with,
)
from parquet_variant.kernels.values.reading import (
    COUNT,
    END,
    MALFORMED,
    NEXT,
    OWN,
    Container,
    child,
    child_id,
    open_container,
    scalar,
    scalar_is_valid,
    take_bytes,
    value_kind,
    value_size,
)
from parquet_variant.kernels.values.scalar_slots import (
    array_size,
    begin_array,
    begin_object,
    object_size,
    scalar_size,
    write_scalar,
)

# Kind of an encoded value that is copied unchanged: a = address, b = bytes.
RAW = 30


@helper
def _measure_container(base: int, i: int, sizes: int) -> int:
    """Return the encoded size of a container whose children are measured; see `measure_nodes`."""
    node = base + i * NODE_BYTES
    end, kid = get(node, NODE.END), i + 1
    data = largest = 0
    while kid < end:
        data += get(sizes, kid)
        child = base + kid * NODE_BYTES
        largest = max(largest, get(child, NODE.TAG) >> 16)
        kid = get(child, NODE.END)
    put(node, NODE.B, largest << 32 | data)
    if get(node, NODE.TAG) & 0xFF == KIND.OBJECT:
        return object_size(get(node, NODE.A), largest, data)
    return array_size(get(node, NODE.A), data)


@kernel
def measure_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, row_sizes: Int64s) -> int:
    """Fill the encoded size of each node and each row; return the bytes of all rows.

    The ``b`` of a container is replaced by what `write_nodes` needs: its largest field id (from bit 32 on), and the
    bytes of its values.
    """
    total = 0
    base, size_of = address_in(nodes), address_in(sizes)
    for row in range(len(row_start) - 2, -1, -1):
        row_sizes[row] = 0
        for i in range(row_start[row + 1] - 1, row_start[row] - 1, -1):
            node = base + i * NODE_BYTES
            kind = get(node, NODE.TAG) & 0xFF
            if kind == RAW:
                size = get(node, NODE.B)
            elif kind < KIND.ARRAY:
                size = scalar_size(kind, get(node, NODE.B))
            else:
                size = _measure_container(base, i, size_of)
            put(size_of, i, size)
        if row_start[row] < row_start[row + 1]:
            row_sizes[row] = sizes[row_start[row]]
            total += row_sizes[row]
    return total


@helper
def _write_container(base: int, i: int, sizes: int, places: int) -> None:
    """Write the header of a container, and set the places of its children."""
    node = base + i * NODE_BYTES
    at, count, end = get(places, i), get(node, NODE.A), get(node, NODE.END)
    largest, data = get(node, NODE.B) >> 32, get(node, NODE.B) & 0xFFFFFFFF
    is_object = get(node, NODE.TAG) & 0xFF == KIND.OBJECT
    ids = id_width = 0
    if is_object:
        ids, id_width, offsets, offset_width, values = begin_object(at, count, largest, data)
    else:
        offsets, offset_width, values = begin_array(at, count, data)
    kid, begin = i + 1, values
    while kid < end:
        child = base + kid * NODE_BYTES
        if is_object:
            store_uint(ids, get(child, NODE.TAG) >> 16, id_width)
            ids += id_width
        store_uint(offsets, values - begin, offset_width)
        offsets += offset_width
        put(places, kid, values)
        values += get(sizes, kid)
        kid = get(child, NODE.END)
    store_uint(offsets, values - begin, offset_width)


@kernel
def write_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, places: Int64s, target: int) -> None:
    """Write the values of all rows, as measured by `measure_nodes`, one after the other at ``target``."""
    base, size_of, place_of = address_in(nodes), address_in(sizes), address_in(places)
    for row in range(len(row_start) - 1):
        if row_start[row] == row_start[row + 1]:
            continue
        put(place_of, row_start[row], target)
        target += get(size_of, row_start[row])
        for i in range(row_start[row], row_start[row + 1]):
            node = base + i * NODE_BYTES
            tag = get(node, NODE.TAG)
            kind = tag & 0xFF
            if kind == RAW:
                copy(get(place_of, i), get(node, NODE.A), get(node, NODE.B))
            elif kind < KIND.ARRAY:
                write_scalar(get(place_of, i), kind, get(node, NODE.A), get(node, NODE.B), (tag >> 8) & 0xFF)
            else:
                _write_container(base, i, size_of, place_of)


def value_array(
    nodes: npt.NDArray[np.int64], row_start: npt.NDArray[np.int64], valid: npt.NDArray[np.uint8] | None = None
) -> pa.Array:
    """Return the values of all rows as a binary array.

    A row without nodes has no bytes, and is null where ``valid`` is 0. The ``b`` of containers is overwritten.
    """
    sizes, places = acquire(np.int64, len(nodes)), acquire(np.int64, len(nodes))
    lengths = np.empty(len(row_start) - 1, np.int64)
    measure_nodes(nodes, row_start, sizes, lengths)
    values = filled_binary(lengths, partial(write_nodes, nodes, row_start, sizes, places), valid)
    release(sizes, places)
    return values


_MAX_DEPTH = 1000
# A frame's own columns: the node that is filled, and where the order of its fields is (-1: as they are).
_NODE, _ORDER = OWN, OWN + 1


class _Names(NamedTuple):
    """Where the ids of a row's dictionary are in ``id_map``: from ``first``, before ``last``."""

    first: int
    last: int
    id_map: Int64s


@helper
def _field_order(parts: Container, names: _Names, order: Int64s, begin: int) -> tuple[int, Int64s]:
    """Return ``(status, order)`` of fields: 0 in order, 1 ordered by ``order[used:]`` now, -1 for bad ids."""
    ids, id_width, count = parts.ids, parts.id_width, parts.count
    first, last, id_map = names.first, names.last, names.id_map
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
    order = reserve(order, begin + 2 * count)  # the second half is for the ranks
    ranks = order[begin + count :]
    for i in range(count):
        order[begin + i] = i
        ranks[i] = id_map[first + load_uint(ids + i * id_width, id_width)]
    sort_with(ranks, order[begin:], 0, count)
    for i in range(1, count):
        if ranks[i] == ranks[i - 1]:
            return -1, order
    return 1, order


@helper(inline=True)
def _put_scalar(nodes: Int64Table, n: int, field: int, at: int, end: int, size: int) -> bool:
    """Write the node of a scalar; return whether the scalar is valid."""
    kind, a, b, scale = scalar(at, end)
    if kind == KIND.STRING or kind == KIND.NULL:
        put_node(address_in(nodes), n, kind | (field << 16), a, b)
    else:
        put_node(address_in(nodes), n, RAW | (field << 16), at, size)
    return scalar_is_valid(kind, a, b, scale, False)


@helper(inline=True)
def _open(
    stack: Int64Table,
    depth: int,
    nodes: Int64Table,
    n: int,
    field: int,
    at: int,
    end: int,
    names: _Names,
    order: Int64s,
    ordered: int,
) -> tuple[bool, Int64s, int]:
    """Open a container and write its node; return ``(ok, order, ordered)``."""
    kind = value_kind(load_u8(at))
    parts = open_container(stack, depth, at, end)
    stack[depth, _ORDER] = -1
    if kind == KIND.OBJECT:
        status, order = _field_order(parts, names, order, ordered)
        if status < 0:
            return False, order, ordered
        if status == 1:
            stack[depth, _ORDER] = ordered
            ordered += parts.count
    put_node(address_in(nodes), n, kind | (field << 16), parts.count, 0)
    stack[depth, _NODE] = n
    return True, order, ordered


@helper(inline=True)
def _gather_row(
    at: int, end: int, stack: Int64Table, nodes: Int64Table, n: int, names: _Names, order: Int64s
) -> tuple[bool, Int64Table, int, Int64s]:
    """Write the nodes of the value between two addresses; return ``(ok, nodes, n, order)``."""
    field = depth = ordered = 0
    while True:
        size = value_size(at, end)
        if size == MALFORMED or not take_bytes(stack, depth, size):
            return False, nodes, n, order
        if n + 1 > len(nodes):
            nodes = reserve_rows(nodes, n + 1)
        if value_kind(load_u8(at)) < KIND.ARRAY:
            ok = _put_scalar(nodes, n, field, at, end, size)
        else:
            ok = depth < _MAX_DEPTH
            if ok:
                ok, order, ordered = _open(stack, depth, nodes, n, field, at, end, names, order, ordered)
                depth += 1
        if not ok:
            return False, nodes, n, order
        n += 1
        while depth > 0 and stack[depth - 1, NEXT] == stack[depth - 1, COUNT]:
            depth -= 1
            nodes[stack[depth, _NODE], 3] = n
            if stack[depth, _ORDER] >= 0:
                ordered = stack[depth, _ORDER]
        if depth == 0:
            return True, nodes, n, order
        top = depth - 1
        i = stack[top, NEXT]
        stack[top, NEXT] = i + 1
        if stack[top, _ORDER] >= 0:
            i = order[stack[top, _ORDER] + i]
        field_id = child_id(stack, top, i)
        field = names.id_map[names.first + field_id] if field_id >= 0 else 0
        at, end = child(stack, top, i), stack[top, END]


@kernel
def canonical_nodes(
    memory: Memory,
    starts: Int64s,
    stops: Int64s,
    dictionary_of: ReadOnlyInt32s,
    map_starts: Int64s,
    id_map: Int64s,
    row_start: Int64s,
    refused: UInt8s,
) -> tuple[int, int, int]:
    """Write the nodes of every value, fields in order; return their table for `adopt`.

    A value is between ``starts`` and ``stops``; a start of -1 means no value. Id i of dictionary d becomes
    ``id_map[map_starts[d] + i]``.
    """
    stack = new_table(memory, _MAX_DEPTH, OWN + 2)
    nodes = new_table(memory, max(64, 4 * len(starts)), 4)
    order = new_vector(memory, 64)
    n = 0
    for row in range(len(starts)):
        row_start[row] = n
        if starts[row] < 0:
            continue
        first = last = 0
        if dictionary_of[row] >= 0:
            first, last = map_starts[dictionary_of[row]], map_starts[dictionary_of[row] + 1]
        names = _Names(first, last, id_map)
        ok, nodes, n, order = _gather_row(starts[row], stops[row], stack, nodes, n, names, order)
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[len(starts)] = n
    return export_table(nodes, n)


@helper
def _same_number(high: int, low: int, scale: int, other_high: int, other_low: int, other_scale: int) -> bool:
    """Return whether two decimals are equal: the one of larger scale, divided exactly, is the other one."""
    if scale < other_scale:
        high, low, scale, other_high, other_low, other_scale = other_high, other_low, other_scale, high, low, scale
    exact, high, low = divide_by_power(high, low, scale - other_scale, False)
    return exact and high == other_high and low == other_low


@helper
def _same_scalar(at: int, size: int, other_at: int, other_size: int) -> bool:
    """Return whether two encoded scalars have the same meaning."""
    kind, a, b, scale = scalar(at, at + size)
    other, other_a, other_b, other_scale = scalar(other_at, other_at + other_size)
    if KIND.INT8 <= kind <= KIND.INT64:
        kind, b = KIND.DECIMAL16, (-1 if a < 0 else 0)
    if KIND.INT8 <= other <= KIND.INT64:
        other, other_b = KIND.DECIMAL16, (-1 if other_a < 0 else 0)
    if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
        return KIND.DECIMAL4 <= other <= KIND.DECIMAL16 and _same_number(b, a, scale, other_b, other_a, other_scale)
    if kind != other:
        # The same moment in microseconds and in nanoseconds.
        if (kind == KIND.TIMESTAMP and other == KIND.TIMESTAMP_NANOS) or (
            kind == KIND.TIMESTAMP_NTZ and other == KIND.TIMESTAMP_NTZ_NANOS
        ):
            return other_a % 1000 == 0 and other_a // 1000 == a
        if (other == KIND.TIMESTAMP and kind == KIND.TIMESTAMP_NANOS) or (
            other == KIND.TIMESTAMP_NTZ and kind == KIND.TIMESTAMP_NTZ_NANOS
        ):
            return a % 1000 == 0 and a // 1000 == other_a
        return False
    if kind == KIND.DOUBLE:
        left, right = load_f64(at + 1), load_f64(other_at + 1)
        return left == right or (left != left and right != right)
    if kind == KIND.FLOAT:
        left, right = load_f32(at + 1), load_f32(other_at + 1)
        return left == right or (left != left and right != right)
    if kind == KIND.BINARY:
        return b == other_b and equal(a, other_a, b)
    if kind == KIND.UUID:
        return equal(a, other_a, 16)
    return a == other_a


@kernel
def compare_rows(
    nodes: Int64Table, row_start: Int64s, other_nodes: Int64Table, other_row_start: Int64s, same: UInt8s
) -> None:
    """Mark the rows whose nodes have the same meaning."""
    for row in range(len(same)):
        same[row] = 0
        count = row_start[row + 1] - row_start[row]
        if count != other_row_start[row + 1] - other_row_start[row]:
            continue
        i, j = row_start[row], other_row_start[row]
        is_equal = True
        for _ in range(count):
            # Bits 0 to 15 are kind and scale, the bits above are the rank of the field.
            if nodes[i, 0] >> 16 != other_nodes[j, 0] >> 16:
                is_equal = False
                break
            kind, other = nodes[i, 0] & 0xFF, other_nodes[j, 0] & 0xFF
            if kind == RAW and other == RAW:
                is_equal = _same_scalar(nodes[i, 1], nodes[i, 2], other_nodes[j, 1], other_nodes[j, 2])
            elif kind != other:
                is_equal = False
            elif kind == KIND.STRING:
                is_equal = nodes[i, 2] == other_nodes[j, 2] and equal(nodes[i, 1], other_nodes[j, 1], nodes[i, 2])
            elif kind >= KIND.ARRAY:
                is_equal = nodes[i, 1] == other_nodes[j, 1]
            if not is_equal:
                break
            i += 1
            j += 1
        same[row] = 1 if is_equal else 0
