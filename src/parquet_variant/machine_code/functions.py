"""What the kernels' modules define: kernels, helpers and intrinsics; and the kernels that there are.

Owns the three classes, calling a kernel, and looking for them all. Each stands for a Python function until its machine
code is needed: defining one costs nothing and does not import Numba. The entry point of a kernel and the Numba type of
a function come from callables that `kernels.compiling` passes, since `entry_points` and `building` import this module.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any

from parquet_variant.fork_safety import cached_property
from parquet_variant.machine_code.signatures import Signature, packer, unpacker

# Returns the Numba type of a kernel, helper or intrinsic.
NumbaType = Callable[[Any], Any]


class _Compiled:
    """A function that is not called as Python."""

    def __init__(self, function: Callable[..., Any], numba_type: NumbaType) -> None:
        self._numba_type = numba_type
        update_wrapper(self, function)  # type: ignore[arg-type]
        # The names that Numba knows: it looks for them where it inlines.
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
    """What only kernels can call."""

    def __init__(self, function: Callable[..., Any], numba_type: NumbaType, *, inline: bool) -> None:
        super().__init__(function, numba_type)
        if inline:
            self.targetoptions = {"inline": "always"}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there is nothing that Python could jump to."""
        raise TypeError(f"{self.py_func.__name__} is a helper of kernels: Python can call what @kernel makes")


class Intrinsic:
    """A few instructions, for which Python has no words: LLVM's builder makes them.

    What makes them has the name of this, in the module of this name in `kernels.intrinsics`, which only compiling
    imports.
    """

    def __init__(self, module: str, name: str, numba_type: NumbaType) -> None:
        self.__module__, self.name, self._numba_type = module, name, numba_type
        package, _, last = module.rpartition(".")
        self.maker = f"{package}.intrinsics.{last}"

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<intrinsic {self.maker}.{self.name}>"

    def __call__(self, *args: Any) -> Any:
        """Refuse, as a helper does."""
        raise TypeError(f"{self.name} is an intrinsic of kernels: Python can call what @kernel makes")

    @property
    def _numba_type_(self) -> Any:
        return self._numba_type(self)


class Kernel(_Compiled):
    """What Python can call: machine code, without the GIL."""

    def __init__(
        self, function: Callable[..., Any], numba_type: NumbaType, entry_point: Callable[[Kernel], Callable[[int], int]]
    ) -> None:
        super().__init__(function, numba_type)
        self._entry_point = entry_point

    @cached_property
    def signature(self) -> Signature:
        """What it takes and returns."""
        return Signature.of(self.py_func)

    @property
    def symbol(self) -> str:
        """Name of its entry point."""
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}".removeprefix("parquet_variant.kernels.")
        return "pv_" + "".join(letter if letter.isalnum() else "_" for letter in name)

    @cached_property
    def _entry(self) -> Callable[[int], int]:
        return self._entry_point(self)

    @cached_property
    def _pack(self) -> Callable[[tuple[Any, ...]], Any]:
        return packer(self.signature)

    @cached_property
    def _unpack(self) -> Callable[[Any], Any]:
        return unpacker(self.signature)

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code.

        Raises `TypeError` if an argument is not of the type that the kernel declares; `MemoryError` if there is no
        memory left for what the kernel makes.
        """
        words = self._pack(arguments)
        if self._entry(words.buffer_info()[0]):
            raise MemoryError("no memory left for a kernel's tables; work on fewer rows at a time")
        return self._unpack(words)


_PACKAGE = "parquet_variant.kernels"


def find_kernels() -> list[Kernel]:
    """All kernels, those of one module together."""
    package = import_module(_PACKAGE)
    names = sorted(module.name for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."))
    kernels = {}
    for name in names:
        # The instructions of intrinsics are there for compiling only.
        if ".intrinsics" not in name:
            for value in vars(import_module(name)).values():
                if isinstance(value, Kernel) and value.py_func.__module__ == name:
                    kernels[value.symbol] = value
    return list(kernels.values())


def find_kernel(module: str, name: str) -> Kernel:
    """The kernel of a module."""
    kernel = getattr(import_module(module), name)
    assert isinstance(kernel, Kernel)
    return kernel
