"""What kernels allocate is freed on every path: each allocation of each family of kernels fails once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.kernels.machine_code.entry_points import machine_code

_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
_SCRIPT = Path(__file__).with_name("failing_operations.py")
_INTERCEPTS = Path(__file__).with_name("failing_allocations.c")


def _counts(*names: str, **env: str) -> dict[str, int]:
    run = subprocess.run(
        [sys.executable, str(_SCRIPT), *names], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return {name: int(count) for name, _, count in (line.rpartition(" ") for line in run.stdout.splitlines())}


@pytest.mark.machine_code
@pytest.mark.skipif(_COMPILER is None, reason="no C compiler here, which makes the library that intercepts allocations")
def test_a_failed_allocation_of_machine_code_is_a_memory_error_and_leaves_nothing_behind(tmp_path: Path) -> None:
    if machine_code().mode != "built" or sys.platform != "linux":
        pytest.skip("allocations are intercepted in the library of kernels, on Linux")
    library = tmp_path / "failing_allocations.so"
    subprocess.run([str(_COMPILER), "-shared", "-fPIC", "-O1", "-o", library, _INTERCEPTS, "-ldl"], check=True)
    counts = _counts(LD_PRELOAD=str(library), PARQUET_VARIANT_KERNELS="built")
    # All families, with tables that grow; few of the operations allocate nothing.
    assert len(counts) > 12
    assert counts["parse_json"] > 40
    assert min(counts[name] for name in ("shred_variant", "unshred_variant", "to_json", "variant_get")) > 4
    assert min(counts[name] for name in ("infer_shredding_schema", "schema_of_variant", "parquet.ingest")) > 4


def test_the_list_of_blocks_is_sound_after_each_failed_allocation() -> None:
    counts = _counts("parse_json", "unshred", PARQUET_VARIANT_KERNELS="checked")
    assert counts["parse_json"] > 20
    assert counts["unshred_variant"] > 3
