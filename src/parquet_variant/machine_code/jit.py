"""Kernels that are compiled when they are called first, and kept in the cache: the way of developers.

Owns loading objects into this process. Leaves making and keeping them to `building`; Numba is imported only where an
object is not in the cache.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from parquet_variant.machine_code.levels import levels_here

if TYPE_CHECKING:
    from parquet_variant.machine_code.functions import Kernel


class Jit:
    """Objects that LLVM has loaded."""

    way = "jit"

    def __init__(self) -> None:
        self.level = next(iter(levels_here()), "host")
        self._lock = Lock()

    @cached_property
    def _engine(self) -> Any:
        import llvmlite.binding as llvm

        from parquet_variant.machine_code.building.objects import new_target_machine

        # The engine takes the target machine over.
        return llvm.create_mcjit_compiler(llvm.parse_assembly(""), new_target_machine(self.level))

    def address(self, kernel: Kernel) -> int:
        """Where the entry point of a kernel is."""
        import llvmlite.binding as llvm

        from parquet_variant.machine_code.building.objects import build_objects

        with self._lock:
            (content,) = build_objects(kernel, (self.level,))
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
            self._engine.finalize_object()
            return int(self._engine.get_function_address(kernel.symbol))
