"""Importing, the command's help, and the kernels' first use: CPU seconds of fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

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
        "startup: kernels from the cache (goal: 0.5 s)",
        {OURS: partial(_python, "from parquet_variant.parquet.warmup import warmup; warmup(None)")},
    )


def cold_kernels() -> str:
    """CPU seconds of the first use, measured once."""
    with tempfile.TemporaryDirectory() as cache:
        before = os.times()
        _python("from parquet_variant.parquet.warmup import warmup; warmup(None)", PARQUET_VARIANT_CACHE=cache)
        after = os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return f"### startup: cold kernels\n\nAll kernels compiled in {cpu:.1f} s of CPU (goal: 60).\n"


def _python(code: str, **env: str) -> int:
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.returncode
