"""Write the type of each value as text; the fast counterpart of `encoding.schema_of`.

Owns merging the types of the parts of a value, and writing the result. Takes nodes as `value_nodes` makes them,
with names numbered in the order in which they are written. The caller passes tables of the types that scalar types
merge to, and of the spelling of types and names. Values that are nested too deep are left to the scalar fallback.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.int128 import digits_of, divide_small, negate
from parquet_variant.kernels.json.scalar_text import int_text
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import KIND, load_u64, store_u8, store_u64
from parquet_variant.kernels.native_vectors import (
    Memory,
    allocate,
    export_bytes,
    new_table,
    reserve_bytes,
    reserve_rows,
)
from parquet_variant.kernels.values.reading import scalar

# Types that the kernel knows by number; other types only occur in the tables.
CODES = ("VOID", "BIGINT", "DECIMAL", "DOUBLE", "ARRAY", "OBJECT", "VARIANT")
_VOID, _BIGINT, _DECIMAL, _DOUBLE, _ARRAY, _OBJECT, _VARIANT = range(len(CODES))
_MAX_DIGITS = 38
# Room for the text written between two checks of the buffer, except names: the longest word, numbers, punctuation.
_ROOM = 96
# Columns of the table of types: digits before and after the point, the first part (-1: none) and the next one of the
# same object, and the number of the name.
_CODE, _WHOLE, _SCALE, _FIRST, _NEXT, _NAME = range(6)
# Columns of an open container: the node after it, its type (-1: it merged into VARIANT), the part that came last.
_END, _TYPE, _LAST = range(3)
_COMMA, _SPACE, _OPEN, _CLOSE, _LESS, _GREATER = (ord(sign) for sign in ", ()<>")


class Strings(NamedTuple):
    """Strings that follow each other: their address, and the start of each and the end of the last one."""

    address: int
    starts: Int64s


class MergeRules(NamedTuple):
    """How scalar types merge."""

    code_of_kind: Int64s  # The number of the type of each kind of scalar.
    merged: Int64Table  # The number of the type to which two scalar types merge.
    bigint_digits: int  # Digits of a bigint as a decimal.


@helper
def _decimal_digits(high: int, low: int, scale: int) -> tuple[int, int]:
    """Return the digits before and after the point of a number without trailing zeros in its fraction."""
    if scale == 0:
        return digits_of(high, low), 0
    if high < 0:
        high, low = negate(high, low)
    while scale > 0:
        if high == 0 and low >= 0:
            quotient_high, quotient_low, remainder = 0, low // 10, low % 10
        else:
            quotient_high, quotient_low, remainder = divide_small(high, low, 10)
        if remainder != 0:
            break
        high, low, scale = quotient_high, quotient_low, scale - 1
    return max(digits_of(high, low), scale) - scale, scale


@helper
def _merge(types: Int64Table, t: int, code: int, integer_digits: int, scale: int, merged: Int64Table) -> None:
    """Merge a scalar type into type ``t``."""
    earlier = types[t, _CODE]
    if earlier == _VOID:
        types[t, _CODE] = code
        types[t, _WHOLE] = integer_digits
        types[t, _SCALE] = scale
    elif (earlier == _DECIMAL or earlier == _BIGINT) and (code == _DECIMAL or code == _BIGINT):
        if earlier != code or code == _DECIMAL:
            types[t, _WHOLE] = max(types[t, _WHOLE], integer_digits)
            types[t, _SCALE] = max(types[t, _SCALE], scale)
            fits = types[t, _WHOLE] + types[t, _SCALE] <= _MAX_DIGITS
            types[t, _CODE] = _DECIMAL if fits else _DOUBLE
    elif code != _VOID:
        types[t, _CODE] = merged[earlier, code]


@helper
def _part(types: Int64Table, type_count: int, parent: int, last: int, name: int) -> tuple[int, int]:
    """Find or add the part of an array or object type with a name; return ``(type, type_count)``."""
    part = types[parent, _FIRST] if last < 0 else types[last, _NEXT]
    while part >= 0 and types[part, _NAME] < name:
        last, part = part, types[part, _NEXT]
    if part >= 0 and types[part, _NAME] == name:
        return part, type_count
    types[type_count, _CODE] = _VOID
    types[type_count, _FIRST] = -1
    types[type_count, _NEXT] = part
    types[type_count, _NAME] = name
    if last < 0:
        types[parent, _FIRST] = type_count
    else:
        types[last, _NEXT] = type_count
    return type_count, type_count + 1


@helper
def _merge_row(
    nodes: Int64Table,
    first: int,
    stop: int,
    rules: MergeRules,
    stack: Int64Table,
    types: Int64Table,
) -> tuple[bool, Int64Table]:
    """Merge the types of a row's nodes into type 0 of the table; return ``(ok, types)``, not ok if nested too deep."""
    types[0, _CODE] = _VOID
    types[0, _FIRST] = types[0, _NEXT] = -1
    type_count = 1
    depth = 0
    for i in range(first, stop):
        while depth > 0 and stack[depth - 1, _END] <= i:
            depth -= 1
        tag = nodes[i, 0]
        t = 0
        if depth > 0:
            t = stack[depth - 1, _TYPE]
            if t >= 0:
                if type_count == len(types):
                    types = reserve_rows(types, type_count + 1)
                t, type_count = _part(types, type_count, t, stack[depth - 1, _LAST], tag >> 16)
                stack[depth - 1, _LAST] = t
                if types[stack[depth - 1, _TYPE], _CODE] == _ARRAY:
                    stack[depth - 1, _LAST] = -1  # all elements are one part
        kind = tag & 0xFF
        if kind == KIND.ARRAY or kind == KIND.OBJECT:
            if depth == len(stack):
                return False, types
            if t >= 0:
                code = _ARRAY if kind == KIND.ARRAY else _OBJECT
                if types[t, _CODE] == _VOID:
                    types[t, _CODE] = code
                elif types[t, _CODE] != code:
                    types[t, _CODE] = _VARIANT
                    t = -1
            stack[depth, _END] = nodes[i, 3]
            stack[depth, _TYPE] = t
            stack[depth, _LAST] = -1
            depth += 1
        elif t >= 0 and kind != KIND.NULL:
            integer_digits = scale = 0
            if kind != KIND.STRING:
                kind, a, b, scale = scalar(nodes[i, 1], nodes[i, 1] + nodes[i, 2])
                if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
                    integer_digits, scale = _decimal_digits(b, a, scale)
                else:
                    integer_digits, scale = rules.bigint_digits, 0
            _merge(types, t, rules.code_of_kind[kind], integer_digits, scale, rules.merged)
    return True, types


@helper(inline=True)
def _put(at: int, strings: Strings, number: int) -> int:
    """Write a short string in words of eight bytes, which reads and writes up to seven bytes more; return its bytes."""
    source, size = strings.address + strings.starts[number], strings.starts[number + 1] - strings.starts[number]
    for i in range(0, size, 8):
        store_u64(at + i, load_u64(source + i))
    return size


@helper
def _write_row(
    types: Int64Table, words: Strings, names: Strings, stack: Int64Table, out: int, room: int, written_bytes: int
) -> tuple[int, int, int]:
    """Append the text of type 0; return ``(out, room, written_bytes)`` of the buffer, which grows as needed."""
    depth = 0
    t = 0
    while True:
        out, room = reserve_bytes(out, room, written_bytes + _ROOM)
        code = types[t, _CODE]
        written_bytes += _put(out + written_bytes, words, code)
        if code == _DECIMAL:
            store_u8(out + written_bytes, _OPEN)
            end = int_text(out + written_bytes + 1, types[t, _WHOLE] + types[t, _SCALE])
            store_u8(end, _COMMA)
            end = int_text(end + 1, types[t, _SCALE])
            store_u8(end, _CLOSE)
            written_bytes = end + 1 - out
        elif code == _ARRAY or code == _OBJECT:
            store_u8(out + written_bytes, _LESS)
            written_bytes += 1
            stack[depth, _TYPE] = t
            stack[depth, _LAST] = -1
            depth += 1
        # The next part, closing what ends here.
        part = -1
        while depth > 0:
            parent, last = stack[depth - 1, _TYPE], stack[depth - 1, _LAST]
            part = types[parent, _FIRST] if last < 0 else types[last, _NEXT]
            if part >= 0:
                stack[depth - 1, _LAST] = part
                break
            out, room = reserve_bytes(out, room, written_bytes + _ROOM)
            if types[parent, _CODE] == _ARRAY and last < 0:
                written_bytes += _put(out + written_bytes, words, _VOID)
            store_u8(out + written_bytes, _GREATER)
            written_bytes += 1
            depth -= 1
        if part < 0:
            return out, room, written_bytes
        if types[parent, _CODE] == _OBJECT:
            name = types[part, _NAME]
            size = names.starts[name + 1] - names.starts[name]
            out, room = reserve_bytes(out, room, written_bytes + size + _ROOM)
            if last >= 0:
                store_u8(out + written_bytes, _COMMA)
                store_u8(out + written_bytes + 1, _SPACE)
                written_bytes += 2
            written_bytes += _put(out + written_bytes, names, name)
        t = part


@kernel
def write_types(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    rules: MergeRules,
    max_depth: int,
    words: Strings,
    names: Strings,
    offsets: Int64s,
    refused: UInt8s,
) -> tuple[int, int]:
    """Write the type of every row; return address and size of the text of all rows, and fill ``offsets``.

    `nodes` and `row_start`: the values; a row without nodes has no text.
    `words`: the words of all types; eight bytes after the last word may be read.
    `names`: the names as they are written, including the separator before the type; likewise.
    `refused`: set for rows that are nested deeper than ``max_depth``.
    """
    types, stack = new_table(memory, 64, 6), new_table(memory, max_depth, 3)
    room = max(64 * len(refused), 1024)
    out = allocate(memory, room)
    written_bytes = 0
    for row in range(len(refused)):
        offsets[row] = written_bytes
        first, stop = row_start[row], row_start[row + 1]
        if first == stop:
            continue
        ok, types = _merge_row(nodes, first, stop, rules, stack, types)
        if ok:
            out, room, written_bytes = _write_row(types, words, names, stack, out, room, written_bytes)
        else:
            refused[row] = 1
    offsets[len(refused)] = written_bytes
    return export_bytes(out, written_bytes)
