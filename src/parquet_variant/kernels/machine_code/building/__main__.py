"""``python -m parquet_variant.kernels.machine_code.building``: build the kernels into the source tree, with progress.

Owns the command line and its messages.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.building.build import Report, build
from parquet_variant.kernels.machine_code.library import LEVELS, levels_here


def progress() -> Report:
    """Return a report that prints a line at the end of a step, and every five seconds before."""
    begun = printed = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if done == total or now - printed >= 5:
            printed = now
            remaining = f", about {(now - begun) / done * (total - done):.0f} s left" if 3 <= done < total else ""
            print(f"{what}: {done} of {total}{remaining}", file=sys.stderr, flush=True)

    return report


def _main() -> int:
    parser = argparse.ArgumentParser(description="Compile the kernels and link them into libraries.")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, help="CPU levels (default: the best of this machine)")
    parser.add_argument("--output", type=Path, help="folder for the libraries (default: in the package)")
    parser.add_argument("--processes", type=int, help="number of processes (default: one per core)")
    options = parser.parse_args()
    levels = options.levels or levels_here()[:1]
    if not levels:
        print("no libraries of kernels are built on this platform: Numba compiles them on first use", file=sys.stderr)
        return 2
    try:
        seconds = build(levels, options.output, report=progress(), processes=options.processes)
    except KernelsError as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 2
    print(f"kernels built for {', '.join(levels)} in {seconds:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
