"""How a comparison is run: interleaved rounds, medians, ratios, and results that are checked before time counts.

Owns `Work` and `measure`. Leaves what is compared to the modules in `works`. Absolute times mean little on a shared
machine; the ratio of two contenders in one round, side by side, does.
"""

from __future__ import annotations

import gc
import math
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "parquet-variant"


@dataclass(frozen=True)
class Work:
    """One comparison.

    Parameters
    ----------
    name
        What is done, and on what.
    contenders
        By name, what each does; `OURS` is one of them. A contender returns something that `check` understands.
    goals
        Wanted speed as a multiple of a contender's (2.0: twice as fast); 0.8 allows 1.25 times the time.
    check
        Given a contender's name, our result and its result, raises if it did not do the same work; what it returns,
        such as the number of rows in which the contender's values differ, is a note below the table.
    size
        Bytes of input, for the throughput column.
    note
        What a reader must know to judge the numbers.
    patience
        Seconds: a peer whose first run takes longer is not run again; that run is its time.
    """

    name: str
    contenders: Mapping[str, Callable[[], Any]]
    goals: Mapping[str, float] = field(default_factory=dict)
    check: Callable[[str, Any, Any], str] | None = None
    size: int = 0
    note: str = ""
    patience: float = math.inf


@dataclass(frozen=True)
class Row:
    """What came out for one contender: seconds, and our speed as a multiple of its speed."""

    contender: str
    median: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    goal: float | None
    size: int

    @property
    def verdict(self) -> str:
        return "" if self.goal is None else "met" if self.ratio >= self.goal else "missed"


def measure(work: Work, rounds: int = 5) -> tuple[list[Row], list[str]]:
    """Run every contender once to warm up and check, then `rounds` times in turn; times, and what the checks tell."""
    results, first = {}, {}
    for name, run in work.contenders.items():
        begun = time.perf_counter()
        results[name] = run()
        first[name] = time.perf_counter() - begun
    notes = []
    if work.check:
        notes = [work.check(name, results[OURS], result) for name, result in results.items() if name != OURS]
    del results
    slow = {name for name, spent in first.items() if spent > work.patience and name != OURS}
    times: dict[str, list[float]] = {name: [first[name]] * rounds if name in slow else [] for name in work.contenders}
    for turn in range(rounds):
        names = [name for name in work.contenders if name not in slow]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            gc.collect()
            begun = time.perf_counter()
            work.contenders[name]()
            times[name].append(time.perf_counter() - begun)
    rows = []
    for name, spent in times.items():
        ratios = [theirs / ours for theirs, ours in zip(spent, times[OURS], strict=True)]
        rows.append(
            Row(
                name,
                statistics.median(spent),
                min(spent),
                max(spent),
                statistics.median(spent) / statistics.median(times[OURS]),
                min(ratios),
                max(ratios),
                work.goals.get(name),
                work.size,
            )
        )
    return rows, notes


def as_markdown(work: Work, rows: list[Row], notes: list[str]) -> str:
    """Return a table in Markdown, with the notes below it."""
    lines = [
        f"### {work.name}",
        "",
        "| contender | median s (min–max) | MB/s | our speed ÷ its speed (min–max) | goal | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate = f"{row.size / row.median / 1e6:.0f}" if row.size else ""
        ratio = "" if row.contender == OURS else f"{row.ratio:.2f} ({row.ratio_low:.2f}–{row.ratio_high:.2f})"
        goal = "" if row.goal is None else f"≥ {row.goal:g}"
        lines.append(
            f"| {row.contender} | {row.median:.3f} ({row.low:.3f}–{row.high:.3f}) | {rate} | {ratio} | {goal} "
            f"| {row.verdict} |"
        )
    footnote = " ".join(filter(None, [work.note, *notes]))
    return "\n".join([*lines, *(["", footnote] if footnote else []), ""])


def circumstances(command: str, rounds: int) -> str:
    """Return when, where and how something was measured, in a few words."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = f"{os.cpu_count()} cores ({models[0] if models else platform.machine()})"
    return f"{time.strftime('%Y-%m-%d')}, {machine}, `{command}`, medians of {rounds} rounds."
