"""Where a kernel's machine code comes from: the library built with the package, or compiled on first use.

Owns the choice, once a process, loading objects that were compiled, and `warmup`, which compiles all. The variable
``PARQUET_VARIANT_KERNELS`` says ``built`` or ``jit``; without it, the library is taken if it fits the sources and the
CPU, else Numba if it is installed: it is imported only where an object is not in the cache. Leaves making and keeping
objects to `building`.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Protocol

from parquet_variant.errors import KernelsError
from parquet_variant.fork_safety import cached_property, hold_during_fork
from parquet_variant.machine_code.levels import levels_here

if TYPE_CHECKING:
    from parquet_variant.machine_code.functions import Kernel


# Held while LLVM compiles, also during a fork: a child cannot use an LLVM that was compiling when it was forked.
_COMPILING = RLock()
hold_during_fork(_COMPILING)


class Jit:
    """Objects that LLVM has loaded."""

    way = "jit"

    def __init__(self) -> None:
        self.level = next(iter(levels_here()), "host")
        self._addresses: dict[str, int] = {}

    @cached_property
    def _engine(self) -> Any:
        import llvmlite.binding as llvm

        from parquet_variant.machine_code.building.objects import new_target_machine

        # The engine takes the target machine over.
        return llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_target_machine(self.level))

    def address(self, kernel: Kernel) -> int:
        """Where the entry point of a kernel is."""
        with _COMPILING:
            import llvmlite.binding as llvm

            from parquet_variant.machine_code.building.objects import build_objects

            # LLVM refuses a second object with the same symbol.
            if kernel.symbol not in self._addresses:
                (content,) = build_objects(kernel, (self.level,))
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
                self._engine.finalize_object()
                self._addresses[kernel.symbol] = int(self._engine.get_function_address(kernel.symbol))
            return self._addresses[kernel.symbol]


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


_the_jit: list[Jit] = []


def _jit() -> MachineCode:
    """Return the one `Jit` of this process, also if several threads ask for it first."""
    if find_spec("numba") is None:
        raise KernelsError(f"{_VARIABLE}=jit needs Numba: {_INSTALL}", reason="no-numba")
    with _COMPILING:
        if not _the_jit:
            _the_jit.append(Jit())
        return _the_jit[0]


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
    from parquet_variant.machine_code.library import load

    try:
        return load()
    except KernelsError as refused:
        if mode == "built":
            raise
        if find_spec("numba") is None:
            raise KernelsError(f"{refused.message}; {_INSTALL}", reason=refused.reason, file=refused.file) from refused
        if not Path(__file__).parents[3].joinpath("pyproject.toml").exists():  # no checkout
            warnings.warn(f"kernels are compiled on first use: {refused}", RuntimeWarning, stacklevel=2)
        return _jit()


def entry_point(kernel: Kernel) -> Callable[[int], int]:
    """The function that runs a kernel on the words at an address, and returns 0 unless memory ran out."""
    return _PROTOTYPE(machine_code().address(kernel))


def warmup(progress: Callable[[str, int, int], None] | None = None) -> bool:
    """Compile the kernels that were neither built with the package nor kept in the cache.

    Parameters
    ----------
    progress
        Called with what is done, the kernels that are ready, and how many there are.

    Returns
    -------
    bool
        Whether there was anything to compile for: False where the kernels were built with the package.

    Raises
    ------
    KernelsError
        If there are neither built kernels that fit nor Numba, or a kernel cannot be compiled.
    """
    code = machine_code()
    if code.way == "built":
        return False
    from parquet_variant.machine_code.building.build import build_all_objects
    from parquet_variant.machine_code.functions import find_kernels

    report = progress or (lambda what, done, total: None)
    with tempfile.TemporaryDirectory() as folder:
        build_all_objects(find_kernels(), [code.level], Path(folder), report=report)
    return True
