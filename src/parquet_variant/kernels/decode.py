"""Variant bytes to a tape: what `parse_json` makes of text, made of encoded values.

Owns the walk over values that nobody has checked. Leaves the layout of one value to `values`, and saying what is wrong
with a malformed one to `encoding.validate`. The text of strings is not checked: nothing that reads the tape to profile
it depends on that.
"""

from __future__ import annotations

from itertools import starmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.compiling import Int64s, Int64Table, ReadOnlyInt32s, UInt8s, kernel
from parquet_variant.kernels.memory import load_u8, load_uint
from parquet_variant.kernels.native_vectors import filled_vector, free, new_table, reserve_rows
from parquet_variant.kernels.parse_json import (
    ELEMENT_KEY,
    HASH_SEED,
    add_key,
    add_path,
    add_root_shape,
    export_tables,
    find_key,
    find_pair,
    hash_bytes,
    new_tables,
    successor,
)
from parquet_variant.kernels.tape import (
    ARRAY,
    OBJECT,
    PATH_ELEMENT,
    PATH_LAST_NODE,
    PATH_ROOT_SHAPE,
    SHAPE_KEY,
    SHAPE_NEXT,
    SHAPE_PARENT,
    SHAPE_PATH,
    Tape,
    put_node,
)
from parquet_variant.kernels.value_walk import COUNT, END, NEXT, OWN, child, child_id, open_container
from parquet_variant.kernels.values import MALFORMED, metadata_header, scalar, value_kind

__all__ = ["decode_rows", "decode_values"]


_OK, _VALUE, _FIELD_ID, _NAME, _DUPLICATE, _OVERLAP, _METADATA = range(7)
_FAULTS = {
    _VALUE: ("malformed", "these bytes are no Variant value"),
    _FIELD_ID: ("id-out-of-range", "a field id is outside the dictionary"),
    _NAME: ("offset-out-of-range", "a name is outside the dictionary"),
    _DUPLICATE: ("duplicate-key", "an object has a key twice"),
    _OVERLAP: ("overlap", "values overlap"),
    _METADATA: ("malformed", "these bytes are no Variant metadata"),
}
# Faults that do not hinder the walk.
_PASSED_OVER = frozenset(
    ("bad-utf8", "unsorted-dictionary", "unsorted-keys", "bad-decimal", "bad-time", "unused-bytes", "trailing-bytes")
)

# A frame's own columns.
_NODE, _PATH, _SHAPE = range(OWN, OWN + 3)


@kernel
def _most_nodes(size: int) -> int:
    """Most nodes that so many bytes can encode: a value takes a byte, and an offset in what holds it."""
    return size // 2 + 1


@kernel
def _name_starts(base: int, offsets: Int64s, starts: Int64s) -> None:
    """Fill where each dictionary's names are in the table of known keys; a malformed dictionary has none."""
    starts[0] = 0
    for d in range(len(offsets) - 1):
        _, count, _, _, _, _ = metadata_header(base + offsets[d], base + offsets[d + 1])
        starts[d + 1] = starts[d] + count


@kernel
def decode_rows(
    first: int,
    last: int,
    valid: UInt8s,
    value_offsets: Int64s,
    value_base: int,
    dictionary_of: ReadOnlyInt32s,
    name_base: int,
    name_offsets: Int64s,
    name_starts: Int64s,
    nodes: Int64Table,
    row_start: Int64s,
    seed: int,
) -> tuple[int, int, int, int, tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]]:
    """Walk the rows from ``first`` to ``last`` into ``nodes`` and ``row_start``.

    Returns ``(status, row, offset, nodes used, tables)``, the tables of keys, paths and shapes for `adopt`. The walk
    ends at the first malformed row, with the byte offset in its value.
    """
    keys, key_slots, paths, path_slots, shapes, shape_slots = new_tables()
    key_count, path_count, shape_count = 0, 1, 0
    known = filled_vector(name_starts[len(name_starts) - 1], -1)  # key id of each name, once it was met
    stack = new_table(32, OWN + 3)
    n = 0
    status = _OK
    offset = 0
    row = first
    while row < last:
        row_start[row - first] = n
        if len(valid) > 0 and valid[row] == 0:
            row += 1
            continue
        d = dictionary_of[row]
        if d < 0:
            status = _METADATA
            break
        dictionary_at, dictionary_end = name_base + name_offsets[d], name_base + name_offsets[d + 1]
        usable, names, name_places, name_width, name_bytes, name_size = metadata_header(dictionary_at, dictionary_end)
        if not usable:
            status = _METADATA
            break
        name_end = dictionary_at + name_size
        at, end = value_base + value_offsets[row], value_base + value_offsets[row + 1]
        room = n + _most_nodes(end - at)
        path = 0
        depth = 0
        while True:
            # One value at `path` starts at `at`.
            if at >= end:
                status = _VALUE
                break
            if n >= room:
                status = _OVERLAP
                break
            kind = value_kind(load_u8(at))
            if kind == OBJECT or kind == ARRAY:
                if depth + 1 > len(stack):
                    stack = reserve_rows(stack, depth + 1)
                ok, count, _, _, _, _, _ = open_container(stack, depth, at, end)
                if not ok:
                    status = _VALUE
                    break
                stack[depth, _NODE] = n
                if kind == OBJECT:
                    stack[depth, _PATH] = path
                    if paths[path, PATH_ROOT_SHAPE] < 0:
                        shapes, shape_slots, shape_count = add_root_shape(shapes, shape_slots, shape_count, paths, path)
                    stack[depth, _SHAPE] = paths[path, PATH_ROOT_SHAPE]
                else:
                    element = paths[path, PATH_ELEMENT]
                    if element < 0:
                        element, paths, path_slots, path_count = add_path(
                            paths, path_slots, path_count, path, ELEMENT_KEY
                        )
                        paths[path, PATH_ELEMENT] = element
                    stack[depth, _PATH] = stack[depth, _SHAPE] = element
                put_node(nodes, n, kind | (path << 16), count, 0)
                depth += 1
            else:
                kind, a, b, scale = scalar(at, end)
                if kind == MALFORMED:
                    status = _VALUE
                    break
                put_node(nodes, n, kind | (scale << 8) | (path << 16), a, b)
            n += 1
            # The next value, closing what ends here.
            while depth > 0:
                top = depth - 1
                i = stack[top, NEXT]
                if i < stack[top, COUNT]:
                    break
                nodes[stack[top, _NODE], 2] = stack[top, _SHAPE]
                nodes[stack[top, _NODE], 3] = n
                depth -= 1
            if depth == 0:
                break
            stack[top, NEXT] = i + 1
            at, end = child(stack, top, i), stack[top, END]
            field_id = child_id(stack, top, i)
            if field_id < 0:
                path = stack[top, _PATH]
                continue
            if field_id >= names:
                status = _FIELD_ID
                break
            key = known[name_starts[d] + field_id]
            if key < 0:
                begin = load_uint(name_places + field_id * name_width, name_width)
                stop = load_uint(name_places + (field_id + 1) * name_width, name_width)
                if begin > stop or stop > name_end - name_bytes:
                    status = _NAME
                    break
                hashed = hash_bytes(name_bytes + begin, stop - begin, seed)
                key = find_key(keys, key_slots, name_bytes + begin, stop - begin, hashed)
                if key < 0:
                    key, keys, key_slots, key_count = add_key(
                        keys, key_slots, key_count, name_bytes + begin, stop - begin, 1, hashed
                    )
                known[name_starts[d] + field_id] = key
            shape = stack[top, _SHAPE]
            guess = shapes[shape, SHAPE_NEXT]
            if guess < 0 or shapes[guess, SHAPE_KEY] != key:
                guess = find_pair(shapes, shape_slots, SHAPE_PARENT, SHAPE_KEY, shape, key)
                if guess < 0:
                    guess, shapes, shape_slots, shape_count, paths, path_slots, path_count = successor(
                        shapes, shape_slots, shape_count, paths, path_slots, path_count, shape, key, stack[top, _PATH]
                    )
                shapes[shape, SHAPE_NEXT] = guess
            path = shapes[guess, SHAPE_PATH]
            stack[top, _SHAPE] = guess
            if paths[path, PATH_LAST_NODE] > stack[top, _NODE]:
                status = _DUPLICATE
                break
            paths[path, PATH_LAST_NODE] = n
        if status != _OK:
            offset = at - value_base - value_offsets[row]
            break
        row += 1
    row_start[last - first] = n
    free(known)
    free(stack)
    tables = export_tables(
        keys, key_count, paths, path_count, shapes, shape_count, (key_slots, path_slots, shape_slots)
    )
    return status, row, offset, n, tables


def decode_values(
    dictionary_of: npt.NDArray[np.int32],
    dictionary: pa.BinaryArray,
    value_offsets: Int64s,
    value_address: int,
    valid: npt.NDArray[np.uint8],
    *,
    rows: tuple[int, int],
    owner: Any = None,
) -> Tape:
    """Decode some rows of an unshredded column.

    Parameters
    ----------
    dictionary_of
        For each row of the column the index of its metadata; -1 for null.
    dictionary
        The distinct metadata, plain binary without nulls.
    value_offsets, value_address
        Where each row's value lies, and the address that the offsets count from.
    valid
        A byte a row, 0 for SQL NULL; empty if all are valid.
    rows
        The first row to decode and the one after the last. Their values must be less than 4 GiB together.
    owner
        What keeps the values in memory.

    Raises
    ------
    MalformedVariantError
        For the first row that is no Variant, with its number in the column and the byte offset in its value.
    """
    first, last = rows
    _, offset_buffer, data = dictionary.buffers()
    name_offsets = np.zeros(1, np.int64)
    if len(dictionary):
        name_offsets = np.frombuffer(offset_buffer, np.int32, len(dictionary) + 1, dictionary.offset * 4).astype(
            np.int64
        )
    name_base = data.address if data is not None else 0
    name_starts = np.zeros(len(name_offsets), np.int64)
    _name_starts(name_base, name_offsets, name_starts)
    size = int(value_offsets[last] - value_offsets[first])
    nodes = np.empty((_most_nodes(size) + last - first, 4), np.int64)
    row_start = np.empty(last - first + 1, np.int64)
    status, row, offset, count, tables = decode_rows(
        first, last, valid, value_offsets, value_address, dictionary_of, name_base, name_offsets, name_starts, nodes,
        row_start, HASH_SEED,
    )  # fmt: skip
    keys, paths, shapes = starmap(adopt, tables)
    if status != _OK:
        at, stop = value_address + int(value_offsets[row]), value_address + int(value_offsets[row + 1])
        value = bytes(pa.foreign_buffer(at, stop - at, base=owner)) if stop > at else b""
        index = int(dictionary_of[row])
        raise _fault(status, row, offset, dictionary[index].as_py() if index >= 0 else b"", value)
    return Tape(nodes[:count], row_start, keys, paths, shapes, (dictionary, owner))


def _fault(status: int, row: int, offset: int, metadata: bytes, value: bytes) -> MalformedVariantError:
    """The error for a malformed row, in the words of the scalar fallback where it agrees."""
    faults = [fault for fault in find_faults(metadata, value) if fault.reason not in _PASSED_OVER]
    if faults:
        found = min(faults, key=lambda fault: (fault.part != "metadata", abs(fault.offset - offset)))
        where = found.message if found.part == "value" else f"metadata: {found.message}"
        return MalformedVariantError(where, reason=found.reason, row=row, offset=found.offset)
    reason, message = _FAULTS[status]
    return MalformedVariantError(message, reason=reason, row=row, offset=offset)
