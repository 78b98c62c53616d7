"""How time and memory grow: with the data, with the number of paths, with depth. Plots lie in `benchmarks/plots`.

Each point is the ingest of one generated file in a process of its own, two threads, schema inferred: median of the
rounds, whose points are interleaved. Time is CPU time, which other work on the machine disturbs least. The kernels are
compiled and one small file is taken in before the clock starts. The data that grow are JSONBench's events in links to
one file of 100 MB, up to `GROWTH_GB` gigabytes (1; 10 takes some five minutes).
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import ROOT, scratch
from benchmarks.works.jsonbench import generated

_FIELDS = 10
_BYTES = 48_000_000
_EVENTS = 209_000  # 100 MB
_RUN = r"""
import json, re, resource, sys
import parquet_variant as pv
small, source, dest = sys.argv[1:]
pv.ingest([small], dest + "-small", threads=2)
before = resource.getrusage(resource.RUSAGE_SELF)
rows = pv.ingest(source, dest, threads=2).rows
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
# Not ru_maxrss: that begins with the peak of the process which started this one.
peak = int(re.search(r"VmHWM:\s*(\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([rows, cpu, peak]))
"""


class Point(NamedTuple):
    """One ingest: where it stands in the plot, and its input."""

    x: float
    source: Path  # a file, or a directory of files
    rows: int
    size: int  # bytes


def table(rounds: int) -> str:
    """The results as Markdown, and the plots."""
    parts = [
        "### growth: ingest in process, schema inferred",
        "",
        "| what grows | x | input MB | CPU s | CPU s per 100 MB | against the first | peak MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, make, logarithmic in (
        ("data", _data, True),
        ("paths", _paths, True),
        ("depth", _depth, False),
    ):
        points = list(make())
        measured = _measured(points, rounds)
        rates = [1e8 * cpu / point.size for (cpu, _), point in zip(measured, points, strict=True)]
        for point, (cpu, peak), rate in zip(points, measured, rates, strict=True):
            parts.append(
                f"| {title} | {point.x:,} | {point.size / 1e6:.0f} | {cpu:.2f} | {rate:.2f} | {rate / rates[0]:.2f} "
                f"| {peak:.0f} |"
            )
        _plot(title, [point.x for point in points], rates, [peak for _, peak in measured], logarithmic)
        for point in points:
            subprocess.run(["rm", "-rf", point.source], check=True)
    pictures = " ".join(f"![growth with {name}](plots/growth-{name}.png)" for name in ("data", "paths", "depth"))
    return "\n".join([*parts, "", pictures, ""])


def _measured(points: list[Point], rounds: int) -> list[tuple[float, float]]:
    found: list[list[tuple[float, float]]] = [[] for _ in points]
    small = scratch() / "growth-small.ndjson"
    small.write_text('{"a": 1}\n')
    for _ in range(rounds):
        for point, runs in zip(points, found, strict=True):
            dest = scratch() / "growth-out"
            command = [sys.executable, "-c", _RUN, str(small), str(point.source), str(dest)]
            run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=dict(os.environ))
            subprocess.run(["rm", "-rf", dest, f"{dest}-small"], check=True)
            count, cpu, peak = json.loads(run.stdout)
            assert count == point.rows, (count, point.rows)
            runs.append((cpu, peak))
    return [(statistics.median(cpu for cpu, _ in runs), statistics.median(peak for _, peak in runs)) for runs in found]


def _data() -> Iterable[Point]:
    """JSONBench's events, in files that are one file."""
    events = generated(_EVENTS)
    for gigabytes in (0.1, 0.3, 1, 3, 10):
        if gigabytes > float(os.environ.get("GROWTH_GB", "1")):
            return
        folder = scratch() / f"growth-data-{gigabytes}"
        folder.mkdir()
        files = round(gigabytes * 10)
        for number in range(files):
            (folder / f"{number}.ndjson").hardlink_to(events)
        yield Point(gigabytes, folder, files * _EVENTS, files * events.stat().st_size)


def _paths() -> Iterable[Point]:
    """Rows of ten fields out of 10 to 10,000, the first of them in most of the rows, as logs of many services have."""
    for paths in (10, 100, 1_000, 10_000):
        dice = random.Random(paths)
        yield _file("paths", paths, lambda paths=paths, dice=dice: {  # type: ignore[misc]
            f"field{int(paths * dice.random() ** 3):05}": dice.randrange(1_000_000) if i % 2 else f"text{i}"
            for i in range(_FIELDS)
        })  # fmt: skip


def _depth() -> Iterable[Point]:
    """Objects in objects, 1 to 500 deep."""
    for depth in (1, 10, 100, 500):
        dice = random.Random(depth)

        def nested(depth: int = depth, dice: random.Random = dice) -> dict[str, object]:
            value: object = dice.randrange(1_000_000)
            for level in range(depth):
                value = {"deeper": value, "level": level}
            assert isinstance(value, dict)
            return value

        yield _file("depth", depth, nested)


def _file(what: str, x: int, row: Callable[[], dict[str, object]]) -> Point:
    file = scratch() / f"growth-{what}-{x}.ndjson"
    rows = written = 0
    with file.open("w") as out:
        while written < _BYTES:
            written += out.write(json.dumps(row()) + "\n")
            rows += 1
    return Point(x, file, rows, written)


def _plot(title: str, x: list[float], rates: list[float], peaks: list[float], logarithmic: bool) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, values, label in ((left, rates, "CPU s per 100 MB"), (right, peaks, "peak memory, MB")):
        axes.plot(x, values, marker="o")
        axes.set_ylim(0, max(values) * 1.2)
        axes.set_xlabel({"data": "GB", "paths": "paths", "depth": "depth"}[title])
        axes.set_ylabel(label)
        if logarithmic:
            axes.set_xscale("log")
    folder = ROOT / "benchmarks/plots"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / f"growth-{title}.png", dpi=90)
    pyplot.close(figure)
