"""The part of a filter that Vortex may apply, as an expression of vortex-data.

The part may keep too many rows, never too few, because `scan` applies the whole filter again.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa

from parquet_variant.files.vortex.library import vortex
from parquet_variant.files.vortex.parts import group_of
from parquet_variant.layouts.path_steps import ArrowGroup, Step, walk_path
from parquet_variant.query.predicate import And, Compare, In, Or, Predicate, joined
from parquet_variant.query.selection import Selected

_VORTEX_OPS = {"=": "eq", "<>": "not_eq", "<": "lt", "<=": "lt_eq", ">": "gt", ">=": "gt_eq"}
# Vortex orders NaN and -0.0 differently: comparisons of doubles that depend on this order are not pushed down.
_MOST_VALUES = 64  # A longer IN list is not pushed down: vortex would evaluate an expression per value.
_FLOAT_OPS = ("=", "<", "<=")


def pushed_filter(
    predicate: Predicate, by_name: dict[str, Selected], column: str | None, storage: pa.StructType
) -> Any | None:
    """Return the part of a bound filter that Vortex may apply, as an expression; None if there is no such part."""
    expr = vortex().expr
    if isinstance(predicate, And):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        pushed = [part for part in parts if part is not None]
        return reduce(expr.and_, pushed) if pushed else None
    if isinstance(predicate, Or):
        parts = [pushed_filter(part, by_name, column, storage) for part in predicate.parts]
        return None if any(part is None for part in parts) else reduce(expr.or_, parts)
    if isinstance(predicate, In) and len(predicate.values) <= _MOST_VALUES:
        equals = [Compare(predicate.column, "=", literal) for literal in predicate.values]
        return pushed_filter(joined(Or, equals), by_name, column, storage)
    if not isinstance(predicate, Compare):
        return None
    return _compare(predicate, by_name[predicate.column], column, storage)


def _compare(compare: Compare, selected: Selected, column: str | None, storage: pa.StructType) -> Any | None:
    """Return the expression for rows whose typed value satisfies the comparison, or whose value is not typed."""
    expr = vortex().expr
    if selected.path is None or selected.path.has_wildcard or selected.type is None:
        return None
    part = group_of(storage, selected.path, selected.type)
    kind = _typed_value(selected, storage)
    literal = None if kind is None else _literal(compare, kind, selected.type)
    if literal is None:
        return None
    group = part.group(column)
    comparison = getattr(expr, _VORTEX_OPS[compare.op])(expr.get_item("typed_value", group), literal)
    return expr.or_(expr.is_not_null(expr.get_item("value", group)), comparison) if part.has_value else comparison


def _typed_value(selected: Selected, storage: pa.StructType) -> pa.DataType | None:
    assert selected.path is not None
    end = walk_path(ArrowGroup(storage), selected.path)
    typed = end.group.child("typed_value")
    return None if end.step is not Step.FOUND or end.is_repeated or typed is None else typed.type


def _literal(compare: Compare, stored: pa.DataType, requested: pa.DataType) -> Any | None:
    """Return the literal in the type of the stored column; None if the comparison could differ in that type."""
    library = vortex()
    value = compare.literal.as_py()
    types = pa.types
    if types.is_signed_integer(stored) and types.is_signed_integer(requested):
        bits = stored.bit_width
        if requested.bit_width < bits or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
        return library.expr.literal(library.int_(bits), value)
    if types.is_string(stored) and (types.is_string(requested) or types.is_large_string(requested)):
        return library.expr.literal(library.utf8(), value)
    if (
        types.is_float64(stored)
        and types.is_float64(requested)
        and compare.op in _FLOAT_OPS
        and value == value
        and value
    ):
        return library.expr.literal(library.float_(64), value)
    return None
