"""Compacting and re-shredding a directory or a Delta table on Spark: a task a new file.

Owns the engine's side of it. Leaves what is rewritten, and how, to `parquet.optimize` and `delta.optimize`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from parquet_variant.delta.maintenance.optimize import OptimizeResult as DeltaOptimizeResult
from parquet_variant.delta.maintenance.optimize import run_optimize as optimize_table
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.parquet.operations.optimize import OptimizeResult
from parquet_variant.parquet.operations.optimize import run_optimize as optimize_directory
from parquet_variant.spark.datasource.options import is_delta
from parquet_variant.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def optimize(
    spark: SparkSession, path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Any
) -> OptimizeResult | DeltaOptimizeResult:
    """Put small files together and shred anew what pays, on Spark: profile and rewrite.

    A Delta table gets it in one commit, which the driver makes when all tasks are done; a task that runs again leaves
    files that no commit names.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the directory.
    path
        A directory of Parquet files, or a Delta table.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.
    **options
        All other options of `parquet.optimize` or, for a Delta table, of `delta.optimize`.

    Returns
    -------
    parquet.OptimizeResult or delta.OptimizeResult

    Raises
    ------
    VariantFileError
        For a path that is no directory of Parquet files.
    DeltaError
        As `delta.optimize`.
    """
    engine, where = SparkEngine(spark, progress), absolute(path)
    if not is_delta({}, where):
        return optimize_directory(engine, where, **options)
    return optimize_table(engine, where, **options)
