"""Compile all kernels for some CPU levels on all cores, and link them into one library per level.

Owns the plan: the kernels, the processes, and the table that is written with the libraries. Leaves compiling one kernel
to `objects`.
"""

from __future__ import annotations

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
from queue import Empty, SimpleQueue

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.building.linking import find_linker, link
from parquet_variant.kernels.machine_code.building.objects import object_of_string
from parquet_variant.kernels.machine_code.functions import Kernel, find_kernels
from parquet_variant.kernels.machine_code.library import (
    FOLDER,
    HASH_SYMBOL,
    PACKAGE,
    TABLE,
    file_name,
    source_hash,
    sources,
)

# Called with the name of a step, the number of finished kernels, and the number of all kernels.
Report = Callable[[str, int, int], None]


def _order(kernels: list[Kernel]) -> list[Kernel]:
    """Return the kernels sorted so that the largest modules are compiled first, to keep all processes busy."""
    sizes = {kernel.py_func.__module__: Path(kernel.py_func.__code__.co_filename).stat().st_size for kernel in kernels}
    return sorted(kernels, key=lambda kernel: (-sizes[kernel.py_func.__module__], kernel.py_func.__module__))


def _work(waiting: SimpleQueue[Kernel], done: Callable[[], None], levels: Sequence[str], folder: Path) -> None:
    """Let a process compile kernels until none are waiting."""
    command = [sys.executable, "-m", "parquet_variant.kernels.machine_code.building.worker"]
    path = os.pathsep.join([str(Path(PACKAGE).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            try:
                kernel = waiting.get_nowait()
            except Empty:
                break
            targets = [str(folder / f"{kernel.symbol}.{level}.o") for level in levels]
            task = [kernel.py_func.__module__, kernel.py_func.__name__, list(levels), targets]
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if not answer or (failure := json.loads(answer)):
                process.kill()
                problem = failure if answer else "the process ended"
                raise KernelsError(f"{kernel!r} cannot be compiled: {problem}", reason="no-kernels")
            done()
        process.stdin.close()


def build_all_objects(
    kernels: list[Kernel], levels: Sequence[str], folder: Path, *, report: Report, processes: int | None = None
) -> None:
    """Compile kernels into objects in a folder, in several processes."""
    waiting: SimpleQueue[Kernel] = SimpleQueue()
    for kernel in _order(kernels):
        waiting.put(kernel)
    count = min(processes or len(os.sched_getaffinity(0)), len(kernels))
    finished: list[None] = []

    def done() -> None:
        finished.append(None)
        report("compiling kernels", len(finished), len(kernels))

    report("compiling kernels", 0, len(kernels))
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(_work, waiting, done, levels, folder) for _ in range(count)]:
            future.result()


def _table(kernels: list[Kernel], levels: Sequence[str], folder: Path, hashed: str) -> str:
    libraries = {
        level: {"file": file_name(level), "size": (folder / file_name(level)).stat().st_size} for level in levels
    }
    table = {
        "made_by": {name: version(name) for name in ("numba", "llvmlite")},
        "source_hash": hashed,
        "libraries": libraries,
        "kernels": {kernel.symbol: str(kernel.signature) for kernel in kernels},
        "sources": sources(),
    }
    return json.dumps(table, indent=1) + "\n"


def _is_current(target: Path, levels: Sequence[str], hashed: str) -> bool:
    """Return whether the libraries in a folder are up to date."""
    try:
        table = json.loads((target / TABLE).read_text())
        sizes = {level: table["libraries"][level]["size"] for level in levels}
        return table["source_hash"] == hashed and all(
            (target / file_name(level)).stat().st_size == size for level, size in sizes.items()
        )
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
    report = report or (lambda what, done, total: None)
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
        for number, level in enumerate(levels):
            report("linking", number, len(levels))
            stamp = folder / f"hash.{level}.o"
            stamp.write_bytes(object_of_string(HASH_SYMBOL, hashed, level))
            objects = [folder / f"{kernel.symbol}.{level}.o" for kernel in kernels]
            link([*objects, stamp], folder / file_name(level), level)
        table = _table(kernels, levels, folder, hashed)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for level in levels:
            shutil.copyfile(folder / file_name(level), target / file_name(level))
        # The table is written last: a library without a table is ignored.
        (target / TABLE).write_text(table)
    report("linking", len(levels), len(levels))
    return time.monotonic() - begun
