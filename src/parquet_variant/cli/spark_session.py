"""The Spark session of a command: the one that is there, or one that lasts as long as the command.

Owns its life. Leaves its settings to `spark.session`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from parquet_variant.cli.output import Progress


@contextmanager
def spark_session(progress: Progress) -> Iterator[SparkSession]:
    """A local session, stopped at the end unless it was there before; errors are the command's to print."""
    from parquet_variant.spark.session import local_session

    progress("start Spark", 0, 1)
    there_before = _active() is not None
    session = local_session("variant")
    from pyspark.logger import PySparkLogger

    # PySpark logs an error in a query to stderr, as JSON, before it raises it.
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield session
    finally:
        logger.setLevel(level)
        if not there_before:
            session.stop()


def _active() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None  # `local_session` says what to install
    return SparkSession.getActiveSession()
