"""Hostile suites in a process of their own, which may crash or hang without ending the tests.

Owns how one is started, how long it may take, and the report of a failure. Leaves the cases to the children.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.seeds import SECONDS, SEED

__all__ = ["run_child", "start_child"]


def start_child(script: Path, *arguments: str, preload: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script of this folder to its end; fails the test if it hangs."""
    roots = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(roots), "FUZZ_SEED": str(SEED),
        "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONFAULTHANDLER": "1",
    }  # fmt: skip
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    command = [sys.executable, str(script), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=300 + 3 * SECONDS, check=False
        )
    except subprocess.TimeoutExpired as expired:
        output = (expired.stdout or b"")[-300:]
        pytest.fail(
            f"FUZZ_SEED={SEED}, {arguments}: no end after {expired.timeout:.0f} s; the last cases were {output!r}"
        )


def run_child(script: Path, *arguments: str, preload: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same of one that must end well."""
    done = start_child(script, *arguments, preload=preload)
    report = f"FUZZ_SEED={SEED}, ended with {done.returncode}\n{done.stdout[-600:]}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, report
    return done
