"""Skipping by statistics: whether a predicate can be true for any row of a part of the data.

Owns the three-valued reasoning, over one part or over many at once, and which casts keep the order of values, so that
bounds of stored values are bounds of cast values. Statistics can describe row groups, ranges of rows, or the files of a
table; unknown statistics are always allowed and skip nothing. Leaves the source of statistics to
`files.parquet.scanning.projection` and to the table formats.
"""

from __future__ import annotations

import bisect
import math
import operator
from collections.abc import Callable
from functools import reduce
from itertools import takewhile
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.inference.statistics import forget_inverted, order_key, upper_text
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.query.predicate import And, Compare, Computed, Constant, In, IsNull, Like, Not, Or, Predicate
from parquet_variant.support.records import Record

# A bool about one part of the data, or an array of bool with one entry per part.
MOST_LOOKUPS = 100  # The most values of an IN list that are looked up, in a bloom filter for instance.
Truth: TypeAlias = Any
Side: TypeAlias = Literal["<", "<=", ">", ">="]
_SIDES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class PruningStatistics(Protocol):
    """Facts about a column, in one part of the data or in many parts; unknown facts are reported as possible."""

    @property
    def may_be_null(self) -> Truth:
        """Return whether a row can be null."""

    @property
    def may_be_value(self) -> Truth:
        """Return whether a row can have a value other than null."""

    @property
    def may_be_nan(self) -> Truth:
        """Return whether there can be a NaN, which bounds do not include."""

    def may_be(self, side: Side, literal: pa.Scalar) -> Truth:
        """Return whether a value other than NaN can be on a side of a literal."""

    def may_equal(self, literal: pa.Scalar) -> Truth:
        """Return whether a value can equal a literal, by facts other than the bounds, such as a bloom filter."""

    def among(self, literals: Any) -> tuple[Truth, Truth]:
        """Return whether a value can equal one of some ascending literals, and whether every value is one of them."""


class ColumnStatistics(Record):
    """Statistics of an extracted column in one part of the data."""

    # Bounds of all values except NaN, as scalars of the column's type (double for float); None if unknown.
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    # Whether a row can be null, and whether a row can have a value; True if unknown.
    may_be_null: bool = True
    may_be_value: bool = True
    may_be_nan: bool = True  # Whether there can be a NaN, which bounds do not include; True if unknown.
    # Returns whether no value equals a literal, from a bloom filter for instance; None without one.
    excludes: Callable[[pa.Scalar], bool] | None = None

    def __post_init__(self) -> None:
        forget_inverted(self)

    def may_be(self, side: Side, literal: pa.Scalar) -> bool:
        """See `PruningStatistics`."""
        bound = self.lower if side in ("<", "<=") else self.upper
        return bound is None or bool(_SIDES[side](order_key(bound), order_key(literal)))

    def may_equal(self, literal: pa.Scalar) -> bool:
        """See `PruningStatistics`."""
        return self.excludes is None or not self.excludes(literal)

    def among(self, literals: Any) -> tuple[bool, bool]:
        """See `PruningStatistics`."""
        first = bisect.bisect_left(literals, True, key=lambda literal: self.may_be("<=", literal))
        inside = list(takewhile(lambda literal: self.may_be(">=", literal), literals[first : first + MOST_LOOKUPS]))
        is_any = len(inside) == MOST_LOOKUPS or any(map(self.may_equal, inside))
        return is_any, bool(inside) and not any(_compare(Compare("", "=", inside[0]), self)[1:])


UNKNOWN = ColumnStatistics()


def may_match(predicate: Predicate, statistics: Callable[[str], PruningStatistics]) -> Truth:
    """Return whether a row of the part can satisfy the predicate; False only if certainly no row does.

    `predicate`: a bound predicate (see `predicate.bind`).

    >>> low = ColumnStatistics(pa.scalar(1), pa.scalar(3), may_be_nan=False)
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: low)
    False
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: UNKNOWN)
    True
    """
    return _possible_truths(predicate, statistics)[0]


def _possible_truths(predicate: Predicate, statistics: Callable[[str], PruningStatistics]) -> tuple[Truth, Truth]:
    """Return whether the predicate can be true for a row, and whether it can be false for a row."""
    if isinstance(predicate, Not):
        maybe, maybe_not = _possible_truths(predicate.part, statistics)
        return maybe_not, maybe
    if isinstance(predicate, (And, Or)):
        maybe, maybe_not = zip(*(_possible_truths(part, statistics) for part in predicate.parts), strict=True)
        if isinstance(predicate, And):
            return reduce(operator.and_, maybe), reduce(operator.or_, maybe_not)
        return reduce(operator.or_, maybe), reduce(operator.and_, maybe_not)
    column = statistics(predicate.columns[0] if isinstance(predicate, Computed) else predicate.column)
    value = column.may_be_value
    if isinstance(predicate, Computed):
        return value | True, value | True
    if isinstance(predicate, IsNull):
        return column.may_be_null, value
    if not np.any(value):
        return value, value
    if isinstance(predicate, Constant):
        return value & (predicate.answer is True), value & (predicate.answer is False)
    if isinstance(predicate, In):
        literals = predicate.values
        if pa.types.is_floating(literals[0].type) and math.isnan(literals[-1].as_py()):
            return value, value & (not predicate.has_null)
        maybe, is_only = column.among(literals)
        maybe_not = np.logical_not(is_only) & (not predicate.has_null)
    elif isinstance(predicate, Like):
        prefix = scalar(predicate.prefix, pa.string())
        # Every string with the prefix is less than the next string without it.
        following = upper_text(predicate.prefix + "\x00", len(predicate.prefix))
        end = None if following is None else scalar(following, pa.string())
        maybe = column.may_be(">=", prefix) & (end is None or column.may_be("<", end))
        maybe_not = column.may_be("<", prefix) | (end is not None and column.may_be(">=", end))
        maybe_not |= not predicate.only_prefix
    else:
        maybe, maybe_not = _compare(predicate, column)
    return value & maybe, value & maybe_not


def _compare(compare: Compare, column: PruningStatistics) -> tuple[Truth, Truth]:
    literal = compare.literal
    floating = pa.types.is_floating(literal.type)
    if floating and math.isnan(literal.as_py()):
        return True, True
    less = column.may_be("<", literal)
    greater = column.may_be(">", literal) | (column.may_be_nan if floating else False)
    # A value can be equal only inside the bounds; all are equal only if both bounds are the literal.
    equal = column.may_be("<=", literal) & column.may_be(">=", literal)
    if compare.op in ("=", "<>") and np.any(equal):
        equal = equal & column.may_equal(literal)
    possible: dict[str, tuple[Truth, Truth]] = {
        "=": (equal, less | greater),
        "<>": (less | greater, equal),
        "<": (less, greater | equal),
        "<=": (less | equal, greater),
        ">": (greater, less | equal),
        ">=": (greater | equal, less),
    }
    return possible[compare.op]


def cast_keeps_order(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a cast keeps the order of values, and does not round values that are compared exactly.

    >>> cast_keeps_order(pa.int64(), pa.decimal128(38, 2)), cast_keeps_order(pa.decimal128(9, 2), pa.int64())
    (True, False)
    >>> cast_keeps_order(pa.float32(), pa.float64()), cast_keeps_order(pa.int64(), pa.string())
    (True, False)
    """
    if stored == target or (_is_string(stored) and _is_string(target)):
        return True
    if is_exact(stored) and is_exact(target):
        return _scale(stored) <= _scale(target)
    if pa.types.is_float32(target) or pa.types.is_float64(target):
        return is_exact(stored) or (pa.types.is_floating(stored) and stored.bit_width <= target.bit_width)
    return False


def is_exact(kind: pa.DataType) -> bool:
    """Return whether a type holds exact numbers: signed integers and decimals."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind))


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0
