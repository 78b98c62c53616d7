"""Importing, the command's help, and the kernels' first use: CPU seconds of fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from statistics import median

from benchmarks.harness import OURS, Work

_HELP = "import sys; sys.argv = ['variant', '--help']; from parquet_variant.cli.app import main; main()"


def works() -> Iterator[Work]:
    yield Work(
        "startup: import parquet_variant",
        {OURS: partial(_python, "import parquet_variant"), "import pyarrow": partial(_python, "import pyarrow")},
        {"import pyarrow": 1 / 1.5},
    )
    yield Work(
        "startup: variant --help (goal: 0.4 s of CPU; see the median)",
        {OURS: partial(_python, _HELP)},
    )
    yield Work(
        "startup: a process that imports everything and runs every kernel from the cache",
        {OURS: partial(_python, "from parquet_variant.ingest.warmup import warmup; warmup(None)")},
    )


def kernels(rounds: int = 5) -> str:
    """CPU seconds that kernels take when they are used first: without a cache (once), and from one."""
    with tempfile.TemporaryDirectory() as cache:
        spent = [_kernel_seconds(cache) for _ in range(rounds + 1)]
    cold, warm = spent[0], spent[1:]
    return (
        "### startup: kernels, CPU s of loading or compiling all of them\n\n"
        "| | s (min–max) | goal | |\n|---|---|---|---|\n"
        f"| compiled, nothing cached | {cold:.1f} | 60 | {'met' if cold <= 60 else 'missed'} |\n"
        f"| from the cache | {median(warm):.2f} ({min(warm):.2f}–{max(warm):.2f}) | 0.5 "
        f"| {'met' if median(warm) <= 0.5 else 'missed'} |\n"
    )


_KERNEL_SECONDS = """
import time
from numba.core.dispatcher import Dispatcher
from parquet_variant.ingest.warmup import warmup
spent, depth, compile = 0.0, 0, Dispatcher.compile
def timed(self, signature):
    global spent, depth
    start, depth = time.process_time(), depth + 1
    try:
        return compile(self, signature)
    finally:
        depth -= 1
        if not depth:
            spent += time.process_time() - start
Dispatcher.compile = timed
warmup(None)
print(spent)
"""


def _kernel_seconds(cache: str) -> float:
    env = {**os.environ, "PARQUET_VARIANT_CACHE": cache}
    run = subprocess.run([sys.executable, "-c", _KERNEL_SECONDS], env=env, capture_output=True, text=True, check=True)
    return float(run.stdout)


def _python(code: str, **env: str) -> int:
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.returncode
