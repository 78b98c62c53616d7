"""The target for which Numba compiles kernels: code for no particular CPU, which this process does not run.

Registers the target with Numba's extension interface (`numba.core.target_extension`), as Numba's targets for GPUs are:
Numba finds overloads and intrinsics for it by its class, and Numba's own target and its contexts are not changed.
Kernels compile without object mode, without reference counts (see `kernels.native_vectors`) and with NumPy's error
model. docs/internals/kernels.md lists the private parts of Numba that this module uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cpu, typing
from numba.core.codegen import AOTCPUCodegen, CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.descriptors import TargetDescriptor
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_registry
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import (
    DeadBranchPrune,
    InlineClosureLikes,
    LiteralUnroll,
    RewriteSemanticConstants,
    WithLifting,
)

from parquet_variant.kernels.machine_code.building.checking import CheckedContext, CheckedLowering
from parquet_variant.kernels.machine_code.checks import is_checking
from parquet_variant.support.fork_safety import cached_property

_NAME = "parquet_variant"


class KernelTarget(CPU):
    """The class of the target; what Numba has for CPUs is used for it."""


target_registry[_NAME] = KernelTarget


class Library(CPUCodeLibrary):
    """The unoptimized code of one function."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        """Add a library that this one calls, but not that of Numba's runtime."""
        if library is not rtsys.library:
            super().add_linking_library(library)

    def finalize(self) -> None:
        """Do nothing, because `frontend` links libraries."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because the code does not run in this process."""
        return 0

    def closure(self, libraries: dict[Library, None]) -> None:
        """Add this library and all libraries that it calls."""
        if self not in libraries:
            libraries[self] = None
            for library in self._linking_libraries:
                library.closure(libraries)


class _Codegen(AOTCPUCodegen):
    _library_class = Library

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing, because the code does not run in this process."""


class _Target(TargetDescriptor):
    """The contexts of the target."""

    options = cpu.CPUTargetOptions

    @cached_property
    def typing_context(self) -> Any:
        """The context for inferring types."""
        return typing.Context()

    @cached_property
    def target_context(self) -> Any:
        """The context for code generation."""
        context = (CheckedContext if is_checking() else cpu.CPUContext)(self.typing_context, _NAME)
        self.typing_context.refresh()
        context.refresh()
        context._internal_codegen = _Codegen(_NAME)
        return context


TARGET = _Target(_NAME)


# Passes for closures, comprehensions, object mode, array expressions and code that depends on types: unused by kernels.
_UNUSED_PASSES = {
    DeadBranchPrune,
    InlineClosureLikes,
    InlineOverloads,
    LiteralUnroll,
    NopythonRewrites,
    RewriteSemanticConstants,
    WithLifting,
}


class _Compiler(CompilerBase):
    """Numba's compiler without passes that kernels do not need."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = PassManager("kernel")
        for pass_class, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if pass_class not in _UNUSED_PASSES:
                is_checked = pass_class is NativeLowering and is_checking()
                pipeline.add_pass(CheckedLowering if is_checked else pass_class, description)
        pipeline.finalize()
        return [pipeline]


class Dispatcher(CPUDispatcher):
    """Compiles one function for all numbers, instead of one more for each literal."""

    targetdescr = TARGET

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """Return what another kernel calls."""
        return super().get_call_template(
            tuple(map(types.unliteral, args)), {k: types.unliteral(v) for k, v in kws.items()}
        )


_OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    **({"boundscheck": True} if is_checking() else {}),
}


def dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Dispatcher:
    """Return what compiles a kernel or helper."""
    return Dispatcher(function, targetoptions={**_OPTIONS, **options}, pipeline_class=_Compiler)


def _jit(**options: Any) -> Callable[[Callable[..., Any]], CPUDispatcher]:
    """Return the decorator that compiles an overload of Numba for this target."""
    return lambda function: _OverloadDispatcher(function, targetoptions=options)


class _OverloadDispatcher(CPUDispatcher):
    """Compiles an overload, as Numba does for its own target."""

    targetdescr = TARGET


dispatcher_registry[KernelTarget] = Dispatcher
jit_registry[KernelTarget] = _jit
