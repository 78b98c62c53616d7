"""The buffer pool of the process: memory that one batch uses after another.

Owns blocks of the C library's memory: blocks that Python acquires, and blocks that kernels allocate and export, which
Python adopts. Clearing a new page costs the system as much as parsing the text that fills it, so memory that a batch
needs for a while is acquired here and released when nothing uses it any more. A block has one holder: releasing an
array takes its block away, so releasing the array or a view of it again does nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import itemgetter
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.c_memory import free, malloc, prefer_huge_pages
from parquet_variant.kernels.machine_code.checks import lend, take_over
from parquet_variant.support.fork_safety import in_forked_child

_MAX_BLOCKS = 16
# Smaller blocks are left to the C library: in the pool they would take the places of large ones.
_MIN_BYTES = 256 << 10
# A block more than this many times as large as the request is left for a larger request.
_MAX_RATIO = 4
# A block of which more bytes were used is freed, so that memory does not stay at the peak of the largest batch.
_MAX_BYTES = 128 << 20
# Bytes of unused results that are kept for later results.
_MAX_RESULT_BYTES = 128 << 20
# Blocks of at least this size ask the system for huge pages, as NumPy does for its arrays.
_HUGE_BYTES = 4 << 20

# Address and size of each block without a holder: released blocks, and blocks of results.
spare_blocks: list[tuple[int, int]] = []
returned_blocks: list[tuple[int, int]] = []
_lock = Lock()
_size = itemgetter(1)


@in_forked_child
def _renew_lock() -> None:
    global _lock
    _lock = Lock()


class _Block:
    """Memory with one holder, freed when no array uses it, or returned to its home as long as that has room."""

    __slots__ = ("__array_interface__", "__weakref__", "address", "home", "size")

    def __init__(
        self, address: int, size: int, typestr: str, shape: tuple[int, ...], home: list[tuple[int, int]] | None = None
    ) -> None:
        self.address = address
        self.size = size
        self.home = home
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": typestr}

    def __del__(self, _free: Callable[[int], None] = free, _max_bytes: int = _MAX_RESULT_BYTES) -> None:
        # No lock, because the thread that collects garbage may hold it. Appending needs none.
        home = self.home
        if self.address and home is not None and self.size + sum(size for _, size in home) <= _max_bytes:
            home.append((self.address, self.size))
        elif self.address:
            _free(self.address)


def acquire(dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """Return an array with undefined entries; release it, or leave it to the garbage collector."""
    return _acquired(dtype, shape, None)


def acquire_result(dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """Return an array as `acquire` does, for a result: its memory is reused when nothing uses it any more."""
    return _acquired(dtype, shape, returned_blocks)


def _acquired(dtype: npt.DTypeLike, shape: tuple[int, ...], home: list[tuple[int, int]] | None) -> npt.NDArray[Any]:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _MIN_BYTES:
        return np.empty(shape, dtype)
    return np.asarray(_Block(*_block(size), np.dtype(dtype).str, shape, home))


def _block(size: int) -> tuple[int, int]:
    """Return address and size of the smallest block that fits and is not much too large, or of a new one."""
    # Requests of about the same size share a block: 241 to 272 MiB fit into blocks of 272 MiB.
    step = 1 << ((size + size // 4).bit_length() - 4)
    size += (step // 2 - size) % step
    with _lock:
        pools, largest = (spare_blocks, returned_blocks), _MAX_RATIO * size
        fitting = [(block, pool) for pool in pools for block in pool if size <= block[1] <= largest]
        if fitting:
            block, pool = min(fitting, key=lambda candidate: candidate[0][1])
            pool.remove(block)
            return block
    return _new_block(size), size


def _new_block(size: int) -> int:
    address = malloc(max(size, 1))
    if not address:
        raise MemoryError(f"cannot allocate {size} bytes; work on fewer rows at a time")
    if size >= _HUGE_BYTES:
        prefer_huge_pages(address, size)
    return address


def result_block(size: int) -> tuple[int, int]:
    """Return address and size of a new block for a large result of a kernel, as `acquire_block` does."""
    if size < _HUGE_BYTES:
        return 0, 0
    address = _new_block(size)
    lend(address, size)
    return address, size


def acquire_block() -> tuple[int, int]:
    """Return address and size of the largest block, or zeros.

    The kernel that gets the block adds it to its allocations.
    """
    with _lock:
        if not spare_blocks:
            return 0, 0
        largest = max(spare_blocks, key=_size)
        spare_blocks.remove(largest)
    lend(*largest)
    return largest


def adopt(address: int, *shape: int) -> npt.NDArray[np.int64]:
    """Return exported entries of a kernel as an array that frees them when nothing uses it any more."""
    take_over(address)
    return np.asarray(_Block(address, 8 * math.prod(shape), "=i8", shape))


def adopt_bytes(address: int, size: int) -> npt.NDArray[np.uint8]:
    """Return exported bytes of a kernel as an array, as `adopt` does for entries."""
    take_over(address)
    return np.asarray(_Block(address, size, "|u1", (size,)))


def release(*arrays: npt.NDArray[Any]) -> None:
    """Make the memory of acquired or adopted arrays available to the next batch; nothing must use it any more.

    An array may be cut to the entries that were used.
    """
    for array in arrays:
        block: Any = array
        while isinstance(block, np.ndarray):
            block = block.base
        if not isinstance(block, _Block) or block.size < _MIN_BYTES or array.nbytes > _MAX_BYTES:
            continue
        with _lock:
            if block.address:
                # The array gives up its memory first: a process forked in between must not have it twice.
                address, block.address = block.address, 0
                spare_blocks.append((address, block.size))
                if len(spare_blocks) > _MAX_BLOCKS:
                    smallest = min(spare_blocks, key=_size)
                    spare_blocks.remove(smallest)
                    free(smallest[0])
