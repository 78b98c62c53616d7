"""The next writer removes what a killed writer left next to a file, and never the file of a living writer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.io.temporaries import JobOwner

# The process ends where a file that is whole, and has no name yet, is to get it.
_DIES = """
import os, sys
import pyarrow.fs as fs
import parquet_variant as pv

class Last(fs.LocalFileSystem):
    def move(self, source, target):
        os._exit(9)

os.link = lambda *_: os._exit(9)
path, work = sys.argv[1:]
exec(work)
"""
WRITE = "pv.write(path, pv.parse_json(['1']), mode='overwrite', filesystem=Last())"
REWRITE = "pv.open(path + '.old', filesystem=Last()).rewrite(path, mode='overwrite', threads=1)"
ANNOTATE = "pv.open(path, filesystem=Last()).annotate([])"


def _kill(path: Path, work: str) -> list[Path]:
    """Temporary files in a directory after a process died in the middle of its work."""
    done = subprocess.run(
        [sys.executable, "-c", _DIES, str(path), work], check=False, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 9, done.stderr
    return _temporary(path.parent)


def _temporary(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.tmp"))


@pytest.mark.parametrize("work", [WRITE, REWRITE, ANNOTATE], ids=["write", "rewrite", "annotate"])
def test_the_next_write_removes_what_a_killed_one_left(work, tmp_path):
    path = tmp_path / "a.parquet"
    for item in (path, tmp_path / "a.parquet.old", tmp_path / "b.parquet"):
        pv.write(item, pv.parse_json(['{"n": 1}']))
    left = _kill(path, work)
    assert len(left) == 1
    pv.write(tmp_path / "b.parquet", pv.parse_json(["2"]), mode="overwrite")
    assert _temporary(tmp_path) == left  # of another name
    exec(work.replace("Last()", "None"), {"path": str(path), "pv": pv})
    assert _temporary(tmp_path) == []


def test_a_living_writer_is_left_alone(tmp_path):
    path = tmp_path / "a.parquet"
    with pv.VariantWriter(path, mode="overwrite") as writer:
        writer.write_batch({"v": pv.parse_json(["1"])})
        assert len(_temporary(tmp_path)) == 1
        pv.write(path, pv.parse_json(["2"]))
        pv.open(path).annotate([])
        assert len(_temporary(tmp_path)) == 1
    assert pv.open(path).read().to_pylist() == [1]
    assert _temporary(tmp_path) == []


def test_a_writer_that_cannot_be_asked_for_is_dead_after_a_day(tmp_path):
    path = tmp_path / "a.parquet"
    elsewhere = JobOwner("0123456789ab", 1, 1).to_token()
    names = [f".a.parquet.{elsewhere}-01234567.tmp", f".a.parquet.{'0' * 32}.tmp"]
    others = [".a.parquet.tmp", ".a.parquet.notes.tmp"]
    then = time.time() - 25 * 3600
    for name in names + others:
        (tmp_path / name).touch()
    os.utime(tmp_path / others[0], (then, then))
    pv.write(path, pv.parse_json(["1"]))
    assert [item.name for item in _temporary(tmp_path)] == sorted(names + others)
    for name in names:
        os.utime(tmp_path / name, (then, then))
    pv.write(path, pv.parse_json(["1"]), mode="overwrite")
    assert [item.name for item in _temporary(tmp_path)] == sorted(others)


def test_vacuum_removes_what_a_killed_commit_left_in_the_log(tmp_path):
    table = tmp_path / "table"
    pv.write(table, {"n": pa.array([1])}, format="delta")
    left = _kill(table / "_delta_log" / "x", "pv.write(path[:-13], {'n': [1]}, format='delta', mode='append')")
    assert len(left) == 1
    mine = left[0].with_name(left[0].name.replace(left[0].name.split(".")[-2][:-9], JobOwner.current().to_token()))
    mine.touch()  # of a commit under way
    named = [f"_delta_log/{left[0].name}"]
    assert pv.open(table).vacuum(dry_run=True) == named
    assert pv.open(table).vacuum() == named
    assert pv.open(table).vacuum(retention=timedelta(0), force=True) != []
    assert _temporary(table / "_delta_log") == [mine]
    assert pv.open(table).to_arrow()["n"].to_pylist() == [1]
