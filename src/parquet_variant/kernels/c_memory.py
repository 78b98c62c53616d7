"""The C library's memory functions, loaded in the way of each platform.

Owns finding the library and the types of the four functions. Kernels, the buffer pool and interpreted kernels allocate
with the same library, so that memory may be allocated by one and freed by another.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Any

# Windows has no handle of the whole process: Python itself allocates with the universal C runtime.
_C: Any = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)

malloc: Callable[[int], int | None] = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("malloc", _C))
free: Callable[[int], None] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", _C))
_realloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(("realloc", _C))
_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


def realloc(address: int, size: int) -> int:
    """Return the address of ``size`` bytes that begin with those at an address (0 for none); 0 if memory ran out."""
    return int(_realloc(address, size) or 0)


def prefer_huge_pages(address: int, size: int) -> None:
    """Ask the system for huge pages for the whole pages of a block, where it has them."""
    if _HUGE_PAGES is not None:
        skipped = -address % mmap.PAGESIZE
        _madvise(address + skipped, size - skipped, _HUGE_PAGES)


if _HUGE_PAGES is not None:
    _madvise = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(("madvise", _C))
