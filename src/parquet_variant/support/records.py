"""`Record`: data classes that are frozen unless their options say otherwise; `cached_property`: computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, overload

Value = TypeVar("Value")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """A data class; the options of `dataclasses.dataclass` follow it: ``class Point(Record, frozen=False)``.

    >>> class Point(Record):
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0)
    (Point(x=1, y=0), True)
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, *, frozen: bool = True, **options: bool) -> None:
        super().__init_subclass__()
        dataclass(frozen=frozen, **options)(cls)

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties, which may have addresses of this process.
        state, names = vars(self), self.__dataclass_fields__
        return state if state.keys() <= names.keys() else {name: state[name] for name in state if name in names}


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
