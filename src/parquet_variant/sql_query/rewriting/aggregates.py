"""Aggregates over Variants that order or compare them: extremes, modes, lists of distinct values, quantiles.

Owns what each becomes for the engine, by the order and equality of `comparisons`. Leaves aggregates that return one of
their arguments, such as ``first``, to `values`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.kinds import Kind, is_variant
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter
from parquet_variant.types.targets import VARIANT_STORAGE

_EXTREMES = {"min": "arg_min", "max": "arg_max"}
_OF_KEYS = frozenset(["approx_count_distinct", "entropy", "grouping", "grouping_id"])  # depend on equality alone
_LISTS = frozenset(["list", "array_agg"])


def rewrite_aggregate(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite an aggregate over Variants; None for any other expression."""
    if name in _OF_KEYS or (isinstance(node, exp.Distinct) and _is_counted(node)):
        for part in node.expressions:
            if isinstance(part, exp.Tuple):
                values.children(part, convert=values.by_key)
                values.keep(part)
        values.children(node, convert=values.by_key)
        return node, None
    if isinstance(node, (exp.Min, exp.Max)) or (name in _EXTREMES and len(node.expressions) == 1):
        return _rewrite_extreme(values, node, name or type(node).__name__.lower())
    if isinstance(node, exp.WithinGroup):
        return _rewrite_ordered_set(values, node)
    if name == "mode" or (name in _LISTS and node.expressions and isinstance(node.expressions[0], exp.Distinct)):
        return _rewrite_by_equality(values, node, name)
    return None


def _is_counted(node: exp.Distinct) -> bool:
    return isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() in ("count", "approx_count_distinct")


def _rewrite_extreme(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite min or max of a Variant: the value, or with a number the values, with the least or greatest sort key."""
    argument = node.this if isinstance(node, (exp.Min, exp.Max)) else node.expressions[0]
    if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
        argument = argument.expressions[0]
    value, kind = values.expression(argument)
    if not is_variant(kind):
        return None
    number: Any = node.args.get("count")
    key = values.rewriter.getter(function="sort_key", text=written(argument, values.engine))
    arguments = [value, exp.Anonymous(this=key, expressions=[value.copy()]), *([] if number is None else [number])]
    extreme = exp.Anonymous(this=_EXTREMES[name], expressions=arguments)
    extreme.meta["written"] = node
    return extreme, VARIANT_STORAGE if number is None else pa.list_(VARIANT_STORAGE)


def _rewrite_ordered_set(values: ValueRewriter, node: exp.WithinGroup) -> tuple[exp.Expr, Kind] | None:
    """Rewrite ``mode() WITHIN GROUP (ORDER BY v:a)``; other such aggregates interpolate or return the ordered value."""
    keys = [ordered.this for ordered in node.expression.expressions if isinstance(ordered, exp.Ordered)]
    untyped = [key for key in keys if is_variant(values.expression(key)[1]) and values.typed(key) is None]
    if not untyped:
        return None
    if node.this.name.lower() == "mode" and len(keys) == 1:
        return values.expression(exp.Anonymous(this="mode", expressions=keys))
    text = written(untyped[0], values.engine)
    raise SqlError(f"{node.this.name} needs values of one type, and {text} is a Variant: write {text}::double")


def _rewrite_by_equality(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite an aggregate that compares values for equality: values that are equal get one form."""
    if not node.expressions:
        return None
    holder = node.expressions[0] if isinstance(node.expressions[0], exp.Distinct) else node
    argument = holder.expressions[0]
    if len(holder.expressions) != 1 or not is_variant(values.expression(argument)[1]):
        return None
    if values.typed(argument) is not None:
        return None
    form = values.call("variant_form", values.expression(argument)[0])
    argument.replace(form)
    values.keep(form)
    values.keep(holder)
    return node, VARIANT_STORAGE if name == "mode" else pa.list_(VARIANT_STORAGE)
