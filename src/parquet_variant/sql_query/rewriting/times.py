"""Points in time that are Variants: arguments of date functions, and operands next to an interval.

Owns which expressions take a point in time. A Variant there is its cast to timestamp, unless all values have another
type than string. Leaves the cast to `values`.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from parquet_variant.sql_query.kinds import Kind, is_variant
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter

_PARTS = """
    year month day hour minute second millisecond microsecond quarter week weekofyear dayofmonth dayofweek dayofyear
    weekday isodow isoyear yearweek century decade millennium era epoch dayname monthname last_day
"""
_FUNCTIONS = frozenset(
    ["date_trunc", "datetrunc", "date_part", "datepart", "date_diff", "datediff", "date_sub", "datesub", "date_add",
     "strftime", "time_bucket", "age", "epoch_ns", "epoch_us", *_PARTS.split()]
)  # fmt: skip
_NODES = (exp.Extract, exp.AtTimeZone, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate)


def rewrite_time(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite an expression that takes a Variant as a point in time; None for any other expression."""
    by_interval = isinstance(node, (exp.Add, exp.Sub)) and any(isinstance(part, exp.Interval) for part in _parts(node))
    if name not in _FUNCTIONS and not isinstance(node, _NODES) and not by_interval:
        return None
    variants = [part for part in _parts(node) if is_variant(values.expression(part)[1])]
    for part in variants:
        kind = values.static_type(values.typed(part))
        if kind is None or pa.types.is_string(kind):
            part.replace(exp.cast(part.copy(), "TIMESTAMPTZ"))
    if not variants:
        return None
    values.children(node)
    return node, None


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return [part for part in node.iter_expressions() if not isinstance(part, (exp.Var, exp.Identifier, exp.DataType))]
