"""What a kernel is: the two decorators, intrinsics, constants, and the list of all kernels.

    @kernel
    def find_index(starts: Int64s, wanted: int, out_starts: Int64s) -> int: ...

A function that Python calls is a `kernel`; its annotations are checked at each call. A function that only kernels call
is a `helper`; its annotations are for readers and mypy. Each stands for a Python function until its machine code is
needed: defining one costs nothing and does not import Numba. Modules need no registration: `building` finds every
kernel of the package. See docs/internals/kernels.md.
"""

from __future__ import annotations

import pkgutil
from collections import namedtuple
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from parquet_variant.kernels.machine_code.checks import is_checking, register
from parquet_variant.kernels.machine_code.entry_points import entry_point
from parquet_variant.kernels.machine_code.signatures import Allocations, Signature
from parquet_variant.support.records import cached_property

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Named:
    """A function that is compiled, or an intrinsic."""

    __qualname__: str

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.__module__}.{self.__qualname__}>"

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba asks for when it compiles a caller."""
        from parquet_variant.kernels.machine_code.frontend import type_of

        return type_of(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `TypeError`: only kernels have an entry point."""
        raise TypeError(f"{self!r} cannot be called from Python; call a function with @kernel")


class Helper(_Named):
    """A function that only kernels can call."""

    def __init__(self, function: Callable[..., Any], *, inline: bool = False) -> None:
        update_wrapper(self, function)
        # Numba reads these attributes when it inlines a function.
        self.py_func = function
        self.targetoptions = {"inline": "always"} if inline else {}


class Intrinsic(_Named):
    """A few instructions that Python cannot express, made by LLVM's builder.

    The function of the same name in `kernels.intrinsics` makes them. Only compiling imports that module.
    """

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__qualname__ = module, name
        self.maker = f"{module.rpartition('.')[0]}.intrinsics"


class Kernel(Helper):
    """A function that Python can call: machine code that runs without the GIL."""

    @cached_property
    def signature(self) -> Signature:
        """The parameters and the result."""
        return Signature.of(self.py_func)

    @property
    def symbol(self) -> str:
        """Name of the entry point."""
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}".removeprefix("parquet_variant.kernels.")
        return "pv_" + "".join(letter if letter.isalnum() else "_" for letter in name)

    @cached_property
    def _entry(self) -> Callable[[int], int]:
        return entry_point(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code.

        Raises `TypeError` if an argument does not have the declared type, and `MemoryError` if the kernel cannot
        allocate its tables.
        """
        signature = self.signature
        words = signature.pack(arguments)
        if is_checking():
            register(arguments)
        if self._entry(words.buffer_info()[0]):
            raise MemoryError("cannot allocate the tables of a kernel; work on fewer rows at a time")
        return signature.unpack(words)


@overload
def kernel(function: Callable[Concatenate[Allocations, Parameters], Result]) -> Callable[Parameters, Result]: ...
@overload
def kernel(function: Function) -> Function: ...
def kernel(function: Callable[..., Any]) -> Any:
    """Make machine code of a function for Python: it runs without the GIL, and raises only `MemoryError`.

    Python does not pass the parameter ``memory: Memory``, with which a kernel that allocates begins.
    """
    return Kernel(function)


@overload
def helper(function: Function) -> Function: ...
@overload
def helper(*, inline: bool) -> Callable[[Function], Function]: ...
def helper(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Make machine code of a function for kernels; ``inline`` copies it into its callers before types are inferred."""
    if function is None:
        return lambda wrapped: Helper(wrapped, inline=inline)
    return Helper(function, inline=inline)


def numbered(names: str) -> Any:
    """Return constants that are numbered from 0, for the columns of a table or for codes.

    >>> numbered("KIND SIZE").SIZE
    1
    """
    fields = names.split()
    return namedtuple("numbered", fields)(*range(len(fields)))


def intrinsics(module: str, names: str) -> Any:
    """Declare intrinsics of a module by their names; `kernels.intrinsics` has functions of the same names."""
    return [Intrinsic(module, name) for name in names.split()]


_PACKAGE = "parquet_variant.kernels"


def find_kernels() -> list[Kernel]:
    """Return all kernels, grouped by module."""
    package = import_module(_PACKAGE)
    names = sorted(module.name for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."))
    kernels = {}
    for name in names:
        # The module of intrinsics and those that build need Numba.
        if not name.endswith(".intrinsics") and ".machine_code" not in name:
            for value in vars(import_module(name)).values():
                if isinstance(value, Kernel) and value.py_func.__module__ == name:
                    kernels[value.symbol] = value
    return list(kernels.values())


def find_kernel(module: str, name: str) -> Kernel:
    """Return the kernel of a module."""
    kernel = getattr(import_module(module), name)
    assert isinstance(kernel, Kernel)
    return kernel
