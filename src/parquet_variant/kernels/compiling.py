"""How a kernel is written: the two decorators, intrinsics, and constants.

    @kernel
    def find_index(starts: Int64s, wanted: int, out_starts: Int64s) -> int: ...

A function that Python calls is a `kernel`; its annotations are checked at each call. A function that only kernels call
is a `helper`; its annotations are for readers and mypy. Modules need no registration: `machine_code.building` finds
every kernel of this package. See docs/internals/kernels.md.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from parquet_variant.kernels.machine_code.entry_points import entry_point
from parquet_variant.kernels.machine_code.functions import Helper, Intrinsic, Kernel
from parquet_variant.kernels.machine_code.signatures import Allocations

Function = TypeVar("Function", bound=Callable[..., Any])
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _numba_type(compiled: Helper | Intrinsic | Kernel) -> Any:
    """Return the Numba type of a function; imports Numba."""
    from parquet_variant.kernels.machine_code.building.frontend import type_of

    return type_of(compiled)


@overload
def kernel(function: Callable[Concatenate[Allocations, Parameters], Result]) -> Callable[Parameters, Result]: ...
@overload
def kernel(function: Function) -> Function: ...
def kernel(function: Callable[..., Any]) -> Any:
    """Make machine code of a function for Python: it runs without the GIL, and raises only `MemoryError`.

    Python does not pass the parameter ``memory: Memory``, with which a kernel that allocates begins.
    """
    return Kernel(function, _numba_type, entry_point)


@overload
def helper(function: Function) -> Function: ...
@overload
def helper(*, inline: bool) -> Callable[[Function], Function]: ...
def helper(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Make machine code of a function for kernels; ``inline`` copies it into its callers before types are inferred."""
    if function is None:
        return lambda wrapped: Helper(wrapped, _numba_type, inline=inline)
    return Helper(function, _numba_type, inline=inline)


def numbered(names: str) -> Any:
    """Return constants that are numbered from 0, for the columns of a table or for codes.

    >>> numbered("KIND SIZE").SIZE
    1
    """
    fields = names.split()
    return namedtuple("numbered", fields)(*range(len(fields)))


def intrinsic(module: str, name: str) -> Any:
    """Declare an intrinsic of a module; `kernels.intrinsics` has a module of the same name with its instructions."""
    return Intrinsic(module, name, _numba_type)
