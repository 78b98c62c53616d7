"""Reading typed paths into a DataFrame by one call, by whatever reader is fastest for each file.

Owns the call and the union of the readers' rows. Leaves reading to the data source and to `struct_view`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from parquet_variant.errors import VariantError, check_choice
from parquet_variant.io.filesystems import absolute
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.struct_view import plan_read, struct_view
from parquet_variant.spark.task_errors import from_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: SparkSession,
    path: str | os.PathLike[str],
    columns: Mapping[str, tuple[str, str] | str] | None = None,
    where: str | None = None,
    *,
    column: str | None = None,
    partition_bytes: int | None = None,
    version: int | None = None,
    timestamp: str | None = None,
    engine: Literal["auto", "python", "jvm"] = "auto",
) -> DataFrame:
    """Read Parquet files with Variant columns, or a Delta table.

    Parameters
    ----------
    spark
        The session.
    path
        A file, directory or glob.
    columns
        Output columns by name, each a path and type: ``{"mag": ("$.properties.mag", "double")}``; the type ``variant``
        gives the value as VARIANT. By default all columns, each Variant as VARIANT.
    where
        A filter on the output columns, as for `parquet.scan`: the data source reads all files then, and skips those
        and the row groups that hold no such row. (A filter put on the DataFrame skips in files that the JVM reads.)
    column
        The variant column that the paths go into, if there are several.
    partition_bytes
        Compressed bytes that one task of the data source reads; 64 MiB by default.
    version, timestamp
        Of a Delta table: this version, or the one of that time; by default the newest.
    engine
        ``"python"``: the data source reads all files; ``"jvm"``: the JVM reads all files alone, or it is an error;
        ``"auto"``: each file is read by the JVM where that is sound (`plan_read` tells). The rows are the same.

    Raises
    ------
    VariantError
        For a path, type or file that cannot be used, when the DataFrame is made or run; or an engine that cannot.
    """
    from parquet_variant.spark.datasource.source import VariantDataSource

    check_choice("engine", engine, ("auto", "python", "jvm"))
    spark.dataSource.register(VariantDataSource)
    reader = spark.read.format("variant").option("timeZone", spark.conf.get("spark.sql.session.timeZone"))
    options: dict[str, Any] = {"column": column, "partitionBytes": partition_bytes, "where": where}
    options |= {"versionAsOf": version, "timestampAsOf": timestamp}
    options["columns"] = None if columns is None else json.dumps(columns)
    reader = reader.options(**{name: value for name, value in options.items() if value is not None})
    source = absolute(path)  # of the driver, not of wherever the JVM was started
    plan = None
    if columns is not None and where is None and engine != "python" and not ReadOptions.of({"path": source}).delta:
        plan = plan_read(source, columns, column=column)
    if engine == "jvm" and (plan is None or plan.python):
        reasons = (
            "; ".join(sorted(set(plan.python.values())))
            if plan is not None
            else "only paths into Parquet files, without where"
        )
        raise VariantError(f"the JVM alone cannot read {source}: {reasons}; use engine auto", reason="no-struct-view")
    with from_spark_errors():
        frames: list[DataFrame] = []
        with suppress(VariantError) if engine == "auto" else nullcontext():
            frames = [] if plan is None else struct_view(spark, plan)
        if not frames:
            return reader.load(source)
        if plan is not None and plan.python:
            frames.append(reader.load(list(plan.python)))
        return reduce(lambda left, right: left.unionAll(right), frames)
