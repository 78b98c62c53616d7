"""The base classes of reports and of other objects that are printed, and their counts, sizes and grids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from html import escape
from itertools import chain, islice
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
