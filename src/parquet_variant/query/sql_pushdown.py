"""What of a condition in SQL a scan can skip by: the part of it that is a `Predicate` over columns.

Owns which comparisons mean the same to the engine that runs the text and to `predicate`; every other is left to the
engine alone. A row that the condition takes is always one that the predicate takes.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.errors import VariantError
from parquet_variant.query.predicate import And, Compare, IsNull, Like, Not, Or, Predicate, bind, joined

# The column that an expression is, and its Arrow type (None for a Variant); None if it is no column of the scan.
Known = Callable[[exp.Expr], tuple[str, pa.DataType | None] | None]
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# What a node may carry; anything else (symmetric, a subquery, an escape) changes what it means.
_UNDERSTOOD = {"this", "expression", "expressions", "low", "high", "negate", "table"}
_NO_LITERAL = object()
_MAX_DIGITS = 18  # more, and the engine may compare as double


def pushdown(condition: exp.Expr, known: Known, zone: str = "UTC") -> Predicate | None:
    """A predicate that every row meets for which the condition is true; None if nothing is known.

    `known`: which expressions are columns of the scan.
    """
    condition = _unwrapped(condition)
    if isinstance(condition, exp.And):
        parts = [part for each in condition.flatten() if (part := pushdown(each, known, zone)) is not None]
        return joined(And, parts) if parts else None
    if isinstance(condition, exp.Or):
        return _all_of(Or, (pushdown(each, known, zone) for each in condition.flatten()))
    return _exact(condition, known, zone)


def _all_of(kind: type[And] | type[Or], parts: Iterable[Predicate | None]) -> Predicate | None:
    """The predicates as one; None if nothing is known of a part."""
    known = list(parts)
    return None if None in known else joined(kind, [each for each in known if each is not None])


def _exact(node: exp.Expr, known: Known, zone: str) -> Predicate | None:
    """The predicate that says the same as a condition, unknown answers included."""
    node = _unwrapped(node)
    if {key for key, value in node.args.items() if value} - _UNDERSTOOD:
        return None
    if isinstance(node, (exp.And, exp.Or)):
        return _all_of(And if isinstance(node, exp.And) else Or, (_exact(each, known, zone) for each in node.flatten()))
    if isinstance(node, exp.Not):
        inner = _exact(node.this, known, zone)
        return None if inner is None else Not(inner)
    if isinstance(node, exp.Is):
        column = known(_unwrapped(node.this))
        if column is None or not isinstance(node.expression, exp.Null):
            return None
        return Not(IsNull(column[0])) if node.args.get("negate") else IsNull(column[0])
    if type(node) in _OPERATORS:
        return _comparison(node, known, zone)
    if isinstance(node, exp.Between):
        bounds = (
            exp.GTE(this=node.this, expression=node.args["low"]),
            exp.LTE(this=node.this, expression=node.args["high"]),
        )
        return _all_of(And, (_comparison(each, known, zone) for each in bounds))
    if isinstance(node, exp.In) and node.expressions:
        equals = (exp.EQ(this=node.this, expression=each) for each in node.expressions)
        return _all_of(Or, (_comparison(each, known, zone) for each in equals))
    if isinstance(node, exp.Like):
        return _like(node, known)
    column = known(node)
    if column is not None and column[1] == pa.bool_():
        return Compare(column[0], "=", True)
    return None


def _unwrapped(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _like(node: exp.Like, known: Known) -> Predicate | None:
    column, pattern = known(_unwrapped(node.this)), node.expression
    if column is None or column[1] != pa.string() or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        return None
    like = Like(column[0], pattern.name)
    return Not(like) if node.args.get("negate") else like


def _comparison(node: exp.Expr, known: Known, zone: str) -> Predicate | None:
    op = _OPERATORS[type(node)]
    left, right = _unwrapped(node.this), _unwrapped(node.expression)
    compared, other = known(left), right
    if compared is None:
        compared, other, op = known(right), left, _FLIPPED.get(op, op)
    if compared is None or compared[1] is None:
        return None
    column, kind = compared
    literal = _literal(other)
    if literal is _NO_LITERAL or not _compares_alike(kind, literal, other):
        return None
    compare = Compare(column, op, literal)  # type: ignore[arg-type]
    try:
        bind(compare, {column: kind}, zone)
    except (VariantError, ValueError, OverflowError):
        return None
    return compare


def _literal(node: exp.Expr) -> Any:
    """The Python value of a literal; a marker for everything else."""
    if isinstance(node, exp.Neg):
        inner = _literal(_unwrapped(node.this))
        return -inner if isinstance(inner, (int, Decimal, float)) and not isinstance(inner, bool) else _NO_LITERAL
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Literal):
        if node.is_string:
            return node.name
        text = node.name
        if "e" in text.lower():
            return float(text)
        return Decimal(text) if "." in text else int(text) if text.isdecimal() and len(text) < 40 else _NO_LITERAL
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _moment(node)
    return _NO_LITERAL


def _moment(node: exp.Cast) -> Any:
    """``DATE '2024-01-31'`` and ``TIMESTAMP '…'``."""
    try:
        if node.to.this == exp.DataType.Type.DATE:
            return dt.date.fromisoformat(node.this.name)
        if node.to.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ):
            return dt.datetime.fromisoformat(node.this.name)
    except ValueError:
        pass
    return _NO_LITERAL


def _compares_alike(kind: pa.DataType, literal: Any, node: exp.Expr) -> bool:
    """Whether the engine, too, compares the column with the literal without rounding either."""
    if literal is None:
        return True
    if isinstance(literal, bool):
        return pa.types.is_boolean(kind)
    if isinstance(literal, str):
        return pa.types.is_string(kind)
    if isinstance(literal, dt.date):
        return _moments_alike(kind, literal, node)
    if isinstance(literal, float):
        if pa.types.is_integer(kind):
            return abs(literal) < 2**53
        return pa.types.is_float64(kind)
    assert isinstance(literal, (int, Decimal))
    if len(Decimal(literal).as_tuple().digits) > _MAX_DIGITS:
        return False
    if pa.types.is_float32(kind):
        if abs(Decimal(literal)) > 2**100:
            return False
        return Decimal(struct.unpack("f", struct.pack("f", float(literal)))[0]) == literal
    if pa.types.is_decimal(kind):  # one decimal type must hold both
        exponent = Decimal(literal).as_tuple().exponent
        assert isinstance(exponent, int)
        whole = max(kind.precision - kind.scale, _MAX_DIGITS + exponent)
        return whole + max(kind.scale, -exponent) <= 38
    return pa.types.is_integer(kind) or pa.types.is_float64(kind)


def _moments_alike(kind: pa.DataType, literal: dt.date, node: exp.Expr) -> bool:
    if not isinstance(literal, dt.datetime):
        return pa.types.is_date(kind)
    zoned = isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.TIMESTAMPTZ
    return pa.types.is_timestamp(kind) and kind.unit == "us" and (kind.tz is not None) == zoned
