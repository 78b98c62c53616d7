"""Workers that the JVM no longer reads from end without a traceback; all other errors are printed."""

from __future__ import annotations

import subprocess
import sys
import traceback
from importlib import reload
from types import ModuleType
from types import SimpleNamespace as Spec

import pytest

import parquet_variant as pv
from parquet_variant.spark import task_errors

_PROGRAM = """
import sys, threading, time
import parquet_variant as pv

spark = pv.spark.local_session(cores=1, memory="512m")
df = spark.read.format("variant").load(sys.argv[1])
for _ in range(2):
    df.show(2)
    assert len(df.take(2)) == 2
def count():
    try:
        df.count()
    except Exception:
        pass

for seconds in (0.0, 0.2, 0.5):  # cancelled before and after its workers have begun
    counting = threading.Thread(target=count)
    counting.start()
    time.sleep(seconds)
    spark.sparkContext.cancelAllJobs()
    counting.join()
print(pv.ingest(sys.argv[2], sys.argv[3], engine=spark).rows)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_queries_that_stop_reading_print_nothing(tmp_path, usgs_sample):
    rows = pv.parse_json([f'{{"n": {number}, "s": "{"x" * 200}{number}"}}' for number in range(20_000)])
    pv.write(tmp_path / "many" / "a.parquet", rows, row_group_bytes=1 << 20)
    arguments = [str(tmp_path / "many"), str(usgs_sample), str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "1707"
    assert "Traceback" not in done.stderr


_DAEMON = """
import traceback

def handle(function):
    try:
        function()
    except BaseException:
        traceback.print_exc()
"""


@pytest.fixture
def daemon(monkeypatch, capsys):
    """A module that looks like PySpark's daemon, in a process that looks like a worker."""
    daemon = ModuleType("__main__")
    daemon.__spec__ = Spec(name="pyspark.daemon")
    exec(_DAEMON, vars(daemon))
    monkeypatch.setitem(sys.modules, "__main__", daemon)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    return daemon


@pytest.mark.parametrize("error", [BrokenPipeError(32, "gone"), ConnectionResetError(104, "gone")])
def test_only_broken_pipes_that_the_daemon_catches_are_quiet(daemon, capsys, error):
    reload(task_errors)

    def fail():
        raise error

    def fail_otherwise():
        raise ValueError("reported")

    daemon.handle(fail)
    assert capsys.readouterr().err == ""
    daemon.handle(fail_otherwise)
    assert "ValueError: reported" in capsys.readouterr().err
    try:
        fail()
    except OSError:
        traceback.print_exc()
    assert "gone" in capsys.readouterr().err


def test_the_stderr_of_other_processes_is_not_replaced():
    stderr = sys.stderr
    reload(task_errors)
    assert sys.stderr is stderr
