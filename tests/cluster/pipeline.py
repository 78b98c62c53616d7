"""The driver of the cluster's test: the whole pipeline, while executors and a worker of the cluster die.

Run as a program: ``python pipeline.py ADDRESS ARCHIVE SOURCE DIRECTORY WORKER...``; prints a JSON object at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import parquet_variant as pv

_EXECUTOR = "CoarseGrainedExecutorBackend"
_PARTS = 8


def _processes() -> dict[int, tuple[int, str]]:
    """Parent and command line of every process."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            found[int(place.name)] = (int(fields[1]), (place / "cmdline").read_text())
        except OSError:
            continue
    return found


def _below(parent: int) -> list[int]:
    children = [pid for pid, (above, _) in _processes().items() if above == parent]
    return [pid for child in children for pid in (child, *_below(child))]


def _executor(worker: int) -> int:
    processes = _processes()
    return next(pid for pid in _below(worker) if _EXECUTOR in processes[pid][1])


class Accident:
    """Something that happens once, in a step of a job: a progress that does it when a number of tasks are done."""

    def __init__(self, step: str, after: int, act: Any) -> None:
        self.step = step
        self.after = after
        self.act = act
        self.happened = False

    def __call__(self, step: str, done: int, total: int) -> None:
        if not self.happened and step == self.step and self.after <= done < total:
            self.happened = True
            self.act()


def _freeze(worker: int) -> None:
    """Let the Python workers of an executor stand still: its tasks take for ever, until others have run them too."""
    stopped = [pid for pid in _below(_executor(worker)) if "pyspark" in _processes()[pid][1]]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)

    def thaw() -> None:
        for pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue

    threading.Timer(30, thaw).start()


def _session(address: str, archive: str, events: Path) -> Any:
    from pyspark.sql import SparkSession

    from parquet_variant.spark.session import worker_environment

    events.mkdir()
    settings = {
        "spark.archives": f"{archive}#environment",
        "spark.executor.memory": "512m",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "2",
        "spark.task.maxFailures": "8",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with worker_environment():
        os.environ["PYSPARK_PYTHON"] = "./environment/bin/python"
        builder = SparkSession.builder.master(address).appName("cluster")
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(pv.spark.VariantDataSource)
    return spark


def _where_the_package_is(spark: Any) -> list[str]:
    def look(_: Any) -> str:
        import parquet_variant

        return str(parquet_variant.__file__)

    return sorted(set(spark.sparkContext.parallelize(range(8), 8).map(look).collect()))


def _speculative(events: Path) -> int:
    """Tasks that were run twice because they were slow."""
    expected = (json.loads(line) for file in events.rglob("events_*") for line in file.open())
    starts = (event["Task Info"] for event in expected if event["Event"] == "SparkListenerTaskStart")
    return sum(bool(task["Speculative"]) for task in starts)


def run(address: str, archive: str, source: Path, root: Path, workers: list[int]) -> dict[str, Any]:
    """The pipeline, step by step."""
    began, expected = time.monotonic(), {}

    def tell(name: str, value: Any) -> None:
        expected[name] = value
        print(f"{time.monotonic() - began:6.1f} s  {name}: {value}", file=sys.stderr, flush=True)

    spark = _session(address, archive, root / "events")
    tell("package", _where_the_package_is(spark))
    split = max(1, source.stat().st_size // _PARTS)
    kill = Accident("write", 1, lambda: os.kill(_executor(workers[0]), signal.SIGKILL))
    tell("ingest", pv.ingest(source, root / "files", engine=spark, split_bytes=split, progress=kill).rows)
    slow = Accident("write", 0, lambda: _freeze(workers[1]))
    tell("slow ingest", pv.ingest(source, root / "slow", engine=spark, split_bytes=split, progress=slow).rows)
    frame = pv.open(root / "files", engine=spark).scan().to_spark(reader="python")
    tell("read", frame.count())
    typed = pv.open(root / "files", engine=spark).scan({"n": ("$.n", "bigint")}).to_spark(reader="python")
    tell("sum", typed.groupBy().sum("n").collect()[0][0])
    tell("delta", pv.ingest(source, root / "table", engine=spark, format="delta", split_bytes=split).rows)
    die = Accident("write", 1, lambda: os.kill(workers[0], signal.SIGKILL))
    more = pv.ingest(
        source, root / "table", engine=spark, format="delta", mode="append", split_bytes=split, progress=die
    )
    tell("delta append", more.rows)
    frame.write.format("variant").option("format", "delta").mode("append").save(str(root / "table"))
    tell("optimize", pv.open(root / "files", engine=spark).optimize().files_added)
    tell("rewrite", len(pv.open(root / "slow", engine=spark).rewrite(root / "copy", layout="unshredded")))
    spark.stop()
    tell("accidents", [kill.happened, slow.happened, die.happened])
    tell("speculative", _speculative(root / "events"))
    return expected


if __name__ == "__main__":
    where, packed, lines, directory, *pids = sys.argv[1:]
    print(json.dumps(run(where, packed, Path(lines), Path(directory), [int(pid) for pid in pids])), flush=True)
