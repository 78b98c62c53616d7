"""`pv.ingest`: JSON files to shredded Parquet files, a Delta or Iceberg table or Vortex files, on Spark.

One job profiles the splits and merges the profiles, one job writes, and the driver commits. The Python workers read the
text, which does not pass through the JVM. `ingestion.request` checks the options, `ingestion.job` runs the steps, and
`engine` runs the tasks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from parquet_variant.contracts.contract_check import ContractCheck
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.ingestion.destinations.iceberg import table_location
from parquet_variant.ingestion.job import IngestJob
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, Sources, TextOptions
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute, cannot_write
from parquet_variant.io.staging import staging_beside
from parquet_variant.spark.engine import SparkEngine
from parquet_variant.spark.task_errors import from_spark_errors
from parquet_variant.support.choices import OutputFormat
from parquet_variant.support.keywords import with_keywords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DISK_ERROR = re.compile("No space left on device|Disk quota exceeded|Permission denied|Read-only file system")


@with_keywords(IngestOptions, IngestRequest, TextOptions, ContractCheck)
def ingest(
    spark: SparkSession,
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    format: OutputFormat = "parquet",
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read JSON files and write them as shredded Parquet files, a Delta or Iceberg table or Vortex files, on Spark.

    See `pv.ingest`.
    """
    # Absolute paths, because the working directory of the workers may differ from that of the driver.
    target = absolute(dest) if options.get("catalog") is None else os.fspath(dest)
    place = target if options.get("catalog") is None else table_location(target, options["catalog"])
    with _source_paths(sources, place, options.get("json_column")) as files:
        request = IngestRequest.of(files, target, format=format, **options)
        if _is_dataframe(sources):
            request = replace(request, text=replace(request.text, of_dataframe=True))
        return IngestJob(request).run(SparkEngine(spark, progress))


@contextmanager
def _source_paths(sources: Any, dest: str, json_column: str | None) -> Iterator[list[str]]:
    """Return the paths of the sources. A DataFrame is written to temporary Parquet files next to the destination."""
    from pyspark.sql.types import BinaryType, StringType

    if not _is_dataframe(sources):
        paths = [sources] if isinstance(sources, str | os.PathLike) else sources
        yield [absolute(path) for path in paths]
        return
    if json_column is None:
        raise VariantError(
            "a DataFrame requires json_column=, the name of the column that contains JSON", reason="bad-option"
        )
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
        with from_spark_errors(), _disk_errors(dest):
            sources.write.option("maxRecordsPerFile", 0).parquet(directory)
        yield [f"{directory}/*.parquet"]
    finally:
        staging.discard()


def _is_dataframe(sources: Any) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(sources, DataFrame)


@contextmanager
def _disk_errors(dest: str) -> Iterator[None]:
    """Raise the JVM's errors about a disk that cannot be written as the error of our writers."""
    try:
        yield
    except Exception as error:
        if (reason := _DISK_ERROR.search(str(error))) is None:
            raise
        raise cannot_write(dest, reason[0]) from None
