"""The parser kernel: JSON text to a tape.

Owns structure and interning: every key, path and key sequence ("shape") of the batch is met once and named by a number.
Leaves tokens to `json_scan` and what the numbers mean to the readers of the tape.

A shape is a node in a trie of key sequences, with one root for each path. The trie predicts: after these keys at this
path comes most likely that key, so that a key usually costs one comparison and no hash.
"""

from __future__ import annotations

import os

import numpy as np

from parquet_variant.kernels.compiling import Int32s, Int64s, Int64Table, UInt8s, helper, kernel
from parquet_variant.kernels.json_scan import (
    DOUBLE,
    DOUBLE_TEXT,
    E_COLON,
    E_COMMA_ARRAY,
    E_COMMA_OBJECT,
    E_DEPTH,
    E_DUPLICATE,
    E_KEY,
    E_SIZE,
    E_TRAILING,
    E_TRUNCATED,
    E_VALUE,
    OK,
    PLAIN,
    scan_number,
    scan_string,
    unescape,
)
from parquet_variant.kernels.memory import equal, load_u8, load_u32, load_u64
from parquet_variant.kernels.native_vectors import export_table, filled_vector, free, new_table, reserve_rows
from parquet_variant.kernels.tape import (
    ARRAY,
    DROPPED,
    HAS_DROPPED,
    KEY_ADDRESS,
    KEY_HASH,
    KEY_LENGTH,
    KEY_PLAIN,
    OBJECT,
    PATH_ELEMENT,
    PATH_KEY,
    PATH_LAST_NODE,
    PATH_PARENT,
    PATH_ROOT_SHAPE,
    SHAPE_KEY,
    SHAPE_NEXT,
    SHAPE_PARENT,
    SHAPE_PATH,
    path_of,
)

__all__ = [
    "ELEMENT_KEY",
    "HASH_SEED",
    "add_key",
    "add_path",
    "add_root_shape",
    "empty_slots",
    "export_tables",
    "find_key",
    "find_pair",
    "hash_bytes",
    "new_tables",
    "parse_rows",
    "successor",
]

# Different in every process, so that nobody can craft keys that all collide; results do not depend on it.
HASH_SEED = int.from_bytes(os.urandom(7), "little") | 1

ELEMENT_KEY = np.int64(-1)  # the key of a path that stands for the elements of an array, and of the root

_TRUE, _FALSE, _NULL, _STRING = 1, 2, 0, 16
_WORD_TRUE = int.from_bytes(b"true", "little")
_WORD_ALSE = int.from_bytes(b"alse", "little")
_WORD_NULL = int.from_bytes(b"null", "little")


@helper
def hash_bytes(address, length, seed):
    """A 62-bit hash of some bytes."""
    value = seed ^ (length * 0x2545F4914F6CDD1D)
    i = 0
    while i + 8 <= length:
        value = (value ^ load_u64(address + i)) * 0x2127599BF4325C37
        value ^= (value >> 29) & 0x7FFFFFFFF
        i += 8
    tail = 0
    while i < length:
        tail = (tail << 8) | load_u8(address + i)
        i += 1
    value = (value ^ tail) * 0x2127599BF4325C37
    value ^= (value >> 32) & 0xFFFFFFFF
    return value & 0x3FFFFFFFFFFFFFFF


@helper
def _hash_pair(left, right):
    value = (left * 0x2127599BF4325C37 + right) * 0x2545F4914F6CDD1D
    value ^= (value >> 31) & 0x1FFFFFFFF
    return value & 0x3FFFFFFFFFFFFFFF


@helper(inline=True)
def empty_slots(size):
    """Free slots of a hash table; the size is a power of two."""
    return filled_vector(size, -1)


@helper(inline=True)
def find_key(keys, slots, address, length, hashed):
    """Key id, or -1 - slot where it would go."""
    mask = len(slots) - 1
    at = hashed & mask
    while slots[at] >= 0:
        k = slots[at]
        if (
            keys[k, KEY_HASH] == hashed
            and keys[k, KEY_LENGTH] == length
            and equal(keys[k, KEY_ADDRESS], address, length)
        ):
            return k
        at = (at + 1) & mask
    return -1 - at


@helper
def add_key(keys, slots, count, address, length, plain, hashed):
    """``(key, keys, slots, count)`` with a key in the table that it does not have yet."""
    if count == len(keys):
        keys = reserve_rows(keys, count + 1)
        free(slots)
        slots = empty_slots(4 * len(keys))
        for k in range(count):
            slots[-1 - find_key(keys, slots, keys[k, KEY_ADDRESS], keys[k, KEY_LENGTH], keys[k, KEY_HASH])] = k
    found = find_key(keys, slots, address, length, hashed)
    keys[count, KEY_ADDRESS] = address
    keys[count, KEY_LENGTH] = length
    keys[count, KEY_HASH] = hashed
    keys[count, KEY_PLAIN] = plain
    slots[-1 - found] = count
    return count, keys, slots, count + 1


@helper(inline=True)
def find_pair(table, slots, left_column, right_column, left, right):
    """Row of a table that holds the pair, or -1 - slot where it would go."""
    mask = len(slots) - 1
    at = _hash_pair(left, right) & mask
    while slots[at] >= 0:
        row = slots[at]
        if table[row, left_column] == left and table[row, right_column] == right:
            return row
        at = (at + 1) & mask
    return -1 - at


@helper
def _room_for_pair(table, slots, count, left_column, right_column):
    """The table and its slots, grown if they are full."""
    if count < len(table):
        return table, slots
    table = reserve_rows(table, count + 1)
    free(slots)
    slots = empty_slots(4 * len(table))
    for row in range(count):
        slots[
            -1 - find_pair(table, slots, left_column, right_column, table[row, left_column], table[row, right_column])
        ] = row
    return table, slots


@helper
def add_path(paths, slots, count, parent, key):
    """``(path, paths, slots, count)`` with the path in the table."""
    found = find_pair(paths, slots, PATH_PARENT, PATH_KEY, parent, key)
    if found >= 0:
        return found, paths, slots, count
    paths, slots = _room_for_pair(paths, slots, count, PATH_PARENT, PATH_KEY)
    found = find_pair(paths, slots, PATH_PARENT, PATH_KEY, parent, key)
    paths[count, PATH_PARENT] = parent
    paths[count, PATH_KEY] = key
    paths[count, PATH_ELEMENT] = -1
    paths[count, PATH_ROOT_SHAPE] = -1
    paths[count, PATH_LAST_NODE] = -1
    slots[-1 - found] = count
    return count, paths, slots, count + 1


@helper
def successor(shapes, shape_slots, shape_count, paths, path_slots, path_count, shape, key, object_path):
    """``(next shape, shapes, shape_slots, shape_count, paths, path_slots, path_count)`` after one more key."""
    found = find_pair(shapes, shape_slots, SHAPE_PARENT, SHAPE_KEY, shape, key)
    if found < 0:
        path, paths, path_slots, path_count = add_path(paths, path_slots, path_count, object_path, key)
        found, shapes, shape_slots, shape_count = _add_shape(shapes, shape_slots, shape_count, shape, key, path)
    return found, shapes, shape_slots, shape_count, paths, path_slots, path_count


@helper
def _add_shape(shapes, slots, count, parent, key, path):
    shapes, slots = _room_for_pair(shapes, slots, count, SHAPE_PARENT, SHAPE_KEY)
    found = find_pair(shapes, slots, SHAPE_PARENT, SHAPE_KEY, parent, key)
    shapes[count, SHAPE_PARENT] = parent
    shapes[count, SHAPE_KEY] = key
    shapes[count, SHAPE_PATH] = path
    shapes[count, SHAPE_NEXT] = -1
    slots[-1 - found] = count
    return count, shapes, slots, count + 1


@helper
def new_tables():
    """Empty key, path and shape tables, with the root path in place, and their slots."""
    keys, paths, shapes = new_table(256, 4), new_table(256, 5), new_table(256, 4)
    key_slots, path_slots, shape_slots = empty_slots(1024), empty_slots(1024), empty_slots(1024)
    _, paths, path_slots, _ = add_path(paths, path_slots, 0, ELEMENT_KEY, ELEMENT_KEY)
    return keys, key_slots, paths, path_slots, shapes, shape_slots


@helper
def export_tables(keys, key_count, paths, path_count, shapes, shape_count, slots):
    """The key, path and shape tables for `adopt`; the slots are freed."""
    for each in slots:
        free(each)
    return export_table(keys, key_count), export_table(paths, path_count), export_table(shapes, shape_count)


@helper
def add_root_shape(shapes, slots, count, paths, path):
    """``(shapes, slots, count)`` with the shape of an object at a path that has no keys yet."""
    # A root has no parent: -1 - path keeps roots apart in the pair table.
    paths[path, PATH_ROOT_SHAPE], shapes, slots, count = _add_shape(shapes, slots, count, -1 - path, ELEMENT_KEY, path)
    return shapes, slots, count


@helper
def _skip_space(pos, end):
    while pos < end:
        byte = load_u8(pos)
        if byte > 0x20 or (byte != 0x20 and byte != 0x0A and byte != 0x0D and byte != 0x09):
            break
        pos += 1
    return pos


@kernel
def parse_rows(
    base: int,
    starts: Int64s,
    stops: Int64s,
    valid: UInt8s,
    scratch: int,
    nodes: Int64Table,
    row_start: Int64s,
    status: Int32s,
    error_at: Int64s,
    doubles: Int64s,
    as_double: bool,
    refuse_duplicates: bool,
    replace_surrogates: bool,
    max_depth: int,
    max_size: int,
    keep_going: bool,
    seed: int,
) -> tuple[int, int, int, int, tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]]:
    """Parse each row's text into the tape.

    ``base`` is the address that ``starts`` and ``stops`` count from; ``valid`` is a byte a row, or empty. ``scratch``
    is the address of room for unescaped text, as much as all the text. ``nodes`` has room for every value that the
    text can hold. Fills ``nodes``, ``row_start``, ``status`` and ``error_at`` (byte offset in the row) and lists in
    ``doubles`` the nodes whose text is still to be rounded. A bad row becomes a null row if ``keep_going``, else it
    ends the work.

    Returns ``(rows done, nodes, doubles, dropped, tables)``: counts, the fourth of fields that `compact` has to
    remove, and the tables of keys, paths and shapes for `adopt`.
    """
    keys, key_slots, paths, path_slots, shapes, shape_slots = new_tables()
    key_count, path_count, shape_count = 0, 1, 0
    stack = new_table(64, 4)  # node, path, shape or element path, count
    n = 0
    double_count = dropped = 0
    rows = len(starts)
    row = 0
    while row < rows:
        row_start[row] = n
        if len(valid) > 0 and valid[row] == 0:
            row += 1
            continue
        pos, end = base + starts[row], base + stops[row]
        first_node, first_double = n, double_count
        depth = 0
        path = 0
        error = OK
        if end - pos > max_size:
            error = E_SIZE
        pos = _skip_space(pos, end)
        while error == OK:
            # One value at `path` starts at `pos`.
            if pos >= end:
                error = E_TRUNCATED
                break
            byte = load_u8(pos)
            node = n
            n += 1
            opened = False
            if byte == 0x22:
                error, stop, found = scan_string(pos + 1, end)
                if error == OK:
                    if found == PLAIN:
                        nodes[node, 1] = pos + 1
                        nodes[node, 2] = stop - pos - 1
                    else:
                        error, stop, after = unescape(pos + 1, stop, end, scratch, replace_surrogates)
                        nodes[node, 1] = scratch
                        nodes[node, 2] = after - scratch
                        scratch = after
                nodes[node, 0] = _STRING | (path << 16)
                pos = stop + 1 if error == OK else stop
            elif byte == 0x2D or 0x30 <= byte <= 0x39:
                error, pos, kind, a, b, scale = scan_number(pos, end, as_double)
                if kind == DOUBLE_TEXT:
                    kind = DOUBLE
                    doubles[double_count] = node
                    double_count += 1
                nodes[node, 0] = kind | (scale << 8) | (path << 16)
                nodes[node, 1] = a
                nodes[node, 2] = b
            elif byte == 0x7B or byte == 0x5B:
                if depth == max_depth:
                    error = E_DEPTH
                    break
                if depth == len(stack):
                    stack = reserve_rows(stack, depth + 1)
                opened = True
                stack[depth, 0] = node
                stack[depth, 1] = path
                stack[depth, 3] = 0
                if byte == 0x7B:
                    nodes[node, 0] = OBJECT | (path << 16)
                    if paths[path, PATH_ROOT_SHAPE] < 0:
                        shapes, shape_slots, shape_count = add_root_shape(shapes, shape_slots, shape_count, paths, path)
                    stack[depth, 2] = paths[path, PATH_ROOT_SHAPE]
                else:
                    nodes[node, 0] = ARRAY | (path << 16)
                    element = paths[path, PATH_ELEMENT]
                    if element < 0:
                        element, paths, path_slots, path_count = add_path(
                            paths, path_slots, path_count, path, np.int64(-1)
                        )
                        paths[path, PATH_ELEMENT] = element
                    stack[depth, 2] = element
                depth += 1
                pos += 1
            elif byte == 0x74:
                if pos + 4 <= end and load_u32(pos) == _WORD_TRUE:
                    nodes[node, 0] = _TRUE | (path << 16)
                    pos += 4
                else:
                    error = E_VALUE
            elif byte == 0x66:
                if pos + 5 <= end and load_u32(pos + 1) == _WORD_ALSE:
                    nodes[node, 0] = _FALSE | (path << 16)
                    pos += 5
                else:
                    error = E_VALUE
            elif byte == 0x6E:
                if pos + 4 <= end and load_u32(pos) == _WORD_NULL:
                    nodes[node, 0] = _NULL | (path << 16)
                    pos += 4
                else:
                    error = E_VALUE
            else:
                error = E_VALUE
            if error != OK:
                break
            nodes[node, 3] = n
            # After a value, or after an opening bracket: find the next value, closing what ends here.
            while True:
                if depth == 0:
                    break
                top = depth - 1
                pos = _skip_space(pos, end)
                if pos >= end:
                    error = E_TRUNCATED
                    break
                byte = load_u8(pos)
                container = stack[top, 0]
                is_object = (nodes[container, 0] & 0xFF) == OBJECT
                if byte == (0x7D if is_object else 0x5D):
                    # Only right after the opening bracket, or right after a value: a comma leads to a value below.
                    nodes[container, 1] = stack[top, 3]
                    nodes[container, 2] = stack[top, 2]
                    nodes[container, 3] = n
                    depth -= 1
                    pos += 1
                    opened = False
                    continue
                if not opened:
                    if byte != 0x2C:
                        error = E_COMMA_OBJECT if is_object else E_COMMA_ARRAY
                        break
                    pos = _skip_space(pos + 1, end)
                    if pos >= end:
                        error = E_TRUNCATED
                        break
                    byte = load_u8(pos)
                stack[top, 3] += 1
                if not is_object:
                    path = stack[top, 2]
                    break
                if byte != 0x22:
                    error = E_KEY
                    break
                shape = stack[top, 2]
                guess = shapes[shape, SHAPE_NEXT]
                hit = False
                if guess >= 0:
                    key = shapes[guess, SHAPE_KEY]
                    stop = pos + 1 + keys[key, KEY_LENGTH]
                    if stop < end and load_u8(stop) == 0x22 and keys[key, KEY_PLAIN] == 1:
                        hit = equal(keys[key, KEY_ADDRESS], pos + 1, keys[key, KEY_LENGTH])
                if not hit:
                    error, stop, found = scan_string(pos + 1, end)
                    if error != OK:
                        pos = stop
                        break
                    at, length = pos + 1, stop - pos - 1
                    if found != PLAIN:
                        error, stop, after = unescape(pos + 1, stop, end, scratch, replace_surrogates)
                        if error != OK:
                            pos = stop
                            break
                        at, length = scratch, after - scratch
                        scratch = after
                    # Growing the tables is rare and dear (arrays handed back and forth), finding is neither.
                    hashed = hash_bytes(at, length, seed)
                    key = find_key(keys, key_slots, at, length, hashed)
                    if key < 0:
                        plain = 1 if found == PLAIN else 0
                        key, keys, key_slots, key_count = add_key(keys, key_slots, key_count, at, length, plain, hashed)
                    guess = find_pair(shapes, shape_slots, SHAPE_PARENT, SHAPE_KEY, shape, key)
                    if guess < 0:
                        guess, shapes, shape_slots, shape_count, paths, path_slots, path_count = successor(
                            shapes, shape_slots, shape_count, paths, path_slots, path_count, shape, key, stack[top, 1]
                        )
                    shapes[shape, SHAPE_NEXT] = guess
                path = shapes[guess, SHAPE_PATH]
                stack[top, 2] = guess
                earlier = paths[path, PATH_LAST_NODE]
                if earlier > container:
                    if refuse_duplicates:
                        error = E_DUPLICATE
                        break
                    nodes[earlier, 0] |= DROPPED
                    dropped += 1
                    nodes[container, 0] |= HAS_DROPPED
                    stack[top, 3] -= 1
                paths[path, PATH_LAST_NODE] = n
                pos = _skip_space(stop + 1, end)
                if pos >= end or load_u8(pos) != 0x3A:
                    error = E_TRUNCATED if pos >= end else E_COLON
                    break
                pos = _skip_space(pos + 1, end)
                break
            if error != OK:
                break
            if depth == 0:
                pos = _skip_space(pos, end)
                if pos < end:
                    error = E_TRAILING
                break
        if error != OK:
            status[row] = error
            error_at[row] = pos - base - starts[row]
            for i in range(first_node, n - 1):  # forget the row: its nodes' numbers are given again
                paths[path_of(nodes[i, 0]), PATH_LAST_NODE] = -1
            paths[path, PATH_LAST_NODE] = -1
            n = first_node
            double_count = first_double
            if not keep_going:
                break
        row += 1
    for rest in range(row, rows):
        row_start[rest] = n
    row_start[rows] = n
    free(stack)
    tables = export_tables(
        keys, key_count, paths, path_count, shapes, shape_count, (key_slots, path_slots, shape_slots)
    )
    return row, n, double_count, dropped, tables
