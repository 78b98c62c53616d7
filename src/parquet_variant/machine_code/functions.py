"""What the kernels' modules define: kernels, helpers and intrinsics.

Owns the three classes and calling a kernel. Each stands for a Python function until its machine code is wanted:
defining one costs nothing, and knows nothing of Numba. Leaves the code to `entry_points`, what Numba makes of one to
`building.frontend`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any

from parquet_variant.machine_code.packing import packer, unpacker
from parquet_variant.machine_code.signatures import Signature


class _Compiled:
    """A function that is not called as Python."""

    def __init__(self, function: Callable[..., Any]) -> None:
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
        """Its type for Numba, which asks for it where it compiles a caller."""
        from parquet_variant.machine_code.building.frontend import type_of

        return type_of(self)


class Helper(_Compiled):
    """What only kernels can call."""

    def __init__(self, function: Callable[..., Any], *, inline: bool) -> None:
        super().__init__(function)
        if inline:
            self.targetoptions = {"inline": "always"}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there is nothing that Python could jump to."""
        raise TypeError(f"{self.py_func.__name__} is a helper of kernels: Python can call what @kernel makes")


class Intrinsic(Helper):
    """A few instructions, for which Python has no words: LLVM's builder makes them.

    The function that is decorated declares it. What makes the instructions has its name, in the module of this name
    in `kernels.intrinsics`, which only compiling imports.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, inline=False)

    @property
    def maker(self) -> str:
        """Full name of the module that has the instructions."""
        package, _, module = self.py_func.__module__.rpartition(".")
        return f"{package}.intrinsics.{module}"


class Kernel(_Compiled):
    """What Python can call: machine code, without the GIL."""

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
        from parquet_variant.machine_code.entry_points import entry_point

        return entry_point(self)

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
