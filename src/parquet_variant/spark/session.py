"""A local Spark session that works out of the box: Java found, workers on this interpreter, quiet.

Owns the settings of a local session. Leaves finding Java to `java`; a session made elsewhere works just as well with
everything in this package.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from parquet_variant.errors import VariantError
from parquet_variant.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PANDAS_WARNING = "PySpark does not yet fully support pandas"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def local_session(
    app: str = "parquet-variant", cores: int | None = None, memory: str = "2g", **conf: str
) -> SparkSession:
    """Start a Spark session on this machine, or give the one that is already running in this process.

    Parameters
    ----------
    app
        Its name.
    cores
        Threads that run tasks; all cores by default.
    memory
        Heap of the JVM, as Spark spells it. The Python workers come on top.
    **conf
        Further Spark settings, which win over the ones made here (Java options are added to them):
        ``local_session(**{"spark.sql.session.timeZone": "UTC"})``.

    Returns
    -------
    SparkSession
        With the ``variant`` data source registered.

    Raises
    ------
    VariantError
        With reason ``"no-spark"`` or ``"no-java"`` if PySpark or Java 17+ is missing, ``"java-failed"`` if the JVM does
        not start.
    """
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise VariantError(
            "PySpark is not installed: run: pip install 'parquet-variant[spark]'", reason="no-spark"
        ) from error
    active = SparkSession.getActiveSession()
    if active is None:
        threads = cores or os.cpu_count() or 1
        builder = SparkSession.builder.master(f"local[{threads}]").appName(app)
        settings = _settings(threads, memory)
        if _JAVA_OPTIONS in conf:
            conf[_JAVA_OPTIONS] = f"{settings[_JAVA_OPTIONS]} {conf[_JAVA_OPTIONS]}"
        for key, value in {**settings, **conf}.items():
            builder = builder.config(key, value)
        try:
            with worker_environment():
                active = builder.getOrCreate()
        except PySparkRuntimeError as error:
            raise VariantError(f"Spark did not start with {find_java().java}: {error}", reason="java-failed") from error
    from parquet_variant.spark.datasource.source import VariantDataSource

    active.dataSource.register(VariantDataSource)
    return active


def _settings(threads: int, memory: str) -> dict[str, str]:
    log4j = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.driver.memory": memory,
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={log4j}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Loopback only: a local session needs no other network, and looking the host up may be slow or fail.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Between JVM and workers: acknowledgements that TCP holds back cost every job 60 ms.
        "spark.python.unix.domain.socket.enabled": "true",
        # Workers that are stopped before our code has reached them print nothing either.
        "spark.python.daemon.module": "parquet_variant.spark.worker_daemon",
        "spark.sql.shuffle.partitions": str(threads),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Lets the data source have an option `paths` beside `load(path)`.
        "spark.sql.legacy.pathOptionBehavior.enabled": "true",
    }


@contextmanager
def worker_environment() -> Iterator[None]:
    """Set what the JVM and the workers read while they start, and put back afterwards what only the JVM reads."""
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "PYTHONWARNINGS")}
    os.environ["JAVA_HOME"] = str(find_java().spark_home())
    # PySpark would say this on stderr, here and in every worker; those inherit the environment from the JVM.
    quiet = f"ignore:{_PANDAS_WARNING}:FutureWarning"
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before["PYTHONWARNINGS"], quiet)))
    # Read again at every job, so they stay.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _PANDAS_WARNING, FutureWarning)
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
