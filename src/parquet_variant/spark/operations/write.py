"""Writing a DataFrame with one schema for the whole job, and with every mode that Spark users know.

Owns the inference over a DataFrame, as one job that counts in the executors and merges there, and the modes that Spark
denies to Python data sources. Leaves the write itself to the data source.
"""

from __future__ import annotations

import json
import os
import pickle
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from parquet_variant.choices import Mode
from parquet_variant.errors import VariantError, check_choice
from parquet_variant.functions.parse_json import parse_json
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import open_staging
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.profile import Profile
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.engine import is_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


def write(
    df: DataFrame,
    dest: str | os.PathLike[str],
    *,
    column: str | None = None,
    schema: ShreddingSchema | str | None = None,
    policy: Any = None,
    mode: Mode = "error",
    format: Literal["parquet", "delta"] = "parquet",
    **options: Any,
) -> None:
    """Write a DataFrame as a directory of shredded Parquet files, or as a Delta table.

    Parameters
    ----------
    df
        With a VARIANT column or a string column of JSON; other columns are written as they are.
    dest
        The directory.
    column
        The VARIANT or JSON column; by default the only one there is.
    schema
        What to shred, as an object or DDL. By default it is inferred from the DataFrame, which is then computed twice.
    policy
        How to infer it; see `infer_shredding_schema`.
    mode
        If `dest` holds data: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    format
        ``"parquet"`` or ``"delta"``; a Delta table is made if it is not there.
    **options
        Options of the data source, such as ``compression="zstd"`` or ``rowGroupBytes=64 << 20``.

    Raises
    ------
    VariantFileError, DeltaError
        If `dest` holds data and the mode is ``"error"``.
    VariantError
        For a column that is not there, or an option that nobody knows.
    JsonError
        For a row that is no JSON.
    """
    from parquet_variant.spark.datasource.source import VariantDataSource, make_active
    from parquet_variant.spark.frames import choose_column

    check_choice("format", format, ("parquet", "delta"))
    target = absolute(dest)
    if _leave_alone(target, mode, format):
        return
    column, _ = choose_column(df.schema, column)
    schema = infer_schema(df, column, policy) if schema is None else ShreddingSchema.of(schema)
    df.sparkSession.dataSource.register(VariantDataSource)
    make_active(df.sparkSession)
    settings = {
        name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else str(value)
        for name, value in options.items()
    }
    writer = df.write.format("variant").options(**settings, format=format, column=column, schema=schema.to_json())
    with from_spark_errors():
        writer.mode("overwrite" if mode == "overwrite" else "append").save(target)


def _leave_alone(dest: str, mode: Mode, format: str) -> bool:
    """Look at the destination as the mode asks; whether it holds data that is to stay as it is."""
    if format == "parquet":
        return open_staging(dest, mode) is None
    from parquet_variant.ingestion.destinations.delta import open_table

    return not open_table(dest, mode)[0]


def infer_schema(df: DataFrame, column: str | None = None, policy: Any = None) -> ShreddingSchema:
    """Infer what to shred of a DataFrame's column, as one job over all of its rows.

    Parameters
    ----------
    df
        With a VARIANT column or a string column of JSON.
    column
        That column; by default the only one there is.
    policy
        How to infer; see `infer_shredding_schema`.

    Raises
    ------
    VariantError
        For a column that is not there.
    JsonError
        For a row that is no JSON.
    """
    from parquet_variant.shredding.infer import infer

    seen = profile(df, column)
    if not seen.rows:
        raise VariantError("the DataFrame has no rows to infer a schema from: give one with schema=", reason="no-rows")
    return infer(seen, policy).schema


def profile(df: DataFrame, column: str | None = None) -> Profile:
    """Count what is at which path of a column, over all of its rows, as one job.

    The executors profile batches and merge them, first those of a partition and then partitions in a tree: only merged
    profiles reach the driver. Rows, their order and partitions do not change the result.

    Parameters
    ----------
    df
        With a VARIANT column or a string column of JSON.
    column
        That column; by default the only one there is.

    Returns
    -------
    Profile
        Of no rows, if the DataFrame has none. Pass it to `parquet_variant.shredding.infer.infer`.

    Raises
    ------
    VariantError
        For a column that is not there.
    JsonError
        For a row that is no JSON.
    """
    from pyspark.sql.functions import arrow_udf

    from parquet_variant.spark.frames import choose_column

    column, is_json = choose_column(df.schema, column)

    end = QuietEnd()

    @arrow_udf("binary")
    def profiled(values: pa.Array) -> pa.Array:
        _ = end
        # One profile a batch, in its first row: Arrow UDFs need no pandas, `mapInArrow` does.
        with to_spark_errors():
            pickled = pickle.dumps(Profile.of_array(parse_json(values) if is_json else from_spark(values)))
        return pa.array([pickled, *[None] * (len(values) - 1)], pa.binary())

    # Non-deterministic, or Spark would run it again on just the rows that the filter leaves.
    once = profiled.asNondeterministic()
    profiles = df.select(once(df[column]).alias("profile")).where("profile IS NOT NULL")
    with from_spark_errors():
        if is_connect(df.sparkSession):
            return reduce(_with_batch, profiles.toLocalIterator(), Profile())
        return profiles.rdd.treeAggregate(Profile(), _with_batch, Profile.merge)


def _with_batch(merged: Profile, row: Row) -> Profile:
    return merged.merge(pickle.loads(row.profile))
