"""Changes of files and tables as Spark jobs with one task per file: delete, update, merge, optimize and rewrite.

The functions call the operations of the same names in `delta`, `iceberg` and `parquet` with a Spark engine. The driver
commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
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
from parquet_variant.parquet.writing.options import WriterOptions
from parquet_variant.parquet.writing.writer import FileInfo
from parquet_variant.spark.arrow_variant import with_variants
from parquet_variant.spark.datasource.options import is_delta, transaction_of
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
    """Delete rows of a Delta table as a Spark job; the driver commits when all tasks are done.

    Parameters
    ----------
    spark
        A session whose workers have parquet-variant installed and can access the table.
    table
        Path or URL.
    where, **options
        As for `pv.delta.delete`; ``txnAppId`` and ``txnVersion`` (as in delta-spark) are the same as ``txn``,
        with which a repeated change, such as a micro-batch of ``foreachBatch``, is committed once.
    progress
        Callback that is called from another thread with the step, the tasks that are done and the number of tasks.

    Returns
    -------
    ChangeResult
        The numbers of rows and files that changed, and the version.

    Raises
    ------
    DeltaError
        As `pv.delta.delete` does.
    VariantError
        For an unknown option.
    """
    options = _checked_options(delete_rows, options)
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
    """Update rows of a Delta table as a Spark job, with the parameters of `delete` and `pv.delta.update`."""
    options = _checked_options(update_rows, options)
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
    """Begin a merge into a Delta table, as `pv.delta.merge` does, whose ``execute`` runs as a Spark job.

    `source` may also be a DataFrame, which is collected in the driver.
    """
    options = _checked_options(merge_into, options)
    rows = with_variants(source.toArrow()) if hasattr(source, "toArrow") else source
    return replace(merge_into(absolute(table), rows, condition, **options), engine=SparkEngine(spark, progress))


def optimize(
    spark: SparkSession, path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Any
) -> OptimizeResult | DeltaOptimizeResult:
    """Compact small files as Spark jobs, re-shredding columns where that saves space.

    The driver commits the changes of a Delta table as one version when all tasks are done. A repeated task may leave
    files that no version contains; `vacuum` removes them.

    Parameters
    ----------
    spark
        A session whose workers have parquet-variant installed and can access the directory.
    path
        A directory of Parquet files, or a Delta table.
    progress
        Callback that is called from another thread with the step, the tasks that are done and the number of tasks.
    **options
        Other options of `pv.parquet.optimize` or, for a Delta table, of `pv.delta.optimize`.

    Returns
    -------
    parquet.OptimizeResult or delta.OptimizeResult
        The numbers of files and bytes before and after.

    Raises
    ------
    VariantFileError
        For a path that is not a directory of Parquet files.
    DeltaError
        As `pv.delta.optimize` does.
    """
    engine, source = SparkEngine(spark, progress), absolute(path)
    if not is_delta({}, source):
        return optimize_directory(source, engine=engine, **options)
    return optimize_table(source, engine=engine, **options)


def rewrite(
    spark: SparkSession, source: Any, dest: Any, *, progress: Progress | None = None, **options: Any
) -> list[FileInfo]:
    """Rewrite files to another layout, schema or annotation as a Spark job, as `pv.parquet.rewrite` does.

    Parameters
    ----------
    spark
        A session whose workers have parquet-variant installed and can access both paths.
    source, dest
        A file, directory, glob, URI or list of these; and the destination of the new files.
    progress
        Callback that is called from another thread with the step, the files that are done and the number of files.
    **options
        Other options of `pv.parquet.rewrite`: ``layout``, ``schema``, ``column``, ``annotation``, ``compression``, …

    Returns
    -------
    list of FileInfo
        One entry per file.

    Raises
    ------
    VariantFileError
        If no file is found, or the destination exists.
    ConflictError, MalformedVariantError
        For invalid values, with file and row.
    """
    # Absolute paths, because the working directory of the workers may differ from that of the driver.
    is_one = isinstance(source, str | os.PathLike)
    sources = absolute(source) if is_one else [absolute(path) for path in source]
    return rewrite_files(sources, absolute(dest), engine=SparkEngine(spark, progress), **options)


def _checked_options(operation: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an operation, with delta-spark's ``txnAppId`` and ``txnVersion`` as ``txn``.

    Raises `VariantError` in the driver for an option that neither the operation nor the writer of files has.
    """
    checked = dict(options)
    txn = transaction_of(checked.pop("txnAppId", None), checked.pop("txnVersion", None))
    if txn is not None:
        checked["txn"] = txn
    parameters = signature(operation).parameters
    writer_options = {name: value for name, value in checked.items() if name not in parameters}
    writer_options.pop("file_bytes", None)
    WriterOptions.of(writer_options)
    return checked
