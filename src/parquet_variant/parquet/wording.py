"""Numbers of things in reports. Owns only that."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "file"), counted(1707, "row")
    ('1 file', '1,707 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
