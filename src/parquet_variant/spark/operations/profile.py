"""The profile of a DataFrame's column, as a distributed aggregate.

Owns counting in the batches that Spark hands out, and merging in the executors. Leaves what is counted to
`shredding.profile`.
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

import parquet_variant as pv
from parquet_variant.shredding.profile import Profile
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.engine import is_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors
from parquet_variant.spark.worker_end import QuietEnd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row


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
            pickled = pickle.dumps(Profile.of_array(pv.parse_json(values) if is_json else from_spark(values)))
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
