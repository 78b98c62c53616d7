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
from parquet_variant.kernels.compiling import kernel
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import copy, store_uint
from parquet_variant.kernels.values.containers import array_size, begin_array, begin_object, object_size
from parquet_variant.kernels.values.scalar_slots import scalar_size, write_scalar
from parquet_variant.machine_code.signatures import Int64s, Int64Table

# Kind of an encoded value that is copied unchanged: a = address, b = bytes.
RAW = 30


@kernel
def measure_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, row_sizes: Int64s) -> int:
    """Fill the encoded size of each node and each row; return the bytes of all rows.

    The ``b`` of a container is replaced by what `write_nodes` needs: its largest field id (from bit 32 on), and the
    bytes of its values.
    """
    total = 0
    for row in range(len(row_start) - 2, -1, -1):
        row_sizes[row] = 0
        for i in range(row_start[row + 1] - 1, row_start[row] - 1, -1):
            kind = nodes[i, 0] & 0xFF
            if kind == RAW:
                sizes[i] = nodes[i, 2]
                continue
            if kind < KIND.ARRAY:
                sizes[i] = scalar_size(kind, nodes[i, 2])
                continue
            data = largest = 0
            kid = i + 1
            while kid < nodes[i, 3]:
                data += sizes[kid]
                largest = max(largest, nodes[kid, 0] >> 16)
                kid = nodes[kid, 3]
            nodes[i, 2] = largest << 32 | data
            if kind == KIND.OBJECT:
                sizes[i] = object_size(nodes[i, 1], largest, data)
            else:
                sizes[i] = array_size(nodes[i, 1], data)
        if row_start[row] < row_start[row + 1]:
            row_sizes[row] = sizes[row_start[row]]
            total += row_sizes[row]
    return total


@kernel
def write_nodes(nodes: Int64Table, row_start: Int64s, sizes: Int64s, places: Int64s, target: int) -> None:
    """Write the values of all rows, as measured by `measure_nodes`, one after the other at ``target``."""
    for row in range(len(row_start) - 1):
        if row_start[row] == row_start[row + 1]:
            continue
        places[row_start[row]] = target
        target += sizes[row_start[row]]
        for i in range(row_start[row], row_start[row + 1]):
            kind = nodes[i, 0] & 0xFF
            at = places[i]
            if kind == RAW:
                copy(at, nodes[i, 1], nodes[i, 2])
                continue
            if kind < KIND.ARRAY:
                write_scalar(at, kind, nodes[i, 1], nodes[i, 2], (nodes[i, 0] >> 8) & 0xFF)
                continue
            largest, data = nodes[i, 2] >> 32, nodes[i, 2] & 0xFFFFFFFF
            ids = id_width = 0
            if kind == KIND.OBJECT:
                ids, id_width, offsets, offset_width, values = begin_object(at, nodes[i, 1], largest, data)
            else:
                offsets, offset_width, values = begin_array(at, nodes[i, 1], data)
            kid = i + 1
            begin = values
            while kid < nodes[i, 3]:
                if kind == KIND.OBJECT:
                    store_uint(ids, nodes[kid, 0] >> 16, id_width)
                    ids += id_width
                store_uint(offsets, values - begin, offset_width)
                offsets += offset_width
                places[kid] = values
                values += sizes[kid]
                kid = nodes[kid, 3]
            store_uint(offsets, values - begin, offset_width)


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
