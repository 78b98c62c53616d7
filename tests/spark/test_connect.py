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
result = pv.spark.ingest(spark, source, root / "out", split_bytes=500_000, progress=lambda *step: steps.append(step))
found["ingest"], found["progress"] = result.rows, steps[-1] == ("write", 3, 3) and steps[0][1] == 0
found["delta"] = pv.spark.ingest(spark, source, root / "table", format="delta").rows
(root / "bad.ndjson").write_text('{"a": 1}\\n{"a": \\n')
try:
    pv.spark.ingest(spark, root / "bad.ndjson", root / "none", schema="a int")
except pv.JsonError as error:
    found["error"] = [error.reason, str(error.file).endswith("bad.ndjson"), (root / "none").exists()]
found["optimize"] = pv.spark.optimize(spark, root / "out").files_added
found["rewrite"] = len(pv.spark.rewrite(spark, root / "out", root / "copy", layout="unshredded"))
found["read"] = pv.spark.read(spark, root / "copy", {"m": ("$.properties.mag", "double")}).where("m > 6").count()
frame = pv.spark.read(spark, root / "table")
found["profile"] = pv.spark.profile(frame).rows
pv.spark.write(frame, root / "written")
found["write"] = len(pv.parquet.read(root / "written"))
try:
    pv.spark.read(spark, root / "out", {"m": ("$.properties.mag", "double")}, engine="jvm")
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
