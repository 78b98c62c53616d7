"""The source of a kernel's machine code: the built library, or compilation on first use, also with checks.

Owns the choice, once per process, and loading compiled objects. The variable
``PARQUET_VARIANT_KERNELS`` selects ``built``, ``jit`` or ``checked``. By default the library is used if it
fits the sources and the CPU, else Numba if it is installed, which is imported only for kernels that are not in the
cache. Leaves making objects to `objects`, and storing them to `library`.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.checks import is_checking, reporting, symbols
from parquet_variant.kernels.machine_code.library import levels_here
from parquet_variant.support.fork_safety import in_forked_child, loading
from parquet_variant.support.records import cached_property

if TYPE_CHECKING:
    from parquet_variant.kernels.machine_code.library import Library


# Held while LLVM compiles. A child that was forked meanwhile has a lock of its own, but an LLVM that was compiling.
_COMPILING = RLock()


@in_forked_child
def _renew_lock() -> None:
    global _COMPILING
    _COMPILING = RLock()


class Jit:
    """Objects that LLVM has loaded."""

    def __init__(self) -> None:
        self.mode = "checked" if is_checking() else "jit"
        self.level = next(iter(levels_here()), "host")
        self._addresses: dict[str, int] = {}

    @cached_property
    def _engine(self) -> Any:
        import llvmlite.binding as llvm

        from parquet_variant.kernels.machine_code.objects import new_target_machine

        for name, address in symbols().items() if is_checking() else ():
            llvm.add_symbol(name, address)
        # The engine owns the target machine.
        return llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_target_machine(self.level))

    def address(self, kernel: Any) -> int:
        """Return the address of a kernel's entry point, which is compiled if needed."""
        # LLVM compiles under a lock of its own, so that forks wait.
        with loading(), _COMPILING:
            import llvmlite.binding as llvm

            from parquet_variant.kernels.machine_code.objects import build_objects

            # LLVM refuses a second object with the same symbol.
            if kernel.symbol not in self._addresses:
                (content,) = build_objects(kernel, (self.level,))
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
                self._engine.finalize_object()
                self._addresses[kernel.symbol] = int(self._engine.get_function_address(kernel.symbol))
            return self._addresses[kernel.symbol]


_VARIABLE = "PARQUET_VARIANT_KERNELS"
_INSTALL = "install Numba with: pip install 'parquet-variant[jit]', or install a wheel for this platform"
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


_the_jit: list[Jit] = []


def _jit() -> Jit:
    """Return the one `Jit` of this process, also if several threads ask for it first."""
    if find_spec("numba") is None:
        raise KernelsError(f"{_VARIABLE}={os.environ.get(_VARIABLE)} needs Numba: {_INSTALL}", reason="no-numba")
    with _COMPILING:
        if not _the_jit:
            _the_jit.append(Jit())
        return _the_jit[0]


@cache
def machine_code() -> Library | Jit:
    """Return the source of machine code of this process.

    Raises `KernelsError` if there is neither a library that fits nor Numba, or if the source that the variable names is
    not available.
    """
    mode = os.environ.get(_VARIABLE, "")
    if mode not in ("", "built", "jit", "checked"):
        raise KernelsError(
            f"unknown {_VARIABLE}={mode!r}: set it to built, jit or checked, or unset it", reason="bad-option"
        )
    if mode in ("jit", "checked"):
        return _jit()
    from parquet_variant.kernels.machine_code.library import load

    try:
        return load()
    except KernelsError as refused:
        if mode == "built":
            raise
        if find_spec("numba") is None:
            raise KernelsError(f"{refused.message}; {_INSTALL}", reason=refused.reason, file=refused.file) from refused
        if not Path(__file__).parents[4].joinpath("pyproject.toml").exists():  # not a checkout
            warnings.warn(f"kernels are compiled on first use: {refused}", RuntimeWarning, stacklevel=2)
        return _jit()


def entry_point(kernel: Any) -> Callable[[int], int]:
    """Return the function that runs a kernel on the words at an address; it returns 0 unless memory ran out."""
    entry = _PROTOTYPE(machine_code().address(kernel))
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    return reporting(name, entry) if is_checking() else entry
