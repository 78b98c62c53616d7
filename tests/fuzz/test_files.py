"""Files and logs from outside, damaged at random: read, or refused by an error of ours, and by no other.

They are read in a process of their own: one that crashes or hangs is a failed test, not the end of all tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.children import run_child

CHILD = Path(__file__).with_name("files_child.py")


@pytest.mark.parametrize("suite", ["footer", "structs", "pages", "noise", "delta"])
def test_nothing_crashes(suite: str, tmp_path: Path) -> None:
    print(run_child(CHILD, suite, str(tmp_path)).stdout.splitlines()[-1])
