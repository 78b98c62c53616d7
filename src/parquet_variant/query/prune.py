"""What statistics allow to conclude: may a predicate be true for any row of a part of the data?

Owns the three-valued reasoning. Its facts come from anyone who knows something of a column (a row group, a page, a
file's log entry), and "unknown" is always an allowed fact that skips nothing. Leaves where facts come from to `facts`
and to the table formats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from parquet_variant.query.predicate import And, Compare, Constant, IsNull, Like, Not, Or, Predicate

__all__ = ["UNKNOWN", "ColumnFacts", "may_match", "order_key"]


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of an extracted column in a part of the data.

    Parameters
    ----------
    lower, upper
        Scalars of the column's type (double for float) that no value is below or above, NaN apart; None if unknown.
    may_be_null, may_be_value
        Whether any row may be null, or anything else; True if unknown.
    may_be_nan
        Whether a NaN may be there that the bounds do not show; True if unknown.
    excludes
        Tells of a literal whether certainly no value equals it, from a bloom filter or the like; None if there is none.
    """

    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    may_be_null: bool = True
    may_be_value: bool = True
    may_be_nan: bool = True
    excludes: Callable[[pa.Scalar], bool] | None = None


UNKNOWN = ColumnFacts()


def order_key(scalar: pa.Scalar) -> Any:
    """A Python value that orders as the Parquet column does."""
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    value = scalar.as_py()
    if isinstance(value, str):
        return value.encode()
    return value.bytes if hasattr(value, "bytes") else value


def may_match(predicate: Predicate, facts: Callable[[str], ColumnFacts]) -> bool:
    """Whether some row may satisfy the predicate; False only if it is certain that none does.

    Parameters
    ----------
    predicate
        A bound predicate (see `predicate.bind`).
    facts
        Gives what is known of a column by its name.

    Examples
    --------
    >>> low = ColumnFacts(pa.scalar(1), pa.scalar(3), may_be_nan=False)
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: low)
    False
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: UNKNOWN)
    True
    """
    return _possible(predicate, facts)[0]


def _possible(predicate: Predicate, facts: Callable[[str], ColumnFacts]) -> tuple[bool, bool]:
    """Whether the predicate may be true for some row, and whether it may be false for some row."""
    if isinstance(predicate, Not):
        maybe, maybe_not = _possible(predicate.part, facts)
        return maybe_not, maybe
    if isinstance(predicate, (And, Or)):
        parts = [_possible(part, facts) for part in predicate.parts]
        if isinstance(predicate, And):
            return all(part[0] for part in parts), any(part[1] for part in parts)
        return any(part[0] for part in parts), all(part[1] for part in parts)
    known = facts(predicate.column)
    if isinstance(predicate, IsNull):
        return known.may_be_null, known.may_be_value
    if not known.may_be_value:
        return False, False
    if isinstance(predicate, Constant):
        return predicate.answer is True, predicate.answer is False
    if isinstance(predicate, Like):
        return _like(predicate, known)
    return _compare(predicate, known)


def _like(like: Like, known: ColumnFacts) -> tuple[bool, bool]:
    prefix = like.prefix.encode()
    lower = None if known.lower is None else order_key(known.lower)
    upper = None if known.upper is None else order_key(known.upper)
    if (upper is not None and upper < prefix) or (lower is not None and lower[: len(prefix)] > prefix):
        return False, True
    inside = lower is not None and upper is not None and lower.startswith(prefix) and upper.startswith(prefix)
    return True, not (inside and like.only_prefix)


def _compare(compare: Compare, known: ColumnFacts) -> tuple[bool, bool]:
    floating = pa.types.is_floating(compare.literal.type)
    literal = order_key(compare.literal)
    if floating and math.isnan(literal):
        return True, True
    nan = floating and known.may_be_nan
    lower = None if known.lower is None else order_key(known.lower)
    upper = None if known.upper is None else order_key(known.upper)
    below, above = lower is None or lower < literal, upper is None or upper > literal or nan
    # Equal is possible only inside of the bounds; certain only if both are the literal.
    equal = (lower is None or lower <= literal) and (upper is None or upper >= literal)
    if equal and known.excludes is not None and compare.op in ("=", "<>"):
        equal = not known.excludes(compare.literal)
    possible: dict[str, tuple[Any, Any]] = {
        "=": (equal, below or above),
        "<>": (below or above, equal),
        "<": (below, above or equal),
        "<=": (below or equal, above),
        ">": (above, below or equal),
        ">=": (above or equal, below),
    }
    maybe, maybe_not = possible[compare.op]
    return bool(maybe), bool(maybe_not)
