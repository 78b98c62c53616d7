"""SQL that DuckDB evaluates with the same result as Spark: expressions in Spark's SQL, and local times.

Owns their translation. Expressions whose result could differ are refused by name, since a value that Spark would not
compute must not be written into a table. A local time that occurs twice is the earlier instant, as in Spark and in
casts of Variants, where DuckDB takes the later one. Leaves parsing to `sql_dialect`, and the function that rewritten
casts call to `duckdb_engine`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.errors import VariantError
from parquet_variant.query.duckdb_engine import EARLIER
from parquet_variant.query.rewriting.comparisons import COMPARISONS
from parquet_variant.query.sql_dialect import SqlError, from_template, written
from parquet_variant.query.variant_functions import RETURN_VARIANTS

_ALTERNATIVES = {"coalesce", "ifnull", "nullif", "least", "greatest", "list_value", "min", "max", "any_value", "first"}
_ROWS, _ROW_FUNCTIONS = (exp.Tuple, exp.Array, exp.Struct), {"row", "struct_pack"}
_LIST_FUNCTIONS = {"contains", "has", "has_any", "has_all", "position", "indexof", "append", "prepend", "concat", "cat"}
_DIFFERENCES = {"date_diff", "datediff", "date_sub", "datesub"}
_TEXTS = (pa.string(), pa.large_string(), pa.string_view())
_INSTANTS = {"now", "get_current_timestamp", "to_timestamp", "make_timestamptz", EARLIER}
_LOCAL_TIMES = {"make_date", "make_timestamp", "strptime", "try_strptime", "today", "current_date", "last_day"}
_LOCAL_TYPES = ("date", "timestamp", "timestampntz", "timestamp_s", "timestamp_ms", "timestamp_ns")
_TRUNCATIONS = {"date_trunc", "datetrunc"}
_SHORT_UNITS = {"hour", "minute", "second", "millisecond", "microsecond"}
_LOCAL = r"^\s*\d{1,6}-\d{1,2}-\d{1,2}([ T]\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?)?\s*$"
_AS_INSTANT = f"""(
    CASE WHEN typeof(_0) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP_S', 'TIMESTAMP_MS', 'TIMESTAMP_NS')
        OR typeof(_0) = 'VARCHAR' AND regexp_matches(CAST(_0 AS TEXT), '{_LOCAL}')
    THEN {EARLIER}(_1, _2) ELSE _1 END
)"""


def with_earlier_instants(tree: exp.Expr, zone: str) -> exp.Expr:
    """Return an expression or query for DuckDB in which local times are the earlier instants.

    Literals become instants in UTC; casts of columns call a function of `duckdb_engine`.

    >>> from parquet_variant.query.sql_dialect import parse_sql, to_sql
    >>> to_sql(with_earlier_instants(parse_sql("TIMESTAMP '2024-11-03 01:00:00'", what="expression"), "US/Eastern"))
    "CAST('2024-11-03 05:00:00+00:00' AS TIMESTAMPTZ)"
    """
    timezone, root = zone_of(zone), exp.Paren(this=tree)
    has_changes = not isinstance(timezone, dt.timezone)
    for node in reversed(list(tree.find_all(exp.Expr if has_changes else exp.AtTimeZone))):  # inner ones first
        converted = _converted(node, timezone)
        if converted is not None and converted is not node:
            node.replace(converted)
    return root.this.pop()


def _converted(node: exp.Expr, zone: dt.tzinfo) -> exp.Expr | None:
    """Return an expression in place of another one; parts of the other one may change, too."""
    name = _name(node)
    if isinstance(node, exp.AtTimeZone) and node.args["zone"].is_string and _is_instant(node.this) is False:
        with suppress(VariantError):  # DuckDB knows more names, and refuses unknown ones
            other = zone_of(node.args["zone"].name)
            return node if isinstance(other, dt.timezone) else _earlier(node, other)
    if isinstance(node, exp.Cast) and node.is_type("timestamptz"):
        return _cast(node, zone)
    if name == "make_timestamptz" and len(node.expressions) == 6:
        return _earlier(node, zone)
    if name in _TRUNCATIONS and _is_instant(node):
        unit, value = node.expressions
        if unit.name.lower().removesuffix("s") not in _SHORT_UNITS:
            return _earlier(node, zone)
        local = exp.cast(value.copy(), "TIMESTAMPNTZ")  # its offset is that of the instant
        return from_template("(_0 - (_1 - date_trunc(_2, _1)))", [value, local, unit])
    is_comparison = isinstance(node, COMPARISONS)
    for sides in _unified(node):
        for side in sides if any(map(_is_instant, sides)) else ():
            kind = side.meta.get("type")
            may_be_local = isinstance(side, (exp.Column, exp.Dot)) and kind is None and side.arg_key != "field"
            if side.is_string or (is_comparison and (kind in _TEXTS or may_be_local)) or _is_instant(side) is False:
                side.replace(_as_instant(side, zone))
    values = [side for side in _sides(node) if not side.is_string] if is_comparison else []
    if len(values) == 1 and _is_instant(values[0]) is None and values[0].meta.get("type") is None:
        zoned = node.copy()
        for literal in [side for side in _sides(zoned) if side.is_string and _utc_text(side.name, zone)]:
            literal.replace(_as_instant(literal, zone))
        template = "(CASE WHEN typeof(_0) = 'TIMESTAMP WITH TIME ZONE' THEN _1 ELSE _2 END)"
        return from_template(template, [values[0], zoned, node]) if zoned != node else None
    return None


def _unified(node: exp.Expr) -> Iterator[list[exp.Expr]]:
    """Yield groups of parts that the engine casts to one type; the last group of CASE is its values."""
    name = _name(node)
    if isinstance(node, COMPARISONS):
        sides = _sides(node)
        rows = [_sides(side) for side in sides if isinstance(side, _ROWS) or _name(side) in _ROW_FUNCTIONS]
        yield from map(list, zip(*rows, strict=False)) if len(rows) == len(sides) else [sides]
    elif isinstance(node, exp.Case):
        choices = node.args["ifs"]
        yield [node.this, *(choice.this for choice in choices)] if node.this else []
        yield [*(choice.args["true"] for choice in choices), *filter(None, [node.args.get("default")])]
    elif isinstance(node, exp.SetOperation):
        yield from ([a.unalias(), b.unalias()] for a, b in zip(node.left.selects, node.right.selects, strict=False))
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield _sides(node)[1:]
    elif isinstance(node, (exp.Array, exp.Sub)) or name in _ALTERNATIVES:
        yield _sides(node)
    elif name.partition("_")[0] in ("list", "array") and name.partition("_")[2] in _LIST_FUNCTIONS:
        yield [part for side in _sides(node) for part in (_sides(side) if isinstance(side, exp.Array) else [side])]
    elif name in _DIFFERENCES:
        yield node.expressions[-2:]


def _sides(node: exp.Expr) -> list[exp.Expr]:
    parts = [part.expression if isinstance(part, exp.PropertyEQ) else part for part in node.iter_expressions()]
    return [part.this if isinstance(part, (exp.Any, exp.All)) else part for part in parts]


def _name(node: exp.Expr) -> str:
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _is_instant(node: exp.Expr) -> bool | None:
    """Return whether an expression is an instant (True) or a local time or date (False); None if unknown."""
    kind, name = node.meta.get("type"), _name(node)
    if kind is not None:
        return getattr(kind, "tz", None) is not None if pa.types.is_temporal(kind) else None
    if isinstance(node, exp.CurrentTimestamp) or name in _INSTANTS or node.is_type("timestamptz"):
        return True
    if isinstance(node, exp.CurrentDate) or name in _LOCAL_TIMES or node.is_type(*_LOCAL_TYPES):
        return False
    if isinstance(node, exp.AtTimeZone):
        return None if (inner := _is_instant(node.this)) is None else not inner
    if isinstance(node, exp.Paren) or (isinstance(node, (exp.Add, exp.Sub)) and node.expression.find(exp.Interval)):
        return _is_instant(node.this)
    parts = node.expressions[1:] if name in _TRUNCATIONS else _sides(node) if isinstance(node, exp.Add) else []
    if isinstance(node, exp.Query):
        parts = [item.unalias() for item in node.selects[:1]]
    elif isinstance(node, (exp.Case, exp.If)) or name in _ALTERNATIVES:
        parts = [[], *_unified(node)][-1]
    kinds = {_is_instant(part) for part in parts}
    return True if True in kinds else False if False in kinds else None


def _earlier(node: exp.Expr, zone: dt.tzinfo) -> exp.Expr:
    return exp.Anonymous(this=EARLIER, expressions=[node.copy(), exp.Literal.string(str(zone))])


def _as_instant(value: exp.Expr, zone: dt.tzinfo) -> exp.Expr:
    """Return the cast of a part of an expression, of an item of a SELECT, or of the only column of a subquery."""
    if isinstance(value, exp.Query):
        rows = exp.Subquery(this=value.unnest().copy(), alias=exp.TableAlias(this="_rows", columns=["_value"]))
        return exp.Subquery(this=exp.select(_as_instant(exp.column("_value", "_rows"), zone)).from_(rows))
    instant = _cast(exp.cast(value.copy(), "TIMESTAMPTZ"), zone)
    return exp.alias_(instant, value.name, quoted=True) if isinstance(value.parent, exp.Select) else instant


def _cast(node: exp.Cast, zone: dt.tzinfo) -> exp.Expr:
    value = node.this
    if isinstance(value, exp.Literal) and value.is_string:
        value.replace(exp.Literal.string(_utc_text(value.name, zone) or value.name))
        return node
    instant = from_template(_AS_INSTANT, [value, node, exp.Literal.string(str(zone))])
    instant.meta["type"] = pa.timestamp("us", "UTC")
    return instant


def _utc_text(text: str, zone: dt.tzinfo) -> str | None:
    """Return a local time as an instant in UTC; None for a text with an offset, or that is not a time."""
    with suppress(ValueError, OverflowError):
        if re.fullmatch(_LOCAL, text):
            return dt.datetime.fromisoformat(text.strip()).replace(tzinfo=zone).astimezone(dt.UTC).isoformat(" ")
    return None


# Expressions with the same meaning in both engines.
_ALIKE = (
    exp.Add, exp.And, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Column, exp.CurrentDate, exp.CurrentTimestamp,
    exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Div, exp.Dot, exp.EQ, exp.Extract, exp.GT, exp.GTE, exp.Identifier,
    exp.If, exp.In, exp.IntDiv, exp.Interval, exp.Is, exp.JSONExtract, exp.JSONPath, exp.JSONPathKey, exp.JSONPathRoot,
    exp.JSONPathSubscript, exp.JSONPathWildcard, exp.LT, exp.LTE, exp.Like, exp.Literal, exp.Mod, exp.Mul, exp.NEQ,
    exp.Neg, exp.Not, exp.Null, exp.NullSafeEQ, exp.Or, exp.Paren, exp.RegexpLike, exp.Sub, exp.TryCast, exp.Tuple,
    exp.Var,
)  # fmt: skip
# Functions with the same name, arguments and meaning in both engines.
_SAME = {
    "abs", "coalesce", "contains", "current_date", "day", "dayofmonth", "dayofyear", "greatest", "hour", "last_day",
    "least", "left", "length", "lower", "ltrim", "md5", "minute", "month", "nullif", "quarter", "right", "round",
    "rtrim", "second", "trim", "try_variant_get", "upper", "variant_get", "weekofyear", "year",
}  # fmt: skip
# DuckDB's SQL for other functions, by name and number of arguments.
_TEMPLATES = {
    ("nvl", 2): "coalesce(_0, _1)", ("ifnull", 2): "coalesce(_0, _1)", ("char_length", 1): "length(_0)",
    ("startswith", 2): "starts_with(_0, _1)", ("endswith", 2): "ends_with(_0, _1)", ("size", 1): "len(_0)",
    ("current_timestamp", 0): "now()", ("now", 0): "now()", ("uuid", 0): "CAST(uuid() AS TEXT)",
    ("isnull", 1): "(_0 IS NULL)", ("isnotnull", 1): "(_0 IS NOT NULL)", ("mod", 2): "((_0) % (_1))",
    ("dayofweek", 1): "(dayofweek(_0) + 1)", ("date_add", 2): "(CAST(_0 AS DATE) + CAST(_1 AS INT))",
    ("date_sub", 2): "(CAST(_0 AS DATE) - CAST(_1 AS INT))", ("regexp_like", 2): "regexp_like(_0, _1)",
    ("datediff", 2): "(CAST(_0 AS DATE) - CAST(_1 AS DATE))",
}  # fmt: skip
# Functions, before and after translation, whose results are whole numbers, strings and dates.
_SPELLED = _SAME - {"abs", "coalesce", "greatest", "least", "nullif", "round", "variant_get", "try_variant_get"} | {
    "dayofweek", "len", "strftime"
}  # fmt: skip
_TYPES = {"int": "INT", "bigint": "BIGINT", "double": "DOUBLE", "string": "TEXT", "date": "DATE", "boolean": "BOOLEAN",
    "to_date": "DATE"}  # fmt: skip
_PATTERN = re.compile(r"(yyyy|MM|dd|HH|mm|ss|[^A-Za-z'\[\]{}#%]+)*")
_STRFTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month", "mm": "month",
    "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
}  # fmt: skip


class SparkMeaning:
    """Translates expressions from Spark's SQL to DuckDB's.

    `types`: Arrow types of the columns that are not Variants, by name.

    >>> from parquet_variant.query.sql_dialect import parse_sql, to_sql
    >>> to_sql(SparkMeaning({}).converted(parse_sql("date_format(t, 'yyyy-MM')", "spark", what="expression")))
    "STRFTIME(CAST(t AS TIMESTAMP), '%Y-%m')"
    """

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self.types = {name.lower(): kind for name, kind in types.items()}

    def converted(self, node: exp.Expr) -> exp.Expr:
        """Translate a tree, its parts first.

        Raises `SqlError` with the part of the expression that could have another result in DuckDB.
        """
        copy = node.copy()
        for part in list(copy.iter_expressions()):
            part.replace(self.converted(part))
        return self.of(copy)

    def of(self, node: exp.Expr) -> exp.Expr:
        """Translate an expression whose parts are translated."""
        if isinstance(node, exp.Anonymous):
            return self.function(node)
        if isinstance(node, exp.Bracket):
            return self.element(node)
        if isinstance(node, exp.Cast):
            return self.cast(node)
        if isinstance(node, exp.DPipe):
            return exp.DPipe(this=self.text(node.this), expression=self.text(node.expression))
        kinds = self.kinds(node)
        if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("decimals") is None:
            is_alike = not any(map(pa.types.is_floating, kinds))  # Spark returns whole numbers, also for NaN
        elif isinstance(node, exp.Trim):
            is_alike = node.args.get("expression") is None
        elif isinstance(node, exp.Substring):
            is_alike = _number(node.args.get("start"), least=1)
        elif isinstance(node, exp.Like):  # Spark refuses a pattern with a wrong escape only when it meets one
            is_alike = node.expression.is_string
        elif isinstance(node, (exp.Add, exp.Sub)) and node.find(exp.Interval):
            is_alike = not any(map(pa.types.is_date, kinds))  # DuckDB returns timestamps
        elif isinstance(node, exp.Div):
            is_alike = not any(map(pa.types.is_decimal, kinds))  # DuckDB divides decimals as doubles
        else:
            is_alike = isinstance(node, _ALIKE)
        if not is_alike:
            raise _unknown_expression(node)
        return node

    def function(self, node: exp.Anonymous) -> exp.Expr:
        """Translate a call of a function."""
        name, arguments = str(node.this).lower(), node.expressions
        if name in _SAME or name in RETURN_VARIANTS:
            return node
        if name in _TYPES and len(arguments) == 1:
            return self.cast(exp.cast(arguments[0], _TYPES[name]))
        if (template := _TEMPLATES.get((name, len(arguments)))) is not None:
            return from_template(template, arguments)
        if name == "concat":
            parts = map(self.text, arguments or [exp.Literal.string("")])
            return exp.paren(reduce(lambda first, second: exp.DPipe(this=first, expression=second), parts))
        if name == "array":
            return exp.Array(expressions=list(arguments))
        if name == "date_format" and len(arguments) == 2:
            value, pattern = arguments
            if not isinstance(pattern, exp.Literal) or not _PATTERN.fullmatch(pattern.name):
                shown = written(pattern, "spark")
                raise SqlError(f"unsupported date_format pattern {shown}: use yyyy, MM, dd, HH, mm and ss")
            text = re.sub("yyyy|MM|dd|HH|mm|ss", lambda match: _STRFTIME[match[0]], pattern.name)
            return exp.Anonymous(this="strftime", expressions=[exp.cast(value, "TIMESTAMP"), exp.Literal.string(text)])
        if name in ("date_trunc", "trunc") and len(arguments) == 2:
            is_date = name == "trunc"
            unit, value = arguments[is_date], arguments[not is_date]
            part = _UNITS.get(unit.name.lower()) if isinstance(unit, exp.Literal) else None
            if part is None:
                units = ", ".join(sorted(set(_UNITS.values())))
                raise SqlError(f"unknown unit {written(unit, 'spark')}: use {units}")
            truncated = exp.Anonymous(this="date_trunc", expressions=[exp.Literal.string(part), value])
            return exp.cast(truncated, "DATE") if is_date else truncated
        raise _unknown_expression(node)

    def text(self, node: exp.Expr) -> exp.Expr:
        """Return an expression as text."""
        return node if isinstance(node, exp.Literal) and node.is_string else self.cast(exp.cast(node, "TEXT"))

    def cast(self, node: exp.Expr) -> exp.Expr:
        """Return a cast that truncates fractions as Spark does; casts to text that could differ are refused."""
        if node.is_type(*exp.DataType.TEXT_TYPES) and not self.has_one_spelling(node.this.unnest()):
            raise _unknown_expression(node)
        if node.is_type(*exp.DataType.INTEGER_TYPES):
            kinds = self.kinds(node.this)
            fraction = node.this.find(exp.Div) is not None or any(
                not literal.is_string and not literal.is_int for literal in node.this.find_all(exp.Literal)
            )
            if fraction or any(pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in kinds):
                node.set("this", exp.Anonymous(this="trunc", expressions=[node.this]))
        return node

    def has_one_spelling(self, node: exp.Expr) -> bool:
        """Return whether both engines write the values as the same text, which is not so for doubles and timestamps."""
        if isinstance(node, exp.Column):
            kind = self.types.get(node.name.lower())
            return kind is not None and not pa.types.is_floating(kind) and not pa.types.is_timestamp(kind)
        if isinstance(node, exp.Cast):
            return node.is_type(*exp.DataType.INTEGER_TYPES, *exp.DataType.TEXT_TYPES, "date", "boolean", "decimal")
        if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.IntDiv)):
            return all(pa.types.is_integer(kind) for kind in self.kinds(node)) and not node.find(exp.Div, exp.Interval)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            return name in _SPELLED or (name == "coalesce" and all(map(self.has_one_spelling, node.expressions)))
        return isinstance(node, (exp.Substring, exp.Trim, exp.DPipe)) or node.is_string or node.is_int

    def element(self, node: exp.Bracket) -> exp.Expr:
        """Translate an index of an array, which Spark counts from 0; that of a Variant is kept."""
        column = node.this.unnest()
        kind = self.types.get(column.name.lower()) if isinstance(column, exp.Column) else None
        if kind is None and isinstance(column, exp.Column) and not column.table:
            return node  # a Variant
        (index, *more) = node.expressions
        if more or kind is None or not pa.types.is_list(kind) or not _number(index, least=0):
            raise _unknown_expression(node)
        node.set("expressions", [exp.Literal.number(int(index.name) + 1)])
        return node

    def kinds(self, node: exp.Expr) -> list[pa.DataType]:
        """Return the types of the columns in an expression."""
        names = [column.name.lower() for column in node.find_all(exp.Column)]
        return [self.types[name] for name in names if name in self.types]


def _number(node: exp.Expr | None, *, least: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.name) >= least


def _unknown_expression(node: exp.Expr) -> SqlError:
    return SqlError(
        f"unsupported expression {written(node, 'spark')}: DuckDB evaluates it, and could differ from Spark"
    )
