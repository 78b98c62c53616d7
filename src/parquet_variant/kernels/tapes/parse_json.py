"""The parser kernel: JSON text to a tape.

Owns the structure of JSON. Leaves tokens to `json.scan`, keys and paths to `tape`, and the meaning of numbers to
the readers of the tape.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.json.scan import DOUBLE_TEXT, STATUS, scan_number, scan_string, unescape
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    NODE,
    NODE_BYTES,
    copy,
    differences_of_32,
    get,
    hash_bytes,
    load_u8,
    load_u32,
    put,
    put_node,
    stops_of_32,
    trailing_zeros,
)
from parquet_variant.kernels.native_vectors import Memory, address_in, new_table, reserve_rows
from parquet_variant.kernels.tapes.tape import (
    DROPPED,
    HAS_DROPPED,
    PATH,
    PATH_BYTES,
    SHAPE,
    SHAPE_BYTES,
    Interned,
    TableExports,
    add_key,
    children_of,
    export_tables,
    find_key,
    new_tables,
    path_of,
    shape_after,
)

_WORD_TRUE = int.from_bytes(b"true", "little")
_WORD_ALSE = int.from_bytes(b"alse", "little")
_WORD_NULL = int.from_bytes(b"null", "little")

# Columns of the stack of open containers: the node, its path, and the shape so far; of an array ``~`` the path of its
# elements, which is negative.
_NODE, _PATH, _PLACE = range(3)
_FRAME_BYTES = 8 * 3
# A field is predicted if the text before its value is not longer.
_PREDICTED_BYTES = 32


class TextSpans(NamedTuple):
    """The text of a batch."""

    # Where the text of each row starts and stops, counted from the address ``base``.
    base: int
    starts: Int64s
    stops: Int64s
    valid: UInt8s  # One byte per row, 0 for SQL NULL; empty if all rows are valid.
    scratch: int  # Address of room for unescaped text, as large as the text.


class ParsedNodes(NamedTuple):
    """The arrays that the parser fills."""

    nodes: Int64Table  # Room for every value that the text can hold.
    row_start: Int64s  # ``int64[rows + 1]``: the first node of each row.
    status: Int32s  # Status of each row: 0, or the reason why it cannot be parsed.
    doubles: Int64s  # Nodes whose text Python has to round.


class Rules(NamedTuple):
    """How text is parsed; a bad row becomes null if ``null_on_error``, else parsing stops there."""

    as_double: bool
    refuse_duplicates: bool
    replace_surrogates: bool
    max_depth: int
    max_size: int
    null_on_error: bool
    seed: int
    limit: int  # The last address at which 32 bytes of the text can be loaded.


class _To(NamedTuple):
    """Where the next node, unescaped text and double are written, and the number of fields dropped so far."""

    node: int
    scratch: int
    double_count: int
    dropped: int


@helper
def _skip_space(pos: int, end: int) -> int:
    """Return the position after white space."""
    while pos < end:
        byte = load_u8(pos)
        if byte > 0x20 or (byte != 0x20 and byte != 0x0A and byte != 0x0D and byte != 0x09):
            break
        pos += 1
    return pos


@helper(inline=True)
def _string(pos: int, end: int, scratch: int, rules: Rules) -> tuple[int, int, int, int, int]:
    """Scan the string whose opening quote is at ``pos``; return ``(error, stop, address, bytes, scratch)``."""
    address, error = pos + 1, STATUS.OK
    # Most strings end in their first 33 bytes.
    stop = address + trailing_zeros(stops_of_32(address) | (1 << 32)) if address <= rules.limit else end
    if stop >= end or load_u8(stop) != 0x22:
        error, stop = scan_string(address, end)
    size = stop - address
    if error == STATUS.OK and load_u8(stop) == 0x5C:
        error, stop, after = unescape(address, stop, end, scratch, rules.replace_surrogates)
        address, size, scratch = scratch, after - scratch, after
    return error, stop, address, size, scratch


@helper(inline=True)
def _word(byte: int, pos: int, end: int) -> tuple[int, int]:
    """Return ``(kind, bytes)`` of true, false or null; the kind is -1 for any other text."""
    if byte == 0x74 and pos + 4 <= end and load_u32(pos) == _WORD_TRUE:
        return KIND.TRUE, 4
    if byte == 0x66 and pos + 5 <= end and load_u32(pos + 1) == _WORD_ALSE:
        return KIND.FALSE, 5
    if byte == 0x6E and pos + 4 <= end and load_u32(pos) == _WORD_NULL:
        return KIND.NULL, 4
    return -1, 0


@helper(inline=True)
def _leaf(byte: int, pos: int, end: int, path: int, out: ParsedNodes, to: _To, rules: Rules) -> tuple[int, int, _To]:
    """Parse a value that is not a container and begins with ``byte``; return ``(error, pos, to)``."""
    scratch, double_count = to.scratch, to.double_count
    error, a, b, scale = STATUS.OK, 0, 0, 0
    if byte == 0x22:
        kind = KIND.STRING
        error, stop, a, b, scratch = _string(pos, end, scratch, rules)
        pos = stop + 1 if error == STATUS.OK else stop
    elif byte == 0x2D or 0x30 <= byte <= 0x39:
        error, pos, kind, a, b, scale = scan_number(pos, end, rules.as_double)
        if kind == DOUBLE_TEXT:
            kind = KIND.DOUBLE
            out.doubles[double_count] = to.node
            double_count += 1
    else:
        kind, size = _word(byte, pos, end)
        pos += size
        error = STATUS.OK if kind >= 0 else STATUS.VALUE
    put_node(address_in(out.nodes), to.node, kind | (scale << 8) | (path << 16), a, b)
    # A bad value does not become a node, because every counted node has a path.
    return error, pos, _To(to.node + (error == STATUS.OK), scratch, double_count, to.dropped)


@helper(inline=True)
def _field(
    frame: int, begin: int, pos: int, end: int, tables: Interned, to: _To, rules: Rules
) -> tuple[int, int, Interned, _To]:
    """Parse a name and colon, store the shape in the frame, and predict the text from ``begin`` to the value.

    Returns ``(error, pos, tables, to)``.
    """
    if pos >= end or load_u8(pos) != 0x22:
        return STATUS.TRUNCATED if pos >= end else STATUS.KEY, pos, tables, to
    error, stop, address, size, scratch = _string(pos, end, to.scratch, rules)
    if error != STATUS.OK:
        return error, stop, tables, to
    # Growing the tables is rare and slow, so it is not inlined; finding a key is.
    hashed = hash_bytes(address, size, rules.seed)
    key = find_key(tables.keys.rows, tables.keys.slots, address, size, hashed)
    if key < 0:
        key, keys = add_key(tables.keys, address, size, hashed)
        tables = Interned(keys, tables.paths, tables.shapes)
    pos = _skip_space(stop + 1, end)
    if pos >= end or load_u8(pos) != 0x3A:
        return STATUS.TRUNCATED if pos >= end else STATUS.COLON, pos, tables, to
    pos = _skip_space(pos + 1, end)
    following, tables = shape_after(tables, get(frame, _PLACE), key, get(frame, _PATH))
    record = address_in(tables.shapes.rows) + following * SHAPE_BYTES
    put(record, SHAPE.SIZE, pos - begin)
    copy(record + 8 * SHAPE.TEXT, begin, min(pos - begin, _PREDICTED_BYTES))
    put(frame, _PLACE, following)
    return STATUS.OK, pos, tables, _To(to.node, scratch, to.double_count, to.dropped)


@helper(inline=True)
def _next_value(
    frames: int, depth: int, opened: bool, pos: int, end: int, tables: Interned, nodes: int, to: _To, rules: Rules
) -> tuple[int, int, int, Interned, _To]:
    """Close containers after a value or bracket, and store the place of the next value in the frame at the top.

    Returns ``(error, pos, depth, tables, to)``; the depth is 0 if there is no other value.
    """
    while depth > 0:
        frame = frames + (depth - 1) * _FRAME_BYTES
        place = get(frame, _PLACE)
        if place >= 0 and pos <= rules.limit:
            shapes = address_in(tables.shapes.rows)
            following = get(shapes + place * SHAPE_BYTES, SHAPE.NEXT)
            record = shapes + following * SHAPE_BYTES
            size = get(record, SHAPE.SIZE) if following >= 0 else 64
            if size <= _PREDICTED_BYTES and differences_of_32(record + 8 * SHAPE.TEXT, pos) << (64 - size) == 0:
                put(frame, _PLACE, following)
                return STATUS.OK, _skip_space(pos + size, end), depth, tables, to
        begin, pos = pos, _skip_space(pos, end)
        if pos >= end:
            return STATUS.TRUNCATED, pos, depth, tables, to
        byte = load_u8(pos)
        if byte != (0x7D if place >= 0 else 0x5D):
            if not opened and byte != 0x2C:
                return STATUS.COMMA_OBJECT if place >= 0 else STATUS.COMMA_ARRAY, pos, depth, tables, to
            error, pos = STATUS.OK, pos if opened else _skip_space(pos + 1, end)
            if place >= 0:
                error, pos, tables, to = _field(frame, begin, pos, end, tables, to, rules)
            return error, pos, depth, tables, to
        # The closing bracket follows an opening bracket or a value; after a comma, a value was parsed above.
        node = nodes + get(frame, _NODE) * NODE_BYTES
        put(node, NODE.B, place if place >= 0 else ~place)
        put(node, NODE.END, to.node)
        depth -= 1
        pos += 1
        opened = False
    return STATUS.OK, pos, depth, tables, to


@helper(inline=True)
def _enter_child(frame: int, nodes: int, tables: Interned, to: _To, refuse_duplicates: bool) -> tuple[int, int, _To]:
    """Count the next value of a container, and drop an earlier field of the same name; return ``(error, path, to)``."""
    number, place = get(frame, _NODE), get(frame, _PLACE)
    container = nodes + number * NODE_BYTES
    count = get(container, NODE.A) + 1
    path, dropped = ~place, to.dropped
    if place >= 0:
        path = get(address_in(tables.shapes.rows) + place * SHAPE_BYTES, SHAPE.PATH)
        record = address_in(tables.paths.rows) + path * PATH_BYTES
        earlier = get(record, PATH.LAST_NODE)
        if earlier > number:
            if refuse_duplicates:
                return STATUS.DUPLICATE, path, to
            tag = nodes + earlier * NODE_BYTES
            put(tag, NODE.TAG, get(tag, NODE.TAG) | DROPPED)
            put(container, NODE.TAG, get(container, NODE.TAG) | HAS_DROPPED)
            count -= 1
            dropped += 1
        put(record, PATH.LAST_NODE, to.node)
    put(container, NODE.A, count)
    return STATUS.OK, path, _To(to.node, to.scratch, to.double_count, dropped)


@helper(inline=True)
def _parse_row(
    pos: int, end: int, stack: Int64Table, tables: Interned, out: ParsedNodes, to: _To, rules: Rules
) -> tuple[int, int, Int64Table, Interned, _To]:
    """Parse one row; return ``(error, path, stack, tables, to)`` with the path at which parsing stopped."""
    depth = path = 0
    nodes = address_in(out.nodes)
    error = STATUS.OK if end - pos <= rules.max_size else STATUS.SIZE
    pos = _skip_space(pos, end)
    while error == STATUS.OK:
        # One value at `path` starts at `pos`.
        if pos >= end:
            error = STATUS.TRUNCATED
            break
        byte = load_u8(pos)
        opened = byte == 0x7B or byte == 0x5B
        if opened:
            if depth == rules.max_depth:
                error = STATUS.DEPTH
                break
            if depth == len(stack):
                stack = reserve_rows(stack, depth + 1)
            kind = KIND.OBJECT if byte == 0x7B else KIND.ARRAY
            place, tables = children_of(tables, path, kind)
            frame = address_in(stack) + depth * _FRAME_BYTES
            put(frame, _NODE, to.node)
            put(frame, _PATH, path)
            put(frame, _PLACE, place if byte == 0x7B else ~place)
            put_node(nodes, to.node, kind | (path << 16), 0, 0)
            to = _To(to.node + 1, to.scratch, to.double_count, to.dropped)
            depth += 1
            pos += 1
        else:
            error, pos, to = _leaf(byte, pos, end, path, out, to, rules)
            if error != STATUS.OK:
                break
        frames = address_in(stack)
        error, pos, depth, tables, to = _next_value(frames, depth, opened, pos, end, tables, nodes, to, rules)
        if error == STATUS.OK and depth == 0:
            error = STATUS.OK if _skip_space(pos, end) == end else STATUS.TRAILING
            break
        if error == STATUS.OK:
            frame = frames + (depth - 1) * _FRAME_BYTES
            error, path, to = _enter_child(frame, nodes, tables, to, rules.refuse_duplicates)
    return error, path, stack, tables, to


@kernel
def parse_rows(memory: Memory, spans: TextSpans, out: ParsedNodes, rules: Rules) -> tuple[int, int, int, TableExports]:
    """Parse the text of each row into the tape.

    Returns ``(nodes, doubles, dropped, tables)``: the number of nodes, doubles and dropped fields (which `compact`
    removes), and the tables of keys, paths and shapes for `adopt`.
    """
    tables = new_tables(memory)
    stack = new_table(memory, 64, 3)
    to = _To(0, spans.scratch, 0, 0)
    out.row_start[0] = 0
    for row in range(len(spans.starts)):
        first = to
        if len(spans.valid) == 0 or spans.valid[row] != 0:
            pos, end = spans.base + spans.starts[row], spans.base + spans.stops[row]
            error, path, stack, tables, to = _parse_row(pos, end, stack, tables, out, to, rules)
            if error != STATUS.OK:
                out.status[row] = error
                paths = tables.paths.rows
                for i in range(first.node, to.node):  # undo the row: its node numbers are used again
                    paths[path_of(out.nodes[i, 0]), PATH.LAST_NODE] = -1
                paths[path, PATH.LAST_NODE] = -1
                to = _To(first.node, to.scratch, first.double_count, to.dropped)
                if not rules.null_on_error:
                    break
        out.row_start[row + 1] = to.node
    return to.node, to.double_count, to.dropped, export_tables(tables)
