"""Parameters and results of kernels: the types that annotations may name, and their form in machine code.

Owns the array types and `Signature`, which checks the arguments of a call and lays them out as the vector of 64-bit
words that every entry point reads. An integer or boolean is one word; an array is its address and shape. The words of
the result follow those of the parameters. `packer` generates one expression per signature, because a loop would take
longer than many kernels. Leaves calling to `functions`, and building code to `building`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantError
from parquet_variant.support.fork_safety import cached_property


@dataclass(frozen=True)
class ArrayType:
    """A C-contiguous array of one dtype; arrays that are read-only must be declared so."""

    dtype: str
    dimensions: int = 1
    read_only: bool = False

    @property
    def words(self) -> int:
        """Number of words: the address and the shape."""
        return 1 + self.dimensions

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The dtype."""
        return np.dtype(self.dtype)

    def __str__(self) -> str:
        shape = ", ".join(":" * self.dimensions)
        return f"{'const ' if self.read_only else ''}{self.dtype}[{shape}]"

    def describe(self, value: Any) -> str | None:
        """Return a description of a value that cannot be passed as this type; None if it can."""
        if not isinstance(value, np.ndarray):
            return type(value).__name__
        fits = (
            value.dtype == self.dtype
            and value.ndim == self.dimensions
            and value.flags.c_contiguous
            and (self.read_only or value.flags.writeable)
        )
        kinds = [("read-only ", not value.flags.writeable), ("strided ", not value.flags.c_contiguous)]
        return None if fits else f"{''.join(kind for kind, holds in kinds if holds)}{value.dtype}[{value.ndim}d]"


Int64s = Annotated[npt.NDArray[np.int64], ArrayType("int64")]
Int64Table = Annotated[npt.NDArray[np.int64], ArrayType("int64", 2)]
Int32s = Annotated[npt.NDArray[np.int32], ArrayType("int32")]
UInt8s = Annotated[npt.NDArray[np.uint8], ArrayType("uint8")]
UInt8Table = Annotated[npt.NDArray[np.uint8], ArrayType("uint8", 2)]
Bools = Annotated[npt.NDArray[np.bool_], ArrayType("bool")]
ReadOnlyInt64s = Annotated[npt.NDArray[np.int64], ArrayType("int64", read_only=True)]
ReadOnlyInt32s = Annotated[npt.NDArray[np.int32], ArrayType("int32", read_only=True)]
ReadOnlyUInt8s = Annotated[npt.NDArray[np.uint8], ArrayType("uint8", read_only=True)]


class Allocations:
    """The blocks that a kernel has allocated in one call, inside the kernel."""


@dataclass(frozen=True)
class OwnerType:
    """The first parameter of a kernel that allocates: an empty list of blocks, which the entry point makes.

    `release`: the helper that frees every block of the list; the entry point calls it when the kernel has ended.
    """

    release: Any


# A parameter or result: int, bool, an array, or a tuple of these; a parameter may also be a named tuple.
Type = Any


@dataclass(frozen=True)
class RecordType:
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

    @property
    def words(self) -> int:
        """Number of words of the fields."""
        return sum(_words(kind) for _, kind in self.fields)

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
    if isinstance(kind, tuple):
        return sum(map(_words, kind))
    return kind.words if isinstance(kind, ArrayType | RecordType) else 1


def _put(words: list[Any], kind: Type, value: Any, name: str) -> None:
    """Append the words of one argument."""
    if kind is int:
        words.append(value)
    elif kind is bool:
        words.append(bool(value))
    elif isinstance(kind, tuple):
        if not isinstance(value, tuple) or len(value) != len(kind):
            raise TypeError(f"{name} must be {_text(kind)}, not {value!r}")
        for part, item in zip(kind, value, strict=True):
            _put(words, part, item, name)
    elif isinstance(kind, RecordType):
        if not isinstance(value, kind.record):
            raise TypeError(f"{name} must be {kind}, not {type(value).__name__}")
        for (field, part), item in zip(kind.fields, value, strict=False):
            _put(words, part, item, f"{name}.{field}")
    else:
        words += array_words(kind, value, name)


def array_words(kind: ArrayType, value: Any, name: str) -> tuple[int, ...]:
    """Return the words of an array. Raises `TypeError` if it does not have the type."""
    try:
        view = value.__array_interface__
    except AttributeError:
        raise TypeError(f"{name} must be {kind}, not {type(value).__name__}") from None
    address, read_only = view["data"]
    shape = view["shape"]
    if (
        view["typestr"] != kind.numpy.str
        or view["strides"] is not None
        or len(shape) != kind.dimensions
        or (read_only and not kind.read_only)
    ):
        raise TypeError(f"{name} must be {kind}, not {kind.describe(value)}")
    return (address, *shape)


@dataclass(frozen=True)
class Signature:
    """The parameters that Python passes by name, the result (None if there is no result), and the owner of memory.

    Examples -------- >>> def find(sizes: Int64s, wanted: int) -> tuple[bool, int]: ... >>> print(Signature.of(find))
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
        for (name, kind), value in zip(self.parameters, arguments, strict=True):
            _put(words, kind, value, name)
        words += self.result_words
        try:
            return array("q", words)
        except OverflowError:
            raise VariantError(
                "an argument has more than 64 bits; kernels take integers from -2**63 to 2**63 - 1", reason="bad-option"
            ) from None


_NOTHING = ctypes.c_int64()
# Names that generated packers use. `addressof` takes a seventh of the time of the array interface.
_NAMES = {
    "array": array,
    "array_words": array_words,
    "address": ctypes.addressof,
    "cells": ctypes.c_char.from_buffer,
    "nowhere": ctypes.addressof(_NOTHING),
    "ndarray": np.ndarray,
}


def packer(signature: Signature) -> Callable[[tuple[Any, ...]], array[int]]:
    """Return a function that does the same as `Signature.pack`, and calls it for unusual arguments."""
    names: dict[str, Any] = {**_NAMES, "checked": signature.pack}
    checks: list[str] = []
    words: list[str] = []
    for number, (_, kind) in enumerate(signature.parameters):
        _add_parameter(f"a{number}", kind, names, checks, words)
    targets = "".join(f"a{number}, " for number in range(len(signature.parameters)))
    layout = "".join(f"{word}, " for word in [*words, *map(str, signature.result_words)])
    source = f"""
def pack(arguments):
    try:
        {targets or "()"} = arguments
        if {" and ".join(checks) or "True"}:
            return array("q", ({layout}))
    except (TypeError, ValueError, OverflowError):
        pass
    return checked(arguments)
"""
    exec(source, names)
    pack: Callable[[tuple[Any, ...]], array[int]] = names["pack"]
    return pack


def _add_parameter(value: str, kind: Type, names: dict[str, Any], checks: list[str], words: list[str]) -> None:
    """Add the words of a value, its conditions, and the names that these use."""
    name = f"k{len(names)}"
    if isinstance(kind, RecordType):
        names[name] = kind.record
        checks.append(f"type({value}) is {name}")
        for field, part in kind.fields:
            _add_parameter(f"{value}.{field}", part, names, checks, words)
    elif isinstance(kind, tuple):
        checks.append(f"type({value}) is tuple and len({value}) == {len(kind)}")
        for number, part in enumerate(kind):
            _add_parameter(f"{value}[{number}]", part, names, checks, words)
    elif not isinstance(kind, ArrayType):
        words.append(value if kind is int else f"bool({value})")
    elif kind.read_only:
        names[name] = kind
        words.append(f"*array_words({name}, {value}, '')")
    else:
        names[name] = kind.numpy
        checks.append(f"type({value}) is ndarray and {value}.dtype is {name} and {value}.ndim == {kind.dimensions}")
        words.append(f"address(cells({value})) if {value}.size else nowhere")
        words.append(f"len({value})" if kind.dimensions == 1 else f"*{value}.shape")


def unpacker(signature: Signature) -> Callable[[array[int]], Any]:
    """Return a function that reads the result of a call from its words."""
    if signature.result is None:
        return lambda words: None
    expression = _result(signature.result, count(-len(signature.result_words)))
    unpack: Callable[[array[int]], Any] = eval(f"lambda words: {expression}", {})
    return unpack


def _result(kind: Type, places: Iterator[int]) -> str:
    if isinstance(kind, tuple):
        return f"({''.join(f'{_result(part, places)}, ' for part in kind)})"
    word = f"words[{next(places)}]"
    return word if kind is int else f"bool({word})"
