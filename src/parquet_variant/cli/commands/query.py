"""``variant query``, ``sql-view``, ``schema`` and ``cat``: rows of data by path, in SQL or whole, and typed columns.

Owns the options, and the presentation of results and plans. Leaves reading and queries by path to `Table.scan`, SQL to
`sql_query`, and JSON to `to_json`.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from typer import Argument, BadParameter, Option

from parquet_variant.cli.options import common
from parquet_variant.cli.options.sources import open_table, queryable, spark_session
from parquet_variant.cli.output import print_grid, print_json, print_json_rows, print_result, report_warning
from parquet_variant.errors import VariantError
from parquet_variant.io.parallel import ShownProgress
from parquet_variant.support.options import SqlEngine
from parquet_variant.support.records import Record, counted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from parquet_variant.spark.operations.read import ReadPlan
    from parquet_variant.sql_query.result import CopyStatement
    from parquet_variant.sql_query.sql import SqlQuery
    from parquet_variant.tables.table.table import Table


def schema(
    path: common.Path,
    column: common.Column = None,
    names: Literal["short", "path"] = Option(
        "short", help="Name columns by the shortest unique end of a path, or all keys."
    ),
    version: common.Version = None,
    at: common.At = None,
    as_json: common.AsJson = False,
) -> None:
    """Print the columns of typed(t): ordinary columns, and the shredded paths with their types.

    PATH can also be JSON, or - for standard input.
    """
    from parquet_variant.query.sql_dialect import sql_type_name

    with queryable(path, column=column, version=version, at=at) as table:
        scan = table.typed(names=names)
    paths = [None if selected.path is None else selected.path.shorthand for selected in scan.plan.question.columns]
    rows = [(field.name, sql_type_name(field.type), path) for field, path in zip(scan.schema, paths, strict=True)]
    if as_json:
        print_json([{"name": name, "type": kind, "path": shown} for name, kind, shown in rows])
    else:
        print_grid(["column", "type", "path"], rows)


def cat(
    path: common.Path,
    column: common.Column = None,
    version: common.Version = None,
    at: common.At = None,
    catalog: common.Catalog = None,
    threads: common.Threads = None,
    limit: int | None = Option(None, help="Stop after this number of rows.", min=0),
    allow_outside: common.AllowOutside = False,
) -> None:
    """Print rows as JSON, one per line. PATH can also be JSON, or - for standard input.

    Rows are objects, with each Variant as JSON. If the Variant is the only column, or --column names it, only
    its values are printed.
    """
    from parquet_variant.arrays.capsules import is_variant_field
    from parquet_variant.arrays.parts import one_chunk
    from parquet_variant.files.parquet.format.files import locate
    from parquet_variant.files.parquet.reading.read import column_of_files
    from parquet_variant.ops.interop.display import json_texts
    from parquet_variant.types.forms import holds_json, is_json_type

    options: dict[str, Any] = {"column": column, "version": version, "at": at, "catalog": catalog}
    with queryable(path, threads, accepts_json=True, allow_outside=allow_outside, **options) as table:
        schema, name = table.schema, column
        if name is None and table.format == "parquet" and not any(map(holds_json, schema.types)):
            column_of_files(locate(table.source), None, None)  # raises an error if no file has a Variant
        if name is None and len(schema) == 1 and (is_variant_field(schema.field(0)) or is_json_type(schema.types[0])):
            name = schema.names[0]
        selected = None if name is None else {"v": ("$", "variant")}
        scan = table.scan(selected, column=column, threads=threads if limit is None else 1)
        for rows in _limited(scan.batches(), limit):
            if name is None:
                print_json_rows(rows)
            else:
                json_rows = json_texts(one_chunk(rows["v"]), rows.schema.field("v"))
                sys.stdout.writelines(f"{text}\n" for text in json_rows)


def query(
    path: common.Path,
    sql: str | None = Argument(
        None, metavar="[SQL]", help='Query over the table t, such as "SELECT v:id::int FROM t WHERE v:mag::double > 5".'
    ),
    select: common.Select = None,
    where: str | None = Option(
        None, "--where", "-w", help="Filter, such as \"mag > 5 and $.properties.place:string like 'x%'\"."
    ),
    column: common.Column = None,
    version: common.Version = None,
    at: common.At = None,
    catalog: common.Catalog = None,
    limit: int | None = Option(None, help="Stop after this number of rows.", min=0),
    explain: bool = Option(False, help="Only report what the query would read."),
    strict: bool = Option(False, help="Fail if a value cannot be cast, instead of returning null."),
    threads: common.Threads = None,
    allow_outside: common.AllowOutside = False,
    engine: common.EngineOption = "local",
    output: str | None = Option(
        None, "--output", "-o", metavar="FILE", help="Write a .csv, .parquet, .ndjson or .arrow file."
    ),
    force: bool = Option(False, help="Replace an existing file of --output."),
    as_json: common.AsJson = False,
) -> None:
    """Query by path, in SQL or with --select and --where.

    In SQL the table t is PATH. Without PATH, the SQL names paths: SELECT v:id::int FROM 'events/'. Only the columns,
    row groups and files that the result needs are read. PATH can also be JSON, or - for standard input.
    """
    from parquet_variant.query.selection import read_selects
    from parquet_variant.sql_query.result import copy_statement, format_of

    if sql is None and is_sql(path):
        path, sql = "", path
    if sql is None and not select:
        raise BadParameter("no columns are selected: give --select 'name=$.path:type', or SQL")
    for option, value, part in (("where", where, "the condition"), ("select", select, "the columns")):
        if sql is not None and value:
            raise BadParameter(f"--{option} is not allowed with SQL: write {part} in the SQL")
    if engine == "spark" and (strict or allow_outside):
        raise BadParameter(f"--{'strict' if strict else 'allow-outside'} needs --engine local")
    if (copy := None if sql is None else copy_statement(sql)) is not None:
        if output is not None:
            raise BadParameter("--output is not allowed with COPY: both name a file")
        sql, output = copy.query, copy.file
    if output is not None and copy is None:
        format_of(output)
        if not force and pathlib.Path(output).exists():
            raise VariantError(f"{output} exists: give --force to replace it", reason="exists", file=output)
    selects = read_selects(select or [])
    reading: dict[str, Any] = {"errors": "raise" if strict else "null", "threads": threads}
    result = _Output(engine == "spark", explain, limit, as_json, output, [path] if path else [], copy)
    if not path and sql is not None:
        if version is not None or at is not None:
            raise BadParameter("--version and --at need a PATH before the SQL: FROM reads the newest version")
        _answer_sql(None, sql, reading, result)
        return
    of_table = {"version": version, "at": at, "catalog": catalog, "column": column, "allow_outside": allow_outside}
    with queryable(path, threads, accepts_json=engine == "local", **of_table) as table:
        if sql is not None:
            _answer_sql(table, sql, reading, result)
        else:
            _answer_paths(table, selects, where, reading, result)


class _Output(Record):
    """Where a query runs, and how its result or plan is shown."""

    on_spark: bool
    explain: bool
    limit: int | None
    as_json: bool
    file: str | None
    sources: Sequence[str]
    copy: CopyStatement | None = None

    def show(self, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
        """Print a result, or write it to the file of ``--output``."""
        import pyarrow as pa

        from parquet_variant.ops.interop.display import display_texts

        parts = _limited(parts, self.limit)
        if self.file is not None:
            from parquet_variant.sql_query.result import write_result

            count = write_result(self.file, chain([schema.empty_table()], parts), self.copy, self.sources)
            line = f"{counted(count, 'row')} in {self.file}"
            print_result({"file": self.file, "rows": count}, [line], as_json=self.as_json)
            return
        if self.as_json:
            for part in parts:
                print_json_rows(part)
            return

        batches = (batch for part in parts for batch in part.to_batches(max_chunksize=4096))
        columns = (map(display_texts, batch.columns, schema) for batch in batches)
        is_number = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating)
        numbers = [field.name for field in schema if any(test(field.type) for test in is_number)]
        print_grid(schema.names, (row for of_batch in columns for row in zip(*of_batch, strict=True)), right=numbers)


def sql_view(
    path: common.Path,
    engine: SqlEngine = Option("duckdb", help="The engine that will run the statement."),
    name: str = Option("events", help="Name of the view."),
    select: common.Select = None,
    column: common.Column = None,
) -> None:
    """Print a CREATE VIEW statement with the paths of a Variant as typed columns: by default the shredded paths."""
    from parquet_variant.query.selection import read_selects

    columns = read_selects(select) if select else None
    statement = open_table(path).sql_view(columns, name=name, engine=engine, column=column)
    for line in statement.splitlines():
        if line.startswith("-- "):
            print(f"variant: warning: {line.removeprefix('-- ')}", file=sys.stderr)
    print(statement + ";")


def _answer_paths(
    table: Table, selects: dict[str, str], where: str | None, reading: dict[str, Any], output: _Output
) -> None:
    """Run or explain a query by paths; `reading` has options of `Table.scan`."""
    from parquet_variant.query.selection import with_late_time_hints

    query = table.scan(selects, where, **reading)
    if output.explain:
        report = query.explain()
        plans: list[ReadPlan] = []
        if output.on_spark:
            from parquet_variant.spark.operations.read import readers

            plans = [readers(table, selects, where, column=table.options.column)]
        document = report.to_dict() | (plans[0].to_dict() if plans else {})
        print_result(document, [report, *plans], as_json=output.as_json)
        return
    if not output.on_spark:
        parts, schema = query.begun(), query.schema
    else:
        opened = {name: getattr(table.options, name) for name in ("catalog", "column", "version", "at")}
        answer = _with_spark(
            lambda session: open_table(table.source, engine=session, **opened).scan(selects, where).to_spark()
        )
        schema, parts = answer.schema, iter([answer])
    empty, late_times = set(schema.names), dict[str, None]()

    def watched() -> Iterator[pa.Table]:
        for part in with_late_time_hints(parts, late_times):
            empty.difference_update(name for name in schema.names if part[name].null_count < len(part))
            yield part

    output.show(schema, watched())
    hints = [*late_times, *query.plan.take_warnings()]
    if output.limit != 0 and empty:
        hints += query.path_hints()
    for hint in hints:
        report_warning(hint)


def _answer_sql(table: Table | None, sql: str, reading: dict[str, Any], output: _Output) -> None:
    """Run or explain SQL over the table t; `reading` has options of `pv.sql`."""
    from parquet_variant.io.commit_journal import of_current_files
    from parquet_variant.query.duckdb_engine import begin
    from parquet_variant.sql_query.binding import bind_table
    from parquet_variant.sql_query.sql import plan_sql

    if not output.on_spark and not output.explain:
        begin(threads=reading["threads"])  # while the query is planned

    def begin_query() -> tuple[SqlQuery, Iterator[pa.Table], pa.Table | None]:
        tables = {} if table is None else {"t": bind_table(table, table.uri)}
        query = plan_sql(sql, tables, engine="spark" if output.on_spark else "duckdb", **reading)
        if output.explain:
            return query, iter(()), None
        if output.on_spark:
            from parquet_variant.spark.operations.read import run_query

            parts = iter([_with_spark(lambda session: run_query(session, query))])
        else:
            parts = query.batches(as_text=False)
        return query, parts, next(parts)

    query, parts, first = of_current_files(begin_query)
    if first is None:
        text, details = explained(query, on_spark=output.on_spark)
        print_result(details, [text], as_json=output.as_json)
        return
    replace(output, sources=[*output.sources, *query.sources({})]).show(first.schema, chain([first], parts))
    for warning in query.warnings:
        report_warning(warning)


def _limited(parts: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """Yield the parts of a result up to a number of rows."""
    for part in parts if limit != 0 else ():
        yield part if limit is None else part.slice(0, limit)
        if limit is not None and (limit := limit - part.num_rows) <= 0:
            return


# Also the first words of SQL that is refused with a remedy.
_SQL = re.compile(
    r"(?i)\s*(?:[(]|--|/[*]|(?:select|copy|with|from|values|describe|summarize|explain|show|insert|update|delete|merge"
    r"|create|alter|drop|truncate|set)\b)"
)


def is_sql(word: str) -> bool:
    """Return whether the first argument of the command is a query, not a path.

    >>> is_sql("SELECT 1"), is_sql("select.parquet"), is_sql("events/")
    (True, False, False)
    """
    return " " in word.strip() and _SQL.match(word) is not None


def explained(query: SqlQuery, *, on_spark: bool = False) -> tuple[str, dict[str, Any]]:
    """Return what a query would read, and on Spark by which reader, as text and as a document."""
    from parquet_variant.sql_query.sql import columns_text, filter_text

    sections, documents = [], []
    for use in query.rewritten.uses:
        report = query.plans[use.relation].explain()
        columns, filters = columns_text(use), filter_text(use)
        lines = [f"table       {use.table.name}"] + ([str(report)] if report is not None else [])
        lines += [f"columns     {', '.join(columns) or 'its rows'}", f"filters     {' and '.join(filters) or 'none'}"]
        details = {} if report is None else report.to_dict()
        if on_spark:
            from parquet_variant.spark.operations.read import readers_of

            readers = readers_of(use)
            lines.append(str(readers))
            details |= readers.to_dict()
        sections.append("\n".join(lines))
        documents.append(details | {"table": use.table.name, "needed_columns": columns, "filters": filters})
    document = documents[0] if len(documents) == 1 else {"tables": documents}
    return "\n\n".join(sections) or "no table is read", document


def _with_spark(rows: Callable[[Any], DataFrame]) -> pa.Table:
    """Return the rows of a DataFrame that a function makes in a local Spark session."""
    import pyarrow as pa

    from parquet_variant.arrays.capsules import with_extension

    with ShownProgress() as progress, spark_session(progress) as session:
        progress("query", 0, 1)
        table = rows(session).toArrow()
    return pa.table(table.columns, schema=pa.schema(map(with_extension, table.schema)))
