"""Variants that are compared, ordered and grouped: by the type that all values have, or by a sort key.

Owns the expression that stands for a Variant in a comparison, and the literals next to it. The order is that of
`ops.columns.sort_keys`; a Variant null compares as NULL. Leaves which clauses compare to `select_list`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.ops.columns.sort_keys import python_sort_key
from parquet_variant.query.rewriting.nested import NestedRewriter, bound_once
from parquet_variant.query.rewriting.values import Value, value_of
from parquet_variant.query.sql_dialect import SqlError, from_template
from parquet_variant.query.sql_pushdown import (
    MAX_DIGITS,
    NO_LITERAL,
    SQL_TIMES,
    class_of_type,
    class_of_value,
    common_digits,
    literal_in_zone,
    literal_value,
    numbers_compare_alike,
)
from parquet_variant.support.records import cached_property

_BY_CLASS = (exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)  # NULL for values of different classes
_NULL_SAFE = (exp.NullSafeEQ, exp.NullSafeNEQ)
COMPARISONS = (exp.EQ, *_BY_CLASS, *_NULL_SAFE, exp.Between, exp.In)
_OPERANDS = ("this", "expression", "low", "high")
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div)  # the engine chooses the type of the result
_FEW = 32


class ComparisonRewriter(NestedRewriter):
    """Rewrites comparisons."""

    def expanded(self, node: exp.Expr, template: str, *arguments: exp.Expr) -> Value:
        """Rewrite an expression as SQL over its arguments; its text is kept."""
        tree = from_template(template, arguments)
        tree.meta["text"] = self.text(node)
        tree.parent = node.parent  # its place decides whether it may be a Variant
        return self.expression(tree)

    def comparable(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression to one that orders and groups as its values do, Variants included."""
        value = self.expression(node)
        return value.sql if value.kind is None else self.by_key(value)

    def read_comparison(self, node: exp.Expr, _: str) -> Value | None:
        """Rewrite a comparison in which a Variant takes part; None if none does."""
        values = node.args.get("query") if isinstance(node, exp.In) else node.args.get("expression")
        if isinstance(values, (exp.Any, exp.All)) or (isinstance(node, exp.In) and isinstance(values, exp.Subquery)):
            return self._with_any(node, values)
        if isinstance(node, exp.In) and isinstance(elements := node.args.get("field"), exp.Expr):
            self.refuse_as_list(self.expression(elements))
        keys = [key for key in _OPERANDS if isinstance(node.args.get(key), exp.Expr)]
        sides = [_Side(self, self.expression(part)) for part in (*map(node.args.get, keys), *node.expressions)]
        variants = [side for side in sides if side.value.kind is not None]
        if not variants and (any(isinstance(side.literal, str) for side in sides) or not _exceeds_decimals(sides)):
            return None

        def compared(operands: Sequence[exp.Expr]) -> exp.Expr:
            parts: dict[str, Any] = dict(zip(keys, operands, strict=False))
            return self.rebuild(node, **parts, **({"expressions": operands[len(keys) :]} if node.expressions else {}))

        strings = [side for side in variants if side.typed_class == "string"]
        if strings and any(side.typed_class in SQL_TIMES for side in sides):
            text = self.text(strings[0].value.source)
            raise SqlError(
                f"all values of {text} are strings, and no string equals a point in time: write {text}::timestamp"
            )
        if variants and _engine_compares_alike(sides):
            return value_of(node, compared([side.typed.sql for side in sides if side.typed is not None]))
        if (type_of_strings := _type_of_strings(sides)) is not None:
            moments = [
                exp.cast(side.value.sql, type_of_strings) if isinstance(side.literal, str) else side.typed.sql
                for side in sides
                if side.typed is not None
            ]
            return value_of(node, compared(moments))
        bounds = {side.typed_class for side in sides[1:]}
        if isinstance(node, exp.Between) and (len(bounds) > 1 or None in bounds) and not node.args.get("symmetric"):
            return self.expanded(node, "(_0 >= _1 AND _0 <= _2)", *(node.args[key] for key in keys))
        if isinstance(node, _BY_CLASS) and all(side.is_variant and side.typed is None for side in sides):
            # NULL where the classes of the values, the first bytes of their keys, differ.
            of_sides = [side.key() for side in sides]
            template = "(CASE WHEN left(hex(_0), 2) = left(hex(_1), 2) THEN _2 END)"
            return value_of(node, from_template(template, [*of_sides, compared(of_sides)]))
        # A value of another class is not equal to a Variant, and is distinct from NULL.
        are_variants = isinstance(node, (exp.EQ, exp.In)) and all(side.is_variant for side in sides)
        of_all = are_variants or isinstance(node, _NULL_SAFE)
        result = compared([side.key(_classes_of_others(sides, side), of_all=of_all) for side in sides])
        if isinstance(result, exp.In) and isinstance(result.this, exp.Anonymous) and len(node.expressions) < _FEW:
            # The engine would write a short list as several comparisons, and count the values of each.
            result = bound_once(result.this, lambda key: exp.In(this=key.copy(), expressions=result.expressions))
        return value_of(node, result)

    def _with_any(self, node: exp.Expr, values: exp.Expr) -> Value | None:
        """Rewrite a comparison with the rows of a subquery or the elements of a list; None if neither has Variants."""
        operand = values if isinstance(values, exp.Subquery) else values.this
        value, inner = self.expression(node.this), self.expression(operand)
        if value.kind is None and inner.kind is None:
            return None
        is_query = isinstance(operand, exp.Query)
        by_key = value.is_variant and inner.is_variant and is_query and isinstance(node, (exp.In, exp.EQ))
        left, right = (side if side.kind is None else side.typed() for side in (value, inner))
        if not by_key and (left is None or right is None):
            if not is_query:
                self.refuse_as_list(inner)
            raise SqlError(f"{self.text(node)} compares a Variant with another type: cast the Variant")
        rows = inner.sql if right is None else right.sql
        if inner.is_variant and is_query:
            alias = exp.TableAlias(this=exp.to_identifier("_in"), columns=[exp.to_identifier("_value")])
            column, kind = exp.column("_value", table="_in"), None if by_key or right is None else right.type
            item = self.key_of(column) if kind is None else self.cast_to(column, kind)
            rows = exp.select(item).from_(exp.Subquery(this=inner.sql.unnest(), alias=alias))
            rows = exp.Subquery(this=rows) if isinstance(node, exp.In) else rows
        this = self.key_of(value.sql) if by_key or left is None else left.sql
        given = {"query": rows} if isinstance(node, exp.In) else {"expression": type(values)(this=rows)}
        return value_of(node, type(node)(this=this, **given))


class _Side:
    """One operand of a comparison."""

    def __init__(self, rewriter: ComparisonRewriter, value: Value) -> None:
        if value.kind is not None and not value.is_variant:
            rewriter.comparable(value.source)  # raises for a list of values of several types
            value = value.typed() or value
        self.rewriter, self.value, self.is_variant = rewriter, value, value.kind is not None
        self.literal = NO_LITERAL if self.is_variant else literal_in_zone(value.source, rewriter.context.zone)

    @cached_property
    def typed(self) -> Value | None:
        """The operand, a Variant as the type of all its values; None if there is no such type."""
        return self.value.typed() if self.is_variant else self.value

    @property
    def type(self) -> pa.DataType | None:
        """The type of the values in the engine; None if it is not known exactly."""
        is_computed = not self.is_variant and isinstance(self.value.source.unnest(), ARITHMETIC)
        return None if self.typed is None or is_computed else self.typed.type

    @cached_property
    def typed_class(self) -> str | None:
        """The class of the values, if all have one: classes compare as the engine does, others by key."""
        if self.literal is not NO_LITERAL:
            return None if self.literal is None else class_of_value(self.literal)
        return None if self.typed is None else class_of_type(self.typed.type)

    def key(self, classes: tuple[str, ...] = (), *, of_all: bool = False) -> exp.Expr:
        """Return the sort key of the operand; NULL for a Variant of a class that is not one of `classes`.

        `of_all`: whether values of other classes have a key, too, and are only counted.
        """
        rewriter, sql = self.rewriter, self.value.sql
        if self.is_variant:
            constants = (rewriter.text(self.value.source), classes, of_all) if classes else ()
            return rewriter.call("sort_key", sql, constants=constants)
        if self.literal is None:
            return exp.Null()
        if self.literal is not NO_LITERAL:
            return exp.Anonymous(this="unhex", expressions=[exp.Literal.string(python_sort_key(self.literal).hex())])
        if class_of_type(self.value.type) == "number":  # the engine's VARIANT has 64 bits
            return rewriter.key_of(rewriter.call("variant_cast", sql))
        return rewriter.key_of(rewriter.as_variant(self.value).sql)


def _type_of_strings(sides: Sequence[_Side]) -> str | None:
    """Return the type, in SQL, of points in time or UUIDs at paths that are compared with others or quoted strings."""
    of_paths = {side.typed_class for side in sides if side.is_variant}
    typed = [side for side in sides if not side.is_variant]
    if len(of_paths) != 1 or not all(side.typed_class in SQL_TIMES or isinstance(side.literal, str) for side in typed):
        return None
    (time_class,) = of_paths
    are_uuids = all(literal_value(exp.cast(side.value.source, "UUID")) is not NO_LITERAL for side in typed)
    return "UUID" if time_class == "uuid" and are_uuids else SQL_TIMES.get(str(time_class))


def _classes_of_others(sides: Sequence[_Side], side: _Side) -> tuple[str, ...]:
    """Return the classes of the operands that a Variant is compared with; empty if one of them may be of any class."""
    other_sides = [o for o in sides if o is not side and o.literal is not None] if side.is_variant else []
    own_types = [other for other in other_sides if not other.is_variant] or other_sides
    classes = {other.typed_class for other in own_types}
    return () if None in classes else tuple(sorted(name for name in classes if name is not None))


def _engine_compares_alike(sides: Sequence[_Side]) -> bool:
    """Return whether the engine compares the typed operands as sort keys would, without rounding numbers."""
    classes = {side.typed_class for side in sides}
    if len(classes) != 1 or classes == {None}:
        return False
    literals: list[Any] = [side.literal for side in sides if side.literal is not NO_LITERAL]
    types = [kind for side in sides if side.literal is NO_LITERAL and (kind := side.type) is not None]
    return classes != {"number"} or (
        len(literals) + len(types) == len(sides) and numbers_compare_alike(types, literals)
    )


def _exceeds_decimals(sides: Sequence[_Side]) -> bool:
    """Return whether the engine would compare exact numbers, one of them a decimal, as doubles, or fail."""
    types = [side.type for side in sides if side.literal is NO_LITERAL]
    kinds = [kind for kind in types if kind is not None and (pa.types.is_decimal(kind) or pa.types.is_integer(kind))]
    literals = [side.literal for side in sides if side.literal is not NO_LITERAL and side.literal is not None]
    is_exact = len(kinds) == len(types) and all(type(literal) in (int, Decimal) for literal in literals)
    return is_exact and any(map(pa.types.is_decimal, kinds)) and common_digits(kinds, literals) > MAX_DIGITS
