"""Write Variant bytes as JSON text; the counterpart of `encoding.json_writer`.

Owns the walk over a value and the escaping of strings. Leaves the spelling of scalars to `json.scalar_text`. Rows that
are malformed, too deep or contain floats are marked for the scalar fallback.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.json.scalar_text import (
    SCALAR_ROOM,
    base64_text,
    date_text,
    decimal_text,
    double_text,
    int_text,
    time_text,
    timestamp_text,
    uuid_text,
    word,
)
from parquet_variant.kernels.json.scan import STATUS, scan_string
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    copy,
    copy_32_in_page,
    load_u8,
    load_u64,
    stops_of_32_in_page,
    store_u8,
    store_u64,
    trailing_zeros,
)
from parquet_variant.kernels.native_vectors import Memory, allocate, export_bytes, new_table, reserve_bytes
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
    value_size,
)
from parquet_variant.kernels.values.value_nodes import RAW

_MICROS, _NANOS = 1_000_000, 1_000_000_000
_MAX_SCALE = 38
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8).copy()
# Letters of short escapes of control characters; 0 for characters without one.
_SHORT = np.zeros(32, np.uint8)
_SHORT[8], _SHORT[9], _SHORT[10], _SHORT[12], _SHORT[13] = b"btnfr"

# The smallest page of any platform: if one byte of a page can be read, all of them can.
_PAGE = 4096

# Columns that the walk adds to a frame: the closing bracket, and the rank of the previous key. For nodes, a frame uses
# only the closing bracket and END.
_CLOSING, _RANK = OWN, OWN + 1
# Rank in an object whose keys are not in order, and have been compared with each other.
_COMPARED = -2
_MAX_COMPARED = 256


class _Names(NamedTuple):
    """The names of one dictionary as in JSON (see `quote_names`)."""

    base: int  # Number of the first name.
    count: int  # type: ignore[assignment]
    starts: Int64s
    address: int
    ranks: Int64s  # Of all names, as in a `NameTable`.


class QuotedNames(NamedTuple):
    """All names as in JSON, and the start of each and the end of the last one, as `quote_names` makes them."""

    address: int
    starts: Int64s


@helper(inline=True)
def _names_of(names: NameTable, quoted: QuotedNames, d: int) -> _Names:
    """Return the names of a dictionary."""
    first = names.starts[d]
    return _Names(first, names.starts[d + 1] - first, quoted.starts, quoted.address, names.rank)


@kernel
def quote_names(memory: Memory, address: Int64s, length: Int64s, starts: Int64s) -> tuple[int, int]:
    """Write every name as in JSON, with quotes and colon; return address and size for `adopt_bytes`.

    Fills ``starts``: name i is ``out[starts[i]:starts[i + 1]]``, which is empty if the name is not UTF-8. Eight bytes
    after the end may be read.
    """
    room = 1024
    out = allocate(memory, room)
    written_bytes = 0
    for i in range(len(address)):
        starts[i] = written_bytes
        out, room = reserve_bytes(out, room, written_bytes + 6 * length[i] + SCALAR_ROOM)
        at = out + written_bytes
        store_u8(at, 0x22)
        stop = _escaped(at + 1, address[i], address[i] + length[i])
        if stop >= 0:
            store_u8(stop, 0x22)
            store_u8(stop + 1, 0x3A)
            written_bytes += stop + 2 - at
    starts[len(address)] = written_bytes
    out, room = reserve_bytes(out, room, written_bytes + 8)
    return export_bytes(out, written_bytes + 8)


@helper
def _escaped(at: int, pos: int, end: int) -> int:
    """Write text with escapes; return the address after it, or -1 if the text is not UTF-8.

    Up to 32 bytes after the text may be written; as many may be read, if they are in the page in which the text ends.
    """
    while pos < end:
        remaining = end - pos
        if remaining >= 32 or (pos & _PAGE - 1) <= _PAGE - 32:
            stops = stops_of_32_in_page(pos)
            copy_32_in_page(at, pos)
            if remaining < 32:
                stops |= 1 << remaining
            if stops == 0:
                at += 32
                pos += 32
                continue
            plain = trailing_zeros(stops)
            at += plain
            pos += plain
            if plain == remaining:
                break
        byte = load_u8(pos)
        if byte >= 0x80:
            status, stop = scan_string(pos, end)
            if status != STATUS.OK and status != STATUS.CONTROL and status != STATUS.TRUNCATED:
                return -1
            copy(at, pos, stop - pos)
            at += stop - pos
            pos = stop
            continue
        pos += 1
        if byte >= 0x20:
            if byte == 0x22 or byte == 0x5C:
                store_u8(at, 0x5C)
                at += 1
            store_u8(at, byte)
            at += 1
            continue
        store_u8(at, 0x5C)
        if _SHORT[byte] != 0:
            store_u8(at + 1, _SHORT[byte])
            at += 2
        else:
            store_u8(at + 1, 0x75)
            store_u8(at + 2, 0x30)
            store_u8(at + 3, 0x30)
            store_u8(at + 4, _HEX[byte >> 4])
            store_u8(at + 5, _HEX[byte & 15])
            at += 6
    return at


@helper
def _scalar_text(at: int, kind: int, a: int, b: int, scale: int) -> int:
    """Write a scalar that is neither a string nor a float; the buffer has room."""
    if KIND.INT8 <= kind <= KIND.INT64:
        return int_text(at, a)
    if kind <= KIND.FALSE:
        return word(at, kind)
    if kind == KIND.DOUBLE:
        return double_text(at, a)
    if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
        return decimal_text(at, b, a, scale)
    store_u8(at, 0x22)
    at += 1
    if kind == KIND.DATE:
        at = date_text(at, a)
    elif kind == KIND.BINARY:
        at = base64_text(at, a, b)
    elif kind == KIND.UUID:
        at = uuid_text(at, a)
    elif kind == KIND.TIME:
        at = time_text(at, a, _MICROS, 6)
    elif kind == KIND.TIMESTAMP or kind == KIND.TIMESTAMP_NTZ:
        at = timestamp_text(at, a, _MICROS, 6, kind == KIND.TIMESTAMP)
    else:
        at = timestamp_text(at, a, _NANOS, 9, kind == KIND.TIMESTAMP_NANOS)
    store_u8(at, 0x22)
    return at + 1


@helper
def _leaf_text(
    out: int, room: int, written_bytes: int, kind: int, a: int, b: int, scale: int
) -> tuple[bool, int, int, int]:
    """Write a scalar; return ``(ok, out, room, used)``, not ok if the scalar fallback must write it."""
    if kind == KIND.STRING:
        out, room = reserve_bytes(out, room, written_bytes + 6 * b + SCALAR_ROOM)
        at = out + written_bytes
        store_u8(at, 0x22)
        stop = _escaped(at + 1, a, a + b)
        if stop < 0:
            return False, out, room, written_bytes
        store_u8(stop, 0x22)
        return True, out, room, stop + 1 - out
    if kind == KIND.FLOAT or scale > _MAX_SCALE or (kind == KIND.TIME and not 0 <= a < MICROS_PER_DAY):
        return False, out, room, written_bytes
    out, room = reserve_bytes(out, room, written_bytes + (2 * b if kind == KIND.BINARY else 0) + SCALAR_ROOM)
    return True, out, room, _scalar_text(out + written_bytes, kind, a, b, scale) - out


@helper(inline=True)
def _byte_text(out: int, room: int, written_bytes: int, byte: int) -> tuple[int, int, int]:
    """Write a bracket or a comma; return ``(out, room, used)``."""
    out, room = reserve_bytes(out, room, written_bytes + SCALAR_ROOM)
    store_u8(out + written_bytes, byte)
    return out, room, written_bytes + 1


@helper
def _name_text(
    out: int, room: int, written_bytes: int, first: bool, names: _Names, name: int
) -> tuple[bool, int, int, int]:
    """Write a comma, if needed, and a name; return ``(ok, out, room, used)``: not ok if the name is not UTF-8."""
    begin = names.starts[names.base + name]
    size = names.starts[names.base + name + 1] - begin
    out, room = reserve_bytes(out, room, written_bytes + size + SCALAR_ROOM)
    if not first:
        store_u8(out + written_bytes, 0x2C)
        written_bytes += 1
    for chunk in range(0, size, 8):
        store_u64(out + written_bytes + chunk, load_u64(names.address + begin + chunk))
    return size > 0, out, room, written_bytes + size


@helper(inline=True)
def _key_is_new(stack: Int64Table, top: int, rank: int, names: _Names) -> bool:
    """Return whether a key sorts after the previous key, or differs from all other keys of the object."""
    previous = stack[top, _RANK]
    if rank > previous and previous != _COMPARED:
        stack[top, _RANK] = rank
        return True
    return previous == _COMPARED or _keys_differ(stack, top, names)


@helper
def _keys_differ(stack: Int64Table, top: int, names: _Names) -> bool:
    """Return whether the unordered keys of an object are unique; False for an object with many keys."""
    count, base, ranks = stack[top, COUNT], names.base, names.ranks
    stack[top, _RANK] = _COMPARED
    if count > _MAX_COMPARED:
        return False
    for i in range(count):
        field_id = child_id(stack, top, i)
        if field_id >= names.count:
            return False
        for j in range(i):
            if ranks[base + child_id(stack, top, j)] == ranks[base + field_id]:
                return False
    return True


@helper
def _value_text(
    out: int, room: int, written_bytes: int, begin: int, end: int, names: _Names, stack: Int64Table
) -> tuple[bool, int, int, int]:
    """Write an encoded value; return ``(ok, out, room, used)``."""
    depth = 0
    while True:
        # One value starts at `begin`.
        size = value_size(begin, end)
        if size == MALFORMED or not take_bytes(stack, depth, size):
            return False, out, room, written_bytes
        first = load_u8(begin) & 2 > 0
        if first:
            if depth == len(stack):
                return False, out, room, written_bytes
            id_width = open_container(stack, depth, begin, end).id_width
            out, room, written_bytes = _byte_text(out, room, written_bytes, 0x7B if id_width > 0 else 0x5B)
            stack[depth, _CLOSING] = 0x7D if id_width > 0 else 0x5D
            stack[depth, _RANK] = -1
            depth += 1
        else:
            kind, a, b, scale = scalar_of_size(begin, size)
            ok, out, room, written_bytes = _leaf_text(out, room, written_bytes, kind, a, b, scale)
            if not ok:
                return False, out, room, written_bytes
        # Close what ends here, then go to the next field or element.
        while depth > 0 and stack[depth - 1, NEXT] == stack[depth - 1, COUNT]:
            depth -= 1
            out, room, written_bytes = _byte_text(out, room, written_bytes, stack[depth, _CLOSING])
            first = False
        if depth == 0:
            return True, out, room, written_bytes
        top = depth - 1
        i = stack[top, NEXT]
        stack[top, NEXT] = i + 1
        field_id = child_id(stack, top, i)
        if field_id >= 0:
            if field_id >= names.count or not _key_is_new(stack, top, names.ranks[names.base + field_id], names):
                return False, out, room, written_bytes
            ok, out, room, written_bytes = _name_text(out, room, written_bytes, first, names, field_id)
            if not ok:
                return False, out, room, written_bytes
        elif not first:
            out, room, written_bytes = _byte_text(out, room, written_bytes, 0x2C)
        begin, end = child(stack, top, i), stack[top, END]


@helper(inline=True)
def _row_text(
    out: int,
    room: int,
    written_bytes: int,
    first_node: int,
    last_node: int,
    nodes: Int64Table,
    names: _Names,
    stack: Int64Table,
) -> tuple[bool, int, int, int]:
    """Write a row that consists of nodes; return ``(ok, out, room, used)``."""
    depth = 0
    first = ok = True
    for i in range(first_node, last_node):
        while depth > 0 and stack[depth - 1, END] == i:
            depth -= 1
            out, room, written_bytes = _byte_text(out, room, written_bytes, stack[depth, _CLOSING])
            first = False
        tag = nodes[i, 0]
        if depth > 0 and stack[depth - 1, _CLOSING] == 0x7D:
            ok, out, room, written_bytes = _name_text(out, room, written_bytes, first, names, tag >> 16)
        elif not first:
            out, room, written_bytes = _byte_text(out, room, written_bytes, 0x2C)
        first = False
        kind = tag & 0xFF
        if kind == KIND.OBJECT or kind == KIND.ARRAY:
            ok = ok and depth < len(stack)
            if ok:
                out, room, written_bytes = _byte_text(out, room, written_bytes, 0x7B if kind == KIND.OBJECT else 0x5B)
                stack[depth, _CLOSING] = 0x7D if kind == KIND.OBJECT else 0x5D
                stack[depth, END] = nodes[i, 3]
                depth += 1
                first = True
        elif ok and kind == RAW:
            begin = nodes[i, 1]
            ok, out, room, written_bytes = _value_text(
                out, room, written_bytes, begin, begin + nodes[i, 2], names, stack[depth:]
            )
        elif ok:
            ok, out, room, written_bytes = _leaf_text(
                out, room, written_bytes, kind, nodes[i, 1], nodes[i, 2], (tag >> 8) & 0xFF
            )
        if not ok:
            return False, out, room, written_bytes
    while depth > 0:
        depth -= 1
        out, room, written_bytes = _byte_text(out, room, written_bytes, stack[depth, _CLOSING])
    return True, out, room, written_bytes


@kernel
def write_json_rows(
    memory: Memory,
    values: EncodedValues,
    names: NameTable,
    quoted: QuotedNames,
    offsets: Int64s,
    refused: UInt8s,
    max_depth: int,
) -> tuple[int, int]:
    """Write the text of every row and fill ``offsets``; return address and size for `adopt_bytes`."""
    rows = len(values.dictionary_of)
    room = max(1024, 2 * (values.offsets[rows] - values.offsets[0]))
    out = allocate(memory, room)
    written_bytes = 0
    stack = new_table(memory, max_depth, OWN + 2)
    for row in range(rows):
        offsets[row] = written_bytes
        if len(values.valid) > 0 and values.valid[row] == 0:
            continue
        d = values.dictionary_of[row]
        ok = d >= 0 and names.state[d] != UNUSABLE
        if ok:
            of_row = _names_of(names, quoted, d)
            begin, end = values.base + values.offsets[row], values.base + values.offsets[row + 1]
            ok, out, room, written_bytes = _value_text(out, room, written_bytes, begin, end, of_row, stack)
        if not ok:
            refused[row] = 1
            written_bytes = offsets[row]
    offsets[rows] = written_bytes
    return export_bytes(out, written_bytes)


@kernel
def write_json_nodes(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    dictionary_of: ReadOnlyInt32s,
    names: NameTable,
    quoted: QuotedNames,
    offsets: Int64s,
    refused: UInt8s,
    max_depth: int,
) -> tuple[int, int]:
    """Write the text of rows that `unshred.assemble` has made as nodes, so that their bytes are not written first.

    Arguments and result are those of `write_json_rows`.
    """
    rows = len(row_start) - 1
    room = 1024
    out = allocate(memory, room)
    written_bytes = 0
    stack = new_table(memory, max_depth, OWN + 2)
    for row in range(rows):
        offsets[row] = written_bytes
        if row_start[row] == row_start[row + 1]:
            continue
        d = dictionary_of[row]
        of_row = _names_of(names, quoted, d)
        ok, out, room, written_bytes = _row_text(
            out, room, written_bytes, row_start[row], row_start[row + 1], nodes, of_row, stack
        )
        if not ok:
            refused[row] = 1
            written_bytes = offsets[row]
    offsets[rows] = written_bytes
    return export_bytes(out, written_bytes)
