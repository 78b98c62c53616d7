"""Write the headers of objects and arrays inside kernels.

Owns the byte layout of containers when writing (spec: "Value Data for Object", "Value Data for Array"). Leaves the
order of fields and the values to the callers.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import store_u8, store_u32


@helper(inline=True)
def uint_width(largest: int) -> int:
    """Return the narrowest of 1 to 4 bytes that holds a number."""
    if largest <= 0xFF:
        return 1
    if largest <= 0xFFFF:
        return 2
    if largest <= 0xFFFFFF:
        return 3
    return 4


@helper
def object_size(count: int, largest_id: int, data: int) -> int:
    """Return the bytes of an object with ``data`` bytes of values."""
    return 1 + (4 if count > 255 else 1) + count * uint_width(largest_id) + (count + 1) * uint_width(data) + data


@helper
def array_size(count: int, data: int) -> int:
    """Return the bytes of an array with ``data`` bytes of values."""
    return 1 + (4 if count > 255 else 1) + (count + 1) * uint_width(data) + data


@helper
def _put_count(at: int, count: int) -> int:
    """Write the number of children in one or four bytes; return the address after it."""
    if count > 255:
        store_u32(at, count)
        return at + 4
    store_u8(at, count)
    return at + 1


@helper
def begin_object(at: int, count: int, largest_id: int, data: int) -> tuple[int, int, int, int, int]:
    """Write header and count; return the addresses to fill, ``(ids, id_width, offsets, offset_width, values)``."""
    id_width, offset_width = uint_width(largest_id), uint_width(data)
    large = 1 if count > 255 else 0
    store_u8(at, 2 | ((large << 4 | (id_width - 1) << 2 | (offset_width - 1)) << 2))
    ids = _put_count(at + 1, count)
    offsets = ids + count * id_width
    return ids, id_width, offsets, offset_width, offsets + (count + 1) * offset_width


@helper
def begin_array(at: int, count: int, data: int) -> tuple[int, int, int]:
    """Write header and count; return the addresses to fill, ``(offsets, offset_width, values)``."""
    width = uint_width(data)
    large = 1 if count > 255 else 0
    store_u8(at, 3 | ((large << 2 | (width - 1)) << 2))
    offsets = _put_count(at + 1, count)
    return offsets, width, offsets + (count + 1) * width
