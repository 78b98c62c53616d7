"""JSONBench's five queries over four representations of JSON in the engines that pip installs.

Each cell is a process of its own (`benchmarks.representation_worker`), so that engines share neither memory nor caches;
cells take turns in every round. `REPRESENTATION_ROWS` (1,000,000) says how many events there are. The bytes
are those that a query reads by system calls when the engine has nothing of the data in memory: the least of two runs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.data import ROOT, scratch
from benchmarks.harness import circumstances
from benchmarks.representation_worker import CELLS, REPRESENTATIONS, SHREDDED
from benchmarks.works.jsonbench import QUERIES, generated

_OURS = f"parquet-variant: {SHREDDED}"
# Seconds: a command that takes longer is not run again, so that all cells take about half an hour.
_PATIENCE = 20.0
_WARM_UP_ROWS = 1_000
_PLOT = ROOT / "docs/images/representations.svg"


class _Worker:
    """The process of a cell."""

    def __init__(self, cell: str, folder: Path) -> None:
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "benchmarks.representation_worker",
            cell,
            str(folder),
        ]
        environment = {**os.environ, "POLARS_MAX_THREADS": "2", "POLARS_FORCE_ASYNC": "1", "TZ": "UTC"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )

    def run(self, command: str) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args}: ended while it ran {command}")
        return json.loads(answer)  # type: ignore[no-any-return]

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


@dataclass
class Measured:
    """Measurements of a cell, by command: a query, or ``load``."""

    wall: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    read: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def add(self, command: str, found: dict[str, Any]) -> None:
        self.wall[command].append(found["wall"])
        self.cpu[command].append(found["cpu"])

    def is_slow(self, command: str) -> bool:
        """Return whether the first run of the command took longer than other cells shall wait."""
        return bool(self.wall[command]) and self.wall[command][0] > _PATIENCE

    def seconds(self, command: str) -> str:
        """Return the median wall time, and the CPU time."""
        once = "\\*" if self.is_slow(command) else ""
        return f"{statistics.median(self.wall[command]):.3f} / {statistics.median(self.cpu[command]):.3f}{once}"

    def sum(self, what: str) -> float:
        """Return the sum over the queries of the medians of ``wall`` or ``cpu``."""
        return sum(statistics.median(getattr(self, what)[query]) for query in QUERIES)


def table(rounds: int) -> str:
    """Return the section with all cells; raises if answers differ."""
    rows = int(os.environ.get("REPRESENTATION_ROWS", "1000000"))
    events = generated(rows)
    measured = _measure(events, rounds)
    plot(measured)
    return "\n".join([f"### representations: JSONBench, {rows:,} events", "", *_lines(measured, events, rounds), ""])


def _measure(events: Path, rounds: int) -> dict[str, Measured]:
    measured = {cell: Measured() for cell in CELLS}
    with tempfile.TemporaryDirectory(dir=scratch()) as folder:
        workers = {cell: _Worker(cell, Path(folder) / str(n)) for n, cell in enumerate(CELLS)}
        try:
            for worker in workers.values():
                worker.run(f"load {generated(_WARM_UP_ROWS)}")
            for turn in range(rounds):
                for cell, worker in workers.items():
                    if not measured[cell].is_slow("load"):
                        found = worker.run(f"load {events}")
                        measured[cell].add("load", found)
                        measured[cell].size = found["size"]
                        print(f"… load {turn + 1}, {cell}: {found['wall']:.2f} s", file=sys.stderr, flush=True)
            _warm_up(workers, measured)
            for turn in range(rounds):
                for query in QUERIES:
                    _round(query, workers, measured)
                print(f"… round {turn + 1}", file=sys.stderr, flush=True)
        finally:
            for worker in workers.values():
                worker.end()
    return measured


def _warm_up(workers: dict[str, _Worker], measured: dict[str, Measured]) -> None:
    """Compare the answers of all cells, and count the bytes that queries read."""
    for query in QUERIES:
        expected = None
        for cell in (_OURS, *(cell for cell in workers if cell != _OURS)):
            reads = []
            for _ in range(2):
                workers[cell].run("fresh")
                found = workers[cell].run(query)
                reads.append(found["read"])
            if found["wall"] > _PATIENCE:
                measured[cell].add(query, found)
            answer = sorted(map(str, found["rows"]))
            expected = expected or answer
            assert answer and answer == expected, f"{query}, {cell}: answers {answer[:3]}, expected {expected[:3]}"
            measured[cell].read[query] = min(reads)
        print(f"… {query}: equal in {len(workers)} cells", file=sys.stderr, flush=True)


def _round(query: str, workers: dict[str, _Worker], measured: dict[str, Measured]) -> None:
    for cell, worker in workers.items():
        if not measured[cell].is_slow(query):
            measured[cell].add(query, worker.run(query))


def _lines(measured: dict[str, Measured], events: Path, rounds: int) -> Iterable[str]:
    yield (
        f"{events.stat().st_size / 1e6:.0f} MB of JSON, two threads, wall / CPU seconds; "
        f"{circumstances('make bench ONLY=representations', rounds)} All answers are equal. "
        f"\\* took more than {_PATIENCE:.0f} s and was run once."
    )
    yield ""
    yield f"| representation | engine | load | size, MB | {' | '.join(QUERIES)} | five queries | MB read |"
    yield "|---" * (len(QUERIES) + 6) + "|"
    for representation in REPRESENTATIONS:
        for cell, (engine, stored) in CELLS.items():
            if stored != representation:
                continue
            found = measured[cell]
            cells = [representation, engine, found.seconds("load"), f"{found.size / 1e6:.1f}"]
            cells += [found.seconds(query) for query in QUERIES]
            cells += [f"{found.sum('wall'):.3f} / {found.sum('cpu'):.3f}", f"{sum(found.read.values()) / 1e6:.1f}"]
            yield f"| {' | '.join(cells)} |"


def plot(measured: dict[str, Measured]) -> None:
    """Write the plot: time of the queries, load time and size of each cell."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "representations", "font.size": 8})
    from matplotlib import pyplot

    order = [cell for kind in reversed(REPRESENTATIONS) for cell, (_, stored) in CELLS.items() if stored == kind]
    colors = [f"C{REPRESENTATIONS.index(CELLS[cell][1])}" for cell in order]
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, title, values in (
        (axes[0], "five queries, wall s", [measured[cell].sum("wall") for cell in order]),
        (axes[1], "load, wall s", [statistics.median(measured[cell].wall["load"]) for cell in order]),
        (axes[2], "size, MB", [measured[cell].size / 1e6 for cell in order]),
    ):
        bars = axis.barh(order, values, color=colors)
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.set_xscale("log" if axis is axes[0] else "linear")
        axis.set_title(title)
        axis.margins(x=0.15)
    figure.savefig(_PLOT, metadata={"Date": None})
    pyplot.close(figure)
