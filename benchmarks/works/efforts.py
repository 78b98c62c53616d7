"""The points of the frontier of speed and size that ``effort=`` names: `python -m benchmarks.works.efforts`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, get_args

import parquet_variant as pv
from benchmarks.data import DataSet, data_sets, scratch
from parquet_variant.choices import Effort

_REPEATS = 3


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


if __name__ == "__main__":
    print(table())
