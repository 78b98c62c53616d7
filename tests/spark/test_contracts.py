"""Contracts on Spark: ingests, DataFrames, and streams whose micro-batches are checked before they are written."""

from __future__ import annotations

import os

import pytest

import parquet_variant as pv

pytestmark = pytest.mark.spark

_CONTRACT = {"$.id": {"type": "integer", "required": True, "min": 0}, "$.tag": {"type": "string"}}


def test_an_ingest_and_a_dataframe_have_the_violations_of_the_local_check(spark, tmp_path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(['{"id": 1, "tag": "a"}'] * 50 + ['{"id": -1}', '{"tag": 5}']))
    with pytest.raises(pv.ContractError, match="2 of 52 rows break the contract"):
        pv.ingest(str(source), tmp_path / "out", engine=spark, contract=_CONTRACT)
    assert not (tmp_path / "out").exists()
    result = pv.ingest(
        str(source), tmp_path / "out", engine=spark, contract=_CONTRACT, on_violation="quarantine", split_bytes=300
    )
    assert (result.rows, result.bad_records, result.contract.bad_rows) == (50, 2, 2)
    df = spark.read.text(str(source)).selectExpr("parse_json(value) AS v")
    report = pv.open(df).check(_CONTRACT)
    local = pv.open(source).check(_CONTRACT)
    assert [(v.path, v.rule, v.count, v.share) for v in report.violations] == [
        (v.path, v.rule, v.count, v.share) for v in local.violations
    ]


def test_a_stream_is_checked_quarantined_and_evolved_batch_by_batch(spark, tmp_path) -> None:
    logs, table, file = tmp_path / "logs", tmp_path / "events", tmp_path / "contract.yaml"
    logs.mkdir()
    pv.Contract(_CONTRACT).save(file)
    drifts: list = []
    events = pv.spark.StreamContract(
        file, table, on_violation="quarantine", evolve=True, on_drift=drifts.append, schema="id bigint"
    )

    (logs / "0.ndjson").write_text('{"id": 1, "tag": "a"}\n{"id": 2}')
    (logs / "1.ndjson").write_text('{"id": 3, "user": {"name": "x"}}\n{"id": -4}\n{"tag": "b"}')
    for name, seconds in (("0", 1), ("1", 2)):  # the order of the batches
        os.utime(logs / f"{name}.ndjson", (seconds, seconds))
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(logs)).selectExpr("parse_json(value) AS v")
    writer = rows.writeStream.foreachBatch(events).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    (drift,) = drifts
    assert (drift.report.rows, drift.report.bad_rows) == (3, 2)
    assert [path.shorthand for path in drift.added] == ["$.user", "$.user.name"]
    assert pv.Contract.load(file).rules("$.user.name") == pv.PathRules(types=("string",))
    assert sorted(row["id"] for row in pv.open(table).read().to_pylist()) == [1, 2, 3]
    bad = pv.open(events.quarantine).to_arrow().to_pydict()["_violation"]
    assert sorted(bad) == ["$.id min: expected at least 0, found -4", "$.id required: expected present"]
    assert [metric["bad_rows"] for metric in events.metrics] == [0, 2]
    assert events.metrics[1]["added"] == ["$.user", "$.user.name"]

    # The batch again, as after a crash: the tables have it.
    again = spark.createDataFrame([('{"id": 3}',)], "value string").selectExpr("parse_json(value) AS v")
    failing = pv.spark.StreamContract(_CONTRACT, tmp_path / "strict", stream="s")
    failing(again, 0)
    failing(again, 0)
    assert len(pv.open(tmp_path / "strict").read()) == 1
    bad_rows = again.selectExpr('parse_json(\'{"id": "x"}\') AS v')
    with pytest.raises(pv.ContractError, match=r"\$\.id type: expected integer"):
        failing(bad_rows, 1)
    assert len(pv.open(tmp_path / "strict").read()) == 1
