"""`pv.write` of a DataFrame with one shredding schema for the whole job, in all modes of Spark; `pv.ingest` on Spark.

`write` infers the schema in one job, which profiles and merges in the executors, and implements the modes that Spark
does not allow for Python data sources. The data source writes the rows.

`ingest` profiles the splits in one job and merges the profiles, another job writes, and the driver commits. The Python
workers read the text, which does not pass through the JVM. `ingestion.request` checks the options, `ingestion.job` runs
the steps, and `engine` runs the tasks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from parquet_variant.errors import SchemaError, VariantError, bad_option, check_choice
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.destination import WriteRequest
from parquet_variant.ingestion.destinations.iceberg import table_location
from parquet_variant.ingestion.job import IngestJob
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, Sources, json_columns_and_paths
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.io.filesystems import absolute, cannot_write
from parquet_variant.io.parallel import Progress
from parquet_variant.io.staging import check_mode, staging_beside
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.spark.engine import SparkEngine, choose_column, merged_batches
from parquet_variant.spark.task_errors import from_spark_errors
from parquet_variant.support.options import Mode, OutputFormat
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_DISK_ERROR = re.compile("No space left on device|Disk quota exceeded|Permission denied|Read-only file system")


def ingest(
    spark: SparkSession,
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    format: OutputFormat | None = None,
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Run `pv.ingest` as Spark jobs."""
    # Absolute paths, because the working directory of the workers may differ from that of the driver.
    target = absolute(dest) if options.get("catalog") is None else os.fspath(dest)
    place = target if options.get("catalog") is None else table_location(target, options["catalog"])
    columns, _ = json_columns_and_paths(options.get("json_column"), ())
    with _source_paths(sources, place, columns[0] if columns else None) as files:
        request = IngestRequest.of(files, target, format=format, **options)
        if hasattr(sources, "sparkSession"):
            request = replace(request, text=replace(request.text, of_dataframe=True))
        return IngestJob(request).run(SparkEngine(spark, progress))


@contextmanager
def _source_paths(sources: Any, dest: str, json_column: str | None) -> Iterator[list[str]]:
    """Return the paths of the sources. A DataFrame is written to temporary Parquet files next to the destination."""
    from pyspark.sql.types import BinaryType, StringType

    if not hasattr(sources, "sparkSession"):  # not a DataFrame
        paths = [sources] if isinstance(sources, str | os.PathLike) else sources
        yield [absolute(path) for path in paths]
        return
    if json_column is None:
        raise bad_option("a DataFrame requires json_column=, the name of the column that contains JSON")
    if json_column not in sources.columns:
        names = ", ".join(sources.columns)
        raise VariantError(
            f"the DataFrame has no column {json_column}: its columns are {names}", reason="no-such-column"
        )
    data_type = sources.schema[json_column].dataType
    if not isinstance(data_type, StringType | BinaryType):
        raise SchemaError(
            f"column {json_column} is {data_type.simpleString()}, not strings or bytes: name the column that contains "
            "JSON (to write Variants, use pv.write)",
            reason="not-text",
        )
    staging = staging_beside(dest.rstrip("/"))
    directory = f"{staging.directory}/rows"
    try:
        staging.begin()
        with from_spark_errors():
            try:
                sources.write.option("maxRecordsPerFile", 0).parquet(directory)
            except Exception as error:  # of the JVM, about a disk that cannot be written
                if (reason := _DISK_ERROR.search(str(error))) is None:
                    raise
                raise cannot_write(dest, reason[0]) from None
        yield [f"{directory}/*.parquet"]
    finally:
        staging.abort()


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
    batch: tuple[str, int] | None = None,
    **options: Any,
) -> None:
    """Write a DataFrame as a directory of shredded Parquet files, or as a Delta or Iceberg table; see `pv.write`."""
    from parquet_variant.inference.infer import infer
    from parquet_variant.spark.datasource.options import WriteOptions
    from parquet_variant.spark.datasource.source import VariantDataSource, make_active

    check_mode(mode)
    check_choice("format", format, ("parquet", "delta", "iceberg"))
    if catalog is not None and format != "iceberg":
        raise bad_option(f"catalog= is not supported for format {format!r}: use iceberg")
    properties = catalog_properties(catalog)
    target = os.fspath(dest) if properties else absolute(dest)
    destination = WriteRequest(dest=target, format=format, mode=mode, columns=None, catalog=properties or None).open()
    if destination is None:  # it has data, and the mode is "ignore"
        return
    column, _ = choose_column(df.schema, column)
    schema = None if str(schema) == "infer" else schema
    schema = infer(profile(df, column), policy).schema if schema is None else ShreddingSchema.of(schema)
    df.sparkSession.dataSource.register(VariantDataSource)
    make_active(df.sparkSession)
    if batch is not None:
        options |= {"txnAppId": batch[0], "txnVersion": batch[1]}
    settings = {
        name: json.dumps(list(value)) if isinstance(value, list | tuple | set) else str(value)
        for name, value in options.items()
        if value is not None
    }
    settings |= {"format": format, "column": column, "schema": schema.to_json()}
    settings |= {f"catalog.{name}": value for name, value in properties.items()}
    checked = WriteOptions.of({**settings, "path": target})
    checked.transaction()  # raises before Spark plans the write
    partition_mode = str(df.sparkSession.conf.get(_PARTITION_MODE, "static")).lower()
    if mode == "overwrite" and checked.partition_by and partition_mode == "dynamic":
        raise bad_option(
            f"{_PARTITION_MODE} is dynamic, but an overwrite replaces all partitions: set it to static, or use "
            "Table.overwrite with partitions=True"
        )
    writer = df.write.format("variant").options(**settings)
    with from_spark_errors():
        writer.mode("overwrite" if mode == "overwrite" else "append").save(target)


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
    """Profile the paths of a column, as one job over all rows; see `Table.profile`."""
    return merged_batches(df, column, Profile.of_array, Profile(), Profile.merge)
