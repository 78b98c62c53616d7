"""`sql`: a query with paths into Variants, run by Spark over the columns that it needs.

Owns naming each table's columns for the data source. Leaves the query to `sql_query`, and reading to `read`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from parquet_variant.errors import VariantError
from parquet_variant.query.predicate_text import predicate_text
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.spark.operations.read import read
from parquet_variant.spark.struct_view import plan_read
from parquet_variant.sql_query.scopes import TableUse
from parquet_variant.sql_query.sql import SqlQuery, plan_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run_query", "sql"]


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


def _frame(spark: SparkSession, planned: SqlQuery, use: TableUse) -> DataFrame:
    table = use.table
    variants = {each.column for each in use.needed.values() if each.path is not None}
    if table.path is None:
        raise VariantError(f"{table.name} is no path: Spark reads files and tables by their paths", reason="bad-option")
    if len(variants) > 1:
        raise VariantError(
            f"{table.name} has paths into {' and '.join(sorted(variants))}: Spark reads one Variant column at a time",
            reason="several-variant-columns",
        )
    needed = use.needed or {"_": table.needs(table.order[0])}
    columns: dict[str, tuple[str, str] | str] = {
        name: each.column
        if each.path is None
        else (str(each.path), "variant" if each.type is None else sql_type_name(each.type))
        for name, each in needed.items()
    }
    column = next(iter(variants), None)
    predicate = planned.rewritten.predicate(use)
    # Spark filters all rows once more, so an early filter is only of use where the JVM does not read alone.
    where = None if predicate is None or _jvm_alone(table.path, columns, column) else predicate_text(predicate)
    return read(spark, table.path, columns, where, column=column, version=table.version, timestamp=table.timestamp)


def _jvm_alone(path: Any, columns: dict[str, tuple[str, str] | str], column: str | None) -> bool:
    from parquet_variant.sql_query.paths import is_delta

    return not is_delta(path) and not plan_read(path, columns, column=column).python
