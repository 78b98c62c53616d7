"""The C library's memory functions, loaded in the way of each platform.

Owns finding the library, the types of its functions, and the layout of blocks. Kernels, the buffer pool and checked
kernels allocate with the same library and the same layout, so that memory may be allocated by one and freed by another:
a block begins with room for the list of `kernels.native_vectors`, and its address is that of the bytes after this room.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Any

# Windows has no handle of the whole process: Python itself allocates with the universal C runtime.
_C: Any = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)

# Bytes before the address of a block. The bytes after them are as aligned as those of `malloc`.
HEADER_BYTES = 16

_malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("malloc", _C))
_realloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(("realloc", _C))
# Free a block by the address of its room.
raw_free: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", _C))
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


def malloc(size: int) -> int:
    """Return the address of a new block of ``size`` bytes; 0 if memory ran out."""
    room = _malloc(HEADER_BYTES + size)
    return int(room) + HEADER_BYTES if room else 0


def free(address: int, _free: Callable[[int], None] = raw_free, _header: int = HEADER_BYTES) -> None:
    """Free the block at an address, which a kernel or `malloc` has allocated; also while the process ends."""
    _free(address - _header)


def raw_realloc(room: int, size: int) -> int:
    """Return the address of ``size`` bytes that begin with those at an address (0 for none); 0 if memory ran out."""
    return int(_realloc(room, size) or 0)


def prefer_huge_pages(address: int, size: int) -> None:
    """Ask the system for huge pages for the whole pages of a block, where it has them."""
    if _HUGE_PAGES is not None:
        skipped = -address % mmap.PAGESIZE
        _madvise(address + skipped, size - skipped, _HUGE_PAGES)


if _HUGE_PAGES is not None:
    _madvise = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(("madvise", _C))
