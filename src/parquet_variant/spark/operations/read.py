"""`Scan.to_spark`: typed paths as a DataFrame, with the fastest reader for each file.

The result is the union of the rows of the data source and of `struct_view`.
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
from parquet_variant.query.predicate_text import parse_predicate
from parquet_variant.spark.datasource.options import ReadOptions
from parquet_variant.spark.struct_view import plan_read, struct_view
from parquet_variant.spark.task_errors import from_spark_errors
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties

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
    timestamp: str | int | None = None,
    catalog: CatalogOption = None,
    snapshot_id: int | None = None,
    branch: str | None = None,
    tag: str | None = None,
    merge_schema: bool = False,
    engine: Literal["auto", "python", "jvm"] = "auto",
) -> DataFrame:
    """Read Parquet files with Variant columns, or a Delta or Iceberg table; see `Scan.to_spark`."""
    from parquet_variant.spark.datasource.source import VariantDataSource

    check_choice("engine", engine, ("auto", "python", "jvm"))
    spark.dataSource.register(VariantDataSource)
    reader = spark.read.format("variant").option("timeZone", spark.conf.get("spark.sql.session.timeZone"))
    options: dict[str, Any] = {"column": column, "partitionBytes": partition_bytes, "where": where}
    options |= {"versionAsOf": version, "timestampAsOf": timestamp, "mergeSchema": "true" if merge_schema else None}
    options |= {"snapshotId": snapshot_id, "branch": branch, "tag": tag}
    if where is not None:
        parse_predicate(where)  # raises before Spark plans the read
    options["columns"] = None if columns is None else json.dumps(columns)
    properties = {f"catalog.{name}": value for name, value in catalog_properties(catalog).items()}
    options = {name: value for name, value in options.items() if value is not None} | properties
    reader = reader.options(**options)
    # Absolute, because the working directory of the JVM may differ.
    source = os.fspath(path) if properties else absolute(path)
    format_name = ReadOptions.of({**options, "path": source}, stream=False).format  # raises before Spark plans the read
    plan = None
    if columns is not None and where is None and engine != "python" and format_name == "parquet":
        plan = plan_read(source, columns, column=column)
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
    with from_spark_errors():
        frames: list[DataFrame] = []
        with suppress(VariantError) if engine == "auto" else nullcontext():
            frames = [] if plan is None else struct_view(spark, plan)
        if not frames:
            return reader.load(source)
        if plan is not None and plan.python:
            frames.append(reader.load(list(plan.python)))
        return reduce(lambda union, frame: union.unionAll(frame), frames)
