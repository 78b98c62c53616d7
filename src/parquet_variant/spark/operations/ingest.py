"""The pipeline on Spark: JSON files in, shredded Parquet files, a Delta table or Vortex files out.

Owns the public operation. One job profiles the splits and merges the profiles, one writes, and the driver commits; the
text is read in the Python workers and never passes through the JVM. Leaves the options and the steps to
`ingest.request` and `ingest.job`, and running tasks to `engine`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from parquet_variant.ingest.job import IngestJob
from parquet_variant.ingest.request import IngestOptions, IngestRequest, OutputFormat, Sources
from parquet_variant.ingest.result import IngestResult
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ingest"]


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
        As for `pv.parquet.ingest`; Vortex files are written to a disk that all workers share.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.
    **options
        As for `pv.parquet.ingest`. Of up to 64 MiB of text the driver infers the schema, of more a job does; the parts
        of the input are as many as there are cores, and a task each.

    Returns
    -------
    IngestResult
        With the schema, and counts of rows, files and bad records.

    Raises
    ------
    VariantError
        As `pv.parquet.ingest`.
    """
    # The workers may stand in another directory than the driver.
    named = [sources] if isinstance(sources, str | os.PathLike) else sources
    request = IngestRequest.of([absolute(each) for each in named], absolute(dest), format=format, **options)
    return IngestJob(request).run(SparkEngine(spark, progress))
