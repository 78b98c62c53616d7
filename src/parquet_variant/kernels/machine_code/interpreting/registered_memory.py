"""The memory that kernels may read and write, for the checked mode.

Owns the table of buffers: of Python's objects, of blocks that kernels and the pool allocate, and of the arrays of a
call. Does nothing unless `start_checking` was called. Leaves the message to `interpreter`.
"""

from __future__ import annotations

import os
import sys
import weakref
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from parquet_variant.support.fork_safety import in_forked_child

# Objects that do not say when they go (Arrow's buffers) are kept alive, up to this many bytes.
_KEPT_BYTES = 1 << 30
_PAGE_BYTES = 4096


class BadAddress(Exception):  # noqa: N818 - reported as KernelsError
    """An access to memory that is in no registered buffer."""

    def __init__(self, access: str, address: int, size: int) -> None:
        super().__init__(f"{access} of {size} bytes at address {address:#x}")


class RegisteredMemory:
    """Buffers by where they start and stop."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._buffers: dict[object, tuple[int, int]] = {}
        self._kept: dict[object, Any] = {}
        self._kept_bytes = 0
        self._ordered: list[tuple[int, int]] | None = None
        self._latest = (0, 0)

    def unlock_child(self) -> None:
        """Replace the lock in a forked child, in which the thread that holds it does not exist."""
        self._lock = RLock()
        self._ordered = None

    def add(self, key: object, address: int, size: int) -> None:
        """Register a buffer under a key, in place of an earlier one."""
        with self._lock:
            self._buffers[key] = address, address + size
            self._ordered = None

    def remove(self, key: object) -> None:
        """Forget the buffer under a key, if there is one."""
        with self._lock:
            if self._buffers.pop(key, None) is not None:
                self._ordered = None
                self._latest = (0, 0)

    def add_object(self, owner: Any) -> None:
        """Register the memory of an array or an Arrow buffer for as long as the object lives."""
        while isinstance(owner, np.ndarray) and isinstance(owner.base, np.ndarray):
            owner = owner.base
        if isinstance(owner, np.ndarray):
            address, size = owner.__array_interface__["data"][0], owner.nbytes
        else:
            address, size = owner.address, owner.size
        # An array over a block of memory lives no longer than the block.
        holder = owner.base if isinstance(owner, np.ndarray) and hasattr(owner.base, "__weakref__") else owner
        key = (id(holder), address, size)
        with self._lock:
            if key in self._buffers:
                return
            self.add(key, address, size)
            if isinstance(owner, np.ndarray) and (owner.base is None or holder is owner.base):
                weakref.finalize(holder, self.remove, key)
                return
            self._kept[key] = owner
            self._kept_bytes += size
            while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                start, stop = self._buffers.pop(oldest)
                self._kept_bytes -= stop - start
                self._ordered = None

    def check(self, access: str, address: int, size: int) -> None:
        """Raise `BadAddress` unless some buffer holds all bytes of an access."""
        stop = address + size
        start, end = self._latest
        if start <= address and stop <= end:
            return
        if size == 0:
            return
        with self._lock:
            if self._ordered is None:
                self._ordered = sorted(self._buffers.values())
            place = bisect_right(self._ordered, (address, 1 << 64))
            # Buffers may lie in each other: the one that starts last need not be the one that ends last.
            for start, end in reversed(self._ordered[:place]):
                if stop <= end:
                    self._latest = start, end
                    return
        if access == "load" and _may_read_on() and self._is_in_page(address, size):
            return
        raise BadAddress(access, address, size)

    def _is_in_page(self, address: int, size: int) -> bool:
        """Return whether the page that an access ends in holds a byte of a registered buffer."""
        page = (address + size - 1) & -_PAGE_BYTES
        return any(start < page + _PAGE_BYTES and end > page for start, end in self._buffers.values())


_OVERREADERS: set[str] = set()


def _may_read_on() -> bool:
    """Return whether a function on the stack reads whole blocks up to the end of a page, as it declares."""
    frame: Any = sys._getframe(2)
    for _ in range(8):
        if frame is None:
            return False
        if frame.f_code.co_name in _OVERREADERS:
            return True
        frame = frame.f_back
    return False


def reads_whole_blocks(name: str) -> None:
    """Declare that a helper reads past the end of a buffer, but not past the page in which the buffer ends."""
    _OVERREADERS.add(name)


MEMORY = RegisteredMemory()
in_forked_child(MEMORY.unlock_child)
# Addresses of the blocks that interpreted kernels have allocated and neither freed nor handed over to Python.
OWNED_BLOCKS: set[int] = set()
# Called with each object whose address is taken; replaced by `start_checking`.
_registrars: list[Callable[[Any], None]] = []


def is_checking() -> bool:
    """Return whether accesses to memory are checked in this process."""
    return bool(_registrars)


def start_checking() -> None:
    """Register memory from now on, and check accesses."""
    if not _registrars:
        _registrars.append(MEMORY.add_object)


def register(owner: Any) -> None:
    """Register the memory of an object whose address is passed to a kernel."""
    for add in _registrars:
        with suppress(TypeError):
            add(owner)


def check(access: str, address: int, size: int) -> None:
    """Check an access in checked mode."""
    if _registrars:
        MEMORY.check(access, address, size)


# Addresses are taken before the first kernel is called.
if os.environ.get("PARQUET_VARIANT_KERNELS") == "checked":
    start_checking()
