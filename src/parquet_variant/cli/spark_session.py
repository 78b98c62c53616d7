"""The Spark session of a command: the active one, or one that ends with the command.

Owns its lifetime. Leaves its settings to `spark.session`.
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
    """Yield a local session, which is stopped at the end unless it was active before."""
    from parquet_variant.spark.session import local_session

    progress("start Spark", 0, 1)
    was_active = _active_session() is not None
    session = local_session("variant")
    from pyspark.logger import PySparkLogger

    # PySpark logs errors in queries to stderr as JSON before it raises them, and the command prints them.
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield session
    finally:
        logger.setLevel(level)
        if not was_active:
            session.stop()


def _active_session() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None  # `local_session` reports what to install
    return SparkSession.getActiveSession()
