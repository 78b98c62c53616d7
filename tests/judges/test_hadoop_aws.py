"""Plain Spark with hadoop-aws (``s3a://``) and this library (``s3://``) read each other's files in one bucket."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.judges.conftest import JUDGES, EngineProcess, delta_options, start_engine

import parquet_variant as pv
from object_store import KEYS, environment, s3_server


@pytest.fixture(scope="module")
def s3_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """A session of Spark 4.2 with hadoop-aws and Delta, and a bucket named lake; the environment has the server."""
    jars = sorted((JUDGES / "hadoop-aws").glob("*.jar"))
    if not jars:
        pytest.skip(f"hadoop-aws is missing in {JUDGES}: run make judges (it needs Maven Central)")
    with s3_server("lake") as endpoint, pytest.MonkeyPatch.context() as patch:
        for name, value in environment(endpoint).items():
            patch.setenv(name, value)
        delta = delta_options("4.2", tmp_path_factory.mktemp("warehouse"))
        yield from start_engine(
            "4.2",
            {
                **delta,
                "spark.jars": ",".join([*map(str, jars), delta["spark.jars"]]),
                "spark.hadoop.fs.s3a.endpoint": endpoint,
                "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.path.style.access": "true",
                "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
                "spark.hadoop.fs.s3a.access.key": KEYS["aws_access_key_id"],
                "spark.hadoop.fs.s3a.secret.key": KEYS["aws_secret_access_key"],
            },
        )


def test_each_side_reads_the_files_of_the_other(s3_spark: EngineProcess) -> None:
    rows = [{"n": number, "o": {"x": f"text {number}"}} for number in range(20)]
    pv.write("s3://lake/ours/a.parquet", pv.from_python(rows), schema="n bigint, o struct<x string>")
    query = "SELECT sum(variant_get(v, '$.n', 'bigint')), count(DISTINCT variant_get(v, '$.o.x', 'string'))"
    assert s3_spark.sql(f"{query} FROM parquet.`s3a://lake/ours`") == [[190, 20]]
    s3_spark.python(
        "spark.read.parquet('s3a://lake/ours').repartition(2).write.parquet('s3a://lake/theirs')\nresult = None"
    )
    theirs = pv.open("s3://lake/theirs").read().to_pylist()
    assert sorted(theirs, key=lambda row: row["n"]) == rows
    text = s3_spark.sql("SELECT to_json(v) FROM parquet.`s3a://lake/theirs`")
    assert sorted(json.loads(row[0])["n"] for row in text) == list(range(20))


def test_each_side_changes_a_delta_table_of_the_bucket(s3_spark: EngineProcess) -> None:
    ours, theirs = "s3://lake/table", "delta.`s3a://lake/table`"
    pv.write(
        ours, {"id": list(range(20)), "v": pv.from_python([{"n": number} for number in range(20)])}, format="delta"
    )
    s3_spark.sql(f"INSERT INTO {theirs} SELECT 20L, parse_json('{{\"n\": 20}}')")
    s3_spark.sql(f"DELETE FROM {theirs} WHERE try_variant_get(v, '$.n', 'int') < 5")
    pv.open(ours).append({"id": [21], "v": pv.from_python([{"n": 21}])})
    pv.open(ours).delete("v:n::int < 7")
    query = "SELECT count(*) AS number, sum({}) AS total FROM {}"
    assert s3_spark.sql(query.format("variant_get(v, '$.n', 'bigint')", theirs)) == [[15, 210]]
    assert pv.sql(query.format("v:n::bigint", "t"), t=ours).to_pylist() == [{"number": 15, "total": 210}]
