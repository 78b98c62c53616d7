"""`sql`: a query with paths into Variants, run by Spark over the columns that it needs.

Owns naming each table's columns for the data source. Leaves the query to `sql_query`, and reading to `read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate_text import predicate_text
from parquet_variant.query.sql_expression import NeededColumn
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.spark.operations.read import read
from parquet_variant.spark.struct_view import ReadPlan, plan_read
from parquet_variant.sql_query.paths import is_delta
from parquet_variant.sql_query.scopes import TableUse
from parquet_variant.sql_query.sql import SqlQuery, plan_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["readers_of", "run_query", "sql"]


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
    # Spark filters all rows once more, so an early filter is only of use where the JVM does not read alone.
    where = None if predicate is None or not readers_of(use).python else predicate_text(predicate)
    return read(spark, table.path, columns, where, column=column, version=table.version, timestamp=table.timestamp)


def _asked(use: TableUse) -> tuple[dict[str, tuple[str, str] | str], str | None]:
    """The columns of a table as the data source takes them, and the Variant column that paths go into."""
    table = use.table
    variants = {each.column for each in use.needed.values() if each.path is not None}
    if table.path is None:
        raise VariantError(f"{table.name} is no path: Spark reads files and tables by their paths", reason="bad-option")
    if len(variants) > 1:
        raise VariantError(
            f"{table.name} has paths into {' and '.join(sorted(variants))}: Spark reads one Variant column at a time",
            reason="several-variant-columns",
        )
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
