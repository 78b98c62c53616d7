"""A process that dies at any step of writing one Vortex file leaves the old file or the new one.

Python reports every file that it opens to write, and every directory, name and file that it makes, changes or removes:
the process is killed before each of these. Afterwards nothing more happens, not even in `except` or `finally`.
"""

import os
import subprocess
import sys

import pytest

import parquet_variant as pv
from parquet_variant.files.vortex.paths import vortex_files

pytest.importorskip("vortex")

_CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")


class Killed(BaseException):
    """The process is no more."""


class _Mortal:
    """Steps until the process dies; None: it lives. A hook stays for the rest of the process."""

    left: int | None = None

    def __call__(self, event: str, arguments: tuple) -> None:
        if self.left is None:
            return
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not writes and event not in _CHANGES:
            return
        self.left -= 1
        if self.left < 0:
            raise Killed


@pytest.fixture(scope="module")
def mortal():
    hook = _Mortal()
    sys.addaudithook(hook)
    yield hook
    hook.left = None


@pytest.mark.parametrize("options", [{"schema": "a bigint"}, {"schema": "a bigint", "layout": "struct"}, {}], ids=str)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_kill_at_any_step_leaves_the_old_file_or_the_new(tmp_path, mortal, is_there, options):
    old, new = pv.parse_json(['{"a": 1}']), pv.parse_json(['{"a": 2}', None])
    outcomes = []
    for steps in range(100):
        path = tmp_path / f"{steps}" / "a.vortex"
        if is_there:
            pv.write(path, old, format="vortex")
        mortal.left = steps
        try:
            pv.write(path, new, format="vortex", mode="overwrite", **options)
            is_done = True
        except Killed:
            is_done = False
        finally:
            mortal.left = None
        seen = vortex_files(path.parent) if path.parent.exists() else []
        assert seen in ([], [str(path)])
        found = pv.open(path).read().to_pylist() if seen else None
        assert found in ([{"a": 1}] if is_there else None, [{"a": 2}, None])
        outcomes.append(found)
        pv.write(path, new, format="vortex", mode="overwrite", **options)
        assert pv.open(path).read().to_pylist() == [{"a": 2}, None]
        if is_done:
            break
    assert len(outcomes) > 3  # The rename of the complete file is a step of pyarrow, which reports none.
    assert outcomes[0] == ([{"a": 1}] if is_there else None)
    assert outcomes[-1] == [{"a": 2}, None]


_DIES = """
import os, sys
import parquet_variant as pv
from parquet_variant.files.vortex import library

library.append_trailer = lambda *_: os._exit(9)
pv.write(sys.argv[1], pv.parse_json(["1"]), format="vortex")
"""


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
    path = tmp_path / "a.vortex"
    killed = subprocess.run([sys.executable, "-c", _DIES, str(path)], check=False)
    assert killed.returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.match(".a.vortex.*.tmp")
    pv.write(path, pv.parse_json(["2"]), format="vortex")
    assert [item.name for item in tmp_path.iterdir()] == ["a.vortex"]
