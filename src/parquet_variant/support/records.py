"""`Record`: data classes whose methods are made when the first object is made.

`dataclasses.dataclass` compiles the methods of a class when the class is defined, which takes twenty times as long as
the definition. A short command imports many more data classes than it uses. Leaves the methods to `dataclass`.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from threading import RLock
from typing import Any, ClassVar, dataclass_transform

from parquet_variant.support.fork_safety import loading

_lock = RLock()


class _Fields:
    """The attribute ``__dataclass_fields__`` of a class whose methods are not made yet; `Record` itself has none."""

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]] | None:
        return None if owner is Record else vars(_completed(owner))["__dataclass_fields__"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A data class, frozen unless its options say otherwise: ``class Point(Record, frozen=False)``.

    >>> class Point(Record):
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """

    _options: ClassVar[dict[str, bool]]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = _Fields()  # type: ignore[assignment]

    def __init_subclass__(cls, *, eq: bool = True, repr: bool = True, **options: bool) -> None:
        super().__init_subclass__()
        cls._options = {"frozen": True, "eq": eq, "repr": repr, **options}
        for name, is_made in {"__eq__": eq, "__hash__": eq, "__repr__": repr}.items():
            if not is_made and getattr(cls, name) is getattr(Record, name):
                setattr(cls, name, getattr(object, name))
        # A class would inherit the methods of its base when those are made, so that its own are made at once.
        if any(base is not Record and issubclass(base, Record) for base in cls.__bases__):
            _completed(cls)

    # Called until the class has its own methods: by the first object, or by objects that were unpickled.

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _completed(type(self)).__init__(self, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return _completed(type(self)).__eq__(self, other)

    def __hash__(self) -> int:
        return _completed(type(self)).__hash__(self)

    def __repr__(self) -> str:
        return _completed(type(self)).__repr__(self)


def _completed(record: Any) -> Any:
    """Return a record class that has its methods."""
    with loading(), _lock:  # no process is forked from a half-made class
        if "__dataclass_params__" not in vars(record):
            dataclass(**record._options)(record)
    return record
