"""A standalone cluster of Spark on loopback: a master and workers from the classes that PySpark ships.

Owns the processes, and the environment that the executors get as an archive. Leaves what is run to `pipeline`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from parquet_variant.kernels.machine_code.library import levels_here
from parquet_variant.spark.session import find_java

_ROOT = Path(__file__).resolve().parents[2]
_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_LONGEST_START = 120.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the address of its master, and the numbers of its workers' processes."""

    address: str
    workers: list[int]


@contextmanager
def cluster(directory: Path, workers: int = 2, memory: str = "1g") -> Iterator[Cluster]:
    """Start a master and workers of one core each; end them, and what they started, afterwards."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        log = _start("master.Master", "127.0.0.1", directory / "master", started)
        address = _wait_for(_MASTER, log)[1]
        arguments = ("--cores", "1", "--memory", memory, "--work-dir", str(directory / "work"), address)
        # Each on a host of its own: Spark runs no second copy of a slow task on the host of the first.
        logs = [
            _start("worker.Worker", f"127.0.0.{1 + n}", directory / f"worker-{n}", started, *arguments)
            for n in range(workers)
        ]
        for item in logs:
            _wait_for(re.compile(_REGISTERED), item)
        yield Cluster(address, [process.pid for process in started[1:]])
    finally:
        for process in reversed(started):
            end_group(process.pid)
            process.wait()


def _start(name: str, host: str, directory: Path, started: list[subprocess.Popen[bytes]], *arguments: str) -> Path:
    directory.mkdir(parents=True)
    log = directory / "log"
    # Nothing of this environment: executors are to find the package in their archive alone.
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": host}
    environment |= {"JAVA_HOME": str(find_java().spark_home()), "SPARK_DAEMON_MEMORY": "256m"}
    place = ("--host", host, "--port", "0", "--webui-port", "0")
    command = [str(_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{name}", *place, *arguments]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, env=environment, cwd=directory, start_new_session=True
        )
    started.append(process)
    return log


def _wait_for(pattern: re.Pattern[str], log: Path) -> re.Match[str]:
    last = time.monotonic() + _LONGEST_START
    while time.monotonic() < last:
        if (found := pattern.search(log.read_text(errors="replace"))) is not None:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{log}: {log.read_text(errors='replace')[-2000:]}")


def end_group(group: int) -> None:
    """Kill a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def build_archive(directory: Path) -> Path:
    """An environment with the package's wheel, for ``spark.archives``.

    What the wheel needs is taken from where the tests run, to spare a gigabyte of copies: all workers are on this
    machine. Elsewhere `venv-pack` packs it all.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    levels = os.environ | {"PARQUET_VARIANT_LEVELS": levels_here()[0]}
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(_ROOT)]
    subprocess.run(wheel, check=True, env=levels)
    environment = directory / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    install = [*pip, "install", "--no-deps", "--no-index", "--target", str(packages)]
    subprocess.run([*install, *map(str, directory.glob("*.whl"))], check=True)
    # Packages alone: links to sources in there (.pth) are not followed.
    (packages / "of-the-tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    archive = directory / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as packed:
        packed.add(environment, arcname=".")
    return archive
