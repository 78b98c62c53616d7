"""`InexactNumbers`: the numbers of JSON text that no Variant type keeps exactly."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InexactNumbers:
    """The numbers that were replaced by the nearest double, and do not equal it.

    These are integers and fractions of more than 38 digits, and numbers with an exponent that have more digits than a
    double, or are too large (``1E400``) or too small for one.

    Parameters
    ----------
    count
        How many there are.
    first
        The text and the position of the first one; None if there is none.

    Examples
    --------
    >>> InexactNumbers(1, "1E400 at line 3 of a.json") + InexactNumbers(2, "1E500 at line 1 of b.json")
    InexactNumbers(count=3, first='1E400 at line 3 of a.json')
    """

    count: int = 0
    first: str | None = None

    def __add__(self, other: InexactNumbers) -> InexactNumbers:
        return InexactNumbers(self.count + other.count, self.first or other.first)
