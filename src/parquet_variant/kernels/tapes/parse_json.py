"""The parser kernel: JSON text to a tape.

Owns the structure of JSON. Leaves tokens to `json.scan`, keys and paths to `tape`, and the meaning of numbers to
the readers of the tape.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.json.scan import DOUBLE_TEXT, PLAIN, STATUS, scan_number, scan_string, unescape
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import KIND, equal, hash_bytes, load_u8, load_u32
from parquet_variant.kernels.native_vectors import Memory, new_table, reserve_rows
from parquet_variant.kernels.tapes.tape import (
    DROPPED,
    HAS_DROPPED,
    KEY,
    PATH,
    SHAPE,
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

# Columns of the stack of open containers: the node, its path, the shape so far (of an array, the path of its elements),
# and the number of children so far.
_NODE, _PATH, _PLACE, _CHILDREN = range(4)


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
def _string(pos: int, end: int, scratch: int, replace_surrogates: bool) -> tuple[int, int, int, int, bool, int]:
    """Scan the string whose opening quote is at ``pos``; return ``(error, stop, address, bytes, plain, scratch)``."""
    error, stop, form = scan_string(pos + 1, end)
    address, size = pos + 1, stop - pos - 1
    if error == STATUS.OK and form != PLAIN:
        error, stop, after = unescape(pos + 1, stop, end, scratch, replace_surrogates)
        address, size = scratch, after - scratch
        scratch = after
    return error, stop, address, size, form == PLAIN, scratch


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
    nodes, node = out.nodes, to.node
    scratch, double_count = to.scratch, to.double_count
    error = STATUS.OK
    if byte == 0x22:
        error, stop, nodes[node, 1], nodes[node, 2], _, scratch = _string(pos, end, scratch, rules.replace_surrogates)
        nodes[node, 0] = KIND.STRING | (path << 16)
        pos = stop + 1 if error == STATUS.OK else stop
    elif byte == 0x2D or 0x30 <= byte <= 0x39:
        error, pos, kind, nodes[node, 1], nodes[node, 2], scale = scan_number(pos, end, rules.as_double)
        if kind == DOUBLE_TEXT:
            kind = KIND.DOUBLE
            out.doubles[double_count] = node
            double_count += 1
        nodes[node, 0] = kind | (scale << 8) | (path << 16)
    else:
        kind, size = _word(byte, pos, end)
        nodes[node, 0] = kind | (path << 16)
        pos += size
        error = STATUS.OK if kind >= 0 else STATUS.VALUE
    # A bad value does not become a node, because every counted node has a path.
    return error, pos, _To(node + (error == STATUS.OK), scratch, double_count, to.dropped)


@helper(inline=True)
def _next_child(
    stack: Int64Table, depth: int, nodes: Int64Table, node: int, pos: int, end: int, opened: bool
) -> tuple[int, int, int]:
    """Close containers after a value or bracket; return ``(error, pos, depth)`` of the next child; depth 0: none."""
    while depth > 0:
        top = depth - 1
        pos = _skip_space(pos, end)
        if pos >= end:
            return STATUS.TRUNCATED, pos, depth
        byte = load_u8(pos)
        container = stack[top, _NODE]
        is_object = (nodes[container, 0] & 0xFF) == KIND.OBJECT
        if byte != (0x7D if is_object else 0x5D):
            if not opened:
                if byte != 0x2C:
                    return STATUS.COMMA_OBJECT if is_object else STATUS.COMMA_ARRAY, pos, depth
                pos = _skip_space(pos + 1, end)
            return (STATUS.OK if pos < end else STATUS.TRUNCATED), pos, depth
        # The closing bracket follows an opening bracket or a value; after a comma, a value was parsed above.
        nodes[container, 1] = stack[top, _CHILDREN]
        nodes[container, 2] = stack[top, _PLACE]
        nodes[container, 3] = node
        depth -= 1
        pos += 1
        opened = False
    return STATUS.OK, pos, depth


@helper(inline=True)
def _is_predicted(tables: Interned, shape: int, pos: int, end: int) -> tuple[bool, int, int]:
    """Return ``(hit, next shape, stop)``: whether the key at ``pos`` is the usual next one, and where that ends."""
    keys, shapes = tables.keys.rows, tables.shapes.rows
    following = shapes[shape, SHAPE.NEXT]
    if following < 0:
        return False, following, pos
    key = shapes[following, SHAPE.KEY]
    stop = pos + 1 + keys[key, KEY.LENGTH]
    hit = stop < end and load_u8(stop) == 0x22 and keys[key, KEY.PLAIN] == 1
    return hit and equal(keys[key, KEY.ADDRESS], pos + 1, keys[key, KEY.LENGTH]), following, stop


@helper(inline=True)
def _field(
    stack: Int64Table, top: int, tables: Interned, pos: int, end: int, to: _To, rules: Rules
) -> tuple[int, int, Interned, _To]:
    """Parse the name and colon of a field and store its shape in the frame; return ``(error, pos, tables, to)``."""
    if load_u8(pos) != 0x22:
        return STATUS.KEY, pos, tables, to
    shape, scratch = stack[top, _PLACE], to.scratch
    hit, following, stop = _is_predicted(tables, shape, pos, end)
    if not hit:
        error, stop, address, size, plain, scratch = _string(pos, end, scratch, rules.replace_surrogates)
        if error != STATUS.OK:
            return error, stop, tables, to
        # Growing the tables is rare and slow, so it is not inlined; finding a key is.
        hashed = hash_bytes(address, size, rules.seed)
        key = find_key(tables.keys.rows, tables.keys.slots, address, size, hashed)
        if key < 0:
            key, keys = add_key(tables.keys, address, size, 1 if plain else 0, hashed)
            tables = Interned(keys, tables.paths, tables.shapes)
        following, tables = shape_after(tables, shape, key, stack[top, _PATH])
    stack[top, _PLACE] = following
    pos = _skip_space(stop + 1, end)
    error = STATUS.TRUNCATED if pos >= end else (STATUS.OK if load_u8(pos) == 0x3A else STATUS.COLON)
    return error, _skip_space(pos + 1, end), tables, _To(to.node, scratch, to.double_count, to.dropped)


@helper(inline=True)
def _note_field(
    stack: Int64Table, top: int, nodes: Int64Table, paths: Int64Table, path: int, to: _To, refuse_duplicates: bool
) -> tuple[int, _To]:
    """Store the node of a field, and drop an earlier field of the same name; return ``(error, to)``."""
    container, earlier, dropped = stack[top, _NODE], paths[path, PATH.LAST_NODE], to.dropped
    if earlier > container:
        if refuse_duplicates:
            return STATUS.DUPLICATE, to
        nodes[earlier, 0] |= DROPPED
        nodes[container, 0] |= HAS_DROPPED
        stack[top, _CHILDREN] -= 1
        dropped += 1
    paths[path, PATH.LAST_NODE] = to.node
    return STATUS.OK, _To(to.node, to.scratch, to.double_count, dropped)


@helper(inline=True)
def _open(stack: Int64Table, depth: int, node: int, path: int, place: int) -> None:
    """Push the frame of a container."""
    stack[depth, _NODE] = node
    stack[depth, _PATH] = path
    stack[depth, _PLACE] = place
    stack[depth, _CHILDREN] = 0


@helper(inline=True)
def _parse_row(
    pos: int, end: int, stack: Int64Table, tables: Interned, out: ParsedNodes, to: _To, rules: Rules
) -> tuple[int, int, Int64Table, Interned, _To]:
    """Parse one row; return ``(error, path, stack, tables, to)`` with the path at which parsing stopped."""
    depth = path = 0
    nodes = out.nodes
    error = STATUS.OK if end - pos <= rules.max_size else STATUS.SIZE
    pos = _skip_space(pos, end)
    while error == STATUS.OK:
        # One value at `path` starts at `pos`.
        if pos >= end:
            error = STATUS.TRUNCATED
            break
        byte, node = load_u8(pos), to.node
        opened = byte == 0x7B or byte == 0x5B
        if opened:
            if depth == rules.max_depth:
                error = STATUS.DEPTH
                break
            if depth == len(stack):
                stack = reserve_rows(stack, depth + 1)
            kind = KIND.OBJECT if byte == 0x7B else KIND.ARRAY
            place, tables = children_of(tables, path, kind)
            _open(stack, depth, node, path, place)
            nodes[node, 0] = kind | (path << 16)
            to = _To(node + 1, to.scratch, to.double_count, to.dropped)
            depth += 1
            pos += 1
        else:
            error, pos, to = _leaf(byte, pos, end, path, out, to, rules)
            if error != STATUS.OK:
                break
        nodes[node, 3] = to.node
        error, pos, depth = _next_child(stack, depth, nodes, to.node, pos, end, opened)
        if error != STATUS.OK:
            break
        if depth == 0:
            error = STATUS.OK if _skip_space(pos, end) == end else STATUS.TRAILING
            break
        top = depth - 1
        stack[top, _CHILDREN] += 1
        if nodes[stack[top, _NODE], 0] & 0xFF == KIND.ARRAY:
            path = stack[top, _PLACE]
            continue
        error, pos, tables, to = _field(stack, top, tables, pos, end, to, rules)
        if error != STATUS.OK:
            break
        path = tables.shapes.rows[stack[top, _PLACE], SHAPE.PATH]
        error, to = _note_field(stack, top, nodes, tables.paths.rows, path, to, rules.refuse_duplicates)
    return error, path, stack, tables, to


@kernel
def parse_rows(
    memory: Memory, spans: TextSpans, out: ParsedNodes, rules: Rules
) -> tuple[int, int, int, int, TableExports]:
    """Parse the text of each row into the tape.

    Returns ``(rows done, nodes, doubles, dropped, tables)``: the number of rows, nodes, doubles and dropped fields
    (which `compact` removes), and the tables of keys, paths and shapes for `adopt`.
    """
    tables = new_tables(memory)
    stack = new_table(memory, 64, 4)
    to = _To(0, spans.scratch, 0, 0)
    rows = len(spans.starts)
    row = 0
    while row < rows:
        first = to
        out.row_start[row] = first.node
        if len(spans.valid) > 0 and spans.valid[row] == 0:
            row += 1
            continue
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
        row += 1
    for unparsed in range(row, rows + 1):
        out.row_start[unparsed] = to.node
    return row, to.node, to.double_count, to.dropped, export_tables(tables)
