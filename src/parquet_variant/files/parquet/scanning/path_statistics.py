"""Statistics of a path that is extracted as a type, from the statistics of the file's columns.

Owns the rules that keep pruning correct: bounds of ``typed_value`` apply only if no residual can hold a value of the
path, and only through casts that preserve order. Leaves the evaluation of filters over statistics to `query.prune`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.statistics import leaf_type
from parquet_variant.files.parquet.scanning.projection import PathColumns, only_nulls
from parquet_variant.inference.leaf_statistics import LeafStatistics
from parquet_variant.kernels.arrow_buffers import scalar
from parquet_variant.query.prune import UNKNOWN, ColumnStatistics, cast_keeps_order, is_exact
from parquet_variant.support import arrow_compute as pc

_ONLY_NULL = ColumnStatistics(may_be_null=True, may_be_value=False, may_be_nan=False)


def path_statistics(
    columns: PathColumns,
    target: pa.DataType | None,
    statistics: Callable[[SchemaNode], LeafStatistics],
    *,
    hidden_nan: bool,
) -> ColumnStatistics:
    """Return statistics of a path extracted as `target` (None for a Variant) in a row group or file.

    `columns`: the leaves that hold values of the path.
    `target`: the requested Arrow type; failed casts are null.
    `statistics`: returns the statistics of a leaf.
    `hidden_nan`: whether a float column may hold a NaN outside its bounds.
    """
    scalar = target is not None and not pa.types.is_nested(target)
    if columns.repeated or columns.needs_all or not scalar:
        if columns.needed(statistics, scalar=scalar) is None:
            return _ONLY_NULL
        return _wrong_type(columns, target, statistics)
    if not all(only_nulls(statistics(leaf), variant_nulls=True) for leaf in columns.residuals):
        return UNKNOWN
    leaf = columns.primitive
    if leaf is None:
        return _ONLY_NULL
    leaf_values = statistics(leaf)
    if leaf_values.all_null:
        return _ONLY_NULL
    stored = leaf_type(leaf)
    if stored is None or target is None:
        return UNKNOWN
    return scalar_statistics(leaf_values, stored, target, hidden_nan=hidden_nan)


def scalar_statistics(
    stored_statistics: LeafStatistics, stored: pa.DataType, target: pa.DataType, *, hidden_nan: bool
) -> ColumnStatistics:
    """Return statistics of stored scalars that are cast to another type; failed casts are null."""
    if stored_statistics.all_null or _never_casts(stored, target):
        return _ONLY_NULL
    return _through_cast(stored_statistics, stored, target, hidden_nan)


def _wrong_type(
    columns: PathColumns, target: pa.DataType | None, statistics: Callable[[SchemaNode], LeafStatistics]
) -> ColumnStatistics:
    """Return statistics of a path that holds only objects or arrays: null for every type except string."""
    typed = columns.group.child("typed_value")
    residual = columns.group.child("value")
    if target is None or pa.types.is_nested(target) or columns.repeated or not columns.reached or typed is None:
        return UNKNOWN
    if typed.leaf is not None or pa.types.is_string(target) or pa.types.is_large_string(target):
        return UNKNOWN
    if residual is not None and not only_nulls(statistics(residual), variant_nulls=True):
        return UNKNOWN
    return _ONLY_NULL


def column_statistics(
    leaf: SchemaNode, leaf_values: LeafStatistics, arrow: pa.DataType, *, hidden_nan: bool
) -> ColumnStatistics:
    """Return statistics of a leaf column that is not part of a Variant."""
    if leaf_values.all_null:
        return _ONLY_NULL
    stored = leaf_type(leaf)
    if stored is None or stored != arrow:
        return ColumnStatistics(may_be_null=not leaf_values.no_nulls)
    return _through_cast(leaf_values, stored, arrow, hidden_nan)


def constant_statistics(value: pa.Scalar) -> ColumnStatistics:
    """Return statistics of a column that has one value in every row."""
    if not value.is_valid:
        return _ONLY_NULL
    is_nan = pa.types.is_floating(value.type) and math.isnan(value.as_py())
    bound = None if is_nan else value
    return ColumnStatistics(bound, bound, may_be_null=False, may_be_nan=is_nan)


def _through_cast(
    stored_statistics: LeafStatistics, stored: pa.DataType, target: pa.DataType, hidden_nan: bool
) -> ColumnStatistics:
    if not cast_keeps_order(stored, target):
        return UNKNOWN
    lower, upper = (
        _cast(stored_statistics.lower, stored, target, -math.inf),
        _cast(stored_statistics.upper, stored, target, math.inf),
    )
    # A failed cast is null; a cast that succeeds for both bounds succeeds for every value between them.
    never_fails = stored == target or pa.types.is_floating(target) or (lower is not None and upper is not None)
    return ColumnStatistics(
        lower=lower if never_fails else None,
        upper=upper if never_fails else None,
        may_be_null=not (stored_statistics.no_nulls and never_fails),
        may_be_nan=hidden_nan and pa.types.is_floating(stored),
    )


def _cast(bound: pa.Scalar | None, stored: pa.DataType, target: pa.DataType, away: float) -> pa.Scalar | None:
    """Return a bound as the target type (double for float); None if it does not fit."""
    if bound is None:
        return None
    if pa.types.is_floating(target):
        value = float(bound.as_py())
        if pa.types.is_decimal(stored):
            value = math.nextafter(value, away)  # Division by a power of ten may be off by the last bit.
        if pa.types.is_float32(target):
            value = float(np.nextafter(np.float32(value), np.float32(away)))
        return scalar(value, pa.float64())
    try:
        if pa.types.is_decimal(stored) and not pa.types.is_decimal(target):
            return scalar(int(bound.as_py()), target)
        return bound if stored == target else pc.cast(bound, target)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


# Type families between which every cast is null.
_IMPOSSIBLE_CASTS = {
    "bool": ("temporal", "binary", "uuid"),
    "number": ("binary", "uuid", "date", "time"),
    "temporal": ("bool", "binary", "uuid"),
    "binary": ("bool", "number", "temporal", "uuid"),
    "uuid": ("bool", "number", "temporal"),
}


def _family(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "bool"
    if is_exact(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "temporal"
    if kind == pa.uuid():
        return "uuid"
    return "binary" if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else "text"


def _never_casts(stored: pa.DataType, target: pa.DataType) -> bool:
    families = {_family(target)}
    if pa.types.is_date(target):
        families.add("date")
    if pa.types.is_time(target):
        families.add("time")
    return bool(families & set(_IMPOSSIBLE_CASTS.get(_family(stored), ())))
