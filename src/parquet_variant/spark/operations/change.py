"""Delete, update and merge of Delta tables as Spark jobs: a task a file that may hold matches.

Owns the engine's side of it. Leaves what changes, and the commit, to `delta.dml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parquet_variant.delta.dml.committing import ChangeResult
from parquet_variant.delta.dml.delete import run_delete
from parquet_variant.delta.dml.merge import Merge
from parquet_variant.delta.dml.merge import merge as merge_into
from parquet_variant.delta.dml.update import run_update
from parquet_variant.delta.log.snapshot import snapshot
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.spark.arrow_variant import with_variants
from parquet_variant.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete(
    spark: SparkSession,
    table: str | os.PathLike[str],
    where: str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> ChangeResult:
    """`delta.delete` as a Spark job; the driver commits when all tasks are done.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the table.
    table
        Path or URL.
    where, **options
        As for `delta.delete`.
    progress
        Called with the step, the tasks done and the tasks in all, from another thread.

    Returns
    -------
    ChangeResult
    """
    return run_delete(SparkEngine(spark, progress), snapshot(absolute(table)), where, **options)


def update(
    spark: SparkSession,
    table: str | os.PathLike[str],
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> ChangeResult:
    """`delta.update` as a Spark job; parameters and result as `delete`, `updates` as for `delta.update`."""
    return run_update(SparkEngine(spark, progress), snapshot(absolute(table)), updates, where, **options)


def merge(
    spark: SparkSession,
    table: str | os.PathLike[str],
    source: Any,
    condition: str,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """`delta.merge` whose ``execute`` runs as a Spark job; `source` may be a DataFrame, too, which is collected."""
    rows = with_variants(source.toArrow()) if hasattr(source, "toArrow") else source
    return replace(merge_into(absolute(table), rows, condition, **options), engine=SparkEngine(spark, progress))
