"""How a kernel is written: the two decorators, intrinsics, and the types that its annotations may name.

    @kernel
    def find_index(starts: Int64s, wanted: int, out_starts: Int64s) -> int: ...

What Python calls is a `kernel`, whose parameters and result are annotated; what only kernels call is a `helper`, which
needs no annotations. Modules are found by themselves: `machine_code.building` makes every kernel of this package.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, overload

from parquet_variant.machine_code.entry_points import entry_point
from parquet_variant.machine_code.functions import Helper, Intrinsic, Kernel


def _numba_type(compiled: Helper | Intrinsic | Kernel) -> Any:
    """Return the Numba type of a function; imports Numba."""
    from parquet_variant.machine_code.building.frontend import type_of

    return type_of(compiled)


def kernel(function: Callable[..., Any]) -> Any:
    """Make machine code of what Python calls: it runs without the GIL, and never raises but for memory."""
    return Kernel(function, _numba_type, entry_point)


@overload
def helper(function: Callable[..., Any]) -> Any: ...
@overload
def helper(*, inline: bool) -> Callable[[Callable[..., Any]], Any]: ...
def helper(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Make machine code of what only kernels call; ``inline`` puts it into them before types are known."""
    if function is None:
        return lambda wrapped: Helper(wrapped, _numba_type, inline=inline)
    return Helper(function, _numba_type, inline=inline)


def numbered(names: str) -> Any:
    """Numbers from 0 on by their names: the columns of a table, or codes, as constants of kernels and of Python.

    >>> numbered("KIND SIZE").SIZE
    1
    """
    fields = names.split()
    return namedtuple("numbered", fields)(*range(len(fields)))


def intrinsic(module: str, name: str) -> Any:
    """Declare what `kernels.intrinsics` has the instructions for, in the module of this name and under this one."""
    return Intrinsic(module, name, _numba_type)
