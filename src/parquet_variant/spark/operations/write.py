"""`pv.spark.write`: write a DataFrame with one shredding schema for the whole job, in all modes of Spark.

This module infers the schema in one job, which profiles and merges in the executors, and implements the modes that
Spark does not allow for Python data sources. The data source writes the rows.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from parquet_variant.errors import VariantError, check_choice
from parquet_variant.inference.profile import Profile
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import open_staging
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.engine import is_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd
from parquet_variant.support.choices import Mode
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

_PARTITION_MODE = "spark.sql.sources.partitionOverwriteMode"


def write(
    df: DataFrame,
    dest: str | os.PathLike[str],
    *,
    column: str | None = None,
    schema: ShreddingSchema | str | None = None,
    policy: Any = None,
    mode: Mode = "error",
    format: Literal["parquet", "delta", "iceberg"] = "parquet",
    catalog: CatalogOption = None,
    **options: Any,
) -> None:
    """Write a DataFrame as a directory of shredded Parquet files, or as a Delta or Iceberg table.

    Parameters
    ----------
    df
        A DataFrame with a VARIANT column or a string column of JSON; other columns are written without conversion.
    dest
        The directory or table, or the name of an Iceberg table in `catalog`.
    column
        The VARIANT or JSON column; by default the only one.
    schema
        The shredding schema, as an object or DDL. By default it is inferred from the DataFrame, which is then computed
        twice.
    policy
        The policy that infers the schema; see `infer_shredding_schema`.
    mode
        What to do if `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    format
        ``"parquet"``, ``"delta"`` or ``"iceberg"``; a table is created if it does not exist.
    catalog
        The catalog of an Iceberg table; see `pv.iceberg.snapshot`.
    **options
        Options of the data source, such as ``effort="fast"``, ``rowGroupBytes=64 << 20``, or ``txnAppId`` and
        ``txnVersion`` for a write to a table that is committed once, also inside ``foreachBatch``.

    Raises
    ------
    VariantFileError, DeltaError, IcebergError
        If `dest` holds data and the mode is ``"error"``.
    VariantError
        For a column that does not exist, or an unknown option.
    JsonError
        For a row that is not valid JSON.
    """
    from parquet_variant.spark.datasource.options import WriteOptions
    from parquet_variant.spark.datasource.source import VariantDataSource, make_active
    from parquet_variant.spark.frames import choose_column

    check_choice("format", format, ("parquet", "delta", "iceberg"))
    if catalog is not None and format != "iceberg":
        raise VariantError(f"catalog= is not supported for format {format!r}: use iceberg", reason="bad-option")
    properties = catalog_properties(catalog)
    target = os.fspath(dest) if properties else absolute(dest)
    if _is_ignored(target, mode, format, properties):
        return
    column, _ = choose_column(df.schema, column)
    schema = infer_schema(df, column, policy) if schema is None else ShreddingSchema.of(schema)
    df.sparkSession.dataSource.register(VariantDataSource)
    make_active(df.sparkSession)
    settings = {
        name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else str(value)
        for name, value in options.items()
    }
    settings |= {"format": format, "column": column, "schema": schema.to_json()}
    settings |= {f"catalog.{name}": value for name, value in properties.items()}
    checked = WriteOptions.of({**settings, "path": target})
    checked.transaction()  # raises before Spark plans the write
    if mode == "overwrite" and checked.partition_by and _overwrites_partitions(df.sparkSession):
        raise VariantError(
            f"{_PARTITION_MODE} is dynamic, but an overwrite replaces all partitions: set it to static, or use "
            "pv.delta.replace_partitions",
            reason="bad-option",
        )
    writer = df.write.format("variant").options(**settings)
    with from_spark_errors():
        writer.mode("overwrite" if mode == "overwrite" else "append").save(target)


def _overwrites_partitions(spark: SparkSession) -> bool:
    return str(spark.conf.get(_PARTITION_MODE, "static")).lower() == "dynamic"


def _is_ignored(dest: str, mode: Mode, format: str, catalog: Mapping[str, str]) -> bool:
    """Check the destination, and return whether it holds data and the mode is ``"ignore"``."""
    if format == "parquet":
        return open_staging(dest, mode) is None
    if format == "iceberg":
        from parquet_variant.ingestion.destinations.iceberg import open_table as open_iceberg_table

        return not open_iceberg_table(dest, mode, catalog or None)[0]
    from parquet_variant.ingestion.destinations.delta import open_table

    return not open_table(dest, mode)[0]


def infer_schema(df: DataFrame, column: str | None = None, policy: Any = None) -> ShreddingSchema:
    """Infer the shredding schema of a column of a DataFrame, as one job over all rows.

    Parameters
    ----------
    df
        A DataFrame with a VARIANT column or a string column of JSON.
    column
        The VARIANT or JSON column; by default the only one.
    policy
        The policy that infers the schema; see `infer_shredding_schema`.

    Returns
    -------
    ShreddingSchema
        The schema for all rows.

    Raises
    ------
    VariantError
        For a column that does not exist, or a DataFrame without rows.
    JsonError
        For a row that is not valid JSON.
    """
    from parquet_variant.inference.infer import infer

    df_profile = profile(df, column)
    if not df_profile.rows:
        raise VariantError(
            "the DataFrame has no rows from which a schema could be inferred: set schema=", reason="no-rows"
        )
    return infer(df_profile, policy).schema


def profile(df: DataFrame, column: str | None = None) -> Profile:
    """Profile the paths of a column, as one job over all rows.

    The executors profile batches and merge the profiles of each partition, then of the partitions in a tree, so that
    only merged profiles reach the driver. The order of rows and the partitions do not affect the result.

    Parameters
    ----------
    df
        A DataFrame with a VARIANT column or a string column of JSON.
    column
        The VARIANT or JSON column; by default the only one.

    Returns
    -------
    Profile
        One entry per path; a DataFrame without rows has an empty profile. Pass it to
        `parquet_variant.inference.infer.infer`.

    Raises
    ------
    VariantError
        For a column that does not exist.
    JsonError
        For a row that is not valid JSON.
    """
    from pyspark.sql.functions import arrow_udf

    from parquet_variant.spark.frames import choose_column

    column, is_json = choose_column(df.schema, column)

    end = QuietEnd()

    @arrow_udf("binary")
    def batch_profile(values: pa.Array) -> pa.Array:
        _ = end
        # The first row of a batch contains its profile. An Arrow UDF does not need pandas; `mapInArrow` does.
        with to_spark_errors():
            pickled = pickle.dumps(Profile.of_array(parse_json(values) if is_json else from_spark(values)))
        return pa.array([pickled, *[None] * (len(values) - 1)], pa.binary())

    # Non-deterministic, because Spark would otherwise run it again on the rows that the filter returns.
    profile_once = batch_profile.asNondeterministic()
    profiles = df.select(profile_once(df[column]).alias("profile")).where("profile IS NOT NULL")
    with from_spark_errors():
        if is_connect(df.sparkSession):
            return reduce(_with_batch, profiles.toLocalIterator(), Profile())
        return profiles.rdd.treeAggregate(Profile(), _with_batch, Profile.merge)


def _with_batch(merged: Profile, row: Row) -> Profile:
    return merged.merge(pickle.loads(row.profile))
