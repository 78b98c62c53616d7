"""Reading typed paths into a DataFrame by one call.

Owns the call. Leaves the read to the data source.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from parquet_variant.spark.task_errors import from_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read"]


def read(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: Mapping[str, tuple[str, str] | str] | None = None,
    *,
    column: str | None = None,
    partition_bytes: int | None = None,
) -> DataFrame:
    """Read Parquet files with Variant columns.

    Parameters
    ----------
    spark
        The session. Where ``spark.sql.python.filterPushdown.enabled`` is true, as in `local_session`, filters on typed
        columns skip row groups.
    path
        A file, directory or glob.
    columns
        Output columns by name, each a path and type: ``{"mag": ("$.properties.mag", "double")}``; the type ``variant``
        gives the value as VARIANT. By default all columns, each Variant as VARIANT.
    column
        The variant column that the paths go into, if there are several.
    partition_bytes
        Compressed bytes that one task reads; 64 MiB by default.

    Raises
    ------
    VariantError
        For a path, type or file that cannot be used, when the DataFrame is made or run.
    """
    from parquet_variant.spark.datasource import VariantDataSource

    spark.dataSource.register(VariantDataSource)
    reader = spark.read.format("variant").option("timeZone", spark.conf.get("spark.sql.session.timeZone"))
    if columns is not None:
        reader = reader.option("columns", json.dumps(columns))
    if column is not None:
        reader = reader.option("column", column)
    if partition_bytes is not None:
        reader = reader.option("partitionBytes", partition_bytes)
    with from_spark_errors():
        return reader.load(os.fspath(path))
