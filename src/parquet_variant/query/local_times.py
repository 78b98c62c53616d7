"""Local times in SQL that DuckDB evaluates: one that occurs twice is the earlier instant, as in Spark and in casts.

Owns the rewriting of literals and casts, since DuckDB takes the later instant. Leaves the function that they call to
`duckdb_engine`, time zones to `encoding.cast.texts`, and local times of Variants to casts.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.encoding.cast.texts import zone_of
from parquet_variant.query.duckdb_engine import EARLIER
from parquet_variant.query.sql_dialect import from_template

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)
_LOCAL = r"^\s*\d{1,6}-\d{1,2}-\d{1,2}([ T]\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?)?\s*$"
_AS_INSTANT = f"""(
    CASE WHEN typeof(_0) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS')
        OR typeof(_0) = 'VARCHAR' AND regexp_matches(CAST(_0 AS TEXT), '{_LOCAL}')
    THEN {EARLIER}(_1) ELSE _1 END
)"""


def with_earlier_instants(tree: exp.Expr, zone: str) -> exp.Expr:
    """Return an expression or query for DuckDB in which local times of the session zone are the earlier instants.

    Literals become instants in UTC; casts of columns call a function of `duckdb_engine`.

    >>> from parquet_variant.query.sql_dialect import parse_sql, to_sql
    >>> to_sql(with_earlier_instants(parse_sql("TIMESTAMP '2024-11-03 01:00:00'", what="expression"), "US/Eastern"))
    "CAST('2024-11-03 05:00:00+00:00' AS TIMESTAMPTZ)"
    """
    timezone = zone_of(zone)
    if isinstance(timezone, dt.timezone):
        return tree
    return tree.transform(lambda node: _converted(node, timezone), copy=False)


def _converted(node: exp.Expr, zone: dt.tzinfo) -> exp.Expr:
    if isinstance(node, exp.Cast) and node.is_type("timestamptz"):
        return _cast(node, zone)
    if isinstance(node, _COMPARISONS) and node.this is not None:
        return _comparison(node, zone)
    return node


def _cast(node: exp.Cast, zone: dt.tzinfo) -> exp.Expr:
    value = node.this
    if node.meta.get("earlier"):
        return node
    node.meta["earlier"] = True
    if isinstance(value, exp.Literal) and value.is_string:
        if (instant := _utc_text(value.name, zone)) is not None:
            value.replace(exp.Literal.string(instant))
        return node
    return from_template(_AS_INSTANT, [value, node])


def _comparison(node: exp.Expr, zone: dt.tzinfo) -> exp.Expr:
    """Compare a value with instants in UTC if it is an instant, and the literals are local times."""
    sides: list[Any] = [node.this, *(node.args.get(key) for key in ("expression", "low", "high")), *node.expressions]
    literals = [side for side in sides if isinstance(side, exp.Literal) and side.is_string]
    values = [side for side in sides if isinstance(side, exp.Expr) and side not in literals]
    if len(values) > 1:
        return _columns(node, values)
    texts = {side.name: instant for side in literals if (instant := _utc_text(side.name, zone)) is not None}
    if not texts or not values or node.meta.get("earlier"):
        return node
    node.meta["earlier"] = True
    kind = values[0].meta.get("type")
    if kind is not None and not (pa.types.is_timestamp(kind) and kind.tz is not None):
        return node
    zoned = node.copy()
    for literal in list(zoned.find_all(exp.Literal)):
        if literal.parent is zoned and literal.name in texts:
            cast = exp.cast(exp.Literal.string(texts[literal.name]), "TIMESTAMPTZ")
            cast.meta["earlier"] = True
            literal.replace(cast)
    zoned.meta["earlier"] = True
    if kind is not None:
        return zoned
    return from_template(
        "(CASE WHEN typeof(_0) = 'TIMESTAMP WITH TIME ZONE' THEN _1 ELSE _2 END)", [values[0], zoned, node]
    )


def _columns(node: exp.Expr, values: list[exp.Expr]) -> exp.Expr:
    """Cast local times that are compared with instants, which the engine would do."""
    kinds = [value.meta.get("type") for value in values]
    moments = [kind for kind in kinds if kind is not None and pa.types.is_temporal(kind)]
    if any(pa.types.is_timestamp(kind) and kind.tz is not None for kind in moments):
        for value, kind in zip(values, kinds, strict=True):
            if kind in moments and getattr(kind, "tz", None) is None:
                value.replace(_cast(exp.cast(value.copy(), "TIMESTAMPTZ"), dt.UTC))
    return node


def _utc_text(text: str, zone: dt.tzinfo) -> str | None:
    """Return a local time as an instant in UTC; None for a text with an offset, or that is not a time."""
    if not re.fullmatch(_LOCAL, text):
        return None
    try:
        moment = dt.datetime.fromisoformat(text.strip())
        return None if moment.tzinfo else moment.replace(tzinfo=zone).astimezone(dt.UTC).isoformat(" ")
    except (ValueError, OverflowError):
        return None
