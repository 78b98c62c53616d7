"""Run the benchmarks: all of them, or those that are named.

Usage: ``python -m benchmarks.run [NAME …] [--rounds N] [--write]``. Results are printed; a run of all, or one with
``--write``, also puts each into RESULTS.md as it comes, in the place of the result of the same name. If a ratio in
docs/performance.md is more than 15 % better than measured, the run ends with an error.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from benchmarks.documented import PAGE, overstated
from benchmarks.harness import as_markdown, circumstances, measure
from benchmarks.peers import versions

WORKS = (
    "parse",
    "shred",
    "extract",
    "to_json",
    "arrow_rs",
    "write_pages",
    "ingest",
    "startup",
    "host_kernels",
    "jsonbench",
    "tiles",
)
_RESULTS = Path(__file__).with_name("RESULTS.md")
TABLES = (
    "sizes",
    "inference",
    "growth",
    "vortex_tables",
    "delta_planning",
    "delta_changes",
    "iceberg_tables",
    "duckdb_reads",
    "representations",
)
# Sections that docs/performance.md shows, too: their title, plot and caption.
_SHOWN = {
    "representations": (
        "## Representations of JSON\n\n![Time of five queries, load time and size](images/representations.svg)\n\n"
        "JSONBench's five queries over the same events in four representations. "
        "`make bench ONLY='representations --write'` measures them and writes this section.\n"
    )
}
_DATED = {"growth", "vortex_tables", "duckdb_reads"}  # Tables of rounds that do not say when they were measured.
_TABLES_WITH_ROUNDS = {*_DATED, "representations"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.add_argument("names", nargs="*", help=f"of {', '.join((*WORKS, *TABLES))}; all by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put the results into RESULTS.md")
    options = parser.parse_args()
    unknown = set(options.names) - {*WORKS, *TABLES}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    wanted = options.names or [*WORKS, *TABLES]
    pa.set_cpu_count(1)
    sections = []
    for section in _sections(wanted, options.rounds):
        print(section, flush=True)
        sections.append(section)
        if options.write or not options.names:
            _put(section)
    if messages := overstated(PAGE.read_text(), sections):
        sys.exit("\n".join(messages))


def _sections(wanted: list[str], rounds: int) -> Iterator[str]:
    for name in WORKS:
        if name not in wanted:
            continue
        if name in ("ingest", "jsonbench", "tiles"):
            pa.set_cpu_count(2)
        module = import_module(f"benchmarks.works.{name}")
        for work in module.works():
            print(f"… {work.name}", file=sys.stderr, flush=True)
            yield f"{as_markdown(work, *measure(work, rounds))}\n{circumstances(f'make bench ONLY={name}', rounds)}\n"
        if name == "startup":
            yield module.kernels()
    for name in TABLES:
        if name in wanted:
            print(f"… {name}", file=sys.stderr, flush=True)
            module = import_module(f"benchmarks.works.{name}")
            section = module.table(rounds) if name in _TABLES_WITH_ROUNDS else module.table()
            yield f"{section}\n{circumstances(f'make bench ONLY={name}', rounds)}\n" if name in _DATED else section


def _put(section: str) -> None:
    """Rewrite RESULTS.md with the section in the place of the one with its heading, or at the end."""
    old = _RESULTS.read_text().split("### ")[1:] if _RESULTS.exists() else []
    sections = {text.partition("\n")[0]: text for text in (*old, section.removeprefix("### "))}
    _RESULTS.write_text(_head() + "".join(f"### {text.rstrip()}\n\n" for text in sections.values()))
    name = section.removeprefix("### ").partition(":")[0]
    if name in _SHOWN:
        _show(name, section)


def _show(name: str, section: str) -> None:
    """Write a section into docs/performance.md, in the place of its last version or at the end."""
    begin, end = f"<!-- {name}: written by make bench -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = PAGE.read_text().partition(begin)
    after = rest.partition(end)[2]
    table = section.partition("\n\n")[2].rstrip()
    PAGE.write_text(f"{before.rstrip()}\n\n{begin}{_SHOWN[name]}\n{table}\n{end}{after}")


def _head() -> str:
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    return (
        "# Results\n\n"
        f"Measured until {time.strftime('%Y-%m-%d')} by `make bench`, which is `python -m benchmarks.run`: "
        "medians of interleaved rounds, with the ratios of single rounds in parentheses.\n"
        f"Machine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}.\nPackages: {packages}.\n"
        "Absolute times are those of a shared machine; compare ratios.\n\n"
    )


if __name__ == "__main__":
    main()
