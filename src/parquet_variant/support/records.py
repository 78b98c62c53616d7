"""`Record`: data classes that are frozen unless their options say otherwise."""

from __future__ import annotations

from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, dataclass_transform


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
