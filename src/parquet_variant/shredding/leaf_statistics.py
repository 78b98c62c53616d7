"""What is known of a leaf column without its values: counts and bounds, each of which may be unknown.

Owns merging them. Leaves where they come from to files, logs and arrays, and what may be concluded to `query.prune`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


def order_key(scalar: pa.Scalar) -> Any:
    """A Python value that orders as the Parquet column does."""
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        return scalar.as_buffer().to_pybytes()  # It may not be UTF-8.
    value = scalar.as_py()
    return value.bytes if hasattr(value, "bytes") else value


@dataclass(frozen=True, slots=True)
class LeafStatistics:
    """What is known of a leaf column in a row group or a file."""

    values: int  # Number of entries, nulls included (more than rows inside lists).
    nulls: int | None = None  # Number of them that are null, through whatever parent; None if unknown.
    # Scalars of the leaf's Arrow type that no value is below or above (NaN apart); None if unknown. A writer may have
    # cut long texts: then the bound is not itself a value.
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None

    @property
    def all_null(self) -> bool:
        """Whether it is certain that every entry is null."""
        return self.nulls == self.values

    @property
    def no_nulls(self) -> bool:
        """Whether it is certain that no entry is null."""
        return self.nulls == 0

    def merge(self, other: LeafStatistics) -> LeafStatistics:
        """Unite the statistics of two row groups; what one of them does not know, the union does not."""
        nulls = None if self.nulls is None or other.nulls is None else self.nulls + other.nulls
        if self.all_null or other.all_null:  # Nulls have no bounds, and move none.
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


def merged(statistics: Iterable[LeafStatistics]) -> LeafStatistics:
    """The statistics of several row groups as one; of none, those of no values."""
    result: LeafStatistics | None = None
    for each in statistics:
        result = each if result is None else result.merge(each)
    return result or LeafStatistics(0, 0)
