"""`Scan.to_spark`: typed paths as a DataFrame, with the fastest reader for each file; and `pv.sql` on Spark.

Spark can read a shredded Variant as the struct that the file stores, and then prunes columns and skips row groups
itself, without Python. That is correct only if the typed column of a path contains every value, which is decided per
file; the data source reads all other files. `sql_query` parses and rewrites a query, which Spark executes over the
required columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import field, replace
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import PredicateError, VariantError, bad_option, check_choice
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.files import OpenFile, locate, open_file
from parquet_variant.files.parquet.scanning.projection import columns_of_path
from parquet_variant.io.filesystems import absolute
from parquet_variant.query.predicate import predicate_text
from parquet_variant.query.rewriting.scopes import TableUse
from parquet_variant.query.selection import Selected, read_filter, read_selection
from parquet_variant.query.sql_dialect import sql_type_name
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.task_errors import from_spark_errors
from parquet_variant.sql_query.sql import SqlQuery, plan_sql
from parquet_variant.support.records import Record
from parquet_variant.tables.delta.log.snapshot import Snapshot as DeltaSnapshot
from parquet_variant.tables.iceberg.catalogs.opening import catalog_properties
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot as IcebergSnapshot
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import WILDCARD, VariantPath, backquoted, split_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Files with the same columns for the paths have one scan. With more scans the data source is the simpler plan.
_MAX_SCANS = 8
_GLOB = frozenset("*?[]{}\\")
# Schema path and Arrow type of the typed column that contains an output; None if the output is null in every row.
_TypedColumn = tuple[tuple[str, ...], pa.DataType] | None


class ReadPlan(Record, frozen=False):
    """The reader of each file."""

    columns: dict[str, pa.DataType | None]  # Names and types of the output columns.
    # The files that the JVM reads without Python, grouped by the typed columns of the outputs.
    jvm: dict[tuple[_TypedColumn, ...], list[str]] = field(default_factory=dict)
    python: dict[str, str] = field(default_factory=dict)  # The files that the data source reads, with the reason.

    def to_dict(self) -> dict[str, Any]:
        """Return the files of each reader as a document."""
        return {"readers": {"jvm": [file for files in self.jvm.values() for file in files], "python": self.python}}

    def __str__(self) -> str:
        lines = [f"jvm     {file}" for files in self.jvm.values() for file in files]
        return "\n".join([*lines, *(f"python  {file}: {reason}" for file, reason in self.python.items())])


def read(
    table: Table,
    columns: Mapping[str, tuple[str, str] | str] | None = None,
    where: Any = None,
    *,
    column: str | None = None,
    partition_bytes: int | None = None,
    merge_schema: bool = False,
    engine: Literal["auto", "python", "jvm"] = "auto",
) -> DataFrame:
    """Read Parquet files with Variant columns, or a Delta or Iceberg table; see `Scan.to_spark`."""
    from parquet_variant.spark.datasource.source import VariantDataSource

    check_choice("engine", engine, ("auto", "python", "jvm"))
    spark: SparkSession = table.options.engine
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        predicate = read_filter(where)
        where = where if predicate is None or isinstance(where, str) else predicate_text(predicate)
    except PredicateError:
        if not isinstance(where, str):
            raise
        # Another condition in SQL: raises before Spark plans the read.
        type(table)(table.source, replace(table.options, engine=None)).scan(columns, where, column=column, zone=zone)
    spark.dataSource.register(VariantDataSource)
    source, options = _data_source_options(table)
    if columns is not None:  # a path without a type is the Variant
        columns = {
            name: (str(path), "variant") if str(path).startswith("$") and split_type(str(path))[1] is None else path
            for name, path in columns.items()
        }
    options |= {"columns": None if columns is None else json.dumps(columns, default=str), "where": where}
    options |= {"column": column, "partitionBytes": partition_bytes, "mergeSchema": "true" if merge_schema else None}
    options |= {"timeZone": zone}
    options = {name: value for name, value in options.items() if value is not None}
    ReadOptions.of({**options, "path": source}, stream=False)  # raises before Spark plans the read
    plan = None
    if columns is not None and where is None and engine != "python" and table.format == "parquet":
        plan = readers(table, columns, column=column)
    if engine == "jvm" and (plan is None or plan.python):
        reasons = "it reads only paths in Parquet files, and without where="
        if plan is not None:
            reasons = "; ".join(sorted(set(plan.python.values())))
        problem = f"the JVM cannot read {source} without the data source ({reasons}): use engine='auto'"
        raise VariantError(problem, reason="no-struct-view")
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
        opened = use.table.opened
        table = type(opened)(opened.source, replace(opened.options, engine=spark))
        if len(_variants(use)) > 1:
            frame = read(table, columns).select(
                *(_path_expression(needed).alias(name) for name, needed in use.needed.items())
            )
        else:
            # Spark filters all rows again, so that a filter of the data source helps only if it reads files.
            predicate = use.predicate
            where = predicate_text(predicate) if predicate is not None and readers_of(use).python else None
            frame = read(table, columns, where, column=column)
        frame.createOrReplaceTempView(use.relation)
    try:
        return spark.sql(planned.rewritten.text)
    except (AnalysisException, ParseException) as error:
        raise planned.sql_error(error) from None


def readers_of(use: TableUse) -> ReadPlan:
    """Return which reader reads each file of a table in a query: the JVM or the data source."""
    columns, column = _data_source_columns(use)
    return readers(use.table.opened, columns, column=column)


def _data_source_columns(use: TableUse) -> tuple[dict[str, tuple[str, str] | str], str | None]:
    """Return the columns of a table for the option ``columns``, and the Variant column of the paths."""
    table, variants = use.table, _variants(use)
    if table.opened is None:
        raise bad_option(
            f"{table.name} is not a path, and Spark reads files and tables by their paths: write the table to files, "
            "or use the engine duckdb"
        )
    needed_columns = use.needed.values()
    if path_like := [
        column.stored_name for column in needed_columns if not column.path and column.stored_name.startswith("$")
    ]:
        raise bad_option(
            f"the name of the column {path_like[0]} of {table.name} looks like a path: use the engine duckdb"
        )
    if len(variants) > 1:
        # The data source extracts paths of one Variant column only, so that the columns are read as a whole.
        names = dict.fromkeys(column.stored_name.partition(".")[0] for column in needed_columns)
        return {name: name for name in names}, None
    # A query that needs no column, such as count(*), reads a path that does not exist.
    needed = use.needed or {"_": Selected.of(table.columns.variants[0], VariantPath(("_",)), pa.bool_())}
    if not use.needed:
        variants = {table.columns.variants[0]}
    columns: dict[str, tuple[str, str] | str] = {
        name: column.stored_name
        if column.path is None
        else (str(column.path), "variant" if column.type is None else sql_type_name(column.type))
        for name, column in needed.items()
    }
    return columns, next(iter(variants), None)


def _variants(use: TableUse) -> set[str]:
    """Return the Variant columns from which paths are extracted."""
    return {column.stored_name for column in use.needed.values() if column.path is not None}


def _path_expression(needed: Selected) -> Column:
    """Return an expression by which Spark extracts a path from the whole Variant."""
    from pyspark.sql.functions import col, try_variant_get

    column = col(".".join(map(backquoted, needed.stored_name.split("."))))
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


def readers(
    table: Table, columns: Mapping[str, Any], where: str | None = None, *, column: str | None = None
) -> ReadPlan:
    """Return which reader reads each file of a table: the JVM, or the data source with the reason for it.

    The JVM reads a Parquet file if, by its footer, the statistics of each row group exclude values in a residual for
    every path, and the typed column has the requested type or one that Spark and this library cast to it in the same
    way.

    `columns`: name to path and type, as for `Scan.to_spark`.
    """
    if table.format != "parquet":
        tasks = table.scan(columns, column=column).tasks()
        reason = {"delta": "a Delta table", "iceberg": "an Iceberg table"}.get(table.format, table.format)
        return ReadPlan({}, python={file.path: reason for task in tasks for file in task.files})
    if where is not None:
        return ReadPlan({}, python={file.path: "--where needs the data source" for file in locate(table.source)})
    selection = read_selection(columns)
    plan = ReadPlan({selected.name: selected.type for selected in selection})
    for parquet_source in locate(table.source):
        path = parquet_source.path
        if not isinstance(parquet_source.filesystem, pafs.LocalFileSystem):
            plan.python[path] = "not on a local disk"
        elif _GLOB & set(path):
            plan.python[path] = "the path contains characters of glob patterns"
        else:
            with open_file(parquet_source) as file:
                try:
                    typed_columns = tuple(_typed_column(file, selected, column) for selected in selection)
                except _NeedsPython as reason:
                    plan.python[path] = str(reason)
                    continue
            plan.jvm.setdefault(typed_columns, []).append(path)
    while len(plan.jvm) > _MAX_SCANS:
        _, files = plan.jvm.popitem()
        plan.python |= dict.fromkeys(files, "too many different shredding schemas")
    return plan


class _NeedsPython(Exception):  # noqa: N818 - a reason, not an error
    """The reason why the data source must read a file."""


def _typed_column(file: OpenFile, selected: Selected, column: str | None) -> _TypedColumn:
    """Return the typed column that contains every value of an output. Raises `_NeedsPython` if none does."""
    if selected.path is None:
        raise _NeedsPython(f"{selected.name} is an ordinary column")
    if selected.output is None or pa.types.is_nested(selected.output):
        raise _NeedsPython(f"{selected.name} is not a scalar")
    variant = choose_column(file.schema, column, file.name)
    if variant.repeated or variant.layout != "final":
        raise _NeedsPython(f"the layout is {variant.layout}")
    columns = columns_of_path(variant, selected.path, selected.type)
    typed = columns.primitive
    for number in file.facts.groups:
        needed = columns.needed(partial(file.facts.statistics, group=number))
        if any(leaf is not typed for leaf in needed or ()):
            raise _NeedsPython(f"{selected.name} may have values in a residual")
    if typed is None:
        return None
    if not all(isinstance(step, str) for step in selected.path.segments):
        raise _NeedsPython(f"{selected.name} is in an array")
    stored = leaf_type(typed)
    if stored is None or not _casts_equally(stored, selected.type):
        raise _NeedsPython(f"{selected.name} is stored as {stored or typed.spelled()}")
    return typed.path, stored


def _casts_equally(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether CAST in Spark returns the result of `try_variant_get` for every value."""
    if stored == target:
        # Spark's Parquet reader does not support time, UUID and nanoseconds.
        return not (pa.types.is_time(stored) or stored == pa.uuid() or getattr(stored, "unit", "us") == "ns")
    if pa.types.is_integer(stored):
        return target == pa.float64() or (pa.types.is_integer(target) and target.bit_width >= stored.bit_width)
    return bool(pa.types.is_decimal(stored) and target == pa.float64())


def struct_view(spark: SparkSession, plan: ReadPlan) -> list[DataFrame]:
    """Return one DataFrame with the columns of the plan for each group of files that the JVM reads."""
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_type

    if not plan.jvm:
        return []
    frames = []
    try:
        struct_session = _struct_session(spark)
        of_rows = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows
        for typed_columns, files in plan.jvm.items():
            tree: dict[str, Any] = {}
            # Expressions as text, because every part of an expression object is a call to the JVM.
            outputs = []
            for (name, output_type), typed_column in zip(plan.columns.items(), typed_columns, strict=True):
                value = "NULL"
                if typed_column is not None:
                    path, stored = typed_column
                    struct = tree
                    for part in path[:-1]:
                        struct = struct.setdefault(part, {})
                    struct[path[-1]] = from_arrow_type(stored)
                    value = ".".join(map(backquoted, path))
                outputs.append(f"CAST({value} AS {from_arrow_type(output_type).simpleString()}) AS {backquoted(name)}")
            frame = struct_session.read.schema(_struct(tree)).parquet(*files).selectExpr(*outputs)
            frames.append(DataFrame(of_rows(spark._jsparkSession, frame._jdf.logicalPlan()), spark))
    except (AttributeError, TypeError) as error:
        problem = f"this version of Spark cannot read Variants as structs ({error}): use engine='python'"
        raise VariantError(problem, reason="no-struct-view") from error
    return frames


@lru_cache(maxsize=8)
def _struct_session(spark: SparkSession) -> SparkSession:
    """Return a session that reads Variants as structs; the setting would affect all reads of the user's session."""
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.ignoreVariantAnnotation", "true")
    session.conf.set("spark.sql.caseSensitive", "true")
    return session


def _struct(tree: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(name, _struct(child) if isinstance(child, dict) else child) for name, child in tree.items()]
    )
