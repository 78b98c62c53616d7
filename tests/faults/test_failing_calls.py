"""A write in any format whose n-th call of the operating system fails leaves the old rows or the new ones.

Other than in `tests/tables/test_failing_disk`, the calls of pyarrow, SQLite and Rust fail as well: `failing_calls.c`
is preloaded. The error says whether the rows are committed, the same works again, and no other file is removed.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.children import start_child

CHILD, SOURCE = Path(__file__).with_name("writes_child.py"), Path(__file__).with_name("failing_calls.c")
ANOTHER = ("rest", "parquet by k", "delta by k", "iceberg by k")
_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if _COMPILER is None or sys.platform != "linux":
        pytest.skip("no C compiler, or not Linux: the failing calls are not built")
    path = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    command = [_COMPILER, "-O1", "-shared", "-fPIC", "-o", str(path), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the failing calls cannot be compiled: {done.stderr.splitlines()[:1]}")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "vortex", "delta", "iceberg", "sql", "another"])
def test_a_failing_call_leaves_the_old_rows_or_the_new_ones(format: str, library: Path, tmp_path: Path) -> None:
    least = 6
    if format == "another":  # these differ little from the others: two operations of one of them are tried
        least = 2
        format = random.Random(os.environ["FUZZ_SEED"]).choice(ANOTHER)
    if format == "vortex":
        pytest.importorskip("vortex")
    if format in ("sql", "rest"):
        pytest.importorskip(f"pyiceberg.catalog.{format}")
    done = start_child(CHILD, str(library), str(tmp_path), format, os.environ["FUZZ_SEED"], preload=library)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("WRONG")] == []
    counts = [int(line.split()[-2]) for line in lines if line.endswith("failures")]
    assert len(counts) >= least
    assert min(counts) > 2
