"""A process that is killed while it replaces a Parquet file leaves the old file or the new one.

The child is killed at each call that can leave a trace: when the output is opened, and before and after the rename.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

import parquet_variant as pv

ROWS = [{"a": number, "s": "x" * 40} for number in range(500)]
OPERATIONS = {
    "annotate": "pv.open(path, filesystem=system).annotate([])",
    "rewrite": 'pv.open(path, filesystem=system).rewrite(path, schema="a bigint", mode="overwrite", threads=1)',
    "write": 'pv.write(path, pv.parse_json(["1"]), mode="overwrite", filesystem=system)',
}
CHILD = """
import os, signal, sys
import pyarrow.fs as fs
import parquet_variant as pv

path, moment, operation = sys.argv[1:]


def kill_at(reached):
    if moment == reached:
        os.kill(os.getpid(), signal.SIGKILL)


class Killing(fs.LocalFileSystem):
    def open_output_stream(self, *arguments, **options):
        stream = super().open_output_stream(*arguments, **options)
        kill_at("opened")
        return stream

    def move(self, source, target):
        kill_at("before the rename")
        super().move(source, target)
        kill_at("after the rename")


system = Killing()
exec(operation)
"""


@pytest.mark.parametrize("moment", ["opened", "before the rename", "after the rename"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_replacement_leaves_the_old_file_or_the_new_one(tmp_path, operation, moment):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist(ROWS))
    old = path.read_bytes()
    child = subprocess.run([sys.executable, "-c", CHILD, str(path), moment, OPERATIONS[operation]], check=False)
    assert child.returncode == -signal.SIGKILL
    is_new = moment == "after the rename"
    assert (path.read_bytes() != old) == is_new
    expected = [1] if is_new and operation == "write" else ROWS
    assert pv.open(tmp_path).read().to_pylist() == expected
    exec(OPERATIONS[operation], {"pv": pv, "path": str(path), "system": None})
    assert pv.open(tmp_path).read().to_pylist() == ([1] if operation == "write" else ROWS)
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
