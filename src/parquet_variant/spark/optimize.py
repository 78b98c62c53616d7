"""Compacting and re-shredding a directory on Spark: a task a new file.

Owns the engine's side of it. Leaves what is rewritten, and how, to `parquet.optimize`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from parquet_variant.parquet.ingest_job import Progress
from parquet_variant.parquet.optimize import OptimizeResult, run_optimize
from parquet_variant.spark.ingest import SparkEngine
from parquet_variant.spark.options import location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["optimize"]


def optimize(
    spark: SparkSession, path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Any
) -> OptimizeResult:
    """Put small files together and shred anew what pays, as `parquet.optimize` does, on Spark: profile and rewrite.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the directory.
    path
        A directory of Parquet files.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.
    **options
        All other options of `parquet.optimize`.

    Returns
    -------
    OptimizeResult

    Raises
    ------
    VariantFileError
        For a path that is no directory of Parquet files, or a Delta table.
    """
    return run_optimize(SparkEngine(spark, progress), location(os.fspath(path)), **options)
