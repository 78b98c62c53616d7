"""The points of the frontier of speed and size that ``effort=`` names.

``python -m benchmarks.works.efforts`` measures an ingest in process, ``python -m benchmarks.works.efforts --spark
[DATA …]`` an ingest through Spark, compared with Spark's own write.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import parquet_variant as pv
from benchmarks.data import DataSet, data_sets, scratch
from benchmarks.peers import spark
from benchmarks.works.ingest import _spark_native
from parquet_variant.support.options import Effort

_REPEATS, _WARM = 3, 2
_SPARK = "Spark"


def table() -> str:
    """CPU time of an ingest with a given schema, one thread, and the size of the file, relative to ``balanced``."""
    lines = ["| data | effort | CPU time | size |", "|---|---|---|---|"]
    for data in data_sets():
        figures = {effort: _ingest(data, effort) for effort in get_args(Effort)}
        seconds, size = figures["balanced"]
        lines += [f"| {data.name} | {name} | {t / seconds:.2f} | {b / size:.2f} |" for name, (t, b) in figures.items()]
    return "\n".join(lines)


def _ingest(data: DataSet, effort: Effort) -> tuple[float, int]:
    dest = Path(scratch()) / "out" / "effort.parquet"
    options: Any = {"mode": "overwrite", "threads": 1, "effort": effort}
    schema = pv.ingest(data.file, dest, **options).schema
    times = []
    for _ in range(_REPEATS):
        start = time.process_time()
        result = pv.ingest(data.file, dest, schema=schema, **options)
        times.append(time.process_time() - start)
    return min(times), result.bytes_written


def spark_table(names: Sequence[str]) -> str:
    """Speed and size of an ingest through Spark on two cores, relative to Spark's own write with zstd."""
    lines = ["| data | effort | speed | size |", "|---|---|---|---|"]
    for data in data_sets():
        if names and data.name not in names:
            continue
        runs: dict[str, Callable[[], str]] = {_SPARK: partial(_spark_native, data)}
        runs |= {effort: partial(_spark_ours, data, effort) for effort in get_args(Effort)}
        times: dict[str, list[float]] = {name: [] for name in runs}
        sizes = {}
        for turn in range(_WARM + _REPEATS):
            for name, run in runs.items():
                start = time.perf_counter()
                folder = Path(run())
                if turn >= _WARM:
                    times[name].append(time.perf_counter() - start)
                sizes[name] = sum(file.stat().st_size for file in folder.glob("*.parquet"))
        seconds = {name: statistics.median(spent) for name, spent in times.items()}
        lines += [
            f"| {data.name} | {name} | {seconds[_SPARK] / seconds[name]:.2f} | {sizes[name] / sizes[_SPARK]:.2f} |"
            for name in runs
            if name != _SPARK
        ]
    return "\n".join(lines)


def _spark_ours(data: DataSet, effort: Effort) -> str:
    out = Path(scratch()) / "out" / f"spark-{effort}"
    shutil.rmtree(out, ignore_errors=True)
    pv.ingest([str(data.file)], str(out), engine=spark(), effort=effort)
    return str(out)


if __name__ == "__main__":
    print(spark_table(sys.argv[2:]) if sys.argv[1:2] == ["--spark"] else table())
