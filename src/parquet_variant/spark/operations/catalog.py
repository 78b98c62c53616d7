"""What a session gets: `register_table` for plain Spark, and SQL functions.

Plain Spark reads registered tables without this library: Parquet by itself, Delta with delta-spark, Iceberg with its
Spark runtime. `datasource.catalog_table` is for tables that this library reads (``USING variant``). The
functions over VARIANT columns are those of `query.variant_functions`, as Arrow UDFs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_marked_by_spark
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, bad_option, check_session
from parquet_variant.io.filesystems import absolute
from parquet_variant.query.variant_functions import VariantColumns
from parquet_variant.spark.arrow_variant import SPARK_VARIANT, from_spark, to_spark
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.datasource.reading import read_schema
from parquet_variant.spark.task_errors import one_line
from parquet_variant.tables.opening import format_of_table
from parquet_variant.types.path import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register_functions(spark: SparkSession, prefix: str = "pv_") -> list[str]:
    """Register the functions in a session, with names that begin with a prefix.

    Parameters
    ----------
    spark
        The session. Casts use the time zone that it has now.
    prefix
        Prefix of the names, so that the functions do not replace Spark's own.

    Returns
    -------
    list of str
        The names: ``pv_parse_json(text)``, ``pv_try_parse_json(text)``, ``pv_to_json(v)``, ``pv_variant_get(v, path)``,
        ``pv_variant_set(v, path, x)``, ``pv_variant_insert``, ``pv_variant_array_append`` (x is a VARIANT; also with
        ``try_``), ``pv_variant_delete(v, path)``, ``pv_variant_strip_nulls(v)``; ``pv_canonical(v)``: bytes that are
        equal for equal values (1 and 1.0, keys in any order), for GROUP BY, DISTINCT and joins, NULL for a JSON null;
        ``pv_schema_of_variant(v)``, ``pv_is_variant_null(v)``; and for the types ``boolean``, ``int``, … functions such
        as ``pv_variant_get_double(v, path)`` and ``pv_try_variant_get_double(v, path)`` (``decimal(38, 9)``).
    """
    from pyspark.sql.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import VariantType

    check_session(spark)
    if not isinstance(prefix, str) or not f"{prefix}a".isidentifier():
        raise bad_option(f"prefix is {prefix!r}: use letters, digits and _, not beginning with a digit")

    def checked(work: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
        expected = len(signature(work).parameters)

        @wraps(work)
        def call(*columns: pa.Array) -> pa.Array:
            with one_line():
                if len(columns) != expected:
                    raise VariantError(
                        f"the function takes {expected} arguments, not {len(columns)}", reason="bad-argument"
                    )
                return work(*columns)

        return call

    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    functions = VariantColumns(_variants, to_spark, SPARK_VARIANT).functions(zone)
    for name, (work, kind) in functions.items():
        returns: Any = VariantType() if kind is None else from_arrow_type(kind)
        spark.udf.register(f"{prefix}{name}", arrow_udf(checked(work), returns))
    return [f"{prefix}{name}" for name in functions]


def _variants(values: pa.Array) -> VariantArray:
    """Return a VARIANT argument as an array. A NULL without a type is a VARIANT."""
    if pa.types.is_null(values.type):
        return VariantArray.from_pylist([None] * len(values))
    if not is_marked_by_spark(values.type):
        raise VariantError(
            f"the argument is {values.type}, not a VARIANT: convert it with parse_json(...)", reason="bad-argument"
        )
    return from_spark(values)


_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ICEBERG_PACKAGE = "org.apache.iceberg.spark"


def register_table(spark: SparkSession, name: str, path: str | os.PathLike[str], *, replace: bool = False) -> DataFrame:
    """Register a directory of Parquet files, a Delta table or an Iceberg table in the catalog of a session.

    SQL, JDBC and BI tools then read the table by its name, without this library. The files are not copied, and
    dropping the table does not remove them. Register a Parquet directory again with ``replace=True`` after new
    partitions or columns were added; Delta and Iceberg tables show new rows by themselves, except that an Iceberg table
    that is written without its catalog must be registered again.

    Parameters
    ----------
    spark
        A session. A Delta table requires delta-spark, and an Iceberg table a catalog of Iceberg's Spark runtime.
    name
        ``table``, ``database.table`` or ``catalog.database.table``.
    path
        The directory.
    replace
        Replace a registered table of this name. A table whose files the catalog owns is not replaced.

    Returns
    -------
    DataFrame
        The registered table.

    Raises
    ------
    VariantError
        ``"exists"`` if the name is in use, ``"no-such-database"``, ``"no-delta"`` and ``"no-iceberg"`` if the session
        cannot read the format, ``"bad-option"`` for a path that is not a directory.
    """
    source = absolute(path)
    parts = name.split(".") if isinstance(name, str) else []
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise bad_option(f"invalid table name {name!r}: use table, database.table or catalog.database.table")
    parts = [part.strip("`") for part in parts]
    statement = _statement(spark, parts, source)
    _make_room(spark, parts, replace)
    try:
        spark.sql(statement)
    except Exception as error:
        java = getattr(error, "java_exception", None)
        if java is None:  # Spark's own errors are short
            raise
        problem = f"the catalog {parts[0]} cannot register {source}: {str(java.getMessage()).splitlines()[0]}"
        raise VariantError(problem, reason="no-iceberg") from None
    if "PARTITIONED BY" in statement:
        spark.catalog.recoverPartitions(_quote_name(parts))
    return spark.table(_quote_name(parts))


def _quote_name(parts: list[str]) -> str:
    return ".".join(map(backquoted, parts))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _statement(spark: SparkSession, parts: list[str], path: str) -> str:
    """Return the statement that registers the table at a path in the catalog."""
    from parquet_variant.tables.iceberg.catalogs.opening import load_table

    kind, table = format_of_table(path), _quote_name(parts)
    if kind == "delta":
        if spark.conf.get("spark.sql.catalog.spark_catalog", "") != _DELTA_CATALOG:
            raise VariantError(
                f"{path} is a Delta table, and this session has no delta-spark: start Spark with "
                "--packages io.delta:delta-spark_4.2_2.13:4.4.0 (for Spark 4.2), "
                "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and "
                f"--conf spark.sql.catalog.spark_catalog={_DELTA_CATALOG}; or use CREATE TEMPORARY VIEW name USING "
                "variant OPTIONS (path '...')",
                reason="no-delta",
            )
        return f"CREATE TABLE {table} USING delta LOCATION {_literal(path)}"
    if kind == "iceberg":
        catalog = parts[0] if len(parts) == 3 else spark.catalog.currentCatalog()
        if not spark.conf.get(f"spark.sql.catalog.{catalog}", "").startswith(_ICEBERG_PACKAGE):
            raise VariantError(
                f"{path} is an Iceberg table, and {catalog} is not an Iceberg catalog of this session: start Spark "
                "with --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0, set "
                "spark.sql.catalog.NAME to org.apache.iceberg.spark.SparkCatalog, and name the table "
                "NAME.database.table",
                reason="no-iceberg",
            )
        metadata = _literal(str(load_table(path).metadata_location))
        arguments = f"table => {_literal('.'.join(parts[-2:]))}, metadata_file => {metadata}"
        return f"CALL {backquoted(catalog)}.system.register_table({arguments})"
    if any(character in path for character in "*?[") or path.endswith(".parquet"):
        raise bad_option(f"{path} is not a directory: a catalog table is a directory of files")
    columns = read_schema(ReadOptions.of({"path": path, "mergeSchema": "true"}))
    files = read_schema(ReadOptions.of({"path": path, "mergeSchema": "true", "recursiveFileLookup": "true"}))
    partitions = [field.name for field in columns.fields if field.name not in files.fieldNames()]
    definitions = ", ".join(f"{backquoted(field.name)} {field.dataType.simpleString()}" for field in columns.fields)
    partitioned = f" PARTITIONED BY ({', '.join(map(backquoted, partitions))})" if partitions else ""
    return f"CREATE TABLE {table} ({definitions}) USING parquet{partitioned} LOCATION {_literal(path)}"


def _make_room(spark: SparkSession, parts: list[str], replace: bool) -> None:
    """Check the name of the new table, and drop a registered table of this name if it is to be replaced."""
    name = _quote_name(parts)
    if len(parts) > 1 and not spark.catalog.databaseExists(_quote_name(parts[:-1])):
        problem = f"the database {'.'.join(parts[:-1])} does not exist: run CREATE DATABASE {_quote_name(parts[:-1])}"
        raise VariantError(problem, reason="no-such-database")
    if not spark.catalog.tableExists(name):
        return
    if not replace:
        raise VariantError(f"the table {'.'.join(parts)} exists: pass replace=True to replace it", reason="exists")
    kind = spark.catalog.getTable(name).tableType
    if kind == "MANAGED" and len(parts) < 3:
        raise VariantError(
            f"the catalog owns the files of {'.'.join(parts)}, and dropping the table would remove them: choose "
            "another name",
            reason="exists",
        )
    spark.sql(f"DROP {'VIEW' if kind == 'VIEW' else 'TABLE'} {name}")
