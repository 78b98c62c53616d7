"""Conditions and values in SQL over the columns of one or several tables, for DELETE, UPDATE and MERGE.

Owns the columns that an expression needs, its pushdown, and its text over those columns. Leaves whole queries, with
their scopes, to `sql_query`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.duckdb_engine import connect, interruptible
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.rewriting.expressions import ExpressionRewriter
from parquet_variant.query.rewriting.scopes import Relation, Scope, TableUse, missing_path
from parquet_variant.query.rewriting.values import QueryContext
from parquet_variant.query.selection import Selected, TableColumns, TableFacts
from parquet_variant.query.spark_meaning import SparkMeaning, with_earlier_instants
from parquet_variant.query.sql_dialect import SqlError, from_template, parse_sql, to_sql, written
from parquet_variant.query.variant_functions import CallContext, register_calls, unknown_function
from parquet_variant.support.options import SqlEngine
from parquet_variant.support.records import Record
from parquet_variant.types.path import quoted


class SqlExpression(Record):
    """An expression as DuckDB's text, with the columns that it needs."""

    text: str  # DuckDB's text over `columns`, each qualified by its table.
    # For each table, the columns that the text needs, by their names in the text.
    columns: Mapping[str, Mapping[str, Selected]]
    # For each table, a predicate over those names that is true wherever the expression is true, if it is a condition.
    pushdown: Mapping[str, Predicate]
    returns_variant: bool = False  # Whether the value is a Variant, as the struct of its parts.
    is_column: bool = False  # Whether it is a column, or a path, and nothing else.
    equivalent: Predicate | None = None  # The predicate that is the condition, if it has one table and there is one.


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
    table_facts = {alias: TableFacts.of(columns) for alias, columns in tables.items()}
    tree = parse_sql(text, engine, what="expression")
    if engine == "spark":
        types = {name: kind for facts in table_facts.values() for name, kind in facts.columns.ordinary.items()}
        tree = SparkMeaning(types).converted(tree)
    for node in tree.find_all(exp.Query, exp.Window, exp.Star):
        raise SqlError(
            f"{written(node)!r} is not allowed in a condition on rows: subqueries, windows and stars read other rows"
        )
    uses = {alias: TableUse(number, facts, "") for number, (alias, facts) in enumerate(table_facts.items())}
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
        isinstance(condition, exp.Column),
        use.pushdown(zone).exact(condition) if len(uses) == 1 else None,
    )


def needed_path_hints(
    facts: TableFacts, condition: SqlExpression, table: str, rows: Mapping[str, pa.Table], context: CallContext
) -> list[str]:
    """Return messages for missing paths of a table if the condition is true for no row without these paths.

    A path of ``v:a = 1 OR v:b = 2`` may be missing if another path exists, and that of ``v:a IS NULL`` always.

    `rows`: the columns that the condition needs, by table; any number of rows, or none.
    """
    hints = {
        name: hint
        for name, column in condition.columns.get(table, {}).items()
        if column.path is not None and (hint := missing_path(facts, column.stored_name, column.path)) is not None
    }

    def are_needed(names: Collection[str]) -> bool:
        """Return whether the optimizer of the engine proves that no row matches if some columns are null."""

        def with_null(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Between) and not node.args.get("symmetric"):  # not simplified by the engine
                parts = [node.args[key].transform(with_null) for key in ("this", "low", "high")]
                return from_template("(_0 >= _1 AND _0 <= _2)", parts)
            is_null = isinstance(node, exp.Column) and node.table == table and node.name in names
            return exp.Case(ifs=[exp.If(this=exp.false(), true=node)]) if is_null else node

        tree = parse_sql(condition.text, what="expression").transform(with_null)
        tables = ", ".join(map(quoted, rows))
        plan = run_sql(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM {tables} WHERE {to_sql(tree)}", rows, context)
        return "EMPTY_RESULT" in plan["explain_value"][0].as_py()

    if not hints or not are_needed(hints):
        return []
    alone = [hint for name, hint in hints.items() if are_needed([name])]
    return list(dict.fromkeys(alone or hints.values()))


def run_sql(text: str, tables: Mapping[str, Any], context: CallContext | None = None) -> pa.Table:
    """Run a query over Arrow tables or streams.

    `tables`: Arrow tables, or readers of batches that are read once, by their names in the text.
    Raises `SqlError` with the message of DuckDB.

    >>> run_sql("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1, 2]})}).to_pydict()
    {'b': [2, 3]}
    """
    context = context or CallContext()
    with connect(zone=context.zone) as connection:
        import duckdb

        failures: list[Exception] = []
        text = register_calls(connection, text, failures, context)
        try:
            with interruptible(connection) as run:
                for name, table in tables.items():
                    run(partial(connection.register, name, table))
                return run(lambda: connection.sql(text).to_arrow_table())
        except duckdb.Error as error:
            if failures:
                raise failures[0] from None
            raise SqlError(engine_message(error)) from None


_NO_FUNCTION = re.compile(r"No function matches the given name and argument types '(\w+|\W+)\((.*?)\)'")
_MISSING_FUNCTION = re.compile(r"Function with name \"?(\w+)\"? does not exist")
_TIMES = re.compile(r"\(.*\b(TIMESTAMP|DATE)\b.*\) -> ")  # a candidate function that takes a point in time
# Remedies by a pattern of a message of DuckDB; the last one that fits is shown.
_REMEDIES = {
    "VARIANT": "cast the Variant, as in ::string",
    r"for cast \(DOUBLE -> TIMESTAMP": "seconds since 1970 are a time with to_timestamp(x), milliseconds with "
    "epoch_ms(x::bigint)",
    # TIMESTAMP has a zone, as in Spark.
    "type TIMESTAMP_NS and type TIMESTAMP WITH TIME ZONE": "a literal without a zone is TIMESTAMP_NTZ '…'",
    r"\\0": "SQL allows no NUL in a name: rename the column",
    "cannot contain aggregates": "write the condition in HAVING, after GROUP BY",
    "must appear in the GROUP BY": "add it to GROUP BY, or write GROUP BY ALL",
    "cannot contain window functions": "write the condition in QUALIFY",
    "Window functions are not supported here": "write OVER (…) after the function",
    r'at or near "FOR"|support time travel': "a version is chosen by pv.open(…, version=0), or variant query --version",
    "extract specifier": "use year, quarter, month, week, day, hour, minute, second or dow",
    r"^date_?(trunc|part) does not accept (?!VARCHAR)": "the unit comes first, as in date_trunc('month', x)",
    r"^date_?(diff|sub) does not accept (?!VARCHAR|.*,.*,)": "the unit comes first, as in date_diff('day', start, end)",
    "^to_timestamp does not accept VARCHAR": "text becomes a time with a cast, as in x::timestamp",
    # RE2's messages.
    r"Invalid Input Error: (missing|no argument for repetition|unexpected|trailing|invalid (repetition|perl|escape|"
    r"character class|UTF-8|named))": r"the regular expression is not valid; write \( for a bracket itself, or search "
    "with contains(…)",
}
ENGINE_STORAGE = 'STRUCT(metadata BLOB, "value" BLOB)'  # DuckDB's name of the storage of a Variant


def engine_message(error: Exception) -> str:
    """Return the message for an error of DuckDB, with a remedy where one is known."""
    message = str(error).strip().splitlines()[0].replace(ENGINE_STORAGE, "VARIANT")
    remedies: list[str] = []
    if (call := _NO_FUNCTION.search(message)) is not None:
        name, types = call[1], call[2].replace("STRING_LITERAL", "VARCHAR").replace("INTEGER_LITERAL", "INTEGER")
        kind = "timestamp" if _TIMES.search(str(error)) and "DOUBLE" not in str(error) else "double"
        what = "argument" if name.isidentifier() else "operand"
        kind = "variant" if name.startswith("variant_") else kind
        example = f"{name}(x::{kind})" if what == "argument" and "," not in types else f"x::{kind}"
        message, remedies = f"{name} does not accept {types or 'no argument'}", [f": cast the {what}, as in {example}"]
    missing = _MISSING_FUNCTION.search(message)
    if missing is not None and (unknown := unknown_function(missing[1])) is not None:
        return unknown
    remedies += [f": {remedy}" for pattern, remedy in _REMEDIES.items() if re.search(pattern, message)]
    return f"the SQL cannot be run: {message.rstrip('!.')}{remedies[-1] if remedies else ''}"
