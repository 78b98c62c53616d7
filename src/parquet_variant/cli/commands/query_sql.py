"""SQL of ``variant query``: what the command's words bind to, the engines, and the plan for people and machines.

Owns the options that go with SQL. Leaves the query to `sql_query`, and how an answer is shown to `query`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from parquet_variant.sql_query.sql import SqlQuery
    from parquet_variant.sql_query.tables import BoundTable

_SQL = re.compile(r"\s*(?:select|with|from|values|describe|summarize|\(|--|/\*)(?:\b|\s|$|\()", re.IGNORECASE)


def is_sql(word: str) -> bool:
    """Whether the first word of the command is a query, not a path.

    >>> is_sql("SELECT 1"), is_sql("select.parquet"), is_sql("events/")
    (True, False, False)
    """
    return " " in word.strip() and _SQL.match(word) is not None


def plan(
    path: str | None,
    sql: str,
    selects: Mapping[str, str],
    *,
    version: int | None,
    at: str | None,
    column: str | None,
    strict: bool,
    threads: int | None,
    allow_outside: bool,
    engine: Any,
) -> SqlQuery:
    """Plan a query; the table t is the path of the command, with the columns of ``--select``."""
    _import_dialect()
    from parquet_variant.sql_query.sql import plan_sql

    tables: dict[str, Any] = {}
    if path is not None:
        tables["t"] = _bound(path, version, at, allow_outside)
        if selects:
            tables["t"] = tables["t"].with_columns(selects, column)
    return plan_sql(
        sql,
        tables,
        errors="raise" if strict else "null",
        threads=threads,
        engine=engine,
        version=version,
        timestamp=at,
    )


class _Template:
    """A template of sqlglot's for a rare function, parsed each time that it is used."""

    def __init__(self, text: str, **options: Any) -> None:
        self._given = text, options

    def __getattr__(self, name: str) -> Any:
        from sqlglot import maybe_parse

        text, options = self._given
        return getattr(maybe_parse(text, **options), name)


def _import_dialect() -> None:
    """Import sqlglot's DuckDB with its templates unread: to parse two dozen is a tenth of a short command."""
    from sqlglot import exp

    parse = exp.maybe_parse
    setattr(exp, "maybe_parse", _Template)  # noqa: B010 - a type of its own, for the time of an import
    try:
        import sqlglot.generators.duckdb  # noqa: F401
    finally:
        setattr(exp, "maybe_parse", parse)  # noqa: B010


def _bound(path: str, version: int | None, at: str | None, allow_outside: bool) -> BoundTable:
    from parquet_variant.sql_query.paths import is_delta
    from parquet_variant.sql_query.tables import bind_table

    if not (allow_outside and is_delta(path)):
        return bind_table(path, path, version=version, timestamp=at)
    from parquet_variant.delta import snapshot

    return bind_table(snapshot(path, version=version, timestamp=at, allow_outside=True), path)


def explained(query: SqlQuery, *, on_spark: bool = False) -> tuple[str, dict[str, Any]]:
    """What would be read for a query, of how much (and on Spark by whom): as text, and for machines."""
    parts = [_one(query, number, on_spark) for number in range(len(query.rewritten.uses))]
    details = [detail for _, detail in parts]
    whole = details[0] if len(details) == 1 else {"tables": details}
    return "\n\n".join(text for text, _ in parts) or "no table is read", whole


def _one(query: SqlQuery, number: int, on_spark: bool) -> tuple[str, dict[str, Any]]:
    from parquet_variant.sql_query.sql import columns_text, filter_text

    use = query.rewritten.uses[number]
    scan: Any = query.plans[use.relation]
    report = scan.explain() if hasattr(scan, "explain") else None
    columns, filters = columns_text(use), filter_text(use)
    lines = [f"table       {use.table.name}"] + ([str(report)] if report is not None else [])
    lines += [f"asked for   {', '.join(columns) or 'its rows'}", f"filters     {' and '.join(filters) or 'none'}"]
    details = report.to_dict() if report is not None and hasattr(report, "to_dict") else {}
    if on_spark:
        from parquet_variant.spark.operations.sql import readers_of

        readers = readers_of(use)
        lines.append(str(readers))
        details |= {"readers": {"jvm": readers.jvm_files, "python": readers.python}}
    return "\n".join(lines), details | {"table": use.table.name, "asked_for": columns, "filters": filters}


def spark_batches(query: SqlQuery) -> Iterator[pa.Table]:
    """The answer, by a local Spark session."""
    from parquet_variant.cli.output.progress import Progress
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.spark.arrow_variant import with_variants
    from parquet_variant.spark.operations.sql import run_query

    with Progress() as progress, spark_session(progress) as session:
        progress("query", 0, 1)
        yield with_variants(run_query(session, query).toArrow())
