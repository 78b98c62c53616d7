"""Runs kernels in Python, through the same entry point as machine code.

Owns reading the arguments of a call from its words and writing its result behind them, the translated functions, and
the report of an access outside of registered memory.
"""

from __future__ import annotations

import ctypes
import threading
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.functions import Helper, Intrinsic, Kernel
from parquet_variant.kernels.machine_code.interpreting.registered_memory import (
    MEMORY,
    BadAddress,
    start_checking,
)
from parquet_variant.kernels.machine_code.interpreting.translation import translated, wrap
from parquet_variant.kernels.machine_code.signatures import ArrayType, RecordType


class _Words:
    """The words of a call."""

    def __init__(self, address: int, count: int) -> None:
        self._words = (ctypes.c_int64 * max(count, 1)).from_address(address)
        self._place = 0

    def next(self) -> int:
        """Return the next word."""
        self._place += 1
        return int(self._words[self._place - 1])

    def put(self, word: int) -> None:
        """Write the next word."""
        self._words[self._place] = wrap(int(word))
        self._place += 1


class _Memory:
    """Memory at an address, as NumPy takes it."""

    def __init__(self, address: int, dtype: str, shape: tuple[int, ...], read_only: bool) -> None:
        typestr = np.dtype(dtype).str
        self.__array_interface__ = {"version": 3, "data": (address, read_only), "shape": shape, "typestr": typestr}


def array_at(address: int, dtype: str, shape: tuple[int, ...], *, read_only: bool = False) -> Any:
    """Return an array over memory at an address."""
    return np.asarray(_Memory(address, dtype, shape, read_only))


def _argument(kind: Any, words: _Words, arrays: list[tuple[int, int]]) -> Any:
    if kind is int:
        return words.next()
    if kind is bool:
        return words.next() != 0
    if isinstance(kind, tuple):
        return tuple(_argument(part, words, arrays) for part in kind)
    if isinstance(kind, RecordType):
        values = [_argument(part, words, arrays) for _, part in kind.fields]
        missing = len(kind.record._fields) - len(values)  # type: ignore[attr-defined]
        return kind.record(*values, *[None] * missing)
    assert isinstance(kind, ArrayType)
    address = words.next()
    array = array_at(address, kind.dtype, tuple(words.next() for _ in range(kind.dimensions)), read_only=kind.read_only)
    arrays.append((address, array.nbytes))
    return array


def _results(kind: Any, value: Any) -> Iterator[int]:
    if isinstance(kind, tuple):
        for part, item in zip(kind, value, strict=True):
            yield from _results(part, item)
    elif kind is not None:
        yield int(value)


class Interpreter:
    """Kernels as Python functions; in checked mode, accesses to memory are verified."""

    level = "python"

    def __init__(self, *, checked: bool) -> None:
        self.way = "checked" if checked else "python"
        self._functions: dict[Any, Callable[..., Any]] = {}
        # The functions that this thread is translating.
        self._begun = threading.local()
        if checked:
            start_checking()

    def function(self, compiled: Helper | Kernel) -> Callable[..., Any]:
        """Return the translation of a kernel or helper."""
        function = self._functions.get(compiled)
        if function is not None:
            return function
        begun: set[Any] = self._begun.__dict__.setdefault("functions", set())
        if compiled in begun:
            # Functions may call themselves: the call looks for the translation when it has ended. Another thread, or a
            # child that was forked meanwhile, never finds an unfinished translation.
            return self.function(compiled)
        begun.add(compiled)
        try:
            function = self._functions[compiled] = translated(compiled.py_func, self._value)
        finally:
            begun.discard(compiled)
        return function

    def _value(self, value: Any) -> Any:
        if isinstance(value, Helper | Kernel):
            return self.function(value)
        if isinstance(value, Intrinsic):
            package, _, module = value.__module__.rpartition(".")
            return getattr(import_module(f"{package}.python_intrinsics.{module}"), value.name)
        return int(value) if isinstance(value, np.integer) else value

    def address(self, kernel: Kernel) -> int:
        """Raise `KernelsError`: an interpreted kernel has no machine code."""
        raise KernelsError(f"{kernel!r} is run in Python and has no machine code", reason="no-kernels")

    def entry_point(self, kernel: Kernel) -> Callable[[int], int]:
        """Return what runs a kernel on the words at an address, and returns 0 unless memory ran out."""
        signature = kernel.signature
        count = sum(1 for _ in signature.result_words)
        function = self.function(kernel)
        release = None if signature.owner is None else self.function(signature.owner.release)

        def run(address: int) -> int:
            # An empty list of `kernels.ownership`.
            pair = (ctypes.c_int64 * 2)()
            memory = ctypes.addressof(pair)
            pair[:] = [memory] * 2
            owner = [] if release is None else [memory]
            arrays: list[tuple[int, int]] = [(head, ctypes.sizeof(pair)) for head in owner]
            words = _Words(address, 1 << 20)
            arguments = [_argument(kind, words, arrays) for _, kind in signature.parameters]
            call = object()
            for number, (start, size) in enumerate(arrays):
                MEMORY.add((call, number), start, size)
            try:
                results = list(_results(signature.result, function(*owner, *arguments)))
            except MemoryError:
                return 1
            except (BadAddress, IndexError, OverflowError) as error:
                if self.way != "checked":
                    raise
                raise _report(kernel, error) from error
            finally:
                if release is not None:
                    release(memory)
                for number in range(len(arrays)):
                    MEMORY.remove((call, number))
            assert len(results) == count
            for result in results:
                words.put(result)
            return 0

        return run


def _report(kernel: Kernel, error: Exception) -> KernelsError:
    """Return the error that names the kernel, the line and the address of an access."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/interpreting/" not in frame.filename and "/python_intrinsics/" not in frame.filename
    ]
    place = f"{frames[-1].filename}:{frames[-1].lineno} ({frames[-1].line})" if frames else "unknown"
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
    problem = f"{error} is outside of every registered buffer" if isinstance(error, BadAddress) else str(error)
    return KernelsError(
        f"kernel {name}: {problem}, in {place}; please report this as a bug with the input that shows it",
        reason="bad-address",
    )
