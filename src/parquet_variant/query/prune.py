"""What statistics allow to conclude: may a predicate be true for any row of a part of the data?

Owns the three-valued reasoning, over one part or over many at once. Its statistics come from anyone who knows something
of a column (row groups, ranges of rows, the files of a table's log), and "unknown" is always an allowed answer that
skips nothing. Owns also which casts keep the order of values, so that bounds of what is stored are bounds of what is
asked for. Leaves where statistics come from to `parquet.scanning.path_statistics` and to the table formats.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.query.predicate import And, Compare, Constant, IsNull, Like, Not, Or, Predicate
from parquet_variant.shredding.leaf_statistics import order_key
from parquet_variant.shredding.statistics import upper_text

# A bool about one part of the data, or an array of bool with one entry a part.
Truth: TypeAlias = Any
Side: TypeAlias = Literal["<", "<=", ">", ">="]
_SIDES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class PruningStatistics(Protocol):
    """What is known of a column, in one part of the data or in each of many; what is unknown may be."""

    @property
    def may_be_null(self) -> Truth:
        """Whether any row may be null."""

    @property
    def may_be_value(self) -> Truth:
        """Whether any row may be anything else."""

    @property
    def may_be_nan(self) -> Truth:
        """Whether a NaN may be there that the bounds do not show."""

    def may_be(self, side: Side, literal: pa.Scalar) -> Truth:
        """Whether any value, NaN apart, may lie on that side of a literal."""

    def may_equal(self, literal: pa.Scalar) -> Truth:
        """Whether any value may equal a literal, apart from what the bounds say; asked only if it matters."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of an extracted column in a part of the data."""

    # Scalars of the column's type (double for float) that no value is below or above, NaN apart; None if unknown.
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    # Whether any row may be null, or anything else; True if unknown.
    may_be_null: bool = True
    may_be_value: bool = True
    may_be_nan: bool = True  # Whether a NaN may be there that the bounds do not show; True if unknown.
    # Tells of a literal whether certainly no value equals it, from a bloom filter or the like; None if there is none.
    excludes: Callable[[pa.Scalar], bool] | None = None

    def may_be(self, side: Side, literal: pa.Scalar) -> bool:
        """As `PruningStatistics` says."""
        bound = self.lower if side in ("<", "<=") else self.upper
        return bound is None or bool(_SIDES[side](order_key(bound), order_key(literal)))

    def may_equal(self, literal: pa.Scalar) -> bool:
        """As `PruningStatistics` says."""
        return self.excludes is None or not self.excludes(literal)


UNKNOWN = ColumnStatistics()


def may_match(predicate: Predicate, statistics: Callable[[str], PruningStatistics]) -> Truth:
    """Whether some row of a part may satisfy the predicate; False only if it is certain that none does.

    `predicate`: a bound predicate (see `predicate.bind`).

    >>> low = ColumnStatistics(pa.scalar(1), pa.scalar(3), may_be_nan=False)
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: low)
    False
    >>> may_match(Compare("n", ">", pa.scalar(3)), lambda name: UNKNOWN)
    True
    """
    return _possible(predicate, statistics)[0]


def _possible(predicate: Predicate, statistics: Callable[[str], PruningStatistics]) -> tuple[Truth, Truth]:
    """Whether the predicate may be true for some row, and whether it may be false for some row."""
    if isinstance(predicate, Not):
        maybe, maybe_not = _possible(predicate.part, statistics)
        return maybe_not, maybe
    if isinstance(predicate, (And, Or)):
        maybe, maybe_not = zip(*(_possible(part, statistics) for part in predicate.parts), strict=True)
        if isinstance(predicate, And):
            return reduce(operator.and_, maybe), reduce(operator.or_, maybe_not)
        return reduce(operator.or_, maybe), reduce(operator.and_, maybe_not)
    known = statistics(predicate.column)
    value = known.may_be_value
    if isinstance(predicate, IsNull):
        return known.may_be_null, value
    if not np.any(value):
        return value, value
    if isinstance(predicate, Constant):
        return value & (predicate.answer is True), value & (predicate.answer is False)
    maybe, maybe_not = _like(predicate, known) if isinstance(predicate, Like) else _compare(predicate, known)
    return value & maybe, value & maybe_not


def _like(like: Like, known: PruningStatistics) -> tuple[Truth, Truth]:
    prefix = scalar(like.prefix, pa.string())
    # Every text that starts with the prefix is below the next text that does not.
    following = upper_text(like.prefix + "\x00", len(like.prefix))
    end = None if following is None else scalar(following, pa.string())
    maybe = known.may_be(">=", prefix) & (end is None or known.may_be("<", end))
    others = known.may_be("<", prefix) | (end is not None and known.may_be(">=", end))
    return maybe, others | (not like.only_prefix)


def _compare(compare: Compare, known: PruningStatistics) -> tuple[Truth, Truth]:
    literal = compare.literal
    floating = pa.types.is_floating(literal.type)
    if floating and math.isnan(literal.as_py()):
        return True, True
    below = known.may_be("<", literal)
    above = known.may_be(">", literal) | (known.may_be_nan if floating else False)
    # Equal is possible only inside of the bounds; certain only if both are the literal.
    equal = known.may_be("<=", literal) & known.may_be(">=", literal)
    if compare.op in ("=", "<>") and np.any(equal):
        equal = equal & known.may_equal(literal)
    possible: dict[str, tuple[Truth, Truth]] = {
        "=": (equal, below | above),
        "<>": (below | above, equal),
        "<": (below, above | equal),
        "<=": (below | equal, above),
        ">": (above, below | equal),
        ">=": (above | equal, below),
    }
    return possible[compare.op]


def cast_keeps_order(stored: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast never puts a smaller value above a larger one, and rounds nothing that is compared exactly.

    >>> cast_keeps_order(pa.int64(), pa.decimal128(38, 2)), cast_keeps_order(pa.decimal128(9, 2), pa.int64())
    (True, False)
    >>> cast_keeps_order(pa.float32(), pa.float64()), cast_keeps_order(pa.int64(), pa.string())
    (True, False)
    """
    if stored == target or (_is_text(stored) and _is_text(target)):
        return True
    if is_exact(stored) and is_exact(target):
        return _scale(stored) <= _scale(target)
    if pa.types.is_float32(target) or pa.types.is_float64(target):
        return is_exact(stored) or (pa.types.is_floating(stored) and stored.bit_width <= target.bit_width)
    return False


def is_exact(kind: pa.DataType) -> bool:
    """Whether a type holds exact numbers: integers, decimals."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _scale(kind: pa.DataType) -> int:
    return int(kind.scale) if pa.types.is_decimal(kind) else 0
