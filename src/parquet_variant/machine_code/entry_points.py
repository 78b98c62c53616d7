"""Where a kernel's machine code comes from: the library built with the package, or compiled on first use.

Owns the choice, once a process. ``PARQUET_VARIANT_KERNELS`` says ``built`` or ``jit``; without it, the library is taken
if it fits the sources and the CPU, else Numba if it is installed.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from parquet_variant.errors import KernelsError

if TYPE_CHECKING:
    from parquet_variant.machine_code.functions import Kernel

_VARIABLE = "PARQUET_VARIANT_KERNELS"
_INSTALL = "install Numba with pip install 'parquet-variant[jit]', or a wheel that was built for this platform"
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class MachineCode(Protocol):
    """One of the two ways to the code."""

    @property
    def way(self) -> str:
        """``built`` or ``jit``."""

    @property
    def level(self) -> str:
        """The CPU level of the code."""

    def address(self, kernel: Kernel) -> int:
        """Where the entry point of a kernel is."""


def _jit() -> MachineCode:
    if find_spec("numba") is None:
        raise KernelsError(f"{_VARIABLE}=jit needs Numba: {_INSTALL}", reason="no-numba")
    from parquet_variant.machine_code.jit import Jit

    return Jit()


def _built() -> MachineCode:
    from parquet_variant.machine_code.library import load

    return load()


def _is_checkout() -> bool:
    return Path(__file__).parents[3].joinpath("pyproject.toml").exists()


@cache
def machine_code() -> MachineCode:
    """The way that this process takes.

    Raises `KernelsError` if there is no machine code that fits, and no Numba; or what the variable asks for is not
    there.
    """
    mode = os.environ.get(_VARIABLE, "")
    if mode not in ("", "built", "jit"):
        raise KernelsError(f"{_VARIABLE}={mode!r}: it may be 'built' or 'jit'", reason="bad-option")
    if mode == "jit":
        return _jit()
    try:
        return _built()
    except KernelsError as refused:
        if mode == "built":
            raise
        if find_spec("numba") is None:
            raise KernelsError(f"{refused.message}; {_INSTALL}", reason=refused.reason, file=refused.file) from refused
        if not _is_checkout():
            warnings.warn(f"kernels are compiled on first use: {refused}", RuntimeWarning, stacklevel=2)
        return _jit()


def entry_point(kernel: Kernel) -> Callable[[int], int]:
    """The function that runs a kernel on the words at an address, and returns 0 unless memory ran out."""
    return _PROTOTYPE(machine_code().address(kernel))
