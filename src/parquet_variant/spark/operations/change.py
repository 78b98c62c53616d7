"""Files and tables changed by Spark jobs: delete, update and merge, optimize and rewrite; a task a file, old or new.

Owns the engine's side of it. Leaves what changes, and the commit, to `delta.dml`, what is put together to
`parquet.optimize` and `delta.optimize`, and what becomes of a file to `parquet.rewrite`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from parquet_variant.delta.dml.delete import delete as delete_rows
from parquet_variant.delta.dml.merge import merge as merge_into
from parquet_variant.delta.dml.update import update as update_rows
from parquet_variant.delta.maintenance.optimize import OptimizeResult as DeltaOptimizeResult
from parquet_variant.delta.maintenance.optimize import optimize as optimize_table
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.parquet.operations.optimize import OptimizeResult
from parquet_variant.parquet.operations.optimize import optimize as optimize_directory
from parquet_variant.parquet.operations.rewrite import rewrite as rewrite_files
from parquet_variant.parquet.writing.writer import FileInfo
from parquet_variant.spark.arrow_variant import with_variants
from parquet_variant.spark.datasource.options import is_delta
from parquet_variant.spark.engine import SparkEngine
from parquet_variant.tables.changes.merge_builder import Merge
from parquet_variant.tables.changes.retries import ChangeResult

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
    return delete_rows(absolute(table), where, engine=SparkEngine(spark, progress), **options)


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
    return update_rows(absolute(table), updates, where, engine=SparkEngine(spark, progress), **options)


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
        return optimize_directory(where, engine=engine, **options)
    return optimize_table(where, engine=engine, **options)


def rewrite(
    spark: SparkSession, source: Any, dest: Any, *, progress: Progress | None = None, **options: Any
) -> list[FileInfo]:
    """Rewrite files into another layout, schema or annotation, as `parquet.rewrite` does, on Spark.

    Parameters
    ----------
    spark
        A session; its workers must have parquet-variant installed and see the files on both sides.
    source, dest
        A file, directory, glob, URI or list of these; and where the new files go.
    progress
        Called with the step, the files done and the files in all, from another thread.
    **options
        All other options of `parquet.rewrite`: ``layout``, ``schema``, ``column``, ``annotation``, ``compression``, …

    Returns
    -------
    list of FileInfo
        One a file.

    Raises
    ------
    VariantFileError
        If there is nothing to read, or the destination exists.
    ConflictError, MalformedVariantError
        For values that are not valid, with file and row.
    """
    # The workers may stand in another directory than the driver.
    one = isinstance(source, str | os.PathLike)
    named = absolute(source) if one else [absolute(each) for each in source]
    return rewrite_files(named, absolute(dest), engine=SparkEngine(spark, progress), **options)
