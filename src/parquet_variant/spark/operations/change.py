"""Changes of files and tables as Spark jobs with one task per file: delete, update, merge, optimize and rewrite.

The functions call the operations of the same names in `delta`, `iceberg` and `parquet` with a Spark engine. The driver
commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from parquet_variant.files.parquet.operations.optimize import OptimizeResult
from parquet_variant.files.parquet.operations.optimize import optimize as optimize_directory
from parquet_variant.files.parquet.operations.rewrite import rewrite as rewrite_files
from parquet_variant.files.parquet.writing.options import WriterOptions
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.spark.arrow_variant import with_variants
from parquet_variant.spark.datasource.options import table_format, transaction_of
from parquet_variant.spark.engine import SparkEngine
from parquet_variant.tables.changes.merge_run import Merge
from parquet_variant.tables.changes.operations import ChangeResult
from parquet_variant.tables.changes.optimizing import OptimizeResult as TableOptimizeResult
from parquet_variant.tables.delta.dml.delete import delete as delete_rows
from parquet_variant.tables.delta.dml.merge import merge as merge_into
from parquet_variant.tables.delta.dml.update import update as update_rows
from parquet_variant.tables.delta.maintenance.optimize import optimize as optimize_table
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, catalog_properties
from parquet_variant.tables.iceberg.changes.delete import delete as delete_iceberg_rows
from parquet_variant.tables.iceberg.changes.merge import merge as merge_into_iceberg
from parquet_variant.tables.iceberg.changes.update import update as update_iceberg_rows
from parquet_variant.tables.iceberg.maintenance.optimize import optimize as optimize_iceberg_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete(
    spark: SparkSession,
    table: str | os.PathLike[str],
    where: str | None = None,
    *,
    catalog: CatalogOption = None,
    progress: Progress | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete rows of a Delta or Iceberg table as a Spark job; the driver commits when all tasks are done.

    Parameters
    ----------
    spark
        A session whose workers have parquet-variant installed and can access the table.
    table
        Path or URL, or the name of an Iceberg table in `catalog`.
    where, **options
        As for `pv.delta.delete` or `pv.iceberg.delete`; ``txnAppId`` and ``txnVersion`` (as in delta-spark) are the
        same as ``txn`` or ``batch``, with which a repeated change, such as a micro-batch of ``foreachBatch``, is
        committed once.
    catalog
        The catalog of an Iceberg table; see `pv.iceberg.snapshot`.
    progress
        Callback that is called from another thread with the step, the tasks that are done and the number of tasks.

    Returns
    -------
    ChangeResult
        The numbers of rows and files that changed, and the version.

    Raises
    ------
    DeltaError, IcebergError
        As `pv.delta.delete` and `pv.iceberg.delete` do.
    VariantError
        For an unknown option.
    """
    target = _Target.of(table, catalog)
    operation = delete_iceberg_rows if target.is_iceberg else delete_rows
    options = _checked_options(operation, options) | target.catalog
    return operation(target.name, where, engine=SparkEngine(spark, progress), **options)


def update(
    spark: SparkSession,
    table: str | os.PathLike[str],
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    catalog: CatalogOption = None,
    progress: Progress | None = None,
    **options: Any,
) -> ChangeResult:
    """Update rows of a Delta or Iceberg table as a Spark job, with the parameters of `delete` and `pv.delta.update`."""
    target = _Target.of(table, catalog)
    operation = update_iceberg_rows if target.is_iceberg else update_rows
    options = _checked_options(operation, options) | target.catalog
    return operation(target.name, updates, where, engine=SparkEngine(spark, progress), **options)


def merge(
    spark: SparkSession,
    table: str | os.PathLike[str],
    source: Any,
    condition: str,
    *,
    catalog: CatalogOption = None,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """Begin a merge into a Delta or Iceberg table, as `pv.delta.merge` does, whose ``execute`` runs as a Spark job.

    `source` may also be a DataFrame, which is collected in the driver.
    """
    target = _Target.of(table, catalog)
    operation = merge_into_iceberg if target.is_iceberg else merge_into
    options = _checked_options(operation, options) | target.catalog
    rows = with_variants(source.toArrow()) if hasattr(source, "toArrow") else source
    return replace(operation(target.name, rows, condition, **options), engine=SparkEngine(spark, progress))


def optimize(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    catalog: CatalogOption = None,
    progress: Progress | None = None,
    **options: Any,
) -> OptimizeResult | TableOptimizeResult:
    """Compact small files as Spark jobs, re-shredding columns where that saves space.

    The driver commits the changes of a table as one version when all tasks are done. A repeated task may leave
    files that no version contains; `vacuum` removes them.

    Parameters
    ----------
    spark
        A session whose workers have parquet-variant installed and can access the directory.
    path
        A directory of Parquet files, a Delta or Iceberg table, or the name of an Iceberg table in `catalog`.
    catalog
        The catalog of an Iceberg table; see `pv.iceberg.snapshot`.
    progress
        Callback that is called from another thread with the step, the tasks that are done and the number of tasks.
    **options
        Other options of `pv.parquet.optimize` or, for a table, of `pv.delta.optimize` or `pv.iceberg.optimize`.

    Returns
    -------
    parquet.OptimizeResult or delta.OptimizeResult
        The numbers of files and bytes before and after.

    Raises
    ------
    VariantFileError
        For a path that is not a directory of Parquet files.
    DeltaError, IcebergError
        As `pv.delta.optimize` and `pv.iceberg.optimize` do.
    """
    engine, target = SparkEngine(spark, progress), _Target.of(path, catalog)
    if target.is_iceberg:
        return optimize_iceberg_table(target.name, engine=engine, **options, **target.catalog)
    operation = optimize_table if target.format == "delta" else optimize_directory
    return operation(target.name, engine=engine, **options)


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


@dataclass(frozen=True)
class _Target:
    """A directory or table as every process can find it.

    `name`: the absolute path, or the name in the catalog.
    `catalog`: the argument that names the catalog.
    """

    format: str
    name: str
    catalog: dict[str, Any]

    @classmethod
    def of(cls, table: str | os.PathLike[str], catalog: CatalogOption) -> _Target:
        properties = catalog_properties(catalog)
        if properties:
            return cls("iceberg", os.fspath(table), {"catalog": properties})
        path = absolute(table)
        return cls(table_format(None, path), path, {})

    @property
    def is_iceberg(self) -> bool:
        return self.format == "iceberg"


def _checked_options(operation: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an operation, with delta-spark's ``txnAppId`` and ``txnVersion`` as ``txn``.

    Raises `VariantError` in the driver for an option that neither the operation nor the writer of files has.
    """
    checked = dict(options)
    txn = transaction_of(checked.pop("txnAppId", None), checked.pop("txnVersion", None))
    parameters = signature(operation).parameters
    if txn is not None:
        checked["txn" if "txn" in parameters else "batch"] = txn
    writer_options = {name: value for name, value in checked.items() if name not in parameters}
    writer_options.pop("file_bytes", None)
    WriterOptions.of(writer_options)
    return checked
