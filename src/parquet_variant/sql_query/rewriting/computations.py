"""Expressions that compute with Variants: comparisons, aggregates, and functions over Variants.

Owns what each of them becomes for the engine. Leaves sort keys to `comparisons`, other expressions to `values`, and the
functions themselves to `variant_functions`.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.kinds import Kind, is_variant
from parquet_variant.sql_query.rewriting.comparisons import COMPARISONS, class_of_type, compared, key_of
from parquet_variant.sql_query.rewriting.mixed_values import as_variant
from parquet_variant.sql_query.rewriting.nested_casts import as_text
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter
from parquet_variant.sql_query.rewriting.syntax import path_argument
from parquet_variant.sql_query.rewriting.type_functions import TYPE_FUNCTIONS, rewrite_type_function
from parquet_variant.sql_query.variant_functions import AGGREGATES, FUNCTIONS, OF_ONE_VARIANT, PARSERS

_EXTRACTS = frozenset(["variant_extract", "variant_extract_string", "get_path", "get"])
_OTHER_FUNCTIONS = _EXTRACTS | {"variant_contains", "variant_exists", "to_json", "typeof"}
_SIZES = frozenset(["array_size", "variant_array_length", "cardinality"])
# Classes of types that have one name, whatever the width of the values.
_TYPE_NAMES = {"boolean": "boolean", "string": "string", "date": "date"}
_EXTREMES = {"min": "arg_min", "max": "arg_max"}


def rewrite_computation(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite a comparison, an aggregate or a function over Variants; None for any other expression."""
    if isinstance(node, COMPARISONS):
        done = compared(values, node)
        return None if done is None else (done, None)
    if isinstance(node, exp.Ordered) or (isinstance(node, exp.Distinct) and _is_counted(node)):
        values.children(node, convert=values.by_key)
        return node, None
    if name == "approx_count_distinct":
        values.children(node, convert=values.by_key)
        return node, None
    if name == "nullif" and is_variant(values.expression(node.expressions[0])[1]):
        value, other = node.expressions
        branch = exp.If(this=exp.EQ(this=value.copy(), expression=other), true=exp.Null())
        return values.expression(exp.Case(ifs=[branch], default=value))
    if isinstance(node, exp.ArraySize) and is_variant(values.expression(node.this)[1]):
        function = "cardinality" if node.meta.get("function") == "size" else "array_size"
        from_columns = _from_typed_columns(values, node.this, function)
        return values.call(function, values.expression(node.this)[0]) if from_columns is None else from_columns, None
    if isinstance(node, (exp.JSONExtract, exp.JSONExtractScalar)) and is_variant(values.expression(node.this)[1]):
        raise _arrow_error(values, node)
    if isinstance(node, (exp.Min, exp.Max)) or (name in _EXTREMES and len(node.expressions) == 1):
        return _rewrite_extreme(values, node, name or type(node).__name__.lower())
    if name in TYPE_FUNCTIONS:
        return rewrite_type_function(values, node, name)
    if name in OF_ONE_VARIANT or name in _OTHER_FUNCTIONS:
        return _rewrite_function(values, node, name)
    if name in PARSERS and len(node.expressions) == 1:
        values.children(node, convert=partial(as_text, values))
        text = exp.cast(node.expressions[0], "TEXT")
        return values.call(name, text), VARIANT_STORAGE
    if name in AGGREGATES and len(node.expressions) == 1:
        value, kind = values.expression(node.expressions[0])
        if kind is None:
            value = as_variant(values, value)
        elif not is_variant(kind):
            return None
        rows = exp.Anonymous(this="list", expressions=[value])
        return values.call(name, rows), VARIANT_STORAGE if FUNCTIONS[name].returns_variant else None
    return None


def _is_counted(node: exp.Distinct) -> bool:
    return isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() in ("count", "approx_count_distinct")


def _rewrite_extreme(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite min or max of a Variant: the value with the least or greatest sort key."""
    argument = node.this if isinstance(node, (exp.Min, exp.Max)) else node.expressions[0]
    if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
        argument = argument.expressions[0]
    value, kind = values.expression(argument)
    if not is_variant(kind):
        return None
    return exp.Anonymous(this=_EXTREMES[name], expressions=[value, key_of(values, value)]), VARIANT_STORAGE


def _rewrite_function(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite a call of a function over a Variant, whose second argument may be a path into it."""
    if not node.expressions:
        return None
    first, *further = node.expressions
    if not is_variant(values.expression(first)[1]):
        return None
    if name == "variant_contains":
        return _rewrite_contains(values, node, values.expression(first)[0], further), None
    if further and isinstance(further[0], exp.Array):  # several paths
        calls = [exp.Anonymous(this=name, expressions=[first.copy(), path]) for path in further[0].expressions]
        return exp.Array(expressions=[values.expression(call)[0] for call in calls]), None
    if further:
        path = path_argument(further[0]) if len(further) == 1 else None
        if path is None:
            raise SqlError(f"{written(node, values.engine)}: the second argument of {name} is a path in quotes")
        kinds = [exp.Literal.string("string")] if name == "variant_extract_string" else []
        first = exp.Anonymous(this="variant_get", expressions=[first, path, *kinds])
    if name in _EXTRACTS:
        return values.expression(first)
    if name == "variant_exists":
        typed = values.typed(first, getters=True)
        value = values.expression(first)[0] if typed is None else typed
        return exp.Paren(this=exp.not_(exp.Is(this=value, expression=exp.Null()))), None
    if name == "typeof":
        return exp.Literal.string("VARIANT"), None
    if (from_columns := _from_typed_columns(values, first, OF_ONE_VARIANT.get(name, ""))) is not None:
        return from_columns, None
    value = values.expression(first)[0]
    if name == "to_json":
        return values.call("to_json", value), None
    function = OF_ONE_VARIANT[name]
    return values.call(function, value), VARIANT_STORAGE if FUNCTIONS[function].returns_variant else None


def _from_typed_columns(values: ValueRewriter, first: exp.Expr, function: str) -> exp.Expr | None:
    """Return the result of a function that the typed column of a path knows; None if there is no such column."""
    if function in _SIZES and (elements := values.elements(first)) is not None:
        return exp.cast(exp.Anonymous(this="len", expressions=[elements]), "BIGINT")
    typed = values.typed(first, getters=True) if function in ("variant_type", "is_variant_null") else None
    if typed is None:
        return None
    present = exp.not_(exp.Is(this=typed, expression=exp.Null()))
    if function == "is_variant_null":
        return exp.Boolean(this=False)
    name = _TYPE_NAMES.get(class_of_type(values.static_type(typed)) or "")
    return None if name is None else exp.Case(ifs=[exp.If(this=present, true=exp.Literal.string(name))])


def _arrow_error(values: ValueRewriter, node: exp.JSONExtract | exp.JSONExtractScalar) -> SqlError:
    """Return the error for ``v->'a'`` and ``v->>'a'``, which are of JSON."""
    key = node.expression.name or written(node.expression, values.engine).strip("'").removeprefix("$.")
    path = f":{key}" if key.isidentifier() else f"['{key}']"
    cast = "::string" if isinstance(node, exp.JSONExtractScalar) else ""
    return SqlError(
        f"{written(node, values.engine)}: a path into a Variant is written "
        f"{written(node.this, values.engine)}{path}{cast}"
    )


def _rewrite_contains(values: ValueRewriter, node: exp.Expr, value: exp.Expr, further: list[exp.Expr]) -> exp.Expr:
    if len(further) != 1:
        raise SqlError(f"{written(node, values.engine)}: variant_contains takes a Variant and the value to look for")
    needle, kind = values.expression(further[0])
    if kind is None:
        needle = as_variant(values, needle)
    return values.call("variant_contains", value, needle)
