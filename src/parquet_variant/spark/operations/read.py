"""`Scan.to_spark`: typed paths as a DataFrame, with the fastest reader for each file; and `pv.sql` on Spark.

The result of a scan is the union of the rows of the data source and of `struct_view`. `sql_query` parses and rewrites a
query, which Spark executes over the required columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from parquet_variant.errors import VariantError, check_choice
from parquet_variant.io.filesystems import absolute
from parquet_variant.query.predicate_text import parse_predicate, predicate_text
from parquet_variant.query.rewriting.scopes import TableUse
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.query.table_columns import NeededColumn
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.struct_view import ReadPlan, readers, struct_view
from parquet_variant.spark.task_errors import from_spark_errors
from parquet_variant.sql_query.sql import SqlQuery, plan_sql
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.tables.delta.log.snapshot import Snapshot as DeltaSnapshot
from parquet_variant.tables.iceberg.catalogs.opening import catalog_properties
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot as IcebergSnapshot
from parquet_variant.tables.opening import open
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import WILDCARD, VariantPath, backquoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read(
    table: Table,
    columns: Mapping[str, tuple[str, str] | str] | None = None,
    where: str | None = None,
    *,
    column: str | None = None,
    partition_bytes: int | None = None,
    merge_schema: bool = False,
    engine: Literal["auto", "python", "jvm"] = "auto",
) -> DataFrame:
    """Read Parquet files with Variant columns, or a Delta or Iceberg table; see `Scan.to_spark`."""
    from parquet_variant.spark.datasource.source import VariantDataSource

    check_choice("engine", engine, ("auto", "python", "jvm"))
    if where is not None:
        parse_predicate(where)  # raises before Spark plans the read
    spark: SparkSession = table.options.engine
    spark.dataSource.register(VariantDataSource)
    source, options = _data_source_options(table)
    options |= {"columns": None if columns is None else json.dumps(columns), "where": where, "column": column}
    options |= {"partitionBytes": partition_bytes, "mergeSchema": "true" if merge_schema else None}
    options |= {"timeZone": spark.conf.get("spark.sql.session.timeZone")}
    options = {name: value for name, value in options.items() if value is not None}
    ReadOptions.of({**options, "path": source}, stream=False)  # raises before Spark plans the read
    plan = None
    if columns is not None and where is None and engine != "python" and table.format == "parquet":
        plan = readers(table, columns, column=column)
    if engine == "jvm" and (plan is None or plan.python):
        reasons = (
            "; ".join(sorted(set(plan.python.values())))
            if plan is not None
            else "it reads only paths in Parquet files, and without where="
        )
        raise VariantError(
            f"the JVM cannot read {source} without the data source ({reasons}): use engine='auto'",
            reason="no-struct-view",
        )
    reader = spark.read.format("variant").options(**options)
    with from_spark_errors():
        frames: list[DataFrame] = []
        with suppress(VariantError) if engine == "auto" else nullcontext():
            frames = [] if plan is None else struct_view(spark, plan)
        if not frames:
            return reader.load(source)
        if plan is not None and plan.python:
            frames.append(reader.load(list(plan.python)))
        return reduce(lambda union, frame: union.unionAll(frame), frames)


def _data_source_options(table: Table) -> tuple[str, dict[str, Any]]:
    """Return the path or name of a table, and the options of the data source for its format, catalog and version."""
    source, opened = table.source, table.options
    catalog, options = opened.catalog, {"versionAsOf": opened.version, "timestampAsOf": opened.at}
    options |= {"branch": opened.branch, "tag": opened.tag}
    if isinstance(source, DeltaSnapshot | IcebergSnapshot):
        catalog = source.table.catalog if isinstance(source, IcebergSnapshot) else None
        source, options = table.uri, {"versionAsOf": table.version}
    if table.format in ("delta", "iceberg"):
        options["format"] = table.format
    options |= {f"catalog.{name}": value for name, value in catalog_properties(catalog).items()}
    # Absolute, because the working directory of the JVM may differ.
    return (source if catalog is not None else absolute(source)), options


def sql(
    spark: SparkSession, query: str, /, *, params: Sequence[Any] | Mapping[str, Any] | None = None, **tables: Any
) -> DataFrame:
    """Execute a query, reading only the required paths of each table, as typed columns; see `pv.sql`."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    planned = plan_sql(query, tables, params=params, engine="spark", zone=zone)
    return run_query(spark, planned)


def run_query(spark: SparkSession, planned: SqlQuery) -> DataFrame:
    """Return the DataFrame of a planned query."""
    from pyspark.errors import AnalysisException, ParseException

    for use in planned.rewritten.uses:
        columns, column = _data_source_columns(use)
        table, predicate = _opened(use.table, spark), use.predicate
        if len(_variants(use)) > 1:
            frame = read(table, columns).select(
                *(_path_expression(needed).alias(name) for name, needed in use.needed.items())
            )
        else:
            # Spark filters all rows again, so that a filter of the data source helps only if it reads files.
            where = None if predicate is None or not readers_of(use).python else predicate_text(predicate)
            frame = read(table, columns, where, column=column)
        frame.createOrReplaceTempView(use.relation)
    try:
        return spark.sql(planned.rewritten.text)
    except (AnalysisException, ParseException) as error:
        raise planned.sql_error(error) from None


def readers_of(use: TableUse) -> ReadPlan:
    """Return which reader reads each file of a table in a query: the JVM or the data source."""
    columns, column = _data_source_columns(use)
    return readers(_opened(use.table), columns, column=column)


def _opened(table: BoundTable, spark: SparkSession | None = None) -> Table:
    return open(table.path, version=table.version, at=table.timestamp, engine=spark)


def _data_source_columns(use: TableUse) -> tuple[dict[str, tuple[str, str] | str], str | None]:
    """Return the columns of a table for the option ``columns``, and the Variant column of the paths."""
    table, variants = use.table, _variants(use)
    if table.path is None:
        raise VariantError(
            f"{table.name} is not a path, and Spark reads files and tables by their paths: write the table to files, "
            "or use the engine duckdb",
            reason="bad-option",
        )
    needed_columns = use.needed.values()
    if path_like := [column.column for column in needed_columns if not column.path and column.column.startswith("$")]:
        raise VariantError(
            f"the name of the column {path_like[0]} of {table.name} looks like a path: use the engine duckdb",
            reason="bad-option",
        )
    if len(variants) > 1:
        # The data source extracts paths of one Variant column only, so that the columns are read as a whole.
        names = dict.fromkeys(column.column.partition(".")[0] for column in needed_columns)
        return {name: name for name in names}, None
    # A query that needs no column, such as count(*), reads a path that does not exist.
    needed = use.needed or {"_": NeededColumn(table.columns.variants[0], VariantPath(("_",)), pa.bool_())}
    if not use.needed:
        variants = {table.columns.variants[0]}
    columns: dict[str, tuple[str, str] | str] = {
        name: column.column
        if column.path is None
        else (str(column.path), "variant" if column.type is None else sql_type_name(column.type))
        for name, column in needed.items()
    }
    return columns, next(iter(variants), None)


def _variants(use: TableUse) -> set[str]:
    """Return the Variant columns from which paths are extracted."""
    return {column.column for column in use.needed.values() if column.path is not None}


def _path_expression(needed: NeededColumn) -> Column:
    """Return an expression by which Spark extracts a path from the whole Variant."""
    from pyspark.sql.functions import col, try_variant_get

    column = col(".".join(map(backquoted, needed.column.split("."))))
    if needed.path is None:
        return column
    if any(step is WILDCARD or (isinstance(step, str) and set(step) & set("'\"")) for step in needed.path.segments):
        raise VariantError(
            f"Spark does not support the path {needed.path}, which it must extract in a query with several Variant "
            "columns: query one Variant column at a time, or use the engine duckdb",
            reason="several-variant-columns",
        )
    steps = [f"[{step}]" if isinstance(step, int) else f"['{step}']" for step in needed.path.segments]
    type_name = "variant" if needed.type is None else sql_type_name(needed.type)
    return try_variant_get(column, "$" + "".join(steps), type_name)
