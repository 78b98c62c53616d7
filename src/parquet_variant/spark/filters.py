"""Filters as Spark pushes them into a Python data source, as predicates of our scan.

Owns the translation; what has none is left out, which only skips less, since Spark applies every filter again. Leaves
the meaning of a predicate to `parquet.predicate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from parquet_variant.parquet.predicate import Compare, IsNull, Like, Not, Or, Predicate, is_in

__all__ = ["predicates_of"]

_COMPARISONS: dict[str, Literal["=", ">", ">=", "<", "<="]] = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}


def predicates_of(filters: Iterable[Any]) -> list[Predicate]:
    """The predicates, all of which must hold, for the filters of `pyspark.sql.datasource` that have one.

    Examples
    --------
    >>> from pyspark.sql.datasource import GreaterThan, StringContains
    >>> predicates_of([GreaterThan(("mag",), 5), StringContains(("place",), "x")])
    [Compare(column='mag', op='>', literal=5)]
    """
    found = (_predicate(each) for each in filters)
    return [predicate for predicate in found if predicate is not None]


def _predicate(given: Any) -> Predicate | None:
    name = type(given).__name__
    if name == "Not":
        return _negated(given.child)
    if len(given.attribute) != 1:
        return None  # a field of a struct column: ours are all top-level
    column = given.attribute[0]
    if name in _COMPARISONS:
        return Compare(column, _COMPARISONS[name], given.value)
    if name == "EqualNullSafe":
        return IsNull(column) if given.value is None else Compare(column, "=", given.value)
    if name == "In":
        return is_in(column, given.value) if given.value else None
    if name in ("IsNull", "IsNotNull"):
        return IsNull(column) if name == "IsNull" else Not(IsNull(column))
    if name == "StringStartsWith":
        escaped = "".join(f"\\{character}" if character in "\\%_" else character for character in given.value)
        return Like(column, f"{escaped}%")
    return None


def _negated(child: Any) -> Predicate | None:
    predicate = _predicate(child)
    if predicate is None:
        return None
    if type(child).__name__ == "EqualNullSafe" and child.value is not None:
        # Null is not the value, for certain, where an ordinary comparison would be unknown.
        return Or((Not(predicate), IsNull(child.attribute[0])))
    return Not(predicate)
