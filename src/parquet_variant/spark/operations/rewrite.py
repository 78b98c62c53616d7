"""Rewriting many files on Spark: a task a file.

Owns the engine's side of it. Leaves what becomes of a file to `parquet.rewrite`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from parquet_variant.io.engine import Progress
from parquet_variant.io.filesystems import absolute
from parquet_variant.parquet.operations.rewrite import run_rewrite
from parquet_variant.parquet.writing.writer import FileInfo
from parquet_variant.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    return run_rewrite(SparkEngine(spark, progress), named, absolute(dest), **options)
