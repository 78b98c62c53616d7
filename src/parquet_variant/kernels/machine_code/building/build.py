"""Compile all kernels for some CPU levels on all cores, and link them into one library per level.

Owns the plan (the kernels, the processes, and the table that is written with the libraries), the processes that
compile, and linking with the C compiler of the machine or the one of the package ``ziglang``. A library depends on no
other library: the C functions that it calls are already in the process, whichever libc it has. Leaves compiling one
kernel to `objects`.
"""

from __future__ import annotations

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
from queue import Empty, SimpleQueue

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.building.objects import build_objects, object_of_string
from parquet_variant.kernels.machine_code.functions import Kernel, find_kernel, find_kernels
from parquet_variant.kernels.machine_code.library import (
    FOLDER,
    HASH_SYMBOL,
    PACKAGE,
    TABLE,
    architecture,
    file_name,
    levels_of_wheel,
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
    command = [sys.executable, "-m", "parquet_variant.kernels.machine_code.building.build"]
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


_OPTIONS = ("-shared", "-nostdlib", "-Wl,-s", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--gc-sections")


def _c_compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc"))


def needs_ziglang(level: str) -> bool:
    """Return whether this machine has no C compiler that links for a CPU level."""
    return level not in levels_of_wheel() or _c_compiler() is None


def find_linker(level: str) -> list[str]:
    """Return the link command for a CPU level, without arguments. Raises `KernelsError` if there is none."""
    compiler = _c_compiler()
    if compiler is not None and not needs_ziglang(level):
        return [compiler]
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


def _serve() -> None:
    """Compile a kernel for each line of the input, and answer with one line.

    Each core has its own process, because Numba and LLVM hold global locks; functions that were compiled for one kernel
    are reused for the next.
    """
    for line in sys.stdin:
        module, name, levels, targets = json.loads(line)
        try:
            for content, target in zip(build_objects(find_kernel(module, name), tuple(levels)), targets, strict=True):
                Path(target).write_bytes(content)
            answer = ""
        except Exception as failed:
            answer = f"{type(failed).__name__}: {failed}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
