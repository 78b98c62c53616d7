"""How kernels are compiled: the two decorators, and where the compiled code is kept.

Owns `njit`, `helper` and the cache directory. Numba notices a change in a kernel's own file, but not in a function of
another file that was compiled into it; so a kernel's directory is named by a hash of its module, of the kernel modules
that this imports, and of the versions involved.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import FunctionCache
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import InlineOverloads, NopythonRewrites
from numba.core.untyped_passes import (
    DeadBranchPrune,
    InlineClosureLikes,
    LiteralUnroll,
    RewriteSemanticConstants,
    WithLifting,
)

__all__ = ["cache_directory", "cache_home", "helper", "njit"]

_IMPORT = re.compile(r"^from parquet_variant\.kernels\.(\w+) import", re.MULTILINE)


def cache_home() -> Path:
    """Where the kernels of all versions are kept; ``PARQUET_VARIANT_CACHE`` names another place."""
    named = os.environ.get("PARQUET_VARIANT_CACHE")
    if named is not None:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "parquet-variant"


@cache
def _sources(module: str) -> frozenset[Path]:
    """The file of a kernel module, and those of all kernel modules that it imports."""
    found: set[Path] = set()
    left = [module]
    while left:
        path = Path(__file__).with_name(f"{left.pop()}.py")
        if path not in found and path.exists():
            found.add(path)
            left.extend(_IMPORT.findall(path.read_text()))
    return frozenset(found)


@cache
def cache_directory(module: str) -> str:
    """Directory of the compiled kernels of one module, given by its name in this package."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {platform.machine()}".encode())
    for source in sorted(_sources(module)):
        digest.update(source.read_bytes())
    return str(cache_home() / f"{module}-{digest.hexdigest()[:16]}")


class _QuickCache(FunctionCache):
    """Numba's cache, but a hit does not load first all that only compiling needs, which takes longer than the hit."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


# Passes for closures, comprehensions, object mode, array expressions and code that differs by type: kernels have none.
_NEEDLESS = {
    DeadBranchPrune,
    InlineClosureLikes,
    InlineOverloads,
    LiteralUnroll,
    NopythonRewrites,
    RewriteSemanticConstants,
    WithLifting,
}


class _Compiler(CompilerBase):
    """Numba's compiler without the passes that only take time here."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = PassManager("kernel")
        for each, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if each not in _NEEDLESS:
                pipeline.add_pass(each, description)
        pipeline.finalize()
        return [pipeline]


class _Kernel(CPUDispatcher):
    """Compiles one function for all numbers, and with the garbage collector off, which takes a tenth of the time."""

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """What another kernel calls: not one function more for each literal."""
        return super().get_call_template(
            tuple(map(types.unliteral, args)), {k: types.unliteral(v) for k, v in kws.items()}
        )

    def compile(self, sig: Any) -> Any:
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()


class _Helper(_Kernel):
    """What only kernels can call: without the entry for Python there would be nothing to jump to."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a helper of kernels: Python can call what @njit makes")


def _dispatcher(function: Callable[..., Any], kind: type[_Kernel], **options: Any) -> Any:
    previous = numba.config.CACHE_DIR
    # Read once, while the dispatcher is made.
    numba.config.CACHE_DIR = cache_directory(function.__module__.rpartition(".")[2])
    try:
        dispatcher = numba.njit(
            nogil=True, error_model="numpy", _nrt=False, no_cfunc_wrapper=True, pipeline_class=_Compiler, **options
        )(function)
        dispatcher.__class__ = kind
        dispatcher._cache = _QuickCache(function)
        return dispatcher
    finally:
        numba.config.CACHE_DIR = previous


def helper(function: Callable[..., Any]) -> Any:
    """Compile what only kernels call, as `njit` does, but without an entry for Python: that takes time, too."""
    return _dispatcher(function, _Helper, no_cpython_wrapper=True)


def njit(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Compile without the GIL, without object mode, with NumPy's error model, and keep the result on disk.

    Numba's reference counts are off, too: `native_vectors` has what a kernel needs instead of ``np.empty``. So are the
    entries for C, which nobody uses, and some passes of the compiler, for which kernels have no work.
    """
    if function is None:
        return lambda wrapped: njit(wrapped, inline=inline)
    return _dispatcher(function, _Kernel, **({"inline": "always"} if inline else {}))
