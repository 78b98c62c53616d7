"""Minimal metadata for each value: only the names that the value uses.

Owns making the metadata, and the sizes of metadata. Leaves encoding values with other ids to `canonical_nodes`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.compiling import kernel
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import copy, store_u8, store_uint
from parquet_variant.kernels.native_vectors import export_vector, filled_vector, new_vector, reserve
from parquet_variant.kernels.ownership import Memory
from parquet_variant.kernels.sorting import sort_run
from parquet_variant.kernels.values.containers import uint_width
from parquet_variant.kernels.values.name_tables import NameTable
from parquet_variant.kernels.values.reading import metadata_header


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
    dictionary_of: Int64s,
    starts: Int64s,
    order: Int64s,
    length: Int64s,
    name_starts: Int64s,
    sizes: Int64s,
) -> tuple[int, int]:
    """Number the names that each value uses, and store the new ids in its nodes, whose ids are ranks.

    ``starts``, ``order`` and ``length`` are columns of a `NameTable`. Fills ``name_starts`` (one more than values) and
    the bytes of each metadata; returns the ranks of the names, value by value, for `adopt`.
    """
    name_ranks = new_vector(memory, 1024)
    count = 0
    widest = 0
    for d in range(len(starts) - 1):
        widest = max(widest, starts[d + 1] - starts[d])
    number, stamp = filled_vector(memory, widest, 0), filled_vector(memory, widest, -1)
    for row in range(len(row_start) - 1):
        name_starts[row] = count
        sizes[row] = 0
        if row_start[row] == row_start[row + 1]:
            continue
        for i in range(row_start[row], row_start[row + 1]):
            if nodes[i, 0] & 0xFF != KIND.OBJECT:
                continue
            kid = i + 1
            while kid < nodes[i, 3]:
                rank = nodes[kid, 0] >> 16
                if stamp[rank] != row:
                    stamp[rank] = row
                    if count + 1 > len(name_ranks):
                        name_ranks = reserve(name_ranks, count + 1)
                    name_ranks[count] = rank
                    count += 1
                kid = nodes[kid, 3]
        sort_run(name_ranks, name_starts[row], count)
        first = starts[dictionary_of[row]]
        data = 0
        for j in range(name_starts[row], count):
            number[name_ranks[j]] = j - name_starts[row]
            data += length[first + order[first + name_ranks[j]]]
        names = count - name_starts[row]
        sizes[row] = 1 + (names + 2) * uint_width(max(names, data)) + data
        for i in range(row_start[row], row_start[row + 1]):
            if nodes[i, 0] & 0xFF != KIND.OBJECT:
                continue
            kid = i + 1
            while kid < nodes[i, 3]:
                nodes[kid, 0] = (nodes[kid, 0] & 0xFFFF) | (number[nodes[kid, 0] >> 16] << 16)
                kid = nodes[kid, 3]
    name_starts[len(row_start) - 1] = count
    return export_vector(name_ranks, count)


@kernel
def write_names(
    referenced: Int64s,
    name_starts: Int64s,
    sizes: Int64s,
    dictionary_of: Int64s,
    starts: Int64s,
    order: Int64s,
    address: Int64s,
    length: Int64s,
    target: int,
) -> None:
    """Write the metadata of every value that has one, one after the other."""
    for row in range(len(name_starts) - 1):
        if sizes[row] == 0:
            continue
        first = starts[dictionary_of[row]]
        names = name_starts[row + 1] - name_starts[row]
        data = 0
        for j in range(name_starts[row], name_starts[row + 1]):
            data += length[first + order[first + referenced[j]]]
        width = uint_width(max(names, data))
        store_u8(target, ((width - 1) << 6) | 0x11)
        store_uint(target + 1, names, width)
        offsets = target + 1 + width
        text = offsets + (names + 1) * width
        begin = text
        store_uint(offsets, 0, width)
        for j in range(name_starts[row], name_starts[row + 1]):
            at = first + order[first + referenced[j]]
            copy(text, address[at], length[at])
            text += length[at]
            offsets += width
            store_uint(offsets, text - begin, width)
        target += sizes[row]


def least_metadata(
    nodes: npt.NDArray[np.int64],
    row_start: npt.NDArray[np.int64],
    dictionary_of: npt.NDArray[np.int64],
    names: NameTable,
    valid: npt.NDArray[np.uint8] | None = None,
) -> pa.Array:
    """Return metadata with only the names that each value uses; the ranks in its nodes become ids of that metadata."""
    rows = len(dictionary_of)
    name_starts, sizes = np.empty(rows + 1, np.int64), np.empty(rows, np.int64)
    exported = least_names(nodes, row_start, dictionary_of, names.starts, names.order, names.length, name_starts, sizes)
    fill = partial(
        write_names, adopt(*exported), name_starts, sizes, dictionary_of, names.starts, names.order, names.address,
        names.length,
    )  # fmt: skip
    return filled_binary(sizes, fill, valid)
