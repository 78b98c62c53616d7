"""An ingest of this commit and of an earlier one: CPU, wall time, peak memory and file sizes, as ratios.

Usage: ``python -m benchmarks.earlier [COMMIT] [--rounds N]``, by default the last commit before 2026-11-22. Each
measurement is a process of its own, in turns; both have compiled their kernels before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.data import data_sets

_BEFORE = "2026-11-22T00:00"
_FIELDS = ("cpu", "wall", "peak", "bytes")
_ONE = """
import json, os, resource, shutil, sys, time
import parquet_variant as pv
source, dest, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
found = []
for _ in range(times + 1):
    shutil.rmtree(dest, ignore_errors=True)
    cpu, wall = time.process_time(), time.perf_counter()
    (getattr(pv, "ingest", None) or pv.parquet.ingest)(source, dest, threads=2)
    found.append((time.process_time() - cpu, time.perf_counter() - wall))
size = sum(os.path.getsize(os.path.join(dest, name)) for name in os.listdir(dest) if name.endswith(".parquet"))
shutil.rmtree(dest)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([*map(min, zip(*found[1:])), peak, size]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.earlier")
    parser.add_argument("commit", nargs="?", help=f"by default the last before {_BEFORE}")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    here = Path(__file__).parents[1]
    commit = options.commit or _git(here, "log", "-1", f"--before={_BEFORE}", "--format=%H")
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder, "earlier")
        _git(here, "worktree", "add", "--detach", str(earlier), commit)
        try:
            print(f"| data | CPU ÷ {commit[:7]} (goal 0.65) | wall | peak memory (goal 0.7) | bytes (goal 1.01) |")
            print("|---|---|---|---|---|", flush=True)
            for data in data_sets():
                _compare(data.name, str(data.file), [earlier / "src", here / "src"], folder, options.rounds)
        finally:
            _git(here, "worktree", "remove", "--force", str(earlier))


def _git(here: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=here, check=True, capture_output=True, text=True).stdout.strip()


def _compare(name: str, source: str, trees: list[Path], folder: str, rounds: int) -> None:
    for tree in trees:  # compiles kernels
        _measured(tree, source, folder, 0)
    found = [[_measured(tree, source, folder, 3) for tree in trees] for _ in range(rounds)]
    ratios = [median(now[field] / before[field] for before, now in found) for field in range(len(_FIELDS))]
    now = [median(pair[1][field] for pair in found) for field in range(len(_FIELDS))]
    per_100_mb = now[0] / Path(source).stat().st_size * 1e8
    print(
        f"| {name} | {ratios[0]:.2f} ({per_100_mb:.2f} s per 100 MB) | {ratios[1]:.2f} "
        f"| {ratios[2]:.2f} ({now[2] / 1024:.0f} MiB) | {ratios[3]:.3f} ({now[3]:,.0f}) |",
        flush=True,
    )


def _measured(tree: Path, source: str, folder: str, times: int) -> list[float]:
    command = [sys.executable, "-c", _ONE, source, f"{folder}/out", str(max(times, 1))]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, cwd=folder)
    found: list[float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
