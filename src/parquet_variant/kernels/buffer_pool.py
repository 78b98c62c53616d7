"""Memory that one batch uses after the other: the buffer pool of the process.

Owns blocks of the C library's memory: those that Python acquires, and those that kernels made and export, which Python
adopts. A page that the system has to clear costs as much as parsing what goes into it, so whatever a batch needs only
for a while is acquired here, and released when nothing uses it any more. A block has one holder: to release it takes it
away from the array, so to release the array, or a view of it, once more does nothing.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.fork_safety import in_forked_child

_MOST_BLOCKS = 16
# Smaller blocks are left to the C library: kept here, they would take the places of large ones.
_LEAST_BYTES = 256 << 10
# A block that is more than so many times as large as what is asked for is left to whoever needs one of its size.
_MOST_TIMES = 4
# A block of which more than this was used is freed: memory must not stay as high as the largest batch made it.
_MOST_BYTES = 128 << 20
# Of results that nobody holds any more, no more than this is kept for the next ones.
_MOST_RESULT_BYTES = 128 << 20
# From this size on the system is asked for huge pages, as NumPy does for its arrays.
_HUGE_BYTES = 4 << 20
_PAGE_BYTES = mmap.PAGESIZE

_c = ctypes.CDLL(None)
_malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("malloc", _c))
_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", _c))
_madvise = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(("madvise", _c))

# Address and size of each block that nobody holds: those that were released, and those of results.
spare_blocks: list[tuple[int, int]] = []
returned_blocks: list[tuple[int, int]] = []
_lock = Lock()
_size = itemgetter(1)


@in_forked_child
def _renew_lock() -> None:
    global _lock
    _lock = Lock()


class _Block:
    """Memory with one holder; freed when no array stands on it any more, unless it was released before.

    With a home it goes there instead, while that has room.
    """

    def __init__(
        self,
        address: int,
        size: int,
        dtype: npt.DTypeLike,
        shape: tuple[int, ...],
        home: list[tuple[int, int]] | None = None,
    ) -> None:
        self.address = address
        self.size = size
        self.home = home
        typestr = np.dtype(dtype).str
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": typestr}

    def __del__(self, _free: Callable[[int], None] = _free, _most: int = _MOST_RESULT_BYTES) -> None:
        # No lock: whoever collects garbage may have it. To append needs none.
        home = self.home
        if self.address and home is not None and self.size + sum(size for _, size in home) <= _most:
            home.append((self.address, self.size))
        elif self.address:
            _free(self.address)


def acquire(dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """An array whose entries are undefined; release it, or just forget it."""
    return np.asarray(_Block(*_memory(dtype, shape), dtype, shape))


def acquire_result(dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """What `acquire` gives, for a result: its memory comes back when nothing uses it any more."""
    address, size = _memory(dtype, shape)
    return np.asarray(_Block(address, size, dtype, shape, returned_blocks if size >= _LEAST_BYTES else None))


def _memory(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> tuple[int, int]:
    """Address and size of the smallest block that is large enough and not much too large, or of a new one."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= _LEAST_BYTES:
        # What batches of about the same size ask for fits into the same blocks: 241 to 272 MiB into those of 272.
        step = 1 << ((size + size // 4).bit_length() - 4)
        size += (step // 2 - size) % step
        with _lock:
            pools, most = (spare_blocks, returned_blocks), _MOST_TIMES * size
            fitting = [(block, pool) for pool in pools for block in pool if size <= block[1] <= most]
            if fitting:
                block, pool = min(fitting, key=lambda each: each[0][1])
                pool.remove(block)
                return block
    return _allocated(size), size


def acquire_block() -> tuple[int, int]:
    """Address and size of the largest block, for a kernel, which has to free or export it; zeros if there is none."""
    with _lock:
        if not spare_blocks:
            return 0, 0
        largest = max(spare_blocks, key=_size)
        spare_blocks.remove(largest)
        return largest


def adopt(address: int, *shape: int) -> npt.NDArray[np.int64]:
    """Entries that a kernel exports, as an array that frees them when nothing uses it any more."""
    return np.asarray(_Block(address, 8 * math.prod(shape), np.int64, shape))


def adopt_bytes(address: int, size: int) -> npt.NDArray[np.uint8]:
    """Bytes that a kernel exports, as `adopt` takes over entries."""
    return np.asarray(_Block(address, size, np.uint8, (size,)))


def release(*arrays: npt.NDArray[Any]) -> None:
    """Let the next batch have the memory of acquired or adopted arrays: nothing must use it any more.

    An array may be cut to what was used of it.
    """
    for array in arrays:
        block: Any = array
        while isinstance(block, np.ndarray):
            block = block.base
        if not isinstance(block, _Block) or block.size < _LEAST_BYTES or array.nbytes > _MOST_BYTES:
            continue
        with _lock:
            if block.address:
                # The array gives up its memory first: a process forked in between must not have it twice.
                address, block.address = block.address, 0
                spare_blocks.append((address, block.size))
                if len(spare_blocks) > _MOST_BLOCKS:
                    smallest = min(spare_blocks, key=_size)
                    spare_blocks.remove(smallest)
                    _free(smallest[0])


def _allocated(size: int) -> int:
    address = _malloc(max(size, 1))
    if not address:
        raise MemoryError(f"no memory left for {size} bytes; work on fewer rows at a time")
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        skipped = -address % _PAGE_BYTES
        _madvise(address + skipped, size - skipped, mmap.MADV_HUGEPAGE)
    return int(address)
