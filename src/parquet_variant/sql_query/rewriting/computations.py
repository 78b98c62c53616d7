"""Expressions that compute with Variants: comparisons, and functions over Variants.

Owns what each of them becomes for the engine. Leaves sort keys to `comparisons`, most aggregates to `aggregates`, other
expressions to `values`, and the functions themselves to `variant_functions`.
"""

from __future__ import annotations

import contextlib
from functools import partial

from sqlglot import exp

from parquet_variant.errors import VariantError
from parquet_variant.path import Segment, VariantPath
from parquet_variant.query.path_dialect import steps_of, with_steps
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.sql_query.kinds import Kind, is_variant
from parquet_variant.sql_query.rewriting.aggregates import rewrite_aggregate
from parquet_variant.sql_query.rewriting.comparisons import COMPARISONS, class_of_type, compared
from parquet_variant.sql_query.rewriting.mixed_values import as_variant
from parquet_variant.sql_query.rewriting.nested_casts import as_text
from parquet_variant.sql_query.rewriting.protocols import ValueRewriter
from parquet_variant.sql_query.rewriting.syntax import path_argument
from parquet_variant.sql_query.rewriting.times import rewrite_time
from parquet_variant.sql_query.rewriting.type_functions import TYPE_FUNCTIONS, rewrite_type_function
from parquet_variant.sql_query.variant_functions import AGGREGATES, FUNCTIONS, OF_ONE_VARIANT, PARSERS
from parquet_variant.types.targets import VARIANT_STORAGE

_EXTRACTS = frozenset(["variant_extract", "variant_extract_string", "get_path", "get"])
_OTHER_FUNCTIONS = _EXTRACTS | {"variant_contains", "variant_exists", "to_json", "typeof"}
_SIZES = frozenset(["array_size", "variant_array_length", "cardinality"])
# Classes of types that have one name, whatever the width of the values.
_TYPE_NAMES = {"boolean": "boolean", "string": "string", "date": "date"}


def rewrite_computation(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite a comparison, an aggregate or a function over Variants; None for any other expression."""
    if isinstance(node, COMPARISONS):
        done = compared(values, node)
        return None if done is None else (done, None)
    if isinstance(node, exp.Ordered):
        values.children(node, convert=values.by_key)
        return node, None
    if (aggregate := rewrite_aggregate(values, node, name)) is not None:
        return aggregate
    if (time := rewrite_time(values, node, name)) is not None:
        return time
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
    if name in TYPE_FUNCTIONS:
        return rewrite_type_function(values, node, name)
    if name in OF_ONE_VARIANT or name in _OTHER_FUNCTIONS:
        return _rewrite_function(values, node, name)
    if name in PARSERS and len(node.expressions) == 1:
        values.children(node, convert=partial(as_text, values))
        return values.call(name, _json_bytes(node.expressions[0])), VARIANT_STORAGE
    if name in AGGREGATES and len(node.expressions) == 1:
        value, kind = values.expression(node.expressions[0])
        if kind is None:
            value = as_variant(values, value)
        elif not is_variant(kind):
            return None
        rows = exp.Anonymous(this="list", expressions=[value])
        return values.call(name, rows), VARIANT_STORAGE if FUNCTIONS[name].returns_variant else None
    return None


def _json_bytes(value: exp.Expr) -> exp.Expr:
    """Return JSON as bytes: a binary column as it is, since its cast to text would escape quotes."""
    type_name = exp.Anonymous(this="typeof", expressions=[value.copy()])
    is_binary = exp.EQ(this=type_name, expression=exp.Literal.string("BLOB"))
    text = exp.Anonymous(this="encode", expressions=[exp.cast(value, "TEXT")])
    return exp.Case(ifs=[exp.If(this=is_binary, true=exp.cast(value.copy(), "BLOB"))], default=text)


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
        typed = values.typed(first, getters=True, nulls=False)
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
    is_about_type = function in ("variant_type", "is_variant_null")
    typed = values.typed(first, getters=True, nulls=False) if is_about_type else None
    if typed is None:
        return None
    present = exp.not_(exp.Is(this=typed, expression=exp.Null()))
    if function == "is_variant_null":
        return exp.Boolean(this=False)
    name = _TYPE_NAMES.get(class_of_type(values.static_type(typed)) or "")
    return None if name is None else exp.Case(ifs=[exp.If(this=present, true=exp.Literal.string(name))])


def _arrow_error(values: ValueRewriter, node: exp.JSONExtract | exp.JSONExtractScalar) -> SqlError:
    """Return the error for ``v->'a'`` and ``v->>'a'``, which are of JSON."""
    outer: exp.Expr = node
    while isinstance(outer.parent, (exp.JSONExtract, exp.JSONExtractScalar)) and outer.parent.this is outer:
        outer = outer.parent
    steps: list[Segment] = []
    inner: exp.Expr = outer
    while isinstance(inner, (exp.JSONExtract, exp.JSONExtractScalar)) and not inner.args.get("variant_extract"):
        steps = [*_json_steps(inner.expression), *steps]
        inner = inner.this
    if isinstance(inner, exp.JSONExtract):
        steps, inner = [*steps_of(inner), *steps], inner.this
    cast = "::string" if isinstance(outer, exp.JSONExtractScalar) else ""
    path = with_steps(written(inner, values.engine), steps)
    return SqlError(f"{written(outer, values.engine)}: a path into a Variant is written {path}{cast}")


def _json_steps(node: exp.Expr) -> list[str | int]:
    """Return the steps of the right side of ``->``: a key, an index or a path."""
    if isinstance(node, exp.JSONPath):
        return [part.this for part in node.expressions if isinstance(part, (exp.JSONPathKey, exp.JSONPathSubscript))]
    text = node.name
    if text.startswith("$"):
        with contextlib.suppress(VariantError):
            return [step for step in VariantPath.parse(text).segments if isinstance(step, (str, int))]
    return [int(text)] if isinstance(node, exp.Literal) and not node.is_string else [text]


def _rewrite_contains(values: ValueRewriter, node: exp.Expr, value: exp.Expr, further: list[exp.Expr]) -> exp.Expr:
    if len(further) != 1:
        raise SqlError(f"{written(node, values.engine)}: variant_contains takes a Variant and the value to look for")
    needle, kind = values.expression(further[0])
    if kind is None:
        needle = as_variant(values, needle)
    return values.call("variant_contains", value, needle)
