"""What reports have in common, and numbers of things in them. Owns only that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any


class Report(ABC):
    """What is found out or done, for people as text, for machines as a dictionary."""

    __slots__ = ()

    @abstractmethod
    def __str__(self) -> str: ...

    def to_dict(self) -> dict[str, object]:
        """The report for machines."""
        record: Any = self  # each is a dataclass
        return asdict(record)


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "file"), counted(1707, "row")
    ('1 file', '1,707 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rewritten(result: Any) -> str:
    """What an optimize did to the files, from its counts."""
    if not result.files_removed:
        return "nothing to do"
    before = f"{counted(result.files_removed, 'file')} of {counted(result.bytes_removed, 'byte')}"
    return f"{before} became {counted(result.files_added, 'file')} of {counted(result.bytes_added, 'byte')}"
