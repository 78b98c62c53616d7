"""Parameters and results of kernels: the types that annotations may name, and their form in machine code.

Owns the array types and `Signature`, which checks the arguments of a call and lays them out as the vector of 64-bit
words that every entry point reads. An integer or boolean is one word; an array is its address and shape. The words of
the result follow those of the parameters. Leaves calling to `functions`, and building code to `building`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantError
from parquet_variant.support.records import Record, cached_property


class ArrayType(Record):
    """A C-contiguous array of one dtype; arrays that are read-only must be declared so."""

    dtype: str
    dimensions: int = 1
    read_only: bool = False

    def __str__(self) -> str:
        shape = ", ".join(":" * self.dimensions)
        return f"{'const ' if self.read_only else ''}{self.dtype}[{shape}]"

    def describe(self, value: Any) -> str | None:
        """Return a description of a value that cannot be passed as this type; None if it can."""
        if not isinstance(value, np.ndarray):
            return type(value).__name__
        flags = value.flags
        is_plain = flags.c_contiguous and (self.read_only or flags.writeable)
        if is_plain and value.ndim == self.dimensions and value.dtype == self.dtype:
            return None
        kinds = [("read-only ", not flags.writeable), ("strided ", not flags.c_contiguous)]
        return f"{''.join(kind for kind, holds in kinds if holds)}{value.dtype}[{value.ndim}d]"


Int64s = Annotated[npt.NDArray[np.int64], ArrayType("int64")]
Int64Table = Annotated[npt.NDArray[np.int64], ArrayType("int64", 2)]
Int32s = Annotated[npt.NDArray[np.int32], ArrayType("int32")]
UInt8s = Annotated[npt.NDArray[np.uint8], ArrayType("uint8")]
UInt8Table = Annotated[npt.NDArray[np.uint8], ArrayType("uint8", 2)]
Bools = Annotated[npt.NDArray[np.bool_], ArrayType("bool")]
ReadOnlyInt32s = Annotated[npt.NDArray[np.int32], ArrayType("int32", read_only=True)]
ReadOnlyUInt8s = Annotated[npt.NDArray[np.uint8], ArrayType("uint8", read_only=True)]


class Allocations:
    """The blocks that a kernel has allocated in one call, inside the kernel."""


class OwnerType(Record):
    """The first parameter of a kernel that allocates: an empty list of blocks, which the entry point makes.

    `release`: the helper that frees every block of the list; the entry point calls it when the kernel has ended.
    """

    release: Any


# A parameter or result: int, bool, an array, or a tuple of these; a parameter may also be a named tuple.
Type = Any


class RecordType(Record):
    """A named tuple, whose fields are passed one after the other.

    Fields annotated as `object` are not passed: they only keep memory alive. They are the last fields.
    """

    record: type[tuple[Any, ...]]
    fields: tuple[tuple[str, Type], ...]

    @classmethod
    def of(cls, record: type[tuple[Any, ...]], where: str) -> RecordType:
        """Return the type of a named tuple from its annotations."""
        hints = get_type_hints(record, include_extras=True)
        return cls(
            record,
            tuple(
                (name, _from_annotation(hints[name], f"{name} in {where}"))
                for name in record._fields  # type: ignore[attr-defined]
                if hints[name] is not object
            ),
        )

    @cached_property
    def plan(self) -> _Plan:
        """The fields as `_put` takes them."""
        return _plan(self.fields)

    def __str__(self) -> str:
        return f"{self.record.__name__}({', '.join(f'{name}: {_text(kind)}' for name, kind in self.fields)})"


def _from_annotation(annotation: Any, where: str) -> Type:
    if annotation in (int, bool):
        return annotation
    if get_origin(annotation) is Annotated:
        kind = get_args(annotation)[1]
        if isinstance(kind, ArrayType):
            return kind
    if get_origin(annotation) is tuple and Ellipsis not in get_args(annotation):
        return tuple(_from_annotation(part, where) for part in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        return RecordType.of(annotation, where)
    raise TypeError(f"{where} is annotated as {annotation}: annotate it with int, bool, a tuple, or an array type")


def _text(kind: Type) -> str:
    if isinstance(kind, tuple):
        return f"({', '.join(map(_text, kind))})"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _words(kind: Type) -> int:
    if isinstance(kind, ArrayType):
        return 1 + kind.dimensions  # the address and the shape
    parts = [part for _, part in kind.fields] if isinstance(kind, RecordType) else kind
    return sum(map(_words, parts)) if isinstance(parts, list | tuple) else 1


_addressof, _start = ctypes.addressof, (ctypes.c_char * 0).from_buffer


# Name and type of each value, and the dtype and the dimensions of arrays that are not read-only.
_Plan = tuple[tuple[str, Type, Any, int], ...]


def _plan(parameters: Iterable[tuple[str, Type]]) -> _Plan:
    arrays = {kind: np.dtype(kind.dtype) for _, kind in parameters if type(kind) is ArrayType and not kind.read_only}
    return tuple((name, kind, arrays.get(kind), getattr(kind, "dimensions", 0)) for name, kind in parameters)


def _put(words: list[Any], plan: _Plan, values: tuple[Any, ...], where: str = "") -> None:
    """Append the words of arguments. One loop without calls, because many kernels take less time than a few calls."""
    for (name, kind, dtype, dimensions), value in zip(plan, values, strict=False):
        if dtype is not None:
            try:
                if value.dtype is dtype and value.ndim == dimensions:
                    # Fails for arrays that are read-only or strided; the array interface takes five times as long.
                    words += (_addressof(_start(value)), *value.shape)
                    continue
            except (TypeError, ValueError, AttributeError):
                pass
        if kind is int:
            words.append(value)
        elif kind is bool:
            words.append(bool(value))
        elif type(kind) is ArrayType:
            problem = kind.describe(value)
            if problem is not None:
                raise TypeError(f"{where}{name} must be {kind}, not {problem}")
            words += (value.__array_interface__["data"][0], *value.shape)
        elif type(kind) is RecordType:
            if type(value) is not kind.record:
                raise TypeError(f"{where}{name} must be {kind}, not {type(value).__name__}")
            _put(words, kind.plan, value, f"{where}{name}.")
        else:
            if not isinstance(value, tuple) or len(value) != len(kind):
                raise TypeError(f"{where}{name} must be {_text(kind)}, not {value!r}")
            _put(words, _plan([(name, part) for part in kind]), value, where)


class Signature(Record):
    """The parameters that Python passes by name, the result (None if there is no result), and the owner of memory.

    Examples
    --------
    >>> def find(sizes: Int64s, wanted: int) -> tuple[bool, int]: ...
    >>> print(Signature.of(find))
    (sizes: int64[:], wanted: int) -> (bool, int)
    """

    parameters: tuple[tuple[str, Type], ...]
    result: Type
    owner: OwnerType | None = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Signature:
        """Return the signature of a function from its annotations.

        Raises `TypeError` if an annotation is missing or is not a type of kernels.
        """
        where = f"kernel {function.__module__}.{function.__name__}"
        hints = get_type_hints(function, include_extras=True)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        missing = [name for name in (*names, "return") if name not in hints]
        if missing:
            raise TypeError(f"{where} needs annotations for: {', '.join(missing)}")
        result = hints["return"]
        owners = [part for name in names[:1] for part in get_args(hints[name])[1:] if isinstance(part, OwnerType)]
        return cls(
            tuple((name, _from_annotation(hints[name], f"{name} of {where}")) for name in names[len(owners) :]),
            None if result is type(None) else _from_annotation(result, f"the result of {where}"),
            owners[0] if owners else None,
        )

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}: {_text(kind)}" for name, kind in self.parameters)
        return f"({parameters}) -> {_text(self.result) if self.result is not None else 'None'}"

    @cached_property
    def plan(self) -> _Plan:
        """The parameters as `_put` takes them."""
        return _plan(self.parameters)

    @cached_property
    def result_words(self) -> tuple[int, ...]:
        """One zero for each word of the result."""
        return (0,) * (0 if self.result is None else _words(self.result))

    def pack(self, arguments: tuple[Any, ...]) -> array[int]:
        """Lay out the arguments of a call, with room for the result behind them.

        Raises `TypeError` if an argument does not have the declared type.
        """
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{len(arguments)} arguments for {self}")
        words: list[Any] = []
        _put(words, self.plan, arguments)
        words += self.result_words
        try:
            return array("q", words)
        except OverflowError:
            raise VariantError(
                "an argument has more than 64 bits; kernels take integers from -2**63 to 2**63 - 1", reason="bad-option"
            ) from None

    def unpack(self, words: array[int]) -> Any:
        """Return the result of a call from its words."""
        if self.result is None:
            return None
        if self._is_flat:
            return tuple(words[-len(self.result_words) :])
        return _result(self.result, iter(words[-len(self.result_words) :]))

    @cached_property
    def _is_flat(self) -> bool:
        """Whether the result is a tuple of integers."""
        return isinstance(self.result, tuple) and all(part is int for part in self.result)


def _result(kind: Type, words: Iterator[int]) -> Any:
    if isinstance(kind, tuple):
        return tuple([next(words) if part is int else _result(part, words) for part in kind])
    return kind(next(words))
