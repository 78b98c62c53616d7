"""The Variant column of a DataFrame: its choice, and jobs over all of its rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql.types import StringType, StructType, VariantType

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.spark.arrow_variant import from_spark
from parquet_variant.spark.engine import is_connect
from parquet_variant.spark.task_errors import from_spark_errors, to_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Result = TypeVar("Result")


def choose_column(schema: StructType, name: str | None) -> tuple[str, bool]:
    """Return the name of the column that becomes the Variant, and whether it contains JSON text."""
    types = {field.name: field.dataType for field in schema.fields}
    variants = [column for column, data_type in types.items() if isinstance(data_type, VariantType)]
    strings = [column for column, data_type in types.items() if isinstance(data_type, StringType)]
    if name is not None:
        if name not in (*variants, *strings):
            candidates = ", ".join(variants + strings) or "none"
            raise VariantError(
                f"column {name!r} is not a VARIANT or string column: choose from {candidates}", reason="bad-column"
            )
        return name, name in strings
    columns = variants or strings
    if len(columns) != 1:
        candidates = ", ".join(columns) or "none"
        problem = f"the option column must name the VARIANT or JSON string column; candidates: {candidates}"
        raise VariantError(problem, reason="bad-column")
    return columns[0], not variants


def merged_batches(
    df: DataFrame,
    column: str | None,
    work: Callable[[VariantArray], Result],
    empty: Result,
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Return the merged results of `work` for the batches of a VARIANT or JSON column, as one job over all rows."""
    from pyspark.sql.functions import arrow_udf

    name, is_json = choose_column(df.schema, column)

    @arrow_udf("binary")
    def batch_result(values: pa.Array) -> pa.Array:
        # The first row of a batch contains its result. An Arrow UDF does not need pandas; `mapInArrow` does.
        with to_spark_errors():
            result = pickle.dumps(work(parse_json(values) if is_json else from_spark(values)))
        return pa.array([result, *[None] * (len(values) - 1)], pa.binary())

    def with_batch(merged: Result, row: Row) -> Result:
        return merge(merged, pickle.loads(row.result))

    # Non-deterministic, because Spark would otherwise run it again on the rows that the filter returns.
    results = df.select(batch_result.asNondeterministic()(df[name]).alias("result")).where("result IS NOT NULL")
    with from_spark_errors():
        if is_connect(df.sparkSession):
            return reduce(with_batch, results.toLocalIterator(), empty)
        return results.rdd.treeAggregate(empty, with_batch, merge)
