"""The pipeline on Spark: JSON files in, shredded Parquet files, a Delta table or Vortex files out.

Owns the public operation. One job profiles the splits and merges the profiles, one writes, and the driver commits; the
text is read in the Python workers and never passes through the JVM. Leaves the options and the steps to
`ingestion.request` and `ingestion.job`, and running tasks to `engine`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from parquet_variant.choices import OutputFormat
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.ingestion.job import IngestJob
from parquet_variant.ingestion.request import IngestOptions, IngestRequest, Sources, TextOptions
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute, cannot_write
from parquet_variant.io.staging import staging_beside
from parquet_variant.keywords import with_keywords
from parquet_variant.spark.engine import SparkEngine
from parquet_variant.spark.task_errors import from_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_THE_DISK = re.compile("No space left on device|Disk quota exceeded|Permission denied|Read-only file system")


@with_keywords(IngestOptions, IngestRequest, TextOptions)
def ingest(
    spark: SparkSession,
    sources: Sources,
    dest: str | os.PathLike[str],
    *,
    format: OutputFormat = "parquet",
    progress: Progress | None = None,
    **options: Unpack[IngestOptions],
) -> IngestResult:
    """Read JSON files and write them as shredded Parquet files, a Delta table or Vortex files, on Spark.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the sources and `dest`.
    sources, dest, format
        As for `pv.ingest`; with `json_column` also a DataFrame, which is computed once. Vortex files are
        written to a disk that all workers share.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.
    **options
        As for `pv.ingest`. Of up to 64 MiB of text the driver infers the schema, of more a job does; the parts
        of the input are as many as there are cores, and a task each.

    Returns
    -------
    IngestResult
        With the schema, and counts of rows, files and bad records.

    Raises
    ------
    VariantError
        As `pv.ingest`.
    """
    # The workers may stand in another directory than the driver.
    target = absolute(dest)
    with _named(sources, target, options.get("json_column")) as files:
        request = IngestRequest.of(files, target, format=format, **options)
        if _is_dataframe(sources):
            request = replace(request, text=replace(request.text, of_dataframe=True))
        return IngestJob(request).run(SparkEngine(spark, progress))


@contextmanager
def _named(sources: Any, dest: str, json_column: str | None) -> Iterator[list[str]]:
    """The sources by name; a DataFrame as Parquet files beside the destination, for as long as the job runs."""
    from pyspark.sql.types import BinaryType, StringType

    if not _is_dataframe(sources):
        named = [sources] if isinstance(sources, str | os.PathLike) else sources
        yield [absolute(each) for each in named]
        return
    if json_column is None:
        raise VariantError("of a DataFrame name the column that holds JSON: json_column=", reason="bad-option")
    if json_column not in sources.columns:
        names = ", ".join(sources.columns)
        raise VariantError(
            f"the DataFrame has no column {json_column}: its columns are {names}", reason="no-such-column"
        )
    kind = sources.schema[json_column].dataType
    if not isinstance(kind, StringType | BinaryType):
        raise SchemaError(
            f"the column {json_column} is {kind.simpleString()}, not text: name one that holds JSON (pv.spark.write "
            "takes Variants)",
            reason="not-text",
        )
    staging = staging_beside(dest.rstrip("/"))
    aside = f"{staging.directory}/rows"
    try:
        staging.begin()
        with from_spark_errors(), _disk_errors(dest):
            sources.write.option("maxRecordsPerFile", 0).parquet(aside)
        yield [f"{aside}/*.parquet"]
    finally:
        staging.discard()


def _is_dataframe(sources: Any) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(sources, DataFrame)


@contextmanager
def _disk_errors(dest: str) -> Iterator[None]:
    """What the JVM says of a disk on which it cannot write, as our writers say it."""
    try:
        yield
    except Exception as error:
        if (why := _OF_THE_DISK.search(str(error))) is None:
            raise
        raise cannot_write(dest, why[0]) from None
