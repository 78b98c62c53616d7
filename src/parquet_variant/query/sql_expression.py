"""Conditions and values in SQL over the columns of one or several tables, for DELETE, UPDATE and MERGE.

Owns the columns that an expression needs, its pushdown, and its text over those columns. Leaves whole queries, with
their scopes, to `sql_query`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.duckdb_engine import connect, interruptible
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.rewriting.expressions import ExpressionRewriter
from parquet_variant.query.rewriting.scopes import KeysOf, Relation, Scope, TableUse, missing_path
from parquet_variant.query.rewriting.values import QueryContext
from parquet_variant.query.selection import Selected, TableColumns, TableFacts
from parquet_variant.query.spark_meaning import SparkMeaning, with_earlier_instants
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql, written
from parquet_variant.query.variant_functions import CallContext, register_calls, unknown_function
from parquet_variant.support.choices import SqlEngine
from parquet_variant.support.records import Record


class SqlExpression(Record):
    """An expression as DuckDB's text, with the columns that it needs."""

    text: str  # DuckDB's text over `columns`, each qualified by its table.
    # For each table, the columns that the text needs, by their names in the text.
    columns: Mapping[str, Mapping[str, Selected]]
    # For each table, a predicate over those names that is true wherever the expression is true, if it is a condition.
    pushdown: Mapping[str, Predicate]
    returns_variant: bool = False  # Whether the value is a Variant, as the struct of its parts.


def read_expression(
    text: str, tables: Mapping[str, TableColumns | TableFacts], *, zone: str = "UTC", engine: SqlEngine = "duckdb"
) -> SqlExpression:
    r"""Parse an expression, and resolve its columns.

    `text`: a condition or a value: ``v:a.b::int > 5 AND day = DATE '2024-01-31'``.
    `tables`: the columns of each table, by the name or alias that qualifies them in the text.
    `engine`: the SQL of the text; Spark's is translated for DuckDB, or refused.
    Raises `SqlError` or `PathError` if the text is invalid, names an unknown column, has a subquery, or computes with a
    Variant that is not cast.

    >>> where = read_expression("v:a.b::int > 5 AND lower(c) = 'x'", {"t": TableColumns(["v"], {"c": pa.string()})})
    >>> where.text
    '"t"."v:$[\'a\'][\'b\']:int" > 5 AND LOWER("t"."c") = \'x\''
    >>> where.pushdown["t"]
    Compare(column="v:$['a']['b']:int", op='>', literal=5)
    """
    known = {alias: TableFacts.of(columns) for alias, columns in tables.items()}
    try:
        return _read(text, known, zone, engine)
    except SqlError:  # an expression may need the types of paths, which take time to find
        facts = {alias: c.facts() for alias, c in tables.items() if isinstance(c, TableColumns) and c.facts is not None}
        if not facts:
            raise
    return _read(text, known | facts, zone, engine)


def _read(text: str, known: Mapping[str, TableFacts], zone: str, engine: SqlEngine) -> SqlExpression:
    tree = parse_sql(text, engine, what="expression")
    if engine == "spark":
        types = {name: kind for facts in known.values() for name, kind in facts.columns.ordinary.items()}
        tree = SparkMeaning(types).converted(tree)
    for node in tree.find_all(exp.Query, exp.Window, exp.Star):
        raise SqlError(
            f"{written(node)!r} is not allowed in a condition on rows: subqueries, windows and stars read other rows"
        )
    uses = {alias: TableUse(number, facts, "") for number, (alias, facts) in enumerate(known.items())}
    scope = Scope({}, relations=[Relation(alias, use.output_columns(), use) for alias, use in uses.items()])
    context = QueryContext("duckdb", zone, is_condition=True)
    value = ExpressionRewriter(context, scope).expression(tree)
    if context.unknown:
        raise SqlError(context.unknown[0])
    condition = value.sql
    for use in uses.values():
        use.push(condition, zone)
    shown = {(column.table, column.name) for column in condition.find_all(exp.Column)}
    return SqlExpression(
        to_sql(with_earlier_instants(condition, zone)),
        {alias: {n: c for n, c in use.needed.items() if (alias, n) in shown} for alias, use in uses.items()},
        {alias: predicate for alias, use in uses.items() if (predicate := use.predicate) is not None},
        value.is_variant,
    )


def needed_path_hints(keys_of: KeysOf, condition: SqlExpression, table: str) -> list[str]:
    """Return messages for missing paths of a table if the condition is true for no row without these paths.

    A path of ``v:a = 1 OR v:b = 2`` may be missing if another path exists, and that of ``v:a IS NULL`` always.
    """
    keys_of = cache(keys_of)
    hints = {
        name: hint
        for name, column in condition.columns.get(table, {}).items()
        if column.path is not None and (hint := missing_path(keys_of, column.stored_name, column.path)) is not None
    }
    if not hints or not rejects_nulls(condition.text, table, hints):
        return []
    alone = [hint for name, hint in hints.items() if rejects_nulls(condition.text, table, [name])]
    return list(dict.fromkeys(alone or hints.values()))


def run_sql(text: str, tables: Mapping[str, Any], *, zone: str = "UTC") -> pa.Table:
    """Run a query over Arrow tables or streams.

    `tables`: Arrow tables, or readers of batches that are read once, by their names in the text.
    Raises `SqlError` with the message of DuckDB.

    >>> run_sql("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1, 2]})}).to_pydict()
    {'b': [2, 3]}
    """
    with connect(zone=zone) as connection:
        import duckdb

        failures: list[Exception] = []
        text = register_calls(connection, text, failures, CallContext(zone=zone))
        try:
            for name, table in tables.items():
                connection.register(name, table)
            with interruptible(connection) as run:
                return run(lambda: connection.sql(text).to_arrow_table())
        except duckdb.Error as error:
            if failures:
                raise failures[0] from None
            raise SqlError(engine_message(error)) from None


# ---- errors of the engine

_NO_FUNCTION = re.compile(r"No function matches the given name and argument types '(\w+|\W+)\((.*?)\)'")
_MISSING_FUNCTION = re.compile(r"Function with name \"?(\w+)\"? does not exist")
# RE2's messages.
_BAD_PATTERN = re.compile(
    r"Invalid Input Error: (missing|no argument for repetition|unexpected|trailing|invalid "
    r"(repetition|perl|escape|character class|UTF-8|named))"
)
_TIMES = re.compile(r"\(.*\b(TIMESTAMP|DATE)\b.*\) -> ")  # a candidate function that takes a point in time
ENGINE_STORAGE = 'STRUCT(metadata BLOB, "value" BLOB)'  # DuckDB's name of the storage of a Variant


def engine_message(error: Exception) -> str:
    """Return the message for an error of DuckDB, with a remedy where one is known."""
    message = str(error).strip().splitlines()[0].replace(ENGINE_STORAGE, "VARIANT")
    if (call := _NO_FUNCTION.search(message)) is not None:
        name, types = call[1], call[2].replace("STRING_LITERAL", "VARCHAR").replace("INTEGER_LITERAL", "INTEGER")
        kind = "timestamp" if _TIMES.search(str(error)) and "DOUBLE" not in str(error) else "double"
        what = "argument" if name.isidentifier() else "operand"
        example = f"{name}(x::{kind})" if what == "argument" and "," not in types else f"x::{kind}"
        message = f"{name} does not accept {types or 'no argument'}: cast the {what}, as in {example}"
    missing = _MISSING_FUNCTION.search(message)
    if missing is not None and (unknown := unknown_function(missing[1])) is not None:
        return unknown
    hint = ": cast the Variant, as in ::string" if "VARIANT" in message else ""
    if _BAD_PATTERN.search(message) is not None:
        hint = r": the regular expression is not valid; write \( for a bracket itself, or search with contains(…)"
    if "type TIMESTAMP_NS and type TIMESTAMP WITH TIME ZONE" in message:  # TIMESTAMP has a zone, as in Spark
        hint = ": a literal without a zone is TIMESTAMP_NTZ '…'"
    return f"the SQL cannot be run: {message}{hint}"


# ---- conditions that cannot be true where some columns are null

# Operators and functions that are null if one of their operands is null.
_OPERATORS = (
    exp.Paren, exp.Cast, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike,
)  # fmt: skip
_FUNCTIONS = {
    "lower", "upper", "trim", "length", "substring", "substr", "starts_with", "ends_with", "contains", "abs", "round",
    "floor", "ceil", "year", "month", "day", "hour", "date_trunc", "date_part", "regexp_matches",
    "_pv_sort_key", "_pv_variant_get", "_pv_to_json",
}  # fmt: skip


def rejects_nulls(condition: str, table: str, columns: Collection[str]) -> bool:
    """Return whether a condition in DuckDB's SQL is true for no row in which the columns of a table are all null.

    >>> rejects_nulls("t.a > 1 AND t.b = 2", "t", ["a"]), rejects_nulls("t.a > 1 OR t.b = 2", "t", ["a"])
    (True, False)
    >>> rejects_nulls("NOT LOWER(t.a) = 'x'", "t", ["a"]), rejects_nulls("COALESCE(t.a, 1) = 1", "t", ["a"])
    (True, False)
    """

    def is_null(node: exp.Expr) -> bool:
        if isinstance(node, exp.Column):
            return node.table == table and node.name in columns
        if isinstance(node, (exp.Between, exp.In)):
            return is_null(node.this)
        name = node.name.lower().partition("__")[0]  # without the constants of a call
        is_strict = name in _FUNCTIONS if isinstance(node, exp.Anonymous) else isinstance(node, _OPERATORS)
        return is_strict and any(map(is_null, node.iter_expressions()))

    def excludes(node: exp.Expr, truth: bool) -> bool:
        """Return whether a condition never has a truth value."""
        if isinstance(node, (exp.Paren, exp.Not)):
            return excludes(node.this, truth != isinstance(node, exp.Not))
        if isinstance(node, (exp.And, exp.Or)):
            parts = [excludes(part, truth) for part in (node.this, node.expression)]
            return any(parts) if isinstance(node, exp.And) == truth else all(parts)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            is_true = not node.args.get("negate")
            return is_true != truth and is_null(node.this)
        return is_null(node)

    return excludes(parse_sql(condition, what="expression"), True)
