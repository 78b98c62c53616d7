"""Statistics of a leaf column: counts and bounds, each of which may be unknown.

Owns merging statistics. Files, logs and arrays provide them, and `query.prune` draws conclusions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


def order_key(scalar: pa.Scalar) -> Any:
    """Return a Python value with the order of the Parquet column."""
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        return scalar.as_buffer().to_pybytes()  # the bytes may be invalid UTF-8
    value = scalar.as_py()
    return value.bytes if hasattr(value, "bytes") else value


def forget_inverted(bounds: Any) -> None:
    """Make the bounds of new statistics unknown if the lower one is above the upper one: one of them is wrong."""
    if bounds.lower is not None and bounds.upper is not None and order_key(bounds.lower) > order_key(bounds.upper):
        object.__setattr__(bounds, "lower", None)
        object.__setattr__(bounds, "upper", None)


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """Statistics of a leaf column in a row group or a file."""

    values: int  # Number of entries, nulls included (more than rows inside lists).
    nulls: int | None = None  # Number of null entries, including those with a null parent; None if unknown.
    # Bounds as scalars of the leaf's Arrow type (NaN excluded); None if unknown. Writers may truncate long
    # strings, so a bound need not be a value.
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None

    def __post_init__(self) -> None:
        forget_inverted(self)

    @property
    def all_null(self) -> bool:
        """Whether it is certain that every entry is null."""
        return self.nulls == self.values

    @property
    def no_nulls(self) -> bool:
        """Whether it is certain that no entry is null."""
        return self.nulls == 0

    def merge(self, other: LeafStatistics) -> LeafStatistics:
        """Return the statistics of two row groups together; a value that one of them lacks is unknown."""
        nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls
        if self.all_null or other.all_null:  # Nulls do not affect bounds.
            bounded = other if self.all_null else self
            return LeafStatistics(self.values + other.values, nulls, bounded.lower, bounded.upper)
        return LeafStatistics(
            self.values + other.values,
            nulls,
            _pick(self.lower, other.lower, smaller=True),
            _pick(self.upper, other.upper, smaller=False),
        )


def _pick(left: pa.Scalar | None, right: pa.Scalar | None, *, smaller: bool) -> pa.Scalar | None:
    if left is None or right is None:
        return None
    return left if (order_key(left) <= order_key(right)) == smaller else right


def merge_statistics(statistics: Iterable[LeafStatistics]) -> LeafStatistics:
    """Return the statistics of several row groups together; without row groups, those of no values."""
    result: LeafStatistics | None = None
    for leaf in statistics:
        result = leaf if result is None else result.merge(leaf)
    return result or LeafStatistics(0, 0)
