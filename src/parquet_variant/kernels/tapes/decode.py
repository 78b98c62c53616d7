"""Decode Variant values to a tape, the counterpart of `parse_json` for encoded values.

Owns the walk over values that have not been validated. Leaves the layout of one value to `values`, and the message for
a malformed value to `encoding.validate`. The text of strings, the scale of decimals and the range of times are not
checked, because no reader of the tape depends on them.
"""

from __future__ import annotations

from itertools import starmap
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.validate import find_faults
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import HASH_SEED, KIND, hash_bytes, load_u8, put_node
from parquet_variant.kernels.native_vectors import Memory, address_in, filled_vector, new_table, reserve_rows
from parquet_variant.kernels.tapes.tape import (
    PATH,
    SHAPE,
    Interned,
    TableExports,
    Tape,
    add_key,
    children_of,
    export_tables,
    find_key,
    new_tables,
    shape_after,
)
from parquet_variant.kernels.values.reading import (
    COUNT,
    END,
    MALFORMED,
    NEXT,
    OWN,
    UNUSABLE,
    EncodedValues,
    NameTable,
    child,
    child_id,
    open_container,
    scalar_of_size,
    take_bytes,
    value_kind,
    value_size,
)

_OK, _VALUE, _FIELD_ID, _DUPLICATE, _OVERLAP, _METADATA = range(6)
_FAULTS = {
    _VALUE: ("malformed", "the bytes are not a Variant value"),
    _FIELD_ID: ("id-out-of-range", "a field id is outside the dictionary"),
    _DUPLICATE: ("duplicate-key", "an object has a duplicate key"),
    _OVERLAP: ("overlap", "values overlap"),
    _METADATA: ("malformed", "the bytes are not Variant metadata"),
}
# Faults that decoding ignores.
_IGNORED_FAULTS = frozenset(
    ("bad-utf8", "unsorted-dictionary", "unsorted-keys", "bad-decimal", "bad-time", "unused-bytes", "trailing-bytes")
)

# Columns that decoding adds to a frame: the node, its path, and the current shape (in an array, the element path).
_NODE, _PATH, _PLACE = range(OWN, OWN + 3)


@helper(inline=True)
def _close(stack: Int64Table, depth: int, nodes: Int64Table, n: int) -> int:
    """Close the containers that end before node ``n``; return the depth."""
    while depth > 0 and stack[depth - 1, NEXT] == stack[depth - 1, COUNT]:
        depth -= 1
        nodes[stack[depth, _NODE], 2] = stack[depth, _PLACE]
        nodes[stack[depth, _NODE], 3] = n
    return depth


@helper(inline=True)
def _enter_field(
    stack: Int64Table, top: int, tables: Interned, names: NameTable, d: int, key_ids: Int64s, n: int, seed: int
) -> tuple[int, int, Interned]:
    """Return ``(status, path, tables)`` of the next field of the object at the top."""
    field_id, first = child_id(stack, top, stack[top, NEXT]), names.starts[d]
    if names.state[d] == UNUSABLE:
        return _METADATA, 0, tables
    if first + field_id >= names.starts[d + 1]:
        return _FIELD_ID, 0, tables
    key = key_ids[first + field_id]
    if key < 0:
        address, length = names.address[first + field_id], names.length[first + field_id]
        hashed = hash_bytes(address, length, seed)
        key = find_key(tables.keys.rows, tables.keys.slots, address, length, hashed)
        if key < 0:
            key, keys = add_key(tables.keys, address, length, hashed)
            tables = Interned(keys, tables.paths, tables.shapes)
        key_ids[first + field_id] = key
    shapes, shape = tables.shapes.rows, stack[top, _PLACE]
    next_shape = shapes[shape, SHAPE.NEXT]
    if next_shape < 0 or shapes[next_shape, SHAPE.KEY] != key:
        next_shape, tables = shape_after(tables, shape, key, stack[top, _PATH])
    path = tables.shapes.rows[next_shape, SHAPE.PATH]
    stack[top, _PLACE] = next_shape
    status = _DUPLICATE if tables.paths.rows[path, PATH.LAST_NODE] > stack[top, _NODE] else _OK
    tables.paths.rows[path, PATH.LAST_NODE] = n
    return status, path, tables


@helper(inline=True)
def _decode_row(
    at: int,
    end: int,
    names: NameTable,
    d: int,
    key_ids: Int64s,
    stack: Int64Table,
    tables: Interned,
    nodes: Int64Table,
    n: int,
    seed: int,
) -> tuple[int, int, Int64Table, Interned, int]:
    """Decode a row; return ``(status, at, stack, tables, n)``, where ``at`` is the position of a fault."""
    path = depth = 0
    while True:
        # One value at `path` starts at `at`.
        size = value_size(at, end)
        if size == MALFORMED:
            return _VALUE, at, stack, tables, n
        if not take_bytes(stack, depth, size):
            return _OVERLAP, at, stack, tables, n
        kind = value_kind(load_u8(at))
        if kind == KIND.OBJECT or kind == KIND.ARRAY:
            if depth + 1 > len(stack):
                stack = reserve_rows(stack, depth + 1)
            count = open_container(stack, depth, at, end).count
            stack[depth, _NODE] = n
            stack[depth, _PATH] = path
            stack[depth, _PLACE], tables = children_of(tables, path, kind)
            put_node(address_in(nodes), n, kind | (path << 16), count, 0)
            depth += 1
        else:
            kind, a, b, scale = scalar_of_size(at, size)
            put_node(address_in(nodes), n, kind | (scale << 8) | (path << 16), a, b)
        n += 1
        depth = _close(stack, depth, nodes, n)
        if depth == 0:
            return _OK, at, stack, tables, n
        top = depth - 1
        at, end = child(stack, top, stack[top, NEXT]), stack[top, END]
        path = stack[top, _PLACE]
        if nodes[stack[top, _NODE], 0] & 0xFF == KIND.OBJECT:
            status, path, tables = _enter_field(stack, top, tables, names, d, key_ids, n, seed)
            if status != _OK:
                return status, at, stack, tables, n
        stack[top, NEXT] += 1


@kernel
def decode_rows(
    memory: Memory,
    first: int,
    last: int,
    values: EncodedValues,
    names: NameTable,
    nodes: Int64Table,
    row_start: Int64s,
    seed: int,
) -> tuple[int, int, int, int, TableExports]:
    """Decode the rows from ``first`` to ``last`` into ``nodes`` and ``row_start``.

    Returns ``(status, row, offset, nodes used, tables)`` with the tables of keys, paths and shapes for `adopt`.
    Decoding stops at the first malformed row; ``offset`` is the byte offset of the fault in its value.
    """
    tables = new_tables(memory)
    # The key id of each name, -1 until the name occurs.
    key_ids = filled_vector(memory, len(names.address), -1)
    stack = new_table(memory, 32, OWN + 3)
    n = offset = 0
    status = _OK
    row = first
    while row < last:
        row_start[row - first] = n
        if len(values.valid) > 0 and values.valid[row] == 0:
            row += 1
            continue
        d = values.dictionary_of[row]
        if d < 0:
            status = _METADATA
            break
        at, end = values.base + values.offsets[row], values.base + values.offsets[row + 1]
        status, at, stack, tables, n = _decode_row(at, end, names, d, key_ids, stack, tables, nodes, n, seed)
        if status != _OK:
            offset = at - values.base - values.offsets[row]
            break
        row += 1
    row_start[last - first] = n
    return status, row, offset, n, export_tables(tables)


def decode_values(
    values: EncodedValues, names: NameTable, first: int, last: int, owners: tuple[pa.BinaryArray, Any]
) -> Tape:
    """Decode the rows from `first` to before `last` of an unshredded column, which have less than 4 GiB together.

    `names`: those of the distinct metadata, which may be repeated. `owners`: the distinct metadata, and the object that
    keeps the values in memory.
    Raises `MalformedVariantError` for the first row that is not a Variant, with its number in the column and the byte
    offset in its value.
    """
    size = int(values.offsets[last] - values.offsets[first])
    # A value takes a byte, and an offset in its container.
    nodes = np.empty((size // 2 + 1 + last - first, 4), np.int64)
    row_start = np.empty(last - first + 1, np.int64)
    status, row, offset, count, tables = decode_rows(first, last, values, names, nodes, row_start, HASH_SEED)
    keys, paths, shapes = starmap(adopt, tables)
    if status != _OK:
        at, stop = values.base + int(values.offsets[row]), values.base + int(values.offsets[row + 1])
        value = bytes(pa.foreign_buffer(at, stop - at, base=owners[1])) if stop > at else b""
        index = int(values.dictionary_of[row])
        raise _fault(status, row, offset, owners[0][index].as_py() if index >= 0 else b"", value)
    return Tape(nodes[:count], row_start, keys, paths, shapes, owners)


def _fault(status: int, row: int, offset: int, metadata: bytes, value: bytes) -> MalformedVariantError:
    """Return the error for a malformed row, worded by the scalar reader if it finds the fault too."""
    # Names must be UTF-8, although strings need not be.
    ignored = _IGNORED_FAULTS - {"bad-utf8"} if status == _METADATA else _IGNORED_FAULTS
    faults = [fault for fault in find_faults(metadata, value) if fault.reason not in ignored]
    if faults:
        fault = min(faults, key=lambda fault: (fault.part != "metadata", abs(fault.offset - offset)))
        where = fault.message if fault.part == "value" else f"metadata: {fault.message}"
        return MalformedVariantError(where, reason=fault.reason, row=row, offset=fault.offset)
    reason, message = _FAULTS[status]
    return MalformedVariantError(message, reason=reason, row=row, offset=offset)
