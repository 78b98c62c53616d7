"""Values as nodes in the order of their bytes, measured and then written.

Owns both steps. Leaves making the nodes to `shredding.unshred`, `operations.canonical_nodes` and `operations.edit`.

A node is ``int64[4]``: kind (bits 0-7), scale (8-15) and field id (16-47); a; b; end, as on a tape.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, NODE, NODE_BYTES, copy, get, put, store_uint
from parquet_variant.kernels.native_vectors import address_in
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
