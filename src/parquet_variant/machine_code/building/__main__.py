"""``python -m parquet_variant.machine_code.building``: build the kernels beside the sources, with progress.

Owns the command line and its words.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from parquet_variant.errors import KernelsError
from parquet_variant.machine_code.building.build import Report, build
from parquet_variant.machine_code.levels import LEVELS, levels_here


def progress() -> Report:
    """Tell how far it is: on one line at a terminal, now and then elsewhere."""
    begun = told = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        is_end = done == total
        if not is_end and now - told < (0.1 if sys.stderr.isatty() else 5) and done:
            return
        told = now
        left = f", about {(now - begun) / done * (total - done):.0f} s left" if 3 <= done < total else ""
        end = "\n" if is_end or not sys.stderr.isatty() else "\r"
        print(f"{what}: {done} of {total}{left}\x1b[K" if end == "\r" else f"{what}: {done} of {total}{left}",
              end=end, file=sys.stderr, flush=True)  # fmt: skip

    return report


def _main() -> int:
    parser = argparse.ArgumentParser(description="Compile the kernels and link them into libraries.")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, help="CPU levels; the best of this machine by default")
    parser.add_argument("--output", type=Path, help="folder for the libraries; beside the sources by default")
    parser.add_argument("--processes", type=int, help="how many work at the same time; one a core by default")
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
