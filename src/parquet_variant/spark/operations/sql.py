"""`sql`: a query with paths into Variants, run by Spark over the columns that it needs.

Owns naming each table's columns for the data source. Leaves the query to `sql_query`, and reading to `read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.path import WILDCARD, VariantPath, backquoted
from parquet_variant.query.predicate_text import predicate_text
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.spark.operations.read import read
from parquet_variant.spark.struct_view import ReadPlan, plan_read
from parquet_variant.sql_query.paths import is_delta
from parquet_variant.sql_query.scopes import TableUse
from parquet_variant.sql_query.sql import SqlQuery, plan_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def sql(spark: SparkSession, query: str, /, **tables: Any) -> DataFrame:
    """Answer a query; of each table only the paths that it needs are read, as typed columns.

    Parameters
    ----------
    spark
        The session.
    query
        Spark's SQL with paths: ``v:a.b[0]::string``. A path in FROM stands in backticks: ``FROM `events/` ``.
    **tables
        What names in FROM stand for: paths of Parquet files or Delta tables. Other names are the session's.

    Returns
    -------
    DataFrame
        A path's column is called by its last key; a Variant is a VARIANT.

    Raises
    ------
    SqlError
        If the text is no query, or asks of a Variant what only typed values have.
    VariantError
        For a table that Spark cannot read by its path.
    """
    planned = plan_sql(query, tables, engine="spark", zone=str(spark.conf.get("spark.sql.session.timeZone")))
    return run_query(spark, planned)


def run_query(spark: SparkSession, planned: SqlQuery) -> DataFrame:
    """The DataFrame of a planned query."""
    from pyspark.errors import AnalysisException, ParseException

    for use in planned.rewritten.uses:
        _frame(spark, planned, use).createOrReplaceTempView(use.relation)
    try:
        return spark.sql(planned.rewritten.text)
    except (AnalysisException, ParseException) as error:
        raise planned.wrong(error) from None


def readers_of(use: TableUse) -> ReadPlan:
    """Who reads which file of a table that a query names: the JVM alone, or the data source."""
    columns, column = _asked(use)
    if not is_delta(use.table.path):
        return plan_read(use.table.path, columns, column=column)
    from parquet_variant.delta import snapshot

    files = snapshot(use.table.path, version=use.table.version, timestamp=use.table.timestamp).files["path"]
    return ReadPlan({}, python=dict.fromkeys(files.to_pylist(), "a Delta table"))


def _frame(spark: SparkSession, planned: SqlQuery, use: TableUse) -> DataFrame:
    columns, column = _asked(use)
    table, predicate = use.table, planned.rewritten.predicate(use)
    if len(_variants(use)) > 1:
        # Of a Delta table the scan gives one Variant beside ordinary columns; whole rows have all.
        named = None if is_delta(table.path) else columns
        whole = read(spark, table.path, named, version=table.version, timestamp=table.timestamp)
        return whole.select(*(_taken(each).alias(name) for name, each in use.needed.items()))
    # Spark filters all rows once more, so an early filter is only of use where the JVM does not read alone.
    where = None if predicate is None or not readers_of(use).python else predicate_text(predicate)
    return read(spark, table.path, columns, where, column=column, version=table.version, timestamp=table.timestamp)


def _asked(use: TableUse) -> tuple[dict[str, tuple[str, str] | str], str | None]:
    """The columns of a table as the data source takes them, and the Variant column that paths go into."""
    table, variants = use.table, _variants(use)
    if table.path is None:
        raise VariantError(f"{table.name} is no path: Spark reads files and tables by their paths", reason="bad-option")
    if odd := [each.column for each in use.needed.values() if each.path is None and each.column.startswith("$")]:
        raise VariantError(
            f"the column {odd[0]} of {table.name} is named like a path, by which Spark asks: use the engine duckdb",
            reason="bad-option",
        )
    if len(variants) > 1:  # the data source takes paths into one: the columns whole
        names = dict.fromkeys(each.column.partition(".")[0] for each in use.needed.values())
        return {name: name for name in names}, None
    # The engine's text asks for rows alone where it needs no column.
    needed = use.needed or {"_": NeededColumn(table.columns.variants[0], VariantPath(("_",)), pa.bool_())}
    if not use.needed:
        variants = {table.columns.variants[0]}
    columns: dict[str, tuple[str, str] | str] = {
        name: each.column
        if each.path is None
        else (str(each.path), "variant" if each.type is None else sql_type_name(each.type))
        for name, each in needed.items()
    }
    return columns, next(iter(variants), None)


def _variants(use: TableUse) -> set[str]:
    """The Variant columns that paths go into."""
    return {each.column for each in use.needed.values() if each.path is not None}


def _taken(each: NeededColumn) -> Column:
    """What is needed of a Variant, taken out of the whole value by Spark."""
    from pyspark.sql.functions import col, try_variant_get

    column = col(".".join(map(backquoted, each.column.split("."))))
    if each.path is None:
        return column
    if any(step is WILDCARD or (isinstance(step, str) and set(step) & set("'\"")) for step in each.path.segments):
        raise VariantError(
            f"Spark has no path {each.path}, and takes several Variant columns apart itself: ask for one column in a "
            "query, or use the engine duckdb",
            reason="several-variant-columns",
        )
    steps = [f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in each.path.segments]
    kind = "variant" if each.type is None else sql_type_name(each.type)
    return try_variant_get(column, "$" + "".join(steps), kind)
