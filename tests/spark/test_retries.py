"""Tasks that fail and are run again by Spark, which a session with one attempt a task cannot show."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

import parquet_variant as pv

_PROGRAM = """
import json, os, sys
from pathlib import Path
import pyarrow as pa
import parquet_variant as pv
from parquet_variant.io.staging import StagedFile, open_staging
from parquet_variant.spark.engine import SparkEngine

root = Path(sys.argv[1])
spark = pv.spark.local_session(memory="512m", **{"spark.master": "local[2, 4]"})
spark.dataSource.register(pv.spark.VariantDataSource)

def once(name):
    # True the first time: fails after some rows of the first attempt went by.
    try:
        os.close(os.open(root / name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

def flaky(ids):
    for number in ids:
        if number == 60 and once("frame"):
            os._exit(1)  # the worker dies, with a half-written file
        yield (f'{{"n": {number}}}',)

frame = spark.createDataFrame(spark.sparkContext.parallelize(range(100), 4).mapPartitions(flaky), "v string")
report = {}
for form in ("parquet", "delta"):
    (root / "frame").unlink(missing_ok=True)
    frame.write.format("variant").mode("append").option("format", form).option("schema", "n int").save(str(root / form))
    read = (lambda path: pv.open(path).read()) if form == "parquet" else (lambda path: pv.open(path).read())
    report[form] = sorted(row["n"] for row in read(root / form).to_pylist()) == list(range(100))
    report[form + " failed"] = (root / "frame").exists()

def staged(task, attempt, staging):
    file = StagedFile(staging.attempt(task, attempt), staging.file_name(task))
    Path(file.path).write_text(f"task {task}")
    if task == 1 and once("job"):
        os._exit(1)
    return file

staging = open_staging(str(root / "job_out"))
files = staging.commit(SparkEngine(spark, None).run("write", staged, [staging] * 3))
report["job"] = sorted(Path(file).read_text() for file in files)
report["left"] = sorted(str(p.relative_to(root)) for p in root.rglob("*") if "_temporary" in p.parts)
spark.stop()
print(json.dumps(report))
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_task_that_dies_is_run_again_and_nothing_is_there_twice(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "parquet": True,
        "parquet failed": True,
        "delta": True,
        "delta failed": True,
        "job": ["task 0", "task 1", "task 2"],
        "left": [],
    }


_KILLED = """
import os, signal, sys
import parquet_variant as pv

def kill(step, done, tasks):
    if step == "write":
        os.kill(os.getpid(), signal.SIGKILL)

spark = pv.spark.local_session(memory="512m", cores=1)
frame = spark.sql("SELECT id, concat('{\\"n\\": ', id, '}') AS j FROM range(10)")
pv.ingest(frame, sys.argv[1], engine=spark, json_column="j", progress=kill)
"""


@pytest.mark.slow
def test_rows_of_a_frame_whose_driver_was_killed_are_swept_by_the_next_ingest(spark, tmp_path):
    program = [sys.executable, "-c", _KILLED, str(tmp_path / "out")]
    assert subprocess.run(program, capture_output=True, timeout=300, check=False).returncode == -signal.SIGKILL
    assert [path.suffix for path in tmp_path.rglob("*.parquet")] == [".parquet"]
    frame = spark.sql("SELECT id, concat('{\"n\": ', id, '}') AS j FROM range(10)")
    assert pv.ingest(frame, tmp_path / "out", engine=spark, json_column="j", mode="append").rows == 10
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert "_temporary" not in {path.name for path in (tmp_path / "out").iterdir()}
    with pytest.raises(pv.VariantError, match=r"no column w: its columns are id, j$"):
        pv.ingest(frame, tmp_path / "no", engine=spark, json_column="w")
    with pytest.raises(pv.VariantError):
        pv.ingest(frame.selectExpr("id", "'{' AS j"), tmp_path / "out", engine=spark, json_column="j", mode="append")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
