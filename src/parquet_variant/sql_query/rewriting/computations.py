"""Expressions that compute with Variants: comparisons, functions over Variants, aggregates, and points in time.

Owns what each of them becomes for the engine. Leaves sort keys to `comparisons`, aggregates that return one of their
arguments to `values`, and the functions themselves to `variant_functions`.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.errors import VariantError
from parquet_variant.query.function_calls import path_argument, rewrite_call
from parquet_variant.query.kinds import Kind, is_variant
from parquet_variant.query.path_dialect import steps_of, with_steps
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.variant_functions import AGGREGATES, FUNCTIONS, OF_ONE_VARIANT
from parquet_variant.sql_query.rewriting.comparisons import COMPARISONS, as_variant, class_of_type, compared
from parquet_variant.sql_query.rewriting.rewriters import ValueRewriter
from parquet_variant.types import DECIMAL_TYPES, INTEGERS, VariantType
from parquet_variant.types.path import Segment, VariantPath
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
        case = exp.Case(ifs=[branch], default=value)
        case.meta["text"] = written(node, values.engine)
        case.parent = node.parent  # its place decides whether it may be a Variant
        return values.expression(case)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        return _rewrite_truth(values, node)
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
    if (built := rewrite_call(values, node, name)) is not None:
        return built, VARIANT_STORAGE
    if name in AGGREGATES and len(node.expressions) == 1:
        value, kind = values.expression(node.expressions[0])
        if kind is None:
            value = as_variant(values, value)
        elif not is_variant(kind):
            return None
        rows = exp.Anonymous(this="list", expressions=[value])
        return values.call(name, rows), VARIANT_STORAGE if FUNCTIONS[name].returns_variant else None
    return None


def _rewrite_truth(values: ValueRewriter, node: exp.Is) -> tuple[exp.Expr, Kind] | None:
    """Rewrite ``v:a IS TRUE`` of values of several types, of which only booleans are true or false."""
    if not is_variant(values.expression(node.this)[1]):
        return None
    if (typed := values.typed(node.this)) is not None and pa.types.is_boolean(values.static_type(typed)):
        node.set("this", typed)
        return node, None
    same = exp.Paren(this=exp.EQ(this=node.this.copy(), expression=node.expression))
    value = values.expression(same)[0]
    return exp.Is(this=value, expression=exp.Boolean(this=True), negate=node.args.get("negate")), None


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


# ---- aggregates

_EXTREMES = {"min": "arg_min", "max": "arg_max"}
_OF_KEYS = frozenset(["approx_count_distinct", "entropy", "grouping", "grouping_id"])  # depend on equality alone
_LISTS = frozenset(["list", "array_agg"])


def rewrite_aggregate(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite an aggregate over Variants; None for any other expression."""
    counts = isinstance(node.parent, exp.Anonymous) and node.parent.name.lower() in ("count", "approx_count_distinct")
    if name in _OF_KEYS or (isinstance(node, exp.Distinct) and counts):
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


# ---- points in time

_TIME_PARTS = """
    year month day hour minute second millisecond microsecond quarter week weekofyear dayofmonth dayofweek dayofyear
    weekday isodow isoyear yearweek century decade millennium era epoch dayname monthname last_day
"""
_TIME_FUNCTIONS = frozenset(
    ["date_trunc", "datetrunc", "date_part", "datepart", "date_diff", "datediff", "date_sub", "datesub", "date_add",
     "strftime", "time_bucket", "age", "epoch_ns", "epoch_us", *_TIME_PARTS.split()]
)  # fmt: skip
_TIME_NODES = (exp.Extract, exp.AtTimeZone, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate)


def rewrite_time(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite an expression that takes a Variant as a point in time; None for any other expression."""
    by_interval = isinstance(node, (exp.Add, exp.Sub)) and any(
        isinstance(part, exp.Interval) for part in _operands(node)
    )
    if name not in _TIME_FUNCTIONS and not isinstance(node, _TIME_NODES) and not by_interval:
        return None
    variants = [part for part in _operands(node) if is_variant(values.expression(part)[1])]
    for part in variants:
        kind = values.static_type(values.typed(part))
        if kind is None or pa.types.is_string(kind):
            part.replace(exp.cast(part.copy(), "TIMESTAMPTZ"))
    if not variants:
        return None
    values.children(node)
    return node, None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    return [part for part in node.iter_expressions() if not isinstance(part, (exp.Var, exp.Identifier, exp.DataType))]


# ---- tests of types

_INTEGERS = tuple(INTEGERS)
_DECIMALS = (*_INTEGERS, *DECIMAL_TYPES)
_DOUBLES = (*_DECIMALS, VariantType.FLOAT, VariantType.DOUBLE)
_ZONED = (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS)
_LOCAL = (VariantType.TIMESTAMP_NTZ, VariantType.TIMESTAMP_NTZ_NANOS)
# The end of a name -> the types of its values, and the SQL type of the result; empty for a Variant.
_TYPES: dict[str, tuple[tuple[VariantType, ...], str]] = {
    "array": ((VariantType.ARRAY,), ""),
    "object": ((VariantType.OBJECT,), ""),
    "boolean": ((VariantType.BOOLEAN,), "BOOLEAN"),
    "integer": (_INTEGERS, "BIGINT"),
    "decimal": (_DECIMALS, "DECIMAL(38, 0)"),
    "number": (_DECIMALS, "DECIMAL(38, 0)"),
    "double": (_DOUBLES, "DOUBLE"),
    "real": (_DOUBLES, "DOUBLE"),
    "char": ((VariantType.STRING,), "TEXT"),
    "varchar": ((VariantType.STRING,), "TEXT"),
    "string": ((VariantType.STRING,), "TEXT"),
    "binary": ((VariantType.BINARY,), "BLOB"),
    "date": ((VariantType.DATE,), "DATE"),
    "time": ((VariantType.TIME,), "TIME"),
    "timestamp_ltz": (_ZONED, "TIMESTAMPTZ"),
    "timestamp_tz": (_ZONED, "TIMESTAMPTZ"),
    "timestamp_ntz": (_LOCAL, "TIMESTAMPNTZ"),
}
TYPE_FUNCTIONS = frozenset(f"{start}_{end}" for end in _TYPES for start in ("is", "as"))


def _is_one_of(value: exp.Expr, types: tuple[VariantType, ...]) -> exp.In:
    type_name = exp.Anonymous(this="variant_type", expressions=[value.copy()])
    return exp.In(this=type_name, expressions=[exp.Literal.string(str(kind)) for kind in types])


def rewrite_type_function(values: ValueRewriter, node: exp.Expr, name: str) -> tuple[exp.Expr, Kind] | None:
    """Rewrite ``is_…(v)`` or ``as_…(v)``; None if the argument is not a Variant, or the function is not one of them."""
    if name not in TYPE_FUNCTIONS or not node.expressions or not is_variant(values.expression(node.expressions[0])[1]):
        return None
    start, end = name.split("_", 1)
    value, *digits = node.expressions
    types, result = _TYPES[end]
    if digits and not (name in ("as_decimal", "as_number") and all(part.is_int for part in digits)):
        raise SqlError(f"{written(node, values.engine)}: {name} takes one Variant")
    if digits:
        result = f"DECIMAL({', '.join(part.name for part in (*digits, exp.Literal.number(0))[:2])})"
    is_type = exp.Paren(this=_is_one_of(value, types))
    if end == "integer":  # an integer that is stored among decimals is a decimal without a fraction
        fraction = exp.Like(this=exp.cast(value.copy(), "TEXT"), expression=exp.Literal.string("%.%"))
        is_whole = exp.and_(_is_one_of(value, tuple(DECIMAL_TYPES)), exp.not_(fraction))
        is_type = exp.Paren(this=exp.or_(is_type, is_whole))
    if start == "is":
        return values.expression(is_type)
    test = values.expression(is_type)[0]
    if not result:
        return exp.Case(ifs=[exp.If(this=test, true=values.expression(value)[0].copy())]), VARIANT_STORAGE
    typed = values.expression(exp.TryCast(this=value.copy(), to=exp.DataType.build(result)))[0]
    return exp.Case(ifs=[exp.If(this=test, true=typed)]), None
