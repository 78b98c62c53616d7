"""Environments of other engines, which `make judges` creates; every test here is skipped where they are missing."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.iceberg.rest_server import rest_catalog

import parquet_variant as pv

ROOT = Path(__file__).resolve().parents[2]
JUDGES = Path(os.environ.get("JUDGES", ROOT / ".judges"))


class EngineError(Exception):
    """An error that the other engine raised."""


@dataclass
class EngineProcess:
    """A Spark session in another process, which runs SQL and Python code.

    Parameters
    ----------
    process
        The process; requests and answers are JSON lines.
    version
        The version of Spark.
    """

    process: subprocess.Popen[str]
    version: str

    def _ask(self, request: dict[str, str]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EngineError("the engine's process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer["rows"]

    def sql(self, query: str) -> list[list[Any]]:
        """Run a query and return its rows."""
        rows: list[list[Any]] = self._ask({"sql": query})
        return rows

    def python(self, code: str) -> Any:
        """Run code with ``spark`` in scope and return its variable ``result``."""
        return self._ask({"python": code})


def jars(*names: str, folder: str = "jars") -> list[str]:
    """The paths of jars, or a skip if one is missing."""
    paths = []
    for name in names:
        found = sorted((JUDGES / folder).glob(f"{name}-[0-9]*.jar"))
        if not found:
            pytest.skip(f"{name} is missing in {JUDGES / folder}: run make judges (it needs Maven Central)")
        paths.append(str(found[-1]))
    return paths


def start_engine(spark_version: str, configuration: dict[str, str]) -> Iterator[EngineProcess]:
    """Start a session with the given options in a process of its own, and end it with the test."""
    python = JUDGES / f"spark{spark_version}/bin/python"
    if not python.exists():
        pytest.skip(f"{python} is missing: run make judges (it needs PySpark {spark_version} and Maven Central)")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": str(python)}
    command = [str(python), str(Path(__file__).with_name("engine_process.py")), json.dumps(configuration)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        if not first:
            pytest.fail(f"the session of PySpark {spark_version} did not start: run the command by hand: {command}")
        yield EngineProcess(process, json.loads(first)["rows"][0][0])
        assert process.stdin is not None
        process.stdin.close()


def delta_options(version: str, warehouse: Path) -> dict[str, str]:
    """The options of a session with delta-spark."""
    names = ("delta-storage", "delta-kernel-api", "delta-kernel-defaults", "delta-kernel-unitycatalog")
    return {
        "spark.jars": ",".join(jars(f"delta-spark_{version}_2.13", *names)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(warehouse),
        # The defaults of 50 tasks per read of the log and 10,000 per VACUUM would take most of the time.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }


@pytest.fixture(scope="session")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """A session with the newest delta-spark, on Spark 4.2."""
    yield from start_engine("4.2", delta_options("4.2", tmp_path_factory.mktemp("warehouse")))


@pytest.fixture(scope="session")
def delta_spark_of_4_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """A session with the newest delta-spark, on Spark 4.1."""
    yield from start_engine("4.1", delta_options("4.1", tmp_path_factory.mktemp("warehouse")))


@dataclass
class IcebergSession:
    """A session with Iceberg's Java runtime, and the catalogs that it shares with us.

    Parameters
    ----------
    engine
        The session. Its catalog ``h`` is the directory `warehouse`, ``r`` is the REST catalog.
    warehouse
        The directory of tables without a catalog.
    catalog
        The REST catalog, as `pv.open` accepts it.
    """

    engine: EngineProcess
    warehouse: Path
    catalog: dict[str, str]


@pytest.fixture(scope="session", params=["jars", "iceberg"], ids=["iceberg-1.11", "iceberg-1.12"])
def iceberg_spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IcebergSession]:
    """A session with Iceberg's Java runtime, on Spark 4.1; its parameter is the folder of the jar."""
    root = tmp_path_factory.mktemp("iceberg")
    with rest_catalog(root / "rest") as (uri, _):
        catalogs = {"h": {"type": "hadoop", "warehouse": str(root / "hadoop")}, "r": {"type": "rest", "uri": uri}}
        configuration = {
            "spark.jars": ",".join(jars("iceberg-spark-runtime-4.1_2.13", folder=request.param)),
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.warehouse.dir": str(root / "spark"),
        }
        for name, properties in catalogs.items():
            configuration[f"spark.sql.catalog.{name}"] = "org.apache.iceberg.spark.SparkCatalog"
            # A session keeps tables for 30 seconds by default, and does not see other writers meanwhile.
            properties = {**properties, "cache-enabled": "false"}
            configuration |= {f"spark.sql.catalog.{name}.{key}": text for key, text in properties.items()}
        for engine in start_engine("4.1", configuration):
            pv.create_namespace("db", catalog=catalogs["r"])
            yield IcebergSession(engine, root / "hadoop", catalogs["r"])
