"""`Record`: data classes that are frozen unless their options say otherwise; `cached_property`: computed once.

Owns also the base classes of reports and of other objects that are printed, and their counts, sizes and grids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, FrozenInstanceError, asdict, dataclass, field, fields, make_dataclass
from inspect import Signature, signature
from itertools import chain, islice
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, overload

Value = TypeVar("Value")


class _Arguments:
    """The attribute ``__signature__`` of a class of records, which `inspect.signature` and `help` read."""

    def __get__(self, record: object, owner: type[Record]) -> Signature:
        return signature(owner._with_init())


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A data class, frozen and compared by its fields unless ``frozen=False`` or ``eq=False`` follow its name.

    `dataclasses.dataclass` finds the fields, and writes ``__init__`` when the first object is made. It compiles the
    methods that it writes, so that writing all of them for each class took a quarter of the time of a short command.

    >>> class Point(Record):
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__: ClassVar[Any] = _Arguments()
    _frozen: ClassVar[bool]
    # The values of the fields that `__eq__` compares, and of those of them that `__hash__` takes.
    _compared: ClassVar[Any]
    _hashed: ClassVar[Any]

    def __init_subclass__(cls, *, frozen: bool = True, eq: bool = True, kw_only: bool = False) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        cls._frozen = frozen
        compared = [member for member in fields(cls) if member.compare]
        cls._compared = _getter([member.name for member in compared])
        cls._hashed = _getter([member.name for member in compared if member.hash is not False])
        record: Any = cls
        record.__init__ = Record.__init__
        attributes = vars(cls)
        for name, is_ours in {"__eq__": eq, "__setattr__": frozen, "__delattr__": frozen}.items():
            if name not in attributes:
                setattr(cls, name, getattr(Record if is_ours else object, name))
        if attributes.get("__hash__") is None:  # Python sets None where a class has an `__eq__`.
            record.__hash__ = object.__hash__ if not eq else Record.__hash__ if frozen else None

    def __init__(self, *values: Any, **named: Any) -> None:
        record: Any = type(self)
        record.__init__ = record._with_init().__init__
        record.__init__(self, *values, **named)

    @classmethod
    def _with_init(cls) -> type:
        """Return a data class with the ``__init__`` of this class."""
        members = [(member.name, member.type, member) for member in fields(cls)]
        # Without a docstring, `make_dataclass` makes one of the signature, which takes a third of its time.
        names: dict[str, Any] = {"__doc__": "See the record."}
        if hasattr(cls, "__post_init__"):
            names["__post_init__"] = cls.__post_init__
        return make_dataclass(cls.__name__, members, namespace=names, repr=False, eq=False, frozen=cls._frozen)

    @recursive_repr()
    def __repr__(self) -> str:
        shown = (member.name for member in fields(self) if member.repr)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._compared(self) == self._compared(other))

    def __hash__(self) -> int:
        return hash(self._hashed(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties, which may have addresses of this process.
        state, names = vars(self), self.__dataclass_fields__
        return state if state.keys() <= names.keys() else {name: state[name] for name in state if name in names}


def _getter(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return the function that returns the values of some fields: a tuple, but the value of a single field."""
    return attrgetter(*names) if names else type


class cached_property(Generic[Value]):  # noqa: N801 - the name of the standard library's decorator
    """A property that is computed on first use and stored in the instance.

    Python 3.11 computes `functools.cached_property` under a lock that all instances share. If another thread computes
    one while the process forks, the child can never read that property. Later versions have no lock, but threads that
    come first together get different objects. Here they compute the value more than once, and all get the same object.

    Examples
    --------
    >>> class Circle:
    ...     @cached_property
    ...     def area(self) -> float:
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, vars(circle)
    (3.14, {'area': 3.14})
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[Value] | Value:
        """Return the value, or the property itself when it is looked up on the class."""
        if instance is None:
            return self
        # Python looks into the instance first, so that this runs only before the value is stored.
        value: Value = instance.__dict__.setdefault(self._name, self._function(instance))
        return value


class Printed(ABC):
    """An object that notebooks show as its text."""

    __slots__ = ()

    @abstractmethod
    def __str__(self) -> str: ...

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


class Report(Printed):
    """A result with a text form for people and a dictionary for programs."""

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary."""
        record: Any = self  # every report is a dataclass
        return asdict(record)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural if needed.

    >>> counted(1, "file"), counted(1707, "row")
    ('1 file', '1,707 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, length: int) -> str:
    """Return a text, or its start with an ellipsis if it is longer than a number of characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


_UNITS = ("bytes", "kB", "MB", "GB", "TB")
_GRID_ROWS = 1000  # The rows that determine the widths.


def human_bytes(size: float) -> str:
    """Return a size in a readable unit.

    >>> human_bytes(999), human_bytes(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    value, units = float(size), iter(_UNITS)
    unit = next(units)
    while value >= 1000 and (larger := next(units, None)) is not None:
        value, unit = value / 1000, larger
    return f"{value:.0f} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def grid(header: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = ()) -> Iterator[str]:
    r"""Yield the lines of a grid with a header; the columns named in `right` are aligned to the right.

    >>> print(*grid(["path", "rows"], [["$.a", 12], ["$.bcd", 3]], right=["rows"]), sep="\n")
    path   rows
    -----  ----
    $.a      12
    $.bcd     3
    """

    def cell(value: Any) -> str:
        """Return the text of a value in one line: a line break would end the row."""
        text = "-" if value is None else str(value)
        return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)

    cells = ([cell(value) for value in row] for row in rows)
    first = list(islice(cells, _GRID_ROWS))
    widths = [max(map(len, column)) for column in zip(header, *first, strict=True)]
    to_right = set(right)
    for row in chain([header, ["-" * width for width in widths]], first, cells):
        columns = zip(header, row, widths, strict=True)
        yield "  ".join(v.rjust(width) if name in to_right else v.ljust(width) for name, v, width in columns).rstrip()
