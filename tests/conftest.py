"""Fixtures shared by every layer's tests: where the test data is, one Spark session per process, Hypothesis profiles.

Owns the rule that absent data or an absent Java skips a test with the reason, never fails it, and that the Spark tests
of one module run in one xdist worker. Leaves helpers of a single layer to that layer's own directory.
"""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from spark.class_archive import JVM_FLAGS

ROOT = Path(__file__).resolve().parent.parent

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
# Bounded, for every run of the suite; `make fuzz` asks for the long one.
settings.register_profile("ci", max_examples=10, derandomize=True, **_COMMON)
settings.register_profile("fuzz", max_examples=int(os.environ.get("FUZZ_EXAMPLES", "1000")), **_COMMON)
# For kernels in checked mode, which are a hundred times slower.
settings.register_profile("small", settings.get_profile("ci"), max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Tests start many JVMs: with the archive of Spark's classes that `make test` writes, they need half of the CPU time to
# start.
_CLASSES = ROOT / ".venv" / ".spark-classes.jsa"
_SHARED = f" -XX:SharedArchiveFile={_CLASSES} -Xlog:disable" if _CLASSES.is_file() and _CLASSES.stat().st_size else ""
os.environ.setdefault("SPARK_LAUNCHER_OPTS", JVM_FLAGS)
os.environ.setdefault("SPARK_SUBMIT_OPTS", JVM_FLAGS + _SHARED)


_MEMORY, _NEEDED_BYTES = Path("/dev/shm"), 8 << 30


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of the hostile suites and the directory of temporary files, once for all workers.

    Temporary files are in memory, where a sync takes no time: tests wait for thousands of them. `TMPDIR` names another
    directory, whose files are kept.
    """
    os.environ["FUZZ_SEED"] = os.environ.get("FUZZ_SEED") or str(secrets.randbits(32))
    if "TMPDIR" not in os.environ and _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK):
        status = os.statvfs(_MEMORY)
        if status.f_bavail * status.f_frsize >= _NEEDED_BYTES and not status.f_flag & getattr(os, "ST_NOEXEC", 0):
            directory = tempfile.mkdtemp(prefix="parquet-variant-tests-", dir=_MEMORY)
            os.environ["TMPDIR"], tempfile.tempdir = directory, None
            config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how the random cases of this run are seen again."""
    terminalreporter.write_line(f"cases of tests/fuzz: FUZZ_SEED={os.environ['FUZZ_SEED']}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every Spark test the marker `spark`, and one xdist group per module: each worker starts at most one JVM."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group(f"spark {item.path.name}"))


def pytest_collection_finish() -> None:
    """Exempt what was imported and collected from garbage collections, each of which takes a third of a second else."""
    gc.collect()
    gc.freeze()


def _data_directory(variable: str, default: str, *parts: str) -> Path:
    """The directory that an environment variable (or its default next to the repository) names; skips if absent."""
    directory = Path(os.environ.get(variable) or ROOT / default).resolve().joinpath(*parts)
    if not directory.is_dir():
        pytest.skip(f"no test data in {directory}: set {variable} to where it is")
    return directory


@pytest.fixture(scope="session")
def variant_test_data() -> Path:
    """The directory that holds `data/`, `delta-golden/`, `json-test-suite/`, `spec/`."""
    return _data_directory("VARIANT_TEST_DATA", "../shared")


@pytest.fixture(scope="session")
def parquet_test_data() -> Path:
    """Apache's parquet-testing corpus: `shredded_variant/` and `variant/`."""
    return _data_directory("PARQUET_TEST_DATA", "../shared/parquet-testing")


@pytest.fixture(scope="session")
def json_test_suite() -> Path:
    """JSONTestSuite: `y_*.json` must be read, `n_*.json` must be refused."""
    return _data_directory("VARIANT_TEST_DATA", "../shared", "json-test-suite")


@pytest.fixture(scope="session")
def delta_golden() -> Path:
    """Delta tables with shredded variants that other engines wrote."""
    return _data_directory("VARIANT_TEST_DATA", "../shared", "delta-golden")


@pytest.fixture(scope="session")
def usgs_sample() -> Path:
    """The earthquakes that ship with the repository: always there."""
    return ROOT / "examples" / "usgs_earthquakes.ndjson"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One small local Spark session for all tests of this process."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    session_module = pytest.importorskip("parquet_variant.spark.session", reason="no session helper")
    scratch = tmp_path_factory.mktemp("spark")
    session = session_module.local_session(
        "parquet-variant tests",
        cores=1,
        memory="1g",
        **{
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.local.dir": str(scratch / "local"),
        },
    )
    yield session
    session.stop()
