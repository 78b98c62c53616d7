"""`local_session`: a local Spark session with a suitable Java, workers on this interpreter, and little logging.

`java` finds the Java runtime. Everything in this package works with sessions that were created elsewhere, too.
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
    """Start a Spark session on this machine, or return the active session of this process.

    Parameters
    ----------
    app
        Name of the application.
    cores
        Number of threads that run tasks (default: one per CPU).
    memory
        Heap size of the JVM, such as ``"2g"``; the Python workers use additional memory.
    **conf
        Further Spark settings, which override the defaults of this function (Java options are appended):
        ``local_session(**{"spark.sql.session.timeZone": "UTC"})``.

    Returns
    -------
    SparkSession
        A session in which the ``variant`` data source is registered.

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
        # Loopback only, because resolving the name of the host may be slow or fail.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Unix sockets between JVM and workers, because TCP's delayed acknowledgements cost every job 60 ms.
        "spark.python.unix.domain.socket.enabled": "true",
        # Workers that are stopped before code of this package has reached them must be quiet, too.
        "spark.python.daemon.module": "parquet_variant.spark.worker_daemon",
        "spark.sql.shuffle.partitions": str(threads),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Allows the option `paths` of the data source together with `load(path)`.
        "spark.sql.legacy.pathOptionBehavior.enabled": "true",
    }


@contextmanager
def worker_environment() -> Iterator[None]:
    """Set the environment variables of the JVM and the workers, and restore those that only a starting JVM reads."""
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "PYTHONWARNINGS")}
    os.environ["JAVA_HOME"] = str(find_java().spark_home())
    # PySpark prints this warning in the driver and in every worker. Workers inherit the environment of the JVM.
    ignored = f"ignore:{_PANDAS_WARNING}:FutureWarning"
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before["PYTHONWARNINGS"], ignored)))
    # These are read by every job and therefore not restored.
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
