"""Spark Connect: every operation of the pipeline in a session that has neither RDDs nor a JVM in reach."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_PROGRAM = """
import json, os, sys
from pathlib import Path
import parquet_variant as pv
from parquet_variant.spark.session import worker_environment
from pyspark.sql import SparkSession

source, root = sys.argv[1], Path(sys.argv[2])
with worker_environment():
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()
found, steps = {}, []
result = pv.ingest(source, root / "out", engine=spark, split_bytes=500_000, progress=lambda *step: steps.append(step))
found["ingest"], found["progress"] = result.rows, steps[-1] == ("write", 3, 3) and steps[0][1] == 0
found["delta"] = pv.ingest(source, root / "table", engine=spark, format="delta").rows
(root / "bad.ndjson").write_text('{"a": 1}\\n{"a": \\n')
try:
    pv.ingest(root / "bad.ndjson", root / "none", engine=spark, schema="a int")
except pv.JsonError as error:
    found["error"] = [error.reason, str(error.file).endswith("bad.ndjson"), (root / "none").exists()]
found["optimize"] = pv.open(root / "out", engine=spark).optimize().files_added
found["rewrite"] = len(pv.open(root / "out", engine=spark).rewrite(root / "copy", layout="unshredded"))
copy = pv.open(root / "copy", engine=spark)
found["read"] = copy.scan({"m": ("$.properties.mag", "double")}).to_spark().where("m > 6").count()
frame = pv.open(root / "table", engine=spark).scan().to_spark()
found["profile"] = pv.open(frame).profile().rows
pv.write(root / "written", frame)
found["write"] = len(pv.open(root / "written").read())
try:
    pv.open(root / "out", engine=spark).scan({"m": ("$.properties.mag", "double")}).to_spark(reader="jvm")
except pv.VariantError as error:
    found["jvm"] = error.reason
print(json.dumps(found), flush=True)
os._exit(0)  # stopping the server takes longer than all of this
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_pipeline_over_connect(tmp_path, usgs_sample):
    for module in ("grpc", "grpc_status", "pandas"):
        pytest.importorskip(module, reason="pyspark[connect] is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(usgs_sample), str(tmp_path)],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "ingest": 1707,
        "progress": True,
        "delta": 1707,
        "error": ["unexpected-end", True, False],
        "optimize": 1,
        "rewrite": 1,
        "read": 3,
        "profile": 1707,
        "write": 1707,
        "jvm": "no-struct-view",
    }
