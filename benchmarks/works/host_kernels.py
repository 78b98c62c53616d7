"""Kernels as they are built for a CPU level, against the same kernels compiled for this machine's CPU.

A process each, since a process has one kind of machine code; both wait for the name of what to do next.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from benchmarks.data import ROOT, DataSet, data_sets
from benchmarks.harness import OURS, Work

_HOST = "compiled for the host"
_WAYS = {OURS: "built", _HOST: "jit"}
_WORKS = ("parse", "shred", "unshred", "to_json")


def works() -> Iterator[Work]:
    for data in data_sets():
        for name in _WORKS:
            yield Work(
                f"kernels: {name}, {data.name}",
                {side: partial(_ask, side, data.name, name) for side in _WAYS},
                {_HOST: 0.97},
                size=data.size,
            )


def _ask(side: str, data: str, name: str) -> None:
    worker = _worker(side)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{data} {name}\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "done\n", f"{data} {name} failed"


@cache
def _worker(side: str) -> subprocess.Popen[str]:
    """A process that ends with this one, when its standard input does."""
    environment = os.environ | {"PARQUET_VARIANT_KERNELS": _WAYS[side]}
    words = [sys.executable, "-m", "benchmarks.works.host_kernels"]
    return subprocess.Popen(words, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


# ---- in the worker


@cache
def _prepared(data: DataSet) -> dict[str, Callable[[], Any]]:
    import parquet_variant as pv

    values = pv.parse_json(data.lines)
    schema = pv.infer_shredding_schema(values)
    shredded = pv.shred_variant(values, schema)
    return {
        "parse": partial(pv.parse_json, data.lines),
        "shred": partial(pv.shred_variant, values, schema),
        "unshred": shredded.to_unshredded,
        "to_json": partial(pv.to_json, values),
    }


def _work() -> None:
    from parquet_variant.kernels.machine_code import entry_points

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one thread
    vars(entry_points)["levels_here"] = lambda: ()  # of no level: for this CPU, with all that it can
    sets = {data.name: data for data in data_sets()}
    for line in sys.stdin:
        data, name = line.split()
        _prepared(sets[data])[name]()
        print("done", flush=True)


if __name__ == "__main__":
    _work()
