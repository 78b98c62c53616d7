"""The walk over the bytes of a value with a stack of open containers.

Owns the frame of an open object or array, opening a container, and finding its children. Leaves the work at each value,
and the columns of a frame from `OWN` on, to the kernels that walk, and the layout of the bytes to `reading`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.machine_code.signatures import Int64Table
from parquet_variant.kernels.memory import load_uint
from parquet_variant.kernels.values.reading import Container, container

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
