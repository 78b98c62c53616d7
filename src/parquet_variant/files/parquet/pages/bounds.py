"""Exact minimum and maximum of values, and how files store them.

Owns the order of each type. A NaN is not a bound; values that are all NaN have no bounds. Leaves the places where
bounds are computed to `column_chunk`. Spec: ``parquet.thrift``, ``ColumnOrder``.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any, TypeAlias

import numpy as np

from parquet_variant.files.parquet.pages.leaf_types import LeafType, Physical
from parquet_variant.files.parquet.pages.leaf_values import LeafValues
from parquet_variant.kernels.pages.values import byte_bounds

# Minimum and maximum, as numbers or bytes that compare in the order of the column.
Bounds: TypeAlias = "tuple[Any, Any] | None"
_FORMS = {Physical.FLOAT: "<f", Physical.DOUBLE: "<d"}


def bounds_of(values: LeafValues, leaf: LeafType) -> Bounds:
    """Return the bounds of values; None without values or if all are NaN."""
    if not values.count:
        return None
    if leaf.order in ("signed", "unsigned"):
        numbers = values.numbers(leaf)
        return int(numbers.min()), int(numbers.max())
    if leaf.order == "boolean":
        return int(values.data.min()), int(values.data.max())
    if leaf.order == "float":
        numbers = values.numbers(leaf)
        low, high = float(np.fmin.reduce(numbers)), float(np.fmax.reduce(numbers))
        return None if low != low else (low, high)
    if leaf.order == "decimal":
        return _decimal_bounds(values)
    lengths = np.full(values.count, values.width, np.int32) if values.lengths is None else values.lengths
    low_at, low_size, high_at, high_size = byte_bounds(values.address, lengths)
    return values.data[low_at : low_at + low_size].tobytes(), values.data[high_at : high_at + high_size].tobytes()


def _decimal_bounds(values: LeafValues) -> Bounds:
    """Return the bounds of big-endian signed integers, which compare as bytes if the sign bit is flipped."""
    rows = values.data.reshape(-1, values.width).copy()
    rows[:, 0] ^= 0x80
    flat = LeafValues(values.count, values.width, rows.reshape(-1))
    low_at, _, high_at, _ = byte_bounds(flat.address, np.full(values.count, values.width, np.int32))
    low, high = (values.data[at : at + values.width].tobytes() for at in (low_at, high_at))
    return int.from_bytes(low, "big", signed=True), int.from_bytes(high, "big", signed=True)


def union(left: Bounds, right: Bounds) -> Bounds:
    """Return bounds that include both."""
    if left is None or right is None:
        return left or right
    return min(left[0], right[0]), max(left[1], right[1])


def stored(bounds: tuple[Any, Any], leaf: LeafType) -> tuple[bytes, bytes]:
    """Return bounds in PLAIN encoding, with signs of zero that include both zeros."""
    low, high = bounds
    if leaf.order == "bytes":
        return low, high
    if leaf.order == "float":
        form = _FORMS[leaf.physical]
        return struct.pack(form, low or -0.0), struct.pack(form, high or 0.0)
    is_decimal = leaf.order == "decimal"
    return tuple(
        number.to_bytes(leaf.width, "big" if is_decimal else "little", signed=leaf.order in ("signed", "decimal"))
        for number in bounds
    )


def loaded(bounds: tuple[bytes, bytes], leaf: LeafType) -> tuple[Any, Any]:
    """Return the bounds that `stored` encoded."""
    if leaf.order == "bytes":
        return bounds
    if leaf.order == "float":
        low, high = (struct.unpack(_FORMS[leaf.physical], bound)[0] for bound in bounds)
        return low, high
    low, high = (
        int.from_bytes(
            bound, "big" if leaf.order == "decimal" else "little", signed=leaf.order in ("signed", "decimal")
        )
        for bound in bounds
    )
    return low, high


def boundary_order(bounds: list[tuple[Any, Any]]) -> int:
    """Return the ``BoundaryOrder`` of pages: 1 if bounds never decrease, 2 if they never increase, else 0."""
    pairs = list(itertools.pairwise(bounds))
    if all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairs):
        return 1
    return 2 if all(a[0] >= b[0] and a[1] >= b[1] for a, b in pairs) else 0
