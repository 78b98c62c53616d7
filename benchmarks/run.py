"""Run the benchmarks: all of them and write RESULTS.md, or those that are named and only print.

Usage: ``python -m benchmarks.run [NAME …] [--rounds N]``.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from benchmarks.harness import as_markdown, measure
from benchmarks.peers import versions

WORKS = ("parse", "shred", "extract", "to_json", "ingest", "startup")
TABLES = ("sizes", "inference", "growth", "vortex_tables", "delta_planning")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.add_argument("names", nargs="*", help=f"of {', '.join((*WORKS, *TABLES))}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    unknown = set(options.names) - {*WORKS, *TABLES}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    wanted = options.names or [*WORKS, *TABLES]
    pa.set_cpu_count(1)
    sections = []
    for name in WORKS:
        if name not in wanted:
            continue
        if name == "ingest":
            pa.set_cpu_count(2)
        module = import_module(f"benchmarks.works.{name}")
        for work in module.works():
            print(f"… {work.name}", file=sys.stderr, flush=True)
            section = as_markdown(work, *measure(work, options.rounds))
            print(section, flush=True)
            sections.append(section)
        if name == "startup":
            sections.append(module.cold_kernels())
            print(sections[-1], flush=True)
    for name in TABLES:
        if name in wanted:
            print(f"… {name}", file=sys.stderr, flush=True)
            module = import_module(f"benchmarks.works.{name}")
            sections.append(module.table(options.rounds) if name in {"growth", "vortex_tables"} else module.table())
            print(sections[-1], flush=True)
    if not options.names:
        target = Path(__file__).with_name("RESULTS.md")
        target.write_text(_head(options.rounds) + "\n".join(sections))
        print(f"written: {target}", file=sys.stderr)


def _head(rounds: int) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        "# Results\n\n"
        f"Measured on {time.strftime('%Y-%m-%d')} by `make bench` ({rounds} interleaved rounds, medians, ratios within "
        f"a round beside).\nMachine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}.\nPackages: {packages}.\n"
        "Absolute times are those of a shared machine; compare ratios.\n\n"
    )


if __name__ == "__main__":
    main()
