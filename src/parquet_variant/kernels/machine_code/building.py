"""Compile all kernels for some CPU levels on all cores, and link them into one library per level.

Owns the command ``python -m parquet_variant.kernels.machine_code.building``, which builds the kernels into the source
tree, and `warmup`; the plan (the kernels, the processes, and the table that is written with the libraries), the
processes that compile, and linking with the C compiler of the machine or the one of the package ``ziglang``. A library
depends on no other library: the C functions that it calls are already in the process, whichever libc it has. Leaves
compiling one kernel to `objects`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.entry_points import machine_code
from parquet_variant.kernels.machine_code.functions import Kernel, find_kernel, find_kernels
from parquet_variant.kernels.machine_code.library import (
    FOLDER,
    LEVELS,
    PACKAGE,
    TABLE,
    architecture,
    file_name,
    levels_here,
    needs_ziglang,
    source_hash,
    sources,
)

# Called with the name of a step, the number of finished kernels, and the number of all kernels.
Report = Callable[[str, int, int], None]


def _no_report(what: str, done: int, total: int) -> None:
    """Report nothing."""


def build_all_objects(
    kernels: list[Kernel], levels: Sequence[str], folder: Path, *, report: Report, processes: int | None = None
) -> None:
    """Compile kernels into objects in a folder.

    Each core has its own process, because Numba and LLVM hold global locks. A process compiles all kernels of a module,
    because functions that were compiled for one kernel are reused for the next.
    """
    modules: dict[str, list[str]] = {}
    for kernel in kernels:
        modules.setdefault(kernel.py_func.__module__, []).append(kernel.py_func.__name__)
    count = min(processes or len(os.sched_getaffinity(0)), len(modules))
    shares: list[list[tuple[str, str]]] = [[] for _ in range(count)]
    for module, names in sorted(modules.items(), key=lambda item: -len(item[1])):
        min(shares, key=len).extend((module, name) for name in names)
    finished: list[str] = []

    def work(share: list[tuple[str, str]]) -> None:
        path = os.pathsep.join([str(Path(PACKAGE).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        task = json.dumps([share, list(levels), str(folder)])
        with subprocess.Popen(
            [sys.executable, "-m", "parquet_variant.kernels.machine_code.building", "--share", task],
            stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for _, name in share:
                problem = json.loads(process.stdout.readline() or '"the process ended"')
                if problem:
                    process.kill()
                    raise KernelsError(f"kernel {name} cannot be compiled: {problem}", reason="no-kernels")
                finished.append(name)
                report("compiling kernels", len(finished), len(kernels))

    report("compiling kernels", 0, len(kernels))
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, shares))


def _is_current(target: Path, levels: Sequence[str], hashed: str) -> bool:
    """Return whether the libraries in a folder are up to date."""
    try:
        built = json.loads((target / TABLE).read_text())["libraries"]
        names = {level: file_name(level, hashed) for level in levels}
        return all((target / name).stat().st_size == built[level]["size"] for level, name in names.items())
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build(
    levels: Sequence[str], target: Path | None = None, *, report: Report | None = None, processes: int | None = None
) -> float:
    """Build the libraries for some CPU levels, and their table, unless they are up to date; return the seconds it took.

    `target`: folder of the libraries; by default that of the package.
    `report`: called as the work progresses.
    `processes`: number of processes; by default one per core.

    Raises `KernelsError` if a kernel cannot be compiled, or no linker is found.
    """
    begun = time.monotonic()
    report = report or _no_report
    target = target or Path(PACKAGE, *FOLDER.split("/"))
    hashed = source_hash(sources())
    if _is_current(target, levels, hashed):
        return time.monotonic() - begun
    for level in levels:
        find_linker(level)
    kernels = find_kernels()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        build_all_objects(kernels, levels, folder, report=report, processes=processes)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        libraries = {}
        for number, level in enumerate(levels):
            report("linking", number, len(levels))
            library = target / file_name(level, hashed)
            link([folder / f"{kernel.symbol}.{level}.o" for kernel in kernels], library, level)
            libraries[level] = {"file": library.name, "size": library.stat().st_size}
    table = {
        "made_by": {name: version(name) for name in ("numba", "llvmlite")},
        "source_hash": hashed,
        "libraries": libraries,
        "kernels": {kernel.symbol: str(kernel.signature) for kernel in kernels},
        "sources": sources(),
    }
    # The table is written last: a library without a table is ignored.
    (target / TABLE).write_text(json.dumps(table, indent=1) + "\n")
    report("linking", len(levels), len(levels))
    return time.monotonic() - begun


_OPTIONS = ("-shared", "-nostdlib", "-Wl,-s", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--gc-sections")


def find_linker(level: str) -> list[str]:
    """Return the link command for a CPU level, without arguments. Raises `KernelsError` without a linker."""
    if not needs_ziglang(level):
        return [os.environ.get("CC", "cc")]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture(level)}-linux-gnu.2.17"]
    raise KernelsError(
        f"found no linker for {architecture(level)}: install a C compiler, or pip install ziglang",
        reason="no-linker",
    )


def link(objects: Sequence[Path], target: Path, level: str) -> None:
    """Link objects to a shared library. Raises `KernelsError` with the output of the linker if that fails."""
    # The names of a thousand objects may be longer than a command line allows, so they are passed in a file.
    names = target.with_suffix(".objects")
    names.write_text("".join(f'"{path}"\n' for path in objects))
    try:
        command = [*find_linker(level), *_OPTIONS, f"@{names}", "-o", str(target)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        names.unlink()
    if run.returncode:
        raise KernelsError(f"linking kernels for {level} failed: {run.stderr.strip()[-2000:]}", reason="no-linker")


def warmup(progress: Callable[[str, int, int], None] | None = None) -> bool:
    """Compile the kernels that are neither built with the package nor in the cache.

    Parameters
    ----------
    progress
        Called with the name of the step, the number of finished kernels, and the number of all kernels.

    Returns
    -------
    bool
        False if nothing had to be compiled, because the kernels were built with the package.

    Raises
    ------
    KernelsError
        If there are neither built kernels that fit nor Numba, or if a kernel cannot be compiled.
    """
    code = machine_code()
    if code.mode == "built":
        return False
    report = progress or _no_report
    with tempfile.TemporaryDirectory() as folder:
        build_all_objects(find_kernels(), [code.level], Path(folder), report=report)
    return True


def printed_progress() -> Report:
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


def _compile_share(share: list[tuple[str, str]], levels: list[str], folder: str) -> int:
    """Compile kernels, named by module and name; print a line for each: empty, or what is wrong."""
    from parquet_variant.kernels.machine_code.objects import build_objects

    for module, name in share:
        problem = ""
        try:
            kernel = find_kernel(module, name)
            for level, content in zip(levels, build_objects(kernel, tuple(levels)), strict=True):
                Path(folder, f"{kernel.symbol}.{level}.o").write_bytes(content)
        except Exception as failed:
            problem = f"{type(failed).__name__}: {failed}"
        print(json.dumps(problem), flush=True)
    return 0


def _main() -> int:
    parser = argparse.ArgumentParser(description="Compile the kernels and link them into libraries.")
    parser.add_argument("--levels", nargs="+", choices=LEVELS, help="CPU levels (default: the best of this machine)")
    parser.add_argument("--output", type=Path, help="folder for the libraries (default: in the package)")
    parser.add_argument("--processes", type=int, help="number of processes (default: one per core)")
    parser.add_argument("--share", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.share:
        return _compile_share(*options.share)
    levels = options.levels or levels_here()[:1]
    if not levels:
        print("no libraries of kernels are built on this platform: Numba compiles them on first use", file=sys.stderr)
        return 2
    try:
        seconds = build(levels, options.output, report=printed_progress(), processes=options.processes)
    except KernelsError as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 2
    print(f"kernels built for {', '.join(levels)} in {seconds:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
