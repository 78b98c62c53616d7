"""Values under other dictionaries: the same values with other field ids.

Owns rewriting ids, and making the least metadata for each value. Leaves malformed values, fields that are not in the
order of their names and values nested too deeply to the scalar fallback: they are flagged, and get no bytes. Nodes are
those of `unshred`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import Int64s, Int64Table, UInt8s, kernel
from parquet_variant.kernels.containers import uint_width
from parquet_variant.kernels.memory import copy, load_u8, load_uint, store_u8, store_uint
from parquet_variant.kernels.native_vectors import (
    export_table,
    export_vector,
    filled_vector,
    free,
    new_table,
    new_vector,
    reserve,
    reserve_rows,
)
from parquet_variant.kernels.sorting import sort_run
from parquet_variant.kernels.tape import ARRAY, OBJECT, put_node
from parquet_variant.kernels.unshred import RAW
from parquet_variant.kernels.values import container, metadata_header, value_kind, value_size

__all__ = ["gather_values", "least_names", "metadata_sizes", "write_names"]

_MAX_DEPTH = 1000
# Columns of a frame: where the next id, offset and value are, what is left, and which node is filled.
_IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, _END, _LEFT, _NODE, _LAST_ID = range(9)


@kernel
def metadata_sizes(starts: Int64s, stops: Int64s, sizes: Int64s) -> None:
    """Bytes of the metadata that each combined binary begins with; -1 where it has no end. Null where start is -1."""
    for i in range(len(starts)):
        sizes[i] = 0
        if starts[i] >= 0:
            ok, _, _, _, _, size = metadata_header(starts[i], stops[i])
            sizes[i] = size if ok else -1


@kernel
def gather_values(
    starts: Int64s,
    stops: Int64s,
    dictionary_of: Int64s,
    map_starts: Int64s,
    id_map: Int64s,
    row_start: Int64s,
    refused: UInt8s,
) -> tuple[int, int, int]:
    """Gather the nodes of every value with mapped ids; returns their table for `adopt`.

    A value lies from ``starts`` to ``stops``; none where start is -1. Id i of dictionary d becomes
    ``id_map[map_starts[d] + i]``. Fields must come in the order of their new ids.
    """
    stack = new_table(_MAX_DEPTH, 9)
    nodes = new_table(max(64, 2 * len(starts)), 4)
    n = 0
    for row in range(len(starts)):
        row_start[row] = n
        if starts[row] < 0:
            continue
        first, last = map_starts[dictionary_of[row]], map_starts[dictionary_of[row] + 1]
        # Values that share bytes could stand for any number of values: each has a byte of its own.
        budget = stops[row] - starts[row]
        at, end, field = starts[row], stops[row], 0
        depth = 0
        ok = True
        while ok:
            size = value_size(at, end)
            if size < 0 or budget == 0:
                ok = False
                break
            budget -= 1
            if n + 1 > len(nodes):
                nodes = reserve_rows(nodes, n + 1)
            kind = value_kind(load_u8(at))
            if kind != OBJECT and kind != ARRAY:
                put_node(nodes, n, RAW | (field << 16), at, size)
            else:
                if depth == _MAX_DEPTH:
                    ok = False
                    break
                _, count, ids, id_width, offsets, offset_width, values, data = container(at, at + size)
                put_node(nodes, n, kind | (field << 16), count, 0)
                stack[depth, _IDS] = ids
                stack[depth, _ID_WIDTH] = id_width
                stack[depth, _OFFSETS] = offsets
                stack[depth, _OFFSET_WIDTH] = offset_width
                stack[depth, _VALUES] = values
                stack[depth, _END] = values + data
                stack[depth, _LEFT] = count
                stack[depth, _NODE] = n
                stack[depth, _LAST_ID] = -1
                depth += 1
            n += 1
            while depth > 0 and stack[depth - 1, _LEFT] == 0:
                depth -= 1
                nodes[stack[depth, _NODE], 3] = n
            if depth == 0:
                break
            top = depth - 1
            field = 0
            if stack[top, _ID_WIDTH] > 0:
                field_id = load_uint(stack[top, _IDS], stack[top, _ID_WIDTH])
                if first + field_id >= last or id_map[first + field_id] <= stack[top, _LAST_ID]:
                    ok = False
                    break
                field = id_map[first + field_id]
                stack[top, _LAST_ID] = field
                stack[top, _IDS] += stack[top, _ID_WIDTH]
            at = stack[top, _VALUES] + load_uint(stack[top, _OFFSETS], stack[top, _OFFSET_WIDTH])
            end = stack[top, _END]
            stack[top, _OFFSETS] += stack[top, _OFFSET_WIDTH]
            stack[top, _LEFT] -= 1
        if not ok:
            refused[row] = 1
            n = row_start[row]
    row_start[len(starts)] = n
    free(stack)
    return export_table(nodes, n)


@kernel
def least_names(
    nodes: Int64Table,
    row_start: Int64s,
    dictionary_of: Int64s,
    starts: Int64s,
    order: Int64s,
    length: Int64s,
    name_starts: Int64s,
    sizes: Int64s,
) -> tuple[int, int]:
    """Number the names that each value uses, and put the new ids into its nodes, which have ranks as ids.

    ``starts``, ``order`` and ``length`` are those of a `NameTable`. Fills ``name_starts`` (values + 1) and the bytes of
    each metadata; returns the ranks of the names, value by value, for `adopt`.
    """
    used = new_vector(1024)
    count = 0
    widest = 0
    for d in range(len(starts) - 1):
        widest = max(widest, starts[d + 1] - starts[d])
    number, stamp = filled_vector(widest, 0), filled_vector(widest, -1)
    for row in range(len(row_start) - 1):
        name_starts[row] = count
        sizes[row] = 0
        if row_start[row] == row_start[row + 1]:
            continue
        for i in range(row_start[row], row_start[row + 1]):
            if nodes[i, 0] & 0xFF != OBJECT:
                continue
            kid = i + 1
            while kid < nodes[i, 3]:
                rank = nodes[kid, 0] >> 16
                if stamp[rank] != row:
                    stamp[rank] = row
                    if count + 1 > len(used):
                        used = reserve(used, count + 1)
                    used[count] = rank
                    count += 1
                kid = nodes[kid, 3]
        sort_run(used, name_starts[row], count)
        first = starts[dictionary_of[row]]
        data = 0
        for j in range(name_starts[row], count):
            number[used[j]] = j - name_starts[row]
            data += length[first + order[first + used[j]]]
        names = count - name_starts[row]
        sizes[row] = 1 + (names + 2) * uint_width(max(names, data)) + data
        for i in range(row_start[row], row_start[row + 1]):
            if nodes[i, 0] & 0xFF != OBJECT:
                continue
            kid = i + 1
            while kid < nodes[i, 3]:
                nodes[kid, 0] = (nodes[kid, 0] & 0xFFFF) | (number[nodes[kid, 0] >> 16] << 16)
                kid = nodes[kid, 3]
    name_starts[len(row_start) - 1] = count
    free(number)
    free(stamp)
    return export_vector(used, count)


@kernel
def write_names(
    used: Int64s,
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
            data += length[first + order[first + used[j]]]
        width = uint_width(max(names, data))
        store_u8(target, ((width - 1) << 6) | 0x11)
        store_uint(target + 1, names, width)
        offsets = target + 1 + width
        text = offsets + (names + 1) * width
        begin = text
        store_uint(offsets, 0, width)
        for j in range(name_starts[row], name_starts[row + 1]):
            at = first + order[first + used[j]]
            copy(text, address[at], length[at])
            text += length[at]
            offsets += width
            store_uint(offsets, text - begin, width)
        target += sizes[row]
