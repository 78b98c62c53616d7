"""The base classes of reports and of other objects that are printed, and the wording of counts in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from html import escape
from typing import Any


class Printed(ABC):
    """An object that notebooks show as its text."""

    __slots__ = ()

    @abstractmethod
    def __str__(self) -> str: ...

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Report(Printed):
    """A result with a text form for people and a dictionary for programs."""

    __slots__ = ()

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
