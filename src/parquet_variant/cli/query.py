"""``variant query``: typed columns out of a Variant column by path, or SQL over them.

Owns the options and how the answer is shown. Leaves the query to `parquet.scan` and `delta.scan`, and SQL to `sql`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parquet_variant.cli.options import AsJson, At, Column, Engine, EngineOption, Path, Version

if TYPE_CHECKING:
    import pyarrow as pa

    from parquet_variant.cli.sql import SqlQuery
    from parquet_variant.spark.struct_view import ReadPlan

__all__ = ["command"]


def command(
    path: Path,
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help='Such as "SELECT v:id::int FROM t WHERE v:mag::double > 5".')
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", "-s", help="'name=$.path:type', or an ordinary column; repeat for more."),
    ] = None,
    where: Annotated[str | None, typer.Option("--where", "-w", help="Such as \"mag > 5 and place like 'x%'\".")] = None,
    column: Column = None,
    version: Version = None,
    at: At = None,
    limit: Annotated[int | None, typer.Option(help="Stop after so many rows.", min=0)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what would be read, of how much; read nothing.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="A value that cannot be cast is an error, not null.")
    ] = False,
    engine: EngineOption = Engine.LOCAL,
    as_json: AsJson = False,
) -> int:
    """Query by path, in SQL or with --select and --where.

    SQL is over the table t. Only the columns, row groups and files that the answer needs are read.
    """
    from parquet_variant.cli.output import print_json
    from parquet_variant.cli.select_option import read_selects
    from parquet_variant.cli.tables import plan_query

    if sql is None and not select:
        raise typer.BadParameter("nothing is asked for: give --select 'name=$.path:type', or SQL")
    if sql is not None and where is not None:
        raise typer.BadParameter("--where does not go with SQL: write it into the SQL")
    on_spark = engine is Engine.SPARK
    if on_spark and strict:
        raise typer.BadParameter("--strict is for --engine local")
    columns: Any = read_selects(select or [])
    asked = None
    if sql is not None:
        asked = _read_sql(path, sql, columns, version, at, quote="`" if on_spark else '"')
        columns, where = asked.columns, " AND ".join(f"({part})" for part in asked.filters) or None
    query = plan_query(path, columns, where, column, version=version, at=at, strict=strict)
    options = {"where": where, "column": column, "version": version, "timestamp": at}
    if explain:
        report = query.explain()
        readers = _readers(path, columns, options, asked) if on_spark else None
        if as_json:
            details = report.to_dict() | ({"filters": list(asked.filters)} if asked else {})
            print_json(details | ({"readers": {"jvm": readers.jvm_files, "python": readers.python}} if readers else {}))
        else:
            print(report)
            if readers is not None:
                print(readers)
            if asked is not None:
                print(f"filters     {' and '.join(asked.filters) or 'none'}, of the columns {asked.columns}")
        return 0
    if on_spark:
        answer = _in_spark(path, columns, options, asked)
    elif asked is not None:
        answer = _in_duckdb(query, asked)
    else:
        answer = None
    schema, parts = (query.schema, query.batches()) if answer is None else (answer.schema, [answer])
    _print(schema, _limited(parts, limit), as_json)
    return 0


def _read_sql(
    path: str, sql: str, selects: dict[str, str], version: int | None, at: str | None, *, quote: str
) -> SqlQuery:
    from dataclasses import replace

    from parquet_variant.cli.sql import read_sql
    from parquet_variant.cli.tables import column_names

    asked = read_sql(sql, *column_names(path, version=version, at=at), selects, quote)
    # A query that names no column, such as SELECT count(*), still has to know of the rows.
    return asked if asked.columns else replace(asked, columns={"_0": "$._:boolean"})


def _in_duckdb(query: Any, asked: SqlQuery) -> pa.Table:
    import pyarrow as pa

    from parquet_variant import VariantArray, to_json
    from parquet_variant.cli.output import is_variant
    from parquet_variant.cli.sql import run_in_duckdb

    table = query.to_table()
    for index, field in enumerate(query.schema):
        if is_variant(field):  # the engine knows none: it gets the JSON, and a missing value stays NULL
            column = VariantArray(table.column(index).combine_chunks())
            table = table.set_column(index, field.name, to_json(column).cast(pa.string()))
    return run_in_duckdb(asked, table)


def _readers(path: str, columns: dict[str, str], options: dict[str, Any], asked: SqlQuery | None) -> ReadPlan:
    """Who reads which file on Spark: the JVM alone, or the data source."""
    from parquet_variant.cli.tables import data_files, is_delta
    from parquet_variant.spark.struct_view import ReadPlan, plan_read

    delta = is_delta(path)
    if delta or (asked is None and options["where"]):
        reason = "a Delta table" if delta else "--where is the data source's"
        return ReadPlan({}, python=dict.fromkeys(data_files(path), reason))
    return plan_read(path, _for_spark(columns), column=options["column"])


def _in_spark(path: str, columns: dict[str, str], options: dict[str, Any], asked: SqlQuery | None) -> pa.Table:
    from pyspark.errors import AnalysisException, ParseException

    from parquet_variant.cli.progress import Progress
    from parquet_variant.cli.spark_session import spark_session
    from parquet_variant.cli.sql import TABLE, bad_sql
    from parquet_variant.spark.arrow_variant import with_variants
    from parquet_variant.spark.operations.read import read

    with Progress() as progress, spark_session(progress) as session:
        progress("query", 0, 1)
        # The SQL filters all rows once more, so early filters are only of use where the data source reads.
        if asked is not None and not _readers(path, columns, options, asked).python:
            options = options | {"where": None}
        frame = read(session, path, _for_spark(columns), **options)
        if asked is None:
            return with_variants(frame.toArrow())
        frame.createOrReplaceTempView(TABLE)
        try:
            return with_variants(session.sql(asked.text).toArrow())
        except (AnalysisException, ParseException) as error:
            raise bad_sql(error, asked) from None


def _for_spark(columns: dict[str, str]) -> dict[str, tuple[str, str] | str]:
    """The columns as the data source takes them: path and type apart."""
    from parquet_variant.query.selection import read_selection
    from parquet_variant.schema.shredding_schema import ShreddingSchema

    return {
        each.name: each.column or each.name
        if each.path is None
        else (str(each.path), "variant" if each.type is None else ShreddingSchema.from_arrow(each.type).to_ddl())
        for each in read_selection(columns)
    }


def _limited(parts: Iterable[pa.Table], limit: int | None) -> Iterator[pa.Table]:
    """The answer as it comes, cut off at the limit."""
    left = limit
    if left == 0:
        return
    for part in parts:
        yield part if left is None else part.slice(0, left)
        if left is not None:
            left -= part.num_rows
            if left <= 0:
                return


def _print(schema: pa.Schema, parts: Iterable[pa.Table], as_json: bool) -> None:
    import pyarrow as pa

    from parquet_variant.cli.output import json_texts, print_grid, print_json_rows

    if as_json:
        for part in parts:
            print_json_rows(part)
        return

    def rows() -> Iterator[tuple[Any, ...]]:
        for part in parts:
            for batch in part.to_batches(max_chunksize=4096):
                columns = [
                    json_texts(values, field) if pa.types.is_nested(field.type) else values.to_pylist()
                    for values, field in zip(batch.columns, schema, strict=True)
                ]
                yield from zip(*columns, strict=True)

    numbers = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)]
    print_grid(schema.names, rows(), right=numbers)
