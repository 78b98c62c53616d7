"""Variants that are compared, ordered and grouped: by the type that all values have, or by a sort key.

Owns the expression that stands for a Variant in a comparison, and the literals next to it. The order is that of
`ops.columns.sort_keys`; a Variant null compares as NULL. Also owns the common form of values of which an expression
returns one, such as `coalesce(v:a, 0)`. Leaves which clauses compare to `values`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.ops.columns.sort_keys import python_sort_key
from parquet_variant.query.kinds import Kind, is_variant
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_pushdown import NO_LITERAL, literal_value
from parquet_variant.sql_query.rewriting.nested_casts import bound_once
from parquet_variant.sql_query.rewriting.rewriters import ValueRewriter
from parquet_variant.types.targets import VARIANT_STORAGE

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)
_BY_CLASS = (exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)  # NULL for values of different classes
_OPERANDS = ("this", "expression", "low", "high")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)  # the engine chooses the type of the result
_FEW = 32
_EXACT_DOUBLES = 2**53
_MAX_DIGITS = 38  # of a decimal of the engine
_SQL_TIMES = {"date": "DATE", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMPNTZ"}
_TIMES = frozenset(_SQL_TIMES)


def comparable(values: ValueRewriter, node: exp.Expr) -> exp.Expr:
    """Rewrite an expression to one that orders and groups as its values do, Variants included."""
    value, kind = values.expression(node)
    if kind is None:
        return value
    if not is_variant(kind):
        raise SqlError(
            f"{written(node, values.engine)} holds Variants, and only Variants themselves can be compared, ordered and "
            "grouped: give them types, as in ::array<string>"
        )
    typed = values.typed(node)
    return key_of(values, value) if typed is None else typed


def key_of(values: ValueRewriter, value: exp.Expr) -> exp.Expr:
    """Return the sort key of a rewritten Variant."""
    return exp.Anonymous(this=values.rewriter.getter(function="sort_key"), expressions=[value.copy()])


def compared(values: ValueRewriter, node: exp.Expr) -> exp.Expr | None:
    """Rewrite a comparison in which a Variant takes part; None if none does."""
    if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Subquery):
        return _in_query(values, node, node.args["query"])
    if isinstance(node, exp.In) and isinstance(elements := node.args.get("field"), exp.Expr):
        refuse_as_list(values, elements)
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        query = node.expression.this
        if isinstance(query, exp.Subquery) and values.expression(query)[1] is not None:
            return _in_query(values, exp.In(this=node.this, query=query), query)
    operands = [part for key in _OPERANDS if isinstance(part := node.args.get(key), exp.Expr)]
    operands += node.expressions
    results = {id(operand): values.expression(operand) for operand in operands}
    variants = [operand for operand in operands if results[id(operand)][1] is not None]
    sides = (
        [_Side(values, operand, *results[id(operand)]) for operand in operands]
        if _may_be_exact(operands) or variants
        else []
    )
    if not variants and not _exceeds_decimals(sides):
        return None
    _refuse_times(sides)
    if variants and _engine_compares_alike(sides):
        replacement = {id(side.node): side.typed for side in sides}
    elif (time_class := _class_of_times(sides)) is not None:
        replacement = {
            id(side.node): exp.cast(side.value, _SQL_TIMES[time_class]) if isinstance(side.literal, str) else side.typed
            for side in sides
        }
    else:
        replacement = {id(side.node): side.key(_classes_of_others(sides, side)) for side in sides}
        if all(side.kind is not None and side.typed is None for side in sides) and isinstance(node, _BY_CLASS):
            return _within_classes(node, {id(side.node): side.key(()) for side in sides})
    for key in _OPERANDS:
        if isinstance(part := node.args.get(key), exp.Expr):
            node.set(key, replacement[id(part)])
    if node.expressions:
        node.set("expressions", [replacement[id(part)] for part in node.expressions])
    if isinstance(node, exp.In) and isinstance(node.this, exp.Anonymous) and len(node.expressions) < _FEW:
        # The engine would write a short list as several comparisons, and count the values of each.
        return bound_once(node.this, lambda key: exp.In(this=key.copy(), expressions=node.expressions))
    return node


def refuse_as_list(values: ValueRewriter, node: exp.Expr) -> None:
    """Refuse a Variant where a list is needed."""
    if is_variant(values.expression(node)[1]):
        text = written(node.unnest(), values.engine)
        raise SqlError(f"{text} is a Variant, not a list: write {text}::array<string>, or another type of elements")


def _class_of_times(sides: Sequence[_Side]) -> str | None:
    """Return the class of paths into points in time that are compared with other ones, or with strings in quotes."""
    of_paths = {side.typed_class for side in sides if side.kind is not None}
    others = [side for side in sides if side.kind is None]
    if len(of_paths) > 1 or not all(side.typed_class in _TIMES or isinstance(side.literal, str) for side in others):
        return None
    (time_class,) = of_paths
    return time_class if time_class in _TIMES else None


def _refuse_times(sides: Sequence[_Side]) -> None:
    """Refuse to compare a path whose values are all strings with a point in time, which no string equals."""
    strings = [side for side in sides if side.kind is not None and side.typed_class == "string"]
    if strings and any(side.typed_class in _TIMES for side in sides):
        text = written(strings[0].node, strings[0].values.engine)
        raise SqlError(
            f"all values of {text} are strings, and no string equals a point in time: write {text}::timestamp"
        )


def _in_query(values: ValueRewriter, node: exp.In, query: exp.Subquery) -> exp.Expr | None:
    """Rewrite ``value IN (SELECT …)`` where both sides are Variants; None if neither is."""
    value, kind = values.expression(node.this)
    inner, inner_kind = values.expression(query)
    if kind is None and inner_kind is None:
        return None
    if not (is_variant(kind) and is_variant(inner_kind)):
        raise SqlError(
            f"{written(node.this, values.engine)} IN (SELECT …) compares a Variant with another type: cast the Variant"
        )
    alias = exp.TableAlias(this=exp.to_identifier("_in"), columns=[exp.to_identifier("_value")])
    rows = exp.Subquery(this=inner.this, alias=alias)
    node.set("this", key_of(values, value))
    node.set("query", exp.Subquery(this=exp.select(key_of(values, exp.column("_value", table="_in"))).from_(rows)))
    return node


class _Side:
    """One operand of a comparison."""

    def __init__(self, values: ValueRewriter, node: exp.Expr, value: exp.Expr, kind: Kind) -> None:
        self.values, self.node, self.value, self.kind = values, node, value, kind
        self.literal = _literal(node, values.rewriter.zone) if kind is None else NO_LITERAL
        self.typed = values.typed(node) if is_variant(kind) else value
        if kind is not None and not is_variant(kind):
            comparable(values, node)  # raises

    @property
    def type(self) -> pa.DataType | None:
        """The type of the values in the engine; None if it is not known exactly."""
        node = self.node if self.kind is None else self.typed
        if node is None or isinstance(node.unnest(), _ARITHMETIC):
            return None
        return self.values.static_type(node)

    @property
    def typed_class(self) -> str | None:
        """The class of the values, if all have one: classes compare as the engine does, others by key."""
        if self.literal is not NO_LITERAL:
            return None if self.literal is None else class_of_value(self.literal)
        if self.kind is not None and self.typed is None:
            return None
        return class_of_type(self.values.static_type(self.node if self.kind is None else self.typed))

    def key(self, classes: tuple[str, ...]) -> exp.Expr:
        """Return the sort key of the operand; NULL for a Variant of a class that is not one of `classes`."""
        if self.kind is not None and classes:
            text = written(self.node, self.values.engine)
            name = self.values.rewriter.getter(function="sort_key", text=text, classes=classes)
            return exp.Anonymous(this=name, expressions=[self.value.copy()])
        if self.kind is not None:
            return key_of(self.values, self.value)
        if self.literal is None:
            return exp.Null()
        if self.literal is not NO_LITERAL:
            return exp.Anonymous(this="unhex", expressions=[exp.Literal.string(python_sort_key(self.literal).hex())])
        if class_of_type(self.values.static_type(self.node)) == "number":  # the engine's VARIANT has 64 bits
            return self.values.call("sort_key_of_number", exp.cast(self.value.copy(), "TEXT"))
        return self.values.call("sort_key", as_variant(self.values, self.value))


def _classes_of_others(sides: Sequence[_Side], side: _Side) -> tuple[str, ...]:
    """Return the classes of the operands that a Variant is compared with; empty if one of them may be of any class."""
    others = [other for other in sides if other is not side and other.literal is not None]
    own_types = [other for other in others if other.kind is None] or others
    classes = {other.typed_class for other in own_types}
    return () if None in classes else tuple(sorted(name for name in classes if name is not None))


def _within_classes(node: exp.Expr, keys: dict[int, exp.Expr]) -> exp.Expr:
    """Return the comparison of Variants that is NULL where their classes, the first bytes of their keys, differ."""
    for name in _OPERANDS:
        if isinstance(part := node.args.get(name), exp.Expr):
            node.set(name, keys[id(part)])
    first, *others = (exp.Anonymous(this="hex", expressions=[key.copy()]) for key in keys.values())
    two = exp.Literal.number(2)
    starts = [exp.Anonymous(this="left", expressions=[text, two.copy()]) for text in (first, *others)]
    alike = exp.and_(*(exp.EQ(this=starts[0].copy(), expression=start) for start in starts[1:]))
    return exp.Paren(this=exp.Case(ifs=[exp.If(this=alike, true=node.copy())]))


def _engine_compares_alike(sides: Sequence[_Side]) -> bool:
    """Return whether the engine compares the typed operands as sort keys would, without rounding numbers."""
    classes = {side.typed_class for side in sides}
    if len(classes) != 1 or classes == {None}:
        return False
    if classes != {"number"}:
        return True
    literals: list[Any] = [side.literal for side in sides if side.literal is not NO_LITERAL]
    types = [kind for side in sides if side.literal is NO_LITERAL and (kind := side.type) is not None]
    if len(literals) + len(types) < len(sides):
        return False
    if any(pa.types.is_floating(kind) for kind in types):
        return len(set(types)) == 1 and all(_is_shown_by(literal, types[0]) for literal in literals)
    if any(isinstance(literal, float) for literal in literals):  # all operands become doubles
        return all(map(pa.types.is_integer, types)) and all(
            abs(literal) < _EXACT_DOUBLES and _is_shown_by(literal, pa.float64()) for literal in literals
        )
    return _common_digits(types, literals) <= _MAX_DIGITS


def _may_be_exact(operands: Sequence[exp.Expr]) -> bool:
    """Return whether a comparison may need more digits than the engine has: one of numbers, not of strings."""
    return not any(isinstance(operand, exp.Literal) and operand.is_string for operand in operands)


def _exceeds_decimals(sides: Sequence[_Side]) -> bool:
    """Return whether the engine would compare exact numbers, one of them a decimal, as doubles, or fail."""
    types = [side.type for side in sides if side.literal is NO_LITERAL]
    literals = [side.literal for side in sides if side.literal is not NO_LITERAL and side.literal is not None]
    if None in types or not any(pa.types.is_decimal(kind) for kind in types if kind is not None):
        return False
    if not all(isinstance(literal, (int, Decimal)) and not isinstance(literal, bool) for literal in literals):
        return False
    kinds = [kind for kind in types if kind is not None]
    return all(pa.types.is_decimal(kind) or pa.types.is_integer(kind) for kind in kinds) and (
        _common_digits(kinds, literals) > _MAX_DIGITS
    )


def _common_digits(kinds: Sequence[pa.DataType], literals: Sequence[Any]) -> int:
    """Return the digits of the decimal type that holds all values."""
    digits = [(kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (20, 0) for kind in kinds]
    # The engine counts the zero before the point of a literal.
    digits += [(max(whole, 1), scale) for whole, scale in (_digits(Decimal(literal)) for literal in literals)]
    return max(whole for whole, _ in digits) + max(scale for _, scale in digits)


def _is_shown_by(literal: Any, kind: pa.DataType) -> bool:
    """Return whether a number is the JSON of a floating-point value, and a float is the number itself."""
    number = Decimal(repr(literal)) if isinstance(literal, float) else Decimal(literal)
    if pa.types.is_float64(kind):
        return Decimal(repr(float(number))) == number
    return Decimal(str(np.float32(number))) == number == Decimal(float(np.float32(number)))


def _digits(number: Decimal) -> tuple[int, int]:
    """Return the number of digits before and after the point."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + exponent, 0), max(-exponent, 0)


def _literal(node: exp.Expr, zone: str) -> Any:
    """Return the Python value of a literal; a timestamp without an offset is in the session's zone."""
    value = literal_value(node.unnest())
    if isinstance(value, dt.datetime) and isinstance(cast := node.unnest(), exp.Cast):
        if cast.is_type("timestamptz"):
            return value if value.tzinfo else value.replace(tzinfo=zone_of(zone))
        return value.replace(tzinfo=None)
    return value


def class_of_value(value: Any) -> str | None:
    """Return the class of a Python value in the order of Variants."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dt.datetime):
        return "timestamp" if value.tzinfo else "timestamp_ntz"
    return "date" if isinstance(value, dt.date) else "number"


def class_of_type(kind: pa.DataType | None) -> str | None:
    """Return the class of an Arrow type in the order of Variants, if it is one of the simple ones."""
    if kind is None:
        return None
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return None


# ---- values of which an expression returns one


def in_one_form(values: ValueRewriter, parts: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """Return replacements of expressions that have one type, or else are Variants; None if that is not possible.

    New expressions are rewritten already; the others are returned as they are.
    """
    kinds = [values.expression(part)[1] for part in parts]
    typed = [values.typed_or_null(part) if is_variant(kind) else None for part, kind in zip(parts, kinds, strict=True)]
    types = {values.static_type(column) for column in typed if column is not None and not isinstance(column, exp.Null)}
    if len(types) == 1 and all(
        column is not None or (kind is None and _has_type(values, part, next(iter(types))))
        for part, column, kind in zip(parts, typed, kinds, strict=True)
    ):
        return [part if column is None else column for part, column in zip(parts, typed, strict=True)]
    if all(is_variant(kind) or kind is None for kind in kinds):
        return [
            part if is_variant(kind) else as_variant(values, values.expression(part)[0])
            for part, kind in zip(parts, kinds, strict=True)
        ]
    return None


def as_variant(values: ValueRewriter, value: exp.Expr) -> exp.Expr:
    """Return a rewritten value of the engine as a Variant."""
    variant = values.call("variant_of", exp.cast(value.copy(), "VARIANT"))
    variant.meta.update(kind=VARIANT_STORAGE, text=written(value, values.engine))
    return variant


def _has_type(values: ValueRewriter, part: exp.Expr, kind: pa.DataType | None) -> bool:
    """Return whether a literal, or an expression of a known type, has a type exactly, or is a whole number for one."""
    literal = literal_value(part.unnest())
    if literal is NO_LITERAL or kind is None:
        return kind is not None and values.static_type(part) == kind
    if not isinstance(literal, (bool, int, float, Decimal, str)) or class_of_type(kind) != class_of_value(literal):
        return False
    return isinstance(literal, (bool, str)) or pa.types.is_floating(kind) or literal == int(literal)
