"""Pushdown: the part of a SQL condition by which a scan can skip rows, as a `Predicate` over columns.

Owns which comparisons mean the same in the engine and in `predicate`; all others are evaluated by the engine alone.
The predicate is true for every row for which the condition is true.
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
from parquet_variant.query.predicate import And, Compare, IsNull, Like, Not, Or, Predicate, bind, is_in, joined

# Callback: an expression -> the name and Arrow type (None for a Variant) of the scan's column that it is, or None.
FindColumn = Callable[[exp.Expr], tuple[str, pa.DataType | None] | None]
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Arguments of a node; any other (symmetric, a subquery, an escape) changes its meaning.
_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate", "table"}
NO_LITERAL = object()
_MAX_DIGITS = 18  # with more digits the engine may compare as double


def pushdown(condition: exp.Expr, find_column: FindColumn, zone: str = "UTC") -> Predicate | None:
    """Return a predicate that is true for every row for which the condition is true; None without one.

    `find_column`: returns the column of the scan that an expression is.
    """
    condition = _without_parentheses(condition)
    if isinstance(condition, exp.And):
        parts = [part for operand in condition.flatten() if (part := pushdown(operand, find_column, zone)) is not None]
        return joined(And, parts) if parts else None
    if isinstance(condition, exp.Or):
        return _all_of(Or, (pushdown(operand, find_column, zone) for operand in condition.flatten()))
    return _exact_predicate(condition, find_column, zone)


def _all_of(kind: type[And] | type[Or], parts: Iterable[Predicate | None]) -> Predicate | None:
    """Join predicates; None if one of them is None."""
    predicates = list(parts)
    return None if None in predicates else joined(kind, [part for part in predicates if part is not None])


def _exact_predicate(node: exp.Expr, find_column: FindColumn, zone: str) -> Predicate | None:
    """Return the predicate that is equivalent to a condition, also where the condition is unknown."""
    node = _without_parentheses(node)
    if {key for key, value in node.args.items() if value} - _ARGUMENTS:
        return None
    if isinstance(node, (exp.And, exp.Or)):
        return _all_of(
            And if isinstance(node, exp.And) else Or,
            (_exact_predicate(operand, find_column, zone) for operand in node.flatten()),
        )
    if isinstance(node, exp.Not):
        inner = _exact_predicate(node.this, find_column, zone)
        return None if inner is None else Not(inner)
    if isinstance(node, exp.Is):
        column = find_column(_without_parentheses(node.this))
        if column is None or not isinstance(node.expression, exp.Null):
            return None
        return Not(IsNull(column[0])) if node.args.get("negate") else IsNull(column[0])
    if type(node) in _OPERATORS:
        return _comparison(node, find_column, zone)
    if isinstance(node, exp.Between):
        bounds = (
            exp.GTE(this=node.this, expression=node.args["low"]),
            exp.LTE(this=node.this, expression=node.args["high"]),
        )
        return _all_of(And, (_comparison(bound, find_column, zone) for bound in bounds))
    if isinstance(node, exp.In) and node.expressions:
        return _in_predicate(node, find_column, zone)
    if isinstance(node, exp.Like):
        return _like_predicate(node, find_column)
    column = find_column(node)
    if column is not None and column[1] == pa.bool_():
        return Compare(column[0], "=", True)
    return None


def _without_parentheses(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _in_predicate(node: exp.In, find_column: FindColumn, zone: str) -> Predicate | None:
    column = find_column(_without_parentheses(node.this))
    if column is None:
        return None
    literals = []
    for value in map(_without_parentheses, node.expressions):
        compare = _compare_with(column, "=", value, zone)
        if compare is None:
            return None
        literals.append(compare.literal)
    return is_in(column[0], literals)


def _like_predicate(node: exp.Like, find_column: FindColumn) -> Predicate | None:
    column, pattern = find_column(_without_parentheses(node.this)), node.expression
    if column is None or column[1] != pa.string() or not (isinstance(pattern, exp.Literal) and pattern.is_string):
        return None
    like = Like(column[0], pattern.name)
    return Not(like) if node.args.get("negate") else like


def _comparison(node: exp.Expr, find_column: FindColumn, zone: str) -> Predicate | None:
    op = _OPERATORS[type(node)]
    first, second = _without_parentheses(node.this), _without_parentheses(node.expression)
    compared, other = find_column(first), second
    if compared is None:
        compared, other, op = find_column(second), first, _FLIPPED.get(op, op)
    return None if compared is None else _compare_with(compared, op, other, zone)


def _compare_with(compared: tuple[str, pa.DataType | None], op: str, other: exp.Expr, zone: str) -> Compare | None:
    """Return the comparison of a column with a literal; None if the engine may compare otherwise."""
    column, kind = compared
    if kind is None:
        return None
    literal = literal_value(other)
    if literal is NO_LITERAL or not _compares_alike(kind, literal, other):
        return None
    compare = Compare(column, op, literal)  # type: ignore[arg-type]
    try:
        bind(compare, {column: kind}, zone)
    except (VariantError, ValueError, OverflowError):
        return None
    return compare


def literal_value(node: exp.Expr) -> Any:
    """Return the Python value of a literal, or `NO_LITERAL` for any other expression."""
    if isinstance(node, exp.Neg):
        inner = literal_value(_without_parentheses(node.this))
        return -inner if isinstance(inner, (int, Decimal, float)) and not isinstance(inner, bool) else NO_LITERAL
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
        return Decimal(text) if "." in text else int(text) if text.isdecimal() and len(text) < 40 else NO_LITERAL
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return _moment(node)
    return NO_LITERAL


def _moment(node: exp.Cast) -> Any:
    """Return the value of ``DATE '2024-01-31'`` or ``TIMESTAMP '…'``."""
    try:
        if node.to.this == exp.DataType.Type.DATE:
            return dt.date.fromisoformat(node.this.name)
        if node.to.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ):
            return dt.datetime.fromisoformat(node.this.name)
    except ValueError:
        pass
    return NO_LITERAL


def _compares_alike(kind: pa.DataType, literal: Any, node: exp.Expr) -> bool:
    """Return whether the engine compares a column with a literal without rounding either, as `predicate` does."""
    if literal is None:
        return True
    if isinstance(literal, bool):
        return pa.types.is_boolean(kind)
    if isinstance(literal, str):
        return pa.types.is_string(kind)
    if isinstance(literal, dt.datetime):
        zoned = isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.TIMESTAMPTZ
        return pa.types.is_timestamp(kind) and kind.unit == "us" and (kind.tz is not None) == zoned
    if isinstance(literal, dt.date):
        return pa.types.is_date(kind)
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
        integer_digits = max(kind.precision - kind.scale, _MAX_DIGITS + exponent)
        return integer_digits + max(kind.scale, -exponent) <= 38
    return pa.types.is_integer(kind) or pa.types.is_float64(kind)
