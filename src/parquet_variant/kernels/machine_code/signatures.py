"""Parameters and results of kernels: the types that annotations may name, and their form in machine code.

Owns the array types and `Signature`, whose calls check their arguments and lay them out as the vector of 64-bit words
that every entry point reads. An integer or boolean is one word; an array is its address and shape. The words of
the result follow those of the parameters. Leaves calling to `functions`, and building code to `building`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from operator import index
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError


@dataclass(frozen=True)
class ArrayType:
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
    @cache
    def of(cls, record: type[tuple[Any, ...]]) -> RecordType:
        """Return the type of a named tuple from its annotations."""
        hints = get_type_hints(record, include_extras=True)
        return cls(
            record,
            tuple(
                (name, _from_annotation(hints[name], f"{name} in {record.__name__}"))
                for name in record._fields  # type: ignore[attr-defined]
                if hints[name] is not object
            ),
        )

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
        return RecordType.of(annotation)
    raise TypeError(f"{where} is annotated as {annotation}: annotate it with int, bool, a tuple, or an array type")


def _text(kind: Type) -> str:
    if isinstance(kind, tuple):
        return f"({', '.join(map(_text, kind))})"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _take_apart(kind: Type, value: str, lines: list[str], words: list[str], objects: dict[str, Any]) -> None:
    """Add the statements that take the value of a variable apart, the expressions of its words, and objects for both.

    The statements or expressions raise some error if the value is not of the type.
    """
    if isinstance(kind, ArrayType):
        dtype, shape = f"dtype_{kind.dtype}", [f"{value}_{axis}" for axis in range(kind.dimensions)]
        objects[dtype] = np.dtype(kind.dtype)
        lines += [f"if {value}.dtype is not {dtype}: refuse(arguments)", f"{', '.join(shape)}, = {value}.shape"]
        # `from_buffer` fails for arrays that are read-only or strided, `py_buffer` for those that are strided.
        words += [f"py_buffer({value}).address" if kind.read_only else f"addressof(from_buffer({value}))", *shape]
    elif isinstance(kind, RecordType | tuple):
        kinds: Any = kind
        fields: Any = kind
        if isinstance(kind, RecordType):
            kinds, fields = [part for _, part in kind.fields], kind.record._fields  # type: ignore[attr-defined]
            objects[record := f"record_{len(objects)}"] = kind.record
            lines.append(f"if type({value}) is not {record}: raise TypeError")
        parts = [f"{value}_{number}" for number in range(len(fields))]
        lines.append(f"{', '.join(parts)}, = {value}")
        for part, name in zip(kinds, parts, strict=False):
            _take_apart(part, name, lines, words, objects)
    else:
        words.append(value if kind is int else f"not not {value}")


def _refuse(kind: Type, value: Any, where: str) -> None:
    """Raise the error of a value that is not of a type."""
    if isinstance(kind, ArrayType):
        problem = kind.describe(value)
        if problem is not None:
            raise TypeError(f"{where} must be {kind}, not {problem}") from None
    elif isinstance(kind, RecordType):
        if type(value) is not kind.record:
            raise TypeError(f"{where} must be {kind}, not {type(value).__name__}") from None
        for (name, part), of_field in zip(kind.fields, value, strict=False):
            _refuse(part, of_field, f"{where}.{name}")
    elif isinstance(kind, tuple):
        if not isinstance(value, tuple) or len(value) != len(kind):
            raise TypeError(f"{where} must be {_text(kind)}, not {value!r}") from None
        for part, of_part in zip(kind, value, strict=True):
            _refuse(part, of_part, where)
    elif kind is int and not -(2**63) <= index(value) < 2**63:
        raise VariantError(
            "an argument has more than 64 bits; kernels take integers from -2**63 to 2**63 - 1", reason="bad-option"
        ) from None


def _result(kind: Type, numbers: Iterator[int]) -> str:
    """Return the expression of a result, whose words have the next numbers."""
    if isinstance(kind, tuple):
        return f"({', '.join([_result(part, numbers) for part in kind])},)"
    return f"{'' if kind is int else 'not not '}words[{next(numbers)}]"


_CALL = """
def call(*arguments):
    try:
        {lines}
        words = array("q", ({words},))
    except (TypeError, ValueError, AttributeError, OverflowError):
        refuse(arguments)
        raise
    if entry(words.buffer_info()[0]):
        raise MemoryError("cannot allocate the tables of a kernel; work on fewer rows at a time")
    return {result}
"""


@dataclass(frozen=True)
class Signature:
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

    def refuse(self, arguments: tuple[Any, ...]) -> None:
        """Raise the error of arguments that do not have the declared types."""
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{len(arguments)} arguments for {self}") from None
        for (name, kind), argument in zip(self.parameters, arguments, strict=True):
            _refuse(kind, argument, name)

    def calls(self, entry: Callable[[int], int]) -> Callable[..., Any]:
        """Return the function that lays out its arguments, runs an entry point on them and returns the result.

        It is made of source without loops and calls, because many kernels take less time than a few calls. It raises
        `TypeError` if an argument does not have the declared type, and `MemoryError` if the entry point returns 1.
        """
        parameters = [f"p{number}" for number in range(len(self.parameters))]
        lines, words = [f"{''.join(f'{name}, ' for name in parameters) or '()'} = arguments"], list[str]()
        objects: dict[str, Any] = {
            "addressof": ctypes.addressof, "from_buffer": (ctypes.c_char * 0).from_buffer, "py_buffer": pa.py_buffer,
            "array": array, "entry": entry, "refuse": self.refuse,
        }  # fmt: skip
        for (_, kind), name in zip(self.parameters, parameters, strict=True):
            _take_apart(kind, name, lines, words, objects)
        numbers = count(len(words))
        result = "None" if self.result is None else _result(self.result, numbers)
        words += ["0"] * (next(numbers) - len(words))
        exec(_CALL.format(lines="\n        ".join(lines), words=", ".join(words), result=result), objects)
        call: Callable[..., Any] = objects["call"]
        return call
