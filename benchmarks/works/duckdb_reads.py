"""DuckDB's reads of our files, compared with a file that DuckDB wrote from the same values.

Owns the ten most frequent scalar paths of each data set, and the files. ``python -m benchmarks.run duckdb_reads``
prints the sum over the paths of the minimum of the rounds, and the sizes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import parquet_variant as pv
from benchmarks.data import ROOT, data_sets, scratch
from benchmarks.peers import duckdb
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.types.path import WILDCARD

_THREADS, _PATHS, _JSONBENCH_ROWS = 2, 10, 100_000
_OPTIONS: dict[str, dict[str, Any]] = {
    "`completion=0`": {"policy": AutoPolicy(completion=0)},
    "default": {},
    '`readers="duckdb"`': {"readers": "duckdb"},
}
_OWN = "DuckDB's own file"
_PATIENCE = 0.1  # Seconds; slower queries are measured once.
_NOTE = (
    "CPU ms of `SELECT count(DISTINCT TRY_CAST(path AS VARCHAR))` with two threads, summed over the ten most frequent "
    "scalar paths; in parentheses the largest ratio of one path to DuckDB's own file, which has the same values."
)


def table(rounds: int = 3) -> str:
    """Return the section with all data sets."""
    lines = [
        "### DuckDB reads our files",
        "",
        _NOTE,
        "",
        f"| data | {' | '.join(_OPTIONS)} | {_OWN} |",
        "|---" * (len(_OPTIONS) + 2) + "|",
    ]
    for name, source in _sources().items():
        lines.append(_row(name, source, rounds))
    return "\n".join([*lines, ""])


def _sources() -> dict[str, Path]:
    events = scratch() / "jsonbench-small.ndjson"
    maker = Path(os.environ.get("VARIANT_TEST_DATA") or ROOT / "../shared").resolve() / "tools" / "jsonbench.py"
    sources = {data.name: data.file for data in data_sets()}
    if maker.exists():
        subprocess.run([sys.executable, str(maker), str(_JSONBENCH_ROWS), str(events)], check=True)
        sources[f"JSONBench's generator, {_JSONBENCH_ROWS:,} rows"] = events
    return sources


def _row(name: str, source: Path, rounds: int) -> str:
    paths = frequent_paths(source)
    files = {label: _ours(source, number, options) for number, (label, options) in enumerate(_OPTIONS.items())}
    own = scratch() / "duckdb-own.parquet"
    ours = files['`readers="duckdb"`']
    duckdb(_THREADS).execute(f"COPY (SELECT v FROM '{ours}') TO '{own}' (FORMAT parquet, COMPRESSION zstd)")
    files[_OWN] = str(own)
    times = {label: [float("inf")] * len(paths) for label in files}
    for _ in range(rounds):
        for label, file in files.items():
            for number, path in enumerate(paths):
                before = times[label][number]
                if before == float("inf") or before < _PATIENCE:
                    times[label][number] = min(before, _cpu_seconds(partial(_count, file, path)))
    cells = []
    for label, file in files.items():
        worst = max(mine / theirs for mine, theirs in zip(times[label], times[_OWN], strict=True))
        ratio = "" if label == _OWN else f" ({worst:.1f})"
        cells.append(f"{_size(file) / 1e6:.2f} MB, {1000 * sum(times[label]):,.0f} ms{ratio}")
    return f"| {name} | {' | '.join(cells)} |"


def frequent_paths(source: Path) -> list[tuple[str, ...]]:
    """Return the most frequent paths outside of arrays whose values are mostly scalars."""
    profile = pv.profile(str(source))
    columns = [(path, best_column(path)) for path in profile if WILDCARD not in path.path.segments]
    scalars = [path for path, column in columns if column is not None and column.arrow is not None]
    scalars.sort(key=lambda path: (-path.rows, str(path.path)))
    return [tuple(map(str, path.path.segments)) for path in scalars[:_PATHS]]


def _ours(source: Path, number: int, options: dict[str, Any]) -> str:
    folder = scratch() / f"duckdb-reads-{number}"
    pv.ingest(str(source), str(folder), mode="overwrite", threads=_THREADS, **options)
    return f"{folder}/*.parquet"


def _count(file: str, path: tuple[str, ...]) -> None:
    place = "v" + "".join("['" + key.replace("'", "''") + "']" for key in path)
    duckdb(_THREADS).execute(f"SELECT count(DISTINCT TRY_CAST({place} AS VARCHAR)) FROM '{file}'").fetchall()


def _cpu_seconds(run: Any) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _size(file: str) -> int:
    paths = Path(file).parent.glob("*.parquet") if "*" in file else [Path(file)]
    return sum(path.stat().st_size for path in paths)
