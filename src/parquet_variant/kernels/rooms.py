"""Memory that one batch uses after the other.

Owns a few large buffers of the process. A page that the system has to clear costs as much as parsing what goes into it,
so whatever a batch needs only for a while is borrowed here, and given back when nothing uses it any more.
"""

from __future__ import annotations

import math
import os
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_BYTES", "borrow", "give_back"]

_MOST_BUFFERS = 12
# A buffer of which more than this was used is let go: memory must not stay as high as the largest batch made it.
MOST_BYTES = 128 << 20

_free: list[npt.NDArray[np.uint8]] = []
_lock = Lock()


def _start_anew() -> None:
    """A forked process has a lock of its own: another thread may have held this one, and there is no such thread."""
    global _lock
    _lock = Lock()
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)


def borrow(dtype: npt.DTypeLike, *shape: int) -> npt.NDArray[Any]:
    """An array whose entries are undefined; give it back, or just forget it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    with _lock:
        fitting = [number for number, buffer in enumerate(_free) if size <= len(buffer)]
        best = min(fitting, key=lambda number: len(_free[number]), default=-1)
        buffer = _free.pop(best) if best >= 0 else np.empty(size, np.uint8)
    return buffer[:size].view(dtype).reshape(shape)


def give_back(*arrays: npt.NDArray[Any]) -> None:
    """Lend the memory of borrowed arrays to the next batch: whoever holds one of them must not use it any more.

    An array may be cut to what was used of it.
    """
    for array in arrays:
        if isinstance(array.base, np.ndarray) and array.base.dtype == np.uint8 and array.nbytes <= MOST_BYTES:
            with _lock:
                if len(_free) < _MOST_BUFFERS:
                    _free.append(array.base)
