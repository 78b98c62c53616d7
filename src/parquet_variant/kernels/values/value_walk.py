"""The walk over the bytes of a value: a stack of open containers.

Owns the frame of an open object or array, how one is opened, and the way to its children. Leaves what is done at each
value, and the columns of a frame from `OWN` on, to the kernels that walk; the layout of the bytes to `reading`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_uint
from parquet_variant.kernels.values.reading import container

# Columns of a frame: addresses of the ids, offsets and values, the widths of the first two (arrays have ids of width
# 0), the end of the values, the bytes of them that no child has taken, the number of children, and the number of the
# next one. Then come those of the walk itself.
_IDS, _ID_WIDTH, _OFFSETS, _OFFSET_WIDTH, _VALUES, END, _LEFT, COUNT, NEXT, OWN = range(10)


@helper
def open_container(stack, depth, at, end):
    """Put the object or array at an address on the stack.

    Returns ``(ok, count, ids, id_width, offsets, offset_width, values)``, as `values.container` does.
    """
    ok, count, ids, id_width, offsets, offset_width, values, size = container(at, end)
    stack[depth, _IDS] = ids
    stack[depth, _ID_WIDTH] = id_width
    stack[depth, _OFFSETS] = offsets
    stack[depth, _OFFSET_WIDTH] = offset_width
    stack[depth, _VALUES] = values
    stack[depth, END] = values + size
    stack[depth, _LEFT] = size
    stack[depth, COUNT] = count
    stack[depth, NEXT] = 0
    return ok, count, ids, id_width, offsets, offset_width, values


@helper
def child(stack, top, i):
    """Address of a child of the container at the top; it ends before the container's ``END``."""
    width = stack[top, _OFFSET_WIDTH]
    return stack[top, _VALUES] + load_uint(stack[top, _OFFSETS] + i * width, width)


@helper
def take_bytes(stack, depth, size):
    """Whether the open container, if there is one, still has that many bytes for a child: children share none."""
    if depth == 0:
        return True
    stack[depth - 1, _LEFT] -= size
    return stack[depth - 1, _LEFT] >= 0


@helper
def child_id(stack, top, i):
    """Field id of a child of the container at the top; -1 in an array."""
    width = stack[top, _ID_WIDTH]
    return load_uint(stack[top, _IDS] + i * width, width) if width > 0 else -1
