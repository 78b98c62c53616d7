"""The functions in the modules of kernels: kernels, helpers and intrinsics; and the list of all kernels.

Owns the three classes, calling a kernel, and finding kernels. Each object stands for a Python function until its
machine code is needed: defining one costs nothing and does not import Numba. The entry point of a kernel and the Numba
type of a function come from callables that `kernels.compiling` passes, because `entry_points` and `building` import
this module.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any

from parquet_variant.kernels.machine_code.checks import is_checking, register
from parquet_variant.kernels.machine_code.signatures import Signature
from parquet_variant.support.fork_safety import cached_property

# Returns the Numba type of a kernel, helper or intrinsic.
NumbaType = Callable[[Any], Any]


class _Compiled:
    """A function that is compiled."""

    def __init__(self, function: Callable[..., Any], numba_type: NumbaType) -> None:
        self._numba_type = numba_type
        update_wrapper(self, function)  # type: ignore[arg-type]
        # Numba reads these attributes when it inlines a function.
        self.py_func = function
        self.targetoptions: dict[str, str] = {}

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.py_func.__module__}.{self.py_func.__qualname__}>"

    @property
    def _numba_type_(self) -> Any:
        """The type that Numba asks for when it compiles a caller."""
        return self._numba_type(self)


class Helper(_Compiled):
    """A function that only kernels can call."""

    def __init__(self, function: Callable[..., Any], numba_type: NumbaType, *, inline: bool) -> None:
        super().__init__(function, numba_type)
        if inline:
            self.targetoptions = {"inline": "always"}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise `TypeError`: a helper has no entry point."""
        raise TypeError(f"helper {self.py_func.__name__} cannot be called from Python; call a function with @kernel")


class Intrinsic:
    """A few instructions that Python cannot express, made by LLVM's builder.

    The function of the same name in `kernels.intrinsics` makes them. Only compiling imports that module.
    """

    def __init__(self, module: str, name: str, numba_type: NumbaType) -> None:
        self.__module__, self.name, self._numba_type = module, name, numba_type
        self.maker = f"{module.rpartition('.')[0]}.intrinsics"

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<intrinsic {self.maker}.{self.name}>"

    def __call__(self, *args: Any) -> Any:
        """Raise `TypeError`: an intrinsic has no entry point."""
        raise TypeError(f"intrinsic {self.name} cannot be called from Python; call a function with @kernel")

    @property
    def _numba_type_(self) -> Any:
        return self._numba_type(self)


class Kernel(_Compiled):
    """A function that Python can call: machine code that runs without the GIL."""

    def __init__(
        self, function: Callable[..., Any], numba_type: NumbaType, entry_point: Callable[[Kernel], Callable[[int], int]]
    ) -> None:
        super().__init__(function, numba_type)
        self._entry_point = entry_point

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
        return self._entry_point(self)

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
