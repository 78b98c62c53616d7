"""Read encoded values inside kernels, with every bound checked.

Owns the byte layout of values when reading: where the parts of a container are, the size of a value, the content of a
scalar; and the walk with a stack of open containers. Leaves the work at each value, and the columns of a frame from
`OWN` on, to the kernels that walk, writing to `scalar_slots`, and full validation to `operations.validate`.

``end`` is always the address after the last byte that may be read. Lengths and counts are compared before they are
added to addresses, so that no malformed number can wrap around.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyInt32s, UInt8s
from parquet_variant.kernels.memory import KIND, load_s8, load_s16, load_s32, load_u8, load_u32, load_u64, load_uint

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
    """Return ``(ok, count, offsets, width, names, size)`` of metadata.

    Addresses of offsets and names, and its bytes.
    """
    if end - at < 1:
        return False, 0, 0, 0, 0, 0
    header = load_u8(at)
    width = (header >> 6) + 1
    if header & 0x0F != 1 or end - at < 1 + width:
        return False, 0, 0, 0, 0, 0
    count = load_uint(at + 1, width)
    offsets = at + 1 + width
    if (count + 1) * width > end - offsets:
        return False, 0, 0, 0, 0, 0
    names = offsets + (count + 1) * width
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
