"""Arrow data and values from outside, damaged at random: no operation crashes, hangs, or raises another's error.

They run in a process of their own, under a guarding allocator that `guard.c` makes of malloc: every allocation ends
at a page that may not be touched, and what was freed may not be touched. Without a C compiler they run without it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.children import run_child, start_child

CHILD, SOURCE = Path(__file__).with_name("storages_child.py"), Path(__file__).with_name("guard.c")
_COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
_HAS_GUARD = _COMPILER is not None and sys.platform == "linux"


@pytest.fixture(scope="session")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    if _COMPILER is None or not _HAS_GUARD:
        return None
    library = tmp_path_factory.mktemp("guard") / "guard.so"
    command = [_COMPILER, "-O1", "-shared", "-fPIC", "-fno-builtin", "-o", str(library), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the guarding allocator cannot be compiled: {done.stderr.splitlines()[:1]}")
    return library


def test_a_write_past_the_end_is_seen(guard: Path | None) -> None:
    if guard is None:
        pytest.skip("no C compiler: the guarding allocator is not built")
    assert start_child(CHILD, "prove", preload=guard).returncode in (-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGABRT)


@pytest.mark.parametrize("suite", ["storages", "values"])
def test_nothing_crashes(suite: str, guard: Path | None) -> None:
    done = run_child(CHILD, suite, preload=guard)
    print(done.stdout.splitlines()[-2:])
    if guard is not None:
        assert int(done.stdout.split()[-1]) > 100, "nothing was guarded"
