"""Checked mode: each load and store of a kernel is verified against the memory that kernels may use.

Owns the table of buffers (of Python's objects, and of blocks that kernels and the pool allocate), the functions that
checked machine code calls, and the report of an access outside of every buffer. Does nothing in other modes. Leaves the
instructions that call these functions to `building.frontend`.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.c_memory import HEADER_BYTES, raw_free, raw_realloc
from parquet_variant.support.fork_safety import in_forked_child

# Objects that do not say when they go (Arrow's buffers) are kept alive, up to this many bytes.
_KEPT_BYTES = 1 << 30
_PAGE_BYTES = 4096
# What an access does. A block may extend past the end of a buffer, but not past the page in which the buffer ends.
LOAD, STORE, LOAD_BLOCK = range(3)
_ACCESSES = ("load", "store", "load")

# Begin and end of the buffer that was found last: checked code compares an access with it before it calls `check`.
_latest = (ctypes.c_int64 * 2)()


class RegisteredMemory:
    """Buffers by where they start and stop."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._buffers: dict[object, tuple[int, int]] = {}
        self._kept: dict[object, Any] = {}
        self._kept_bytes = 0
        self._ordered: list[tuple[int, int]] | None = None

    def unlock_child(self) -> None:
        """Replace the lock in a forked child, in which the thread that holds it does not exist."""
        self._lock = RLock()
        self._ordered = None

    def add(self, key: object, address: int, size: int) -> None:
        """Register a buffer under a key, in place of an earlier one."""
        with self._lock:
            self.remove(key)
            self._buffers[key] = address, address + size
            self._ordered = None

    def remove(self, key: object) -> None:
        """Forget the buffer under a key, if there is one."""
        with self._lock:
            if self._buffers.pop(key, None) is not None:
                self._ordered = None
                _latest[:] = [0, 0]

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
                start, stop = self._buffers[oldest]
                self._kept_bytes -= stop - start
                self.remove(oldest)

    def holds(self, access: int, address: int, size: int) -> bool:
        """Return whether some buffer holds all bytes of an access."""
        stop = address + size
        if size == 0:
            return True
        with self._lock:
            if self._ordered is None:
                self._ordered = sorted(self._buffers.values())
            place = bisect_right(self._ordered, (address, 1 << 64))
            # Buffers may lie in each other: the one that starts last need not be the one that ends last.
            for start, end in reversed(self._ordered[:place]):
                if stop <= end:
                    _latest[:] = [start, end]
                    return True
            page = (stop - 1) & -_PAGE_BYTES
            return access == LOAD_BLOCK and any(
                start < page + _PAGE_BYTES and end > page for start, end in self._ordered
            )


MEMORY = RegisteredMemory()
in_forked_child(MEMORY.unlock_child)
# Addresses of the blocks that kernels have allocated and neither freed nor handed over to Python.
OWNED_BLOCKS: set[int] = set()
_IS_CHECKING = os.environ.get("PARQUET_VARIANT_KERNELS") == "checked"
_thread = threading.local()


def is_checking() -> bool:
    """Return whether accesses to memory are checked in this process."""
    return _IS_CHECKING


def register(*owners: Any) -> None:
    """Register the memory of objects that are passed to a kernel: arrays, Arrow buffers, and tuples of these."""
    for owner in owners if _IS_CHECKING else ():
        if isinstance(owner, tuple):
            register(*owner)
        with suppress(TypeError, AttributeError):
            MEMORY.add_object(owner)


def lend(address: int, size: int) -> None:
    """Register a block of the pool that a kernel gets."""
    if _IS_CHECKING:
        MEMORY.add(("block", address - HEADER_BYTES), address - HEADER_BYTES, size + HEADER_BYTES)


def take_over(address: int) -> None:
    """Forget a block that a kernel has exported to Python, which registers its arrays."""
    if _IS_CHECKING:
        OWNED_BLOCKS.discard(address)
        MEMORY.remove(("block", address - HEADER_BYTES))


def _check(access: int, address: int, size: int, place: bytes) -> int:
    """Return whether an access is refused, after noting it."""
    if MEMORY.holds(access, address, size):
        return 0
    problem = f"{_ACCESSES[access]} of {size} bytes at address {address:#x} is outside of every registered buffer"
    _thread.faults = (*getattr(_thread, "faults", ()), f"{problem}, in {place.decode()}")
    return 1


def _note_exception(name: bytes, place: bytes) -> None:
    """Note that a kernel raised an exception other than a `MemoryError`."""
    _thread.faults = (*getattr(_thread, "faults", ()), f"{name.decode()}, in {place.decode()}")


def _note_list(address: int, size: int) -> None:
    """Register the list of blocks of a call; forget it if the size is 0."""
    key = ("list", address)
    MEMORY.add(key, address, size) if size else MEMORY.remove(key)


def _reallocate(block: int | None, size: int) -> int:
    new = raw_realloc(block or 0, size)
    if new:
        OWNED_BLOCKS.discard((block or 0) + HEADER_BYTES)
        OWNED_BLOCKS.add(new + HEADER_BYTES)
        MEMORY.remove(("block", block))
        MEMORY.add(("block", new), new, size)
    return new


def _free(block: int) -> None:
    OWNED_BLOCKS.discard(block + HEADER_BYTES)
    MEMORY.remove(("block", block))
    raw_free(block)


_INT, _TEXT = ctypes.c_int64, ctypes.c_char_p
_CALLBACKS: dict[str, Any] = {
    "pv_check": ctypes.CFUNCTYPE(_INT, _INT, _INT, _INT, _TEXT)(_check),
    "pv_note_exception": ctypes.CFUNCTYPE(None, _TEXT, _TEXT)(_note_exception),
    "pv_note_list": ctypes.CFUNCTYPE(None, _INT, _INT)(_note_list),
    "pv_realloc": ctypes.CFUNCTYPE(_INT, _INT, _INT)(lambda block, size: _reallocate(block, size)),
    "pv_free": ctypes.CFUNCTYPE(None, _INT)(_free),
}


def symbols() -> dict[str, int]:
    """Return the addresses of what checked machine code uses, by symbol."""
    functions = {name: ctypes.cast(call, ctypes.c_void_p).value or 0 for name, call in _CALLBACKS.items()}
    return {**functions, "pv_latest": ctypes.addressof(_latest)}


def reporting(name: str, entry: Callable[[int], int]) -> Callable[[int], int]:
    """Return an entry point that raises `KernelsError` for the first refused access or exception of a call."""

    def run(words: int) -> int:
        _thread.faults = ()
        status = entry(words)
        if _thread.faults:
            problem = f"{_thread.faults[0]}; please report this as a bug with the input that shows it"
            raise KernelsError(f"kernel {name}: {problem}", reason="bad-address")
        return status

    return run
