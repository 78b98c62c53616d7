"""Workers whose rows nobody wants any more end without a traceback; every other error is still told."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import ModuleType
from types import SimpleNamespace as Spec

import pytest

import parquet_variant as pv
from parquet_variant.spark.worker_end import QuietEnd

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
print(pv.spark.ingest(spark, sys.argv[2], sys.argv[3]).rows)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_rows_that_nobody_wants_print_nothing(tmp_path, usgs_sample):
    rows = pv.parse_json([f'{{"n": {number}, "s": "{"x" * 200}{number}"}}' for number in range(20_000)])
    pv.parquet.write(tmp_path / "many" / "a.parquet", rows, row_group_bytes=1 << 20)
    arguments = [str(tmp_path / "many"), str(usgs_sample), str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "1707"
    assert "Traceback" not in done.stderr


def test_only_the_broken_pipe_is_kept_quiet(monkeypatch, capsys):
    daemon = ModuleType("__main__")
    daemon.__spec__ = Spec(name="pyspark.daemon")
    monkeypatch.setitem(sys.modules, "__main__", daemon)
    assert isinstance(pickle.loads(pickle.dumps(QuietEnd())), QuietEnd)
    for error in (BrokenPipeError(32, "gone"), ConnectionResetError(104, "gone"), ValueError("told")):
        try:
            raise error
        except Exception:
            daemon.traceback.print_exc()
    told = capsys.readouterr().err
    assert "ValueError: told" in told
    assert "gone" not in told
    assert "told" in daemon.traceback.format_exception_only(ValueError("told"))[0]


def test_a_process_that_is_no_worker_is_left_as_it_is():
    pickle.loads(pickle.dumps(QuietEnd()))
    assert not hasattr(sys.modules["__main__"], "traceback") or sys.modules["__main__"].traceback is not None
