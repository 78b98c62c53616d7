"""S3 by Hadoop's names through Spark: a server on loopback (moto); only its address and keys are configured."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from object_store import environment, s3_server

_PROGRAM = """
import json, sys
import parquet_variant as pv

source, lake = sys.argv[1:]
spark = pv.spark.local_session(cores=1, memory="512m")
spark.dataSource.register(pv.spark.VariantDataSource)
found = {"ingest": pv.ingest(source, lake + "/in", engine=spark, split_bytes=500_000).rows}
found["files"] = len(list(pv.open(lake + "/in").read()))
mag = {"mag": ("$.properties.mag", "double")}
found["read"] = pv.open(lake + "/in", engine=spark).scan(mag).to_spark().where("mag > 6").count()
whole = spark.read.format("variant").load(lake + "/in")
found["whole"] = whole.count()
found["optimize"] = pv.open(lake + "/in", engine=spark).optimize().files_added
whole = spark.read.format("variant").load(lake + "/in")  # the old frame has the old files, as in Spark
whole.write.format("variant").mode("append").save(lake + "/in")
found["appended"] = pv.sql("SELECT count(*) AS n FROM t", engine=spark, t=lake + "/in").collect()[0].n
found["table"] = pv.ingest(source, lake + "/table", engine=spark, format="delta").rows
whole.write.format("variant").option("format", "delta").mode("append").save(lake + "/table")
found["both"] = pv.open(lake + "/table", engine=spark).scan(mag, "mag > 6").to_spark().count()
try:
    pv.open(lake + "/nowhere", engine=spark).scan().to_spark().count()
except Exception as error:
    found["error"] = "nowhere does not exist" in str(error) and "Traceback" not in str(error)
print(json.dumps(found), flush=True)
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_the_pipeline_in_s3(usgs_sample):
    with s3_server("spark-lake") as address:
        variables = os.environ | environment(address)
        command = [sys.executable, "-c", _PROGRAM, str(usgs_sample), "s3a://spark-lake"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "ingest": 1707,
        "files": 1707,
        "read": 3,
        "whole": 1707,
        "optimize": 1,
        "appended": 2 * 1707,
        "table": 1707,
        "both": 6,
        "error": True,
    }
