"""Expressions over lists, maps and structs that hold Variants: what is put into them, taken out, and left as it is.

Owns which functions may be given such values. Leaves Variants themselves, and every other expression, to `values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from parquet_variant.choices import SqlEngine
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.kinds import Kind, element_of, field_of, is_variant

NOT_NESTED: Any = object()
_STRUCTS = {"row", "struct_pack", "struct", "named_struct"}
_LISTS = {"list_value", "list_pack", "array"}
_SAME = {"list_slice", "array_slice", "list_reverse", "array_reverse", "reverse", "list_concat", "array_concat"}
_SAME |= {"list_cat", "array_cat"}
_ROWS = {"unnest", "explode", "explode_outer"}
_ELEMENTS = _ROWS | {"list_extract", "list_element", "array_extract", "list_first", "list_last"}
_TYPED = {"len", "length", "array_length", "array_size", "size", "cardinality", "map_keys"}
_TRANSFORMS = {"list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform"}
_FILTERS = {"list_filter", "array_filter", "filter"}
_TESTS = {"exists", "forall"}
_VARIANT_EXPLODES = {"variant_explode", "variant_explode_outer"}
_OF_SPARK = {
    "variant_explode": "unnest(v:a::array<variant>) AS x(value)",
    "variant_explode_outer": "LEFT JOIN unnest(v:a::array<variant>) AS x(value) ON true",
    "exists": "len(list_filter(list, x -> …)) > 0",
}


class ExpressionRewriter(Protocol):
    """The rewriter of one scope's expressions; `values.Values` implements it and imports this module."""

    engine: SqlEngine

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Return the rewritten expression, and the Variants in its result."""
        ...

    def children(self, node: exp.Expr, handed: Sequence[exp.Expr | None] = (), skip: tuple[str, ...] = ()) -> None:
        """Rewrite the operands of an expression; only those in ``handed`` may hold Variants."""
        ...

    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None]) -> Kind:
        """Rewrite operands that must hold the same kind of Variants, and return that kind."""
        ...

    def lambda_kind(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Kind:
        """Rewrite a lambda, and return the Variants in its result."""
        ...


def taken_from(kind: Kind, node: exp.Bracket | exp.Dot) -> Kind:
    """What ``[…]`` or ``.name`` takes out of a value."""
    if isinstance(node, exp.Dot):
        return field_of(kind, node.expression.name)
    if any(isinstance(each, exp.Slice) for each in node.expressions):
        return kind
    if kind is not None and pa.types.is_struct(kind):
        return field_of(kind, node.expressions[0].name)
    return element_of(kind)


def nested_kind(values: ExpressionRewriter, node: exp.Expr, name: str) -> Kind:
    """Rewrite an expression that makes a nested value or takes it apart, and say what it gives; or `NOT_NESTED`.

    `name` is the function's in lower case, if sqlglot does not know it.
    """
    if isinstance(node, (exp.Bracket, exp.Dot)):
        kind = values.expression(node.this)[1]
        values.children(node, [node.this, node.args.get("expression")])
        return taken_from(kind, node)
    if name in _OF_SPARK and values.engine != "spark":
        raise SqlError(f"{name} is Spark's alone: write {_OF_SPARK[name]}")
    if name in _VARIANT_EXPLODES:
        values.children(node, node.expressions)
        return None
    if isinstance(node, (exp.Struct, exp.Array, exp.ToMap, exp.Map)) or name in _STRUCTS | _LISTS:
        return _made(values, node, name)
    if isinstance(node, exp.Transform) or name in _TRANSFORMS | _FILTERS | _TESTS:
        return _by_lambda(values, node, name)
    if isinstance(node, exp.Comprehension):
        names = [each.name for each in (node.expression, node.args.get("position")) if each]
        return values.lambda_kind(node, names, element_of(values.expression(node.args["iterator"])[1]))
    takes = name in _SAME | _ELEMENTS | _TYPED
    if takes or isinstance(node, (exp.Explode, exp.Unnest, exp.ArraySize)):
        return _taken(values, node, name)
    return NOT_NESTED


def _made(values: ExpressionRewriter, node: exp.Expr, name: str) -> Kind:
    """A struct, list or map of what it is made of."""
    if isinstance(node, exp.ToMap):
        made = values.expression(node.this)[1]
        kinds = [each.type for each in made] if made is not None else []
        return pa.map_(pa.string(), next(each for each in kinds if not pa.types.is_null(each))) if kinds else None
    parts = node.expressions
    if isinstance(node, exp.Map):
        parts = [each for each in (node.args.get("keys"), node.args.get("values")) if each is not None]
    named = (exp.PropertyEQ, exp.Alias, exp.Column) if name == "struct" else (exp.PropertyEQ, exp.Alias)
    names = [each.alias_or_name if isinstance(each, named) else f"element{n}" for n, each in enumerate(parts, 1)]
    if name == "named_struct":
        names, parts = [each.name for each in parts[::2]], parts[1::2]
    if isinstance(node, exp.Array) or name in _LISTS:
        kind = values.alike(node, parts)
        return None if kind is None else pa.list_(kind)
    values.children(node, parts)
    kinds = [values.expression(each)[1] for each in parts]
    if isinstance(node, exp.Map):
        kind = element_of(kinds[1]) if len(kinds) == 2 else None
        return None if kind is None else pa.map_(pa.string(), kind)
    if all(each is None for each in kinds):
        return None
    return pa.struct(
        [pa.field(key, pa.null() if each is None else each) for key, each in zip(names, kinds, strict=True)]
    )


def _by_lambda(values: ExpressionRewriter, node: exp.Expr, name: str) -> Kind:
    """What a function makes of each element of a list, or which elements it leaves."""
    if isinstance(node, exp.Transform):
        elements, work = node.this, node.expression
    else:
        elements, work = (*node.expressions, None, None)[:2]
    kind = None if elements is None else values.expression(elements)[1]
    if kind is not None and isinstance(work, exp.Lambda):
        made = values.lambda_kind(work, [each.name for each in work.expressions], element_of(kind))
        if name not in _FILTERS:
            kind = None if made is None or name in _TESTS else pa.list_(made)
    values.children(node, [elements, work])
    return kind


def _taken(values: ExpressionRewriter, node: exp.Expr, name: str) -> Kind:
    """What is taken of a list or map, first of all each element."""
    first = node.this if isinstance(node, (exp.Explode, exp.ArraySize)) else (*node.expressions, None)[0]
    kind = None if first is None else values.expression(first)[1]
    if is_variant(kind):
        text = written(first, values.engine)
        raise SqlError(f"{text} is a Variant, and no list: write {text}::array<variant>, or another type of elements")
    rows = isinstance(node, exp.Unnest) or name in _ROWS  # with further arguments they take Variants apart
    several = rows and len(node.expressions) > 1
    values.children(node, [] if several else node.expressions if name in _SAME else [first])
    if name in _SAME:
        return kind
    return None if isinstance(node, exp.ArraySize) or name in _TYPED else element_of(kind)
