"""Read encoded values inside kernels, with every bound checked.

Owns the byte layout of values when reading: where the parts of a container are, the size of a value, the content of a
scalar; the walk with a stack of open containers; and the names of each distinct metadata of a column, resolved once.
Malformed dictionaries, and dictionaries with a duplicate name, are marked for the scalar fallback. Leaves the work at
each value, and the columns of a frame from `OWN` on, to the kernels that walk, writing to `scalar_slots`, and full
validation to `operations.validate`.

``end`` is always the address after the last byte that may be read. Lengths and counts are compared before they are
added to addresses, so that no malformed number can wrap around.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.arrow_buffers import plain_binary
from parquet_variant.kernels.int128 import digits_of
from parquet_variant.kernels.json.scan import is_utf8
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    copy,
    equal,
    get,
    load_s8,
    load_s16,
    load_s32,
    load_u8,
    load_u32,
    load_u64,
    load_uint,
    put,
)
from parquet_variant.kernels.native_vectors import widest_gap

MALFORMED = -1

# Bytes after the header by kind; -1 for kinds with a length.
PAYLOAD = (0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, -1, -1, 8, 8, 8, 16)


class EncodedValues(NamedTuple):
    """The rows of an unshredded column."""

    valid: UInt8s  # One byte per row, 0 for SQL NULL; empty if all rows are valid.
    # Where the value of each row is, counted from the address ``base``.
    offsets: Int64s
    base: int
    dictionary_of: ReadOnlyInt32s  # Index of the metadata of each row; -1 for null.


class Container(NamedTuple):
    """The parts of an object or array: addresses, and the widths of ids and offsets."""

    ok: bool  # Whether all parts are before the end.
    count: int  # type: ignore[assignment]  # Number of children.
    ids: int
    id_width: int  # 0 in an array.
    offsets: int
    offset_width: int
    values: int
    size: int  # Bytes of all values (the last offset).


@helper
def value_kind(header: int) -> int:
    """Return the kind of a value by its header.

    It is a PrimitiveId (STRING for short strings), ARRAY, OBJECT or MALFORMED.
    """
    basic = header & 3
    if basic == 1:
        return KIND.STRING
    if basic == 2:
        return KIND.OBJECT
    if basic == 3:
        return KIND.ARRAY
    kind = header >> 2
    return kind if kind <= KIND.UUID else MALFORMED


@helper
def container(at: int, end: int) -> Container:
    """Return the parts of the object or array at an address."""
    if at >= end:
        return Container(False, 0, 0, 0, 0, 0, 0, 0)
    header = load_u8(at)
    bits = header >> 2
    offset_width = (bits & 3) + 1
    if header & 3 == 2:
        id_width = ((bits >> 2) & 3) + 1
        large = (bits >> 4) & 1
    else:
        id_width = 0
        large = (bits >> 2) & 1
    count_width = 4 if large else 1
    if end - at < 1 + count_width:
        return Container(False, 0, 0, 0, 0, 0, 0, 0)
    count = load_u32(at + 1) if large else load_u8(at + 1)
    ids = at + 1 + count_width
    if count * id_width + (count + 1) * offset_width > end - ids:
        return Container(False, 0, 0, 0, 0, 0, 0, 0)
    offsets = ids + count * id_width
    values = offsets + (count + 1) * offset_width
    size = load_uint(offsets + count * offset_width, offset_width)
    return Container(size <= end - values, count, ids, id_width, offsets, offset_width, values, size)


@helper
def value_size(at: int, end: int) -> int:
    """Return the bytes of a value including its header, or MALFORMED; the contents of containers are not checked."""
    if at >= end:
        return MALFORMED
    header = load_u8(at)
    kind = value_kind(header)
    if kind == MALFORMED:
        return MALFORMED
    if kind >= KIND.ARRAY:
        parts = container(at, end)
        return parts.values + parts.size - at if parts.ok else MALFORMED
    if header & 3 == 1:
        size = 1 + (header >> 2)
    elif kind == KIND.STRING or kind == KIND.BINARY:
        if end - at < 5:
            return MALFORMED
        size = 5 + load_u32(at + 1)
    else:
        size = 1 + PAYLOAD[kind]
    return size if size <= end - at else MALFORMED


@helper
def scalar(at: int, end: int) -> tuple[int, int, int, int]:
    """Return ``(kind, a, b, scale)`` of a scalar, as in a tape node; the kind is MALFORMED if it is not a scalar."""
    size = value_size(at, end)
    if size == MALFORMED or load_u8(at) & 2:
        return MALFORMED, 0, 0, 0
    return scalar_of_size(at, size)


@helper
def scalar_of_size(at: int, size: int) -> tuple[int, int, int, int]:
    """Return the same as `scalar` for a scalar whose size was returned by `value_size`."""
    header = load_u8(at)
    kind = value_kind(header)
    if header & 3 == 1:
        return kind, at + 1, size - 1, 0
    if kind == KIND.STRING or kind == KIND.BINARY:
        return kind, at + 5, size - 5, 0
    if kind <= KIND.FALSE:
        return kind, 0, 0, 0
    if kind == KIND.DECIMAL4 or kind == KIND.DECIMAL8:
        value = load_s32(at + 2) if kind == KIND.DECIMAL4 else load_u64(at + 2)
        return kind, value, (-1 if value < 0 else 0), load_u8(at + 1)
    if kind == KIND.DECIMAL16:
        return kind, load_u64(at + 2), load_u64(at + 10), load_u8(at + 1)
    if kind == KIND.UUID:
        return kind, at + 1, 16, 0
    return kind, load_fixed(kind, at + 1), 0, 0


_MAX_SCALE = 38


@helper
def scalar_is_valid(kind: int, a: int, b: int, scale: int, digits: bool) -> bool:
    """Return whether the payload of a scalar is valid for its type; ``digits`` includes the digits of decimals."""
    if kind == KIND.STRING:
        return is_utf8(a, a + b)
    if kind == KIND.TIME:
        return 0 <= a < MICROS_PER_DAY
    if KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
        if scale > _MAX_SCALE:
            return False
        if digits:
            max_digits = 9 if kind == KIND.DECIMAL4 else (18 if kind == KIND.DECIMAL8 else 38)
            return digits_of(b, a) <= max_digits
    return True


@helper
def load_fixed(kind: int, at: int) -> int:
    """Load an integer, date, time, timestamp or the bits of a float."""
    if kind == KIND.INT8:
        return load_s8(at)
    if kind == KIND.INT16:
        return load_s16(at)
    if kind == KIND.INT32 or kind == KIND.DATE:
        return load_s32(at)
    return load_u32(at) if kind == KIND.FLOAT else load_u64(at)


@helper
def metadata_header(at: int, end: int) -> tuple[bool, int, int, int, int, int]:
    """Return ``(ok, count, offsets, width, names, size)`` of metadata: addresses of offsets and names, and its bytes.

    It is not ok if the last name ends too late. If the offsets do, all numbers are 0; an empty dictionary needs none.
    """
    if end - at < 1:
        return False, 0, 0, 0, 0, 0
    header = load_u8(at)
    width = (header >> 6) + 1
    if header & 0x0F != 1 or end - at < 1 + width:
        return False, 0, 0, 0, 0, 0
    count = load_uint(at + 1, width)
    offsets = at + 1 + width
    names = offsets + (count + 1) * width
    if (count + 1) * width > end - offsets:
        return (False, 0, 0, 0, 0, 0) if count > 0 else (False, 0, offsets, width, names, 0)
    size = load_uint(offsets + count * width, width)
    return size <= end - names, count, offsets, width, names, names + size - at


# Columns of a frame: addresses of the ids, offsets and values, the widths of ids and offsets (the id width of an array
# is 0), the end of the values, the bytes of values that no child has taken, the number of children, and the number of
# the next child. Each walk adds its own columns after these.
_IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, END, _UNTAKEN, COUNT, NEXT, OWN = range(10)


@helper
def open_container(stack: Int64Table, depth: int, at: int, end: int) -> Container:
    """Push the object or array at an address; return its parts."""
    parts = container(at, end)
    stack[depth, _IDS] = parts.ids
    stack[depth, _ID_WIDTH] = parts.id_width
    stack[depth, _OFFSETS] = parts.offsets
    stack[depth, _OFFSET_WIDTH] = parts.offset_width
    stack[depth, _VALUES] = parts.values
    stack[depth, END] = parts.values + parts.size
    stack[depth, _UNTAKEN] = parts.size
    stack[depth, COUNT] = parts.count
    stack[depth, NEXT] = 0
    return parts


@helper
def child(stack: Int64Table, top: int, i: int) -> int:
    """Return the address of a child of the container at the top; the child ends before the container's ``END``."""
    width = stack[top, _OFFSET_WIDTH]
    return stack[top, _VALUES] + load_uint(stack[top, _OFFSETS] + i * width, width)


@helper
def take_bytes(stack: Int64Table, depth: int, size: int) -> bool:
    """Return whether the open container, if any, has as many unused bytes for a child: children do not overlap."""
    if depth == 0:
        return True
    stack[depth - 1, _UNTAKEN] -= size
    return stack[depth - 1, _UNTAKEN] >= 0


@helper
def child_id(stack: Int64Table, top: int, i: int) -> int:
    """Return the field id of a child of the container at the top; -1 in an array."""
    width = stack[top, _ID_WIDTH]
    return load_uint(stack[top, _IDS] + i * width, width) if width > 0 else -1


# Columns of a field of an object: the rank of its name, its id, and where its value begins, and its bytes.
FIELD = numbered("RANK ID BEGIN SIZE")
FIELD_BYTES = 8 * len(FIELD)
# Objects with more unsorted fields are left to the scalar fallback. DuckDB writes the fields of objects in any order.
_MOST_UNSORTED = 4096


@helper
def put_field(field: int, rank: int, field_id: int, begin: int, size: int) -> None:
    """Write a field at an address."""
    put(field, FIELD.RANK, rank)
    put(field, FIELD.ID, field_id)
    put(field, FIELD.BEGIN, begin)
    put(field, FIELD.SIZE, size)


@helper
def sort_fields(fields: int, count: int) -> bool:
    """Sort fields by rank; return False if two have the same rank, or there are too many."""
    if count > _MOST_UNSORTED:
        return False
    for i in range(1, count):
        at = fields + i * FIELD_BYTES
        rank, field_id, begin, size = get(at, FIELD.RANK), get(at, FIELD.ID), get(at, FIELD.BEGIN), get(at, FIELD.SIZE)
        while at > fields and get(at - FIELD_BYTES, FIELD.RANK) >= rank:
            if get(at - FIELD_BYTES, FIELD.RANK) == rank:
                return False
            copy(at, at - FIELD_BYTES, FIELD_BYTES)
            at -= FIELD_BYTES
        put_field(at, rank, field_id, begin, size)
    return True


SORTED, UNSORTED, UNUSABLE = range(3)


class NameTable(NamedTuple):
    """The names of some dictionaries."""

    starts: Int64s  # ``int64[dictionaries + 1]``: name i of dictionary d is at ``starts[d] + i`` in the arrays below.
    # Address and length of each name.
    address: Int64s
    length: Int64s
    rank: Int64s  # Position of the name by bytes among the names of its dictionary.
    order: Int64s  # The inverse: ids in the order of their names.
    # ``uint8[dictionaries]``: SORTED, UNSORTED, or UNUSABLE (malformed, not UTF-8, or with a duplicate name where that
    # is not accepted).
    state: UInt8s
    owner: object  # Keeps the memory alive.


@helper
def compare_bytes(left: int, left_size: int, right: int, right_size: int) -> int:
    """Return a negative number, 0 or a positive number as the left bytes sort before, with or after the right ones."""
    for i in range(min(left_size, right_size)):
        difference = load_u8(left + i) - load_u8(right + i)
        if difference != 0:
            return difference
    return left_size - right_size


@helper
def sort_by_name(address: Int64s, length: Int64s, order: Int64s) -> None:
    """Sort the numbers of names, which are ascending, by the bytes of the names (Shell sort)."""
    gap = widest_gap(len(order))
    while True:
        for i in range(gap, len(order)):
            name = order[i]
            j = i
            while j >= gap:
                before = order[j - gap]
                side = compare_bytes(address[name], length[name], address[before], length[before])
                if side > 0 or (side == 0 and name > before):
                    break
                order[j] = before
                j -= gap
            order[j] = name
        if gap == 1:
            break
        gap = gap * 4 // 9


@kernel
def _counts(base: int, offsets: Int64s, starts: Int64s, state: UInt8s) -> None:
    """Fill where the names of each dictionary start, and mark malformed dictionaries."""
    total = 0
    for d in range(len(state)):
        starts[d] = total
        ok, count, _, _, _, _ = metadata_header(base + offsets[d], base + offsets[d + 1])
        state[d] = SORTED if ok else UNUSABLE
        total += count if ok else 0
    starts[len(state)] = total


@kernel
def _locate(base: int, offsets: Int64s, table: NameTable, repeated: bool) -> None:
    """Fill where each name is, its rank, and whether the names of its dictionary are sorted."""
    address, length, state = table.address, table.length, table.state
    for d in range(len(state)):
        if state[d] == UNUSABLE:
            continue
        _, count, at, width, names, size = metadata_header(base + offsets[d], base + offsets[d + 1])
        end = base + offsets[d] + size
        first = table.starts[d]
        for i in range(count):
            begin = load_uint(at + i * width, width)
            stop = load_uint(at + (i + 1) * width, width)
            if begin > stop or stop > end - names or not is_utf8(names + begin, names + stop):
                state[d] = UNUSABLE
                break
            address[first + i] = names + begin
            length[first + i] = stop - begin
            table.rank[first + i] = table.order[first + i] = i
            if i > 0 and state[d] == SORTED:
                side = compare_bytes(
                    address[first + i - 1], length[first + i - 1], address[first + i], length[first + i]
                )
                if side >= 0:
                    state[d] = UNSORTED
        if state[d] != UNSORTED:
            continue
        sort_by_name(address[first : first + count], length[first : first + count], table.order[first : first + count])
        for place in range(count):
            field_id, rank = table.order[first + place], place
            before = first + table.order[first + max(place - 1, 0)]
            same = length[before] == length[first + field_id] and equal(
                address[before], address[first + field_id], length[before]
            )
            if place > 0 and same:
                if not repeated:
                    state[d] = UNUSABLE
                rank = table.rank[before]
            table.rank[first + field_id] = rank


@helper
def widest_dictionary(names: NameTable) -> int:
    """Return the number of names of the largest dictionary, at least 1."""
    widest = 1
    for d in range(len(names.state)):
        widest = max(widest, names.starts[d + 1] - names.starts[d])
    return widest


@helper
def find_name(names: NameTable, d: int, name: int, size: int) -> int:
    """Return the rank of a name in dictionary ``d``; -1 if the dictionary does not have the name."""
    address, length, order = names.address, names.length, names.order
    first = low = names.starts[d]
    high = names.starts[d + 1]
    while low < high:
        middle = (low + high) >> 1
        at = first + order[middle]
        order_of_name = compare_bytes(address[at], length[at], name, size)
        if order_of_name == 0:
            # Return the first of duplicate names.
            while middle > first:
                before = first + order[middle - 1]
                if compare_bytes(address[before], length[before], name, size) != 0:
                    break
                middle -= 1
            return middle - first
        if order_of_name < 0:
            low = middle + 1
        else:
            high = middle
    return -1


@kernel
def mark_lacking(name: int, size: int, names: NameTable, lacks: UInt8s) -> None:
    """Mark the usable dictionaries that do not have a name."""
    for d in range(len(lacks)):
        lacks[d] = 1 if names.state[d] != UNUSABLE and find_name(names, d, name, size) < 0 else 0


@helper
def resolve_names(schema: Any, names: NameTable, d: int, ids: Int64s, ranks: Int64s) -> None:
    """Fill id and rank of the name of each schema node (`NamedNodes`) in dictionary ``d``; -1 for missing names."""
    for s in range(len(schema.nodes)):
        ids[s] = ranks[s] = -1
        if schema.lengths[s] >= 0:
            rank = find_name(names, d, schema.addresses[s], schema.lengths[s])
            if rank >= 0:
                ranks[s] = rank
                ids[s] = names.order[names.starts[d] + rank]


def name_table(dictionary: pa.BinaryArray, *, repeated: bool = False) -> NameTable:
    """Resolve the names of some metadata.

    `dictionary`: the distinct metadata, plain binary without nulls.
    `repeated`: accept duplicate names (DuckDB writes them): all ids of a name get the rank of the first.
      Otherwise such dictionaries are UNUSABLE.
    """
    count = len(dictionary)
    offsets, base = plain_binary(dictionary)
    starts, state = np.zeros(count + 1, np.int64), np.zeros(count, np.uint8)
    _counts(base, offsets, starts, state)
    # Zeros, so that the unset names of an unusable dictionary are empty.
    address, length, rank, order = np.zeros((4, int(starts[-1])), np.int64)
    table = NameTable(starts, address, length, rank, order, state, dictionary)
    _locate(base, offsets, table, repeated)
    return table
