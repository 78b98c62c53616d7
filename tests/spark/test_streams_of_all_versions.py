"""Streams of directories and Delta tables without limits, which work in every version of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.spark.datasource.streams import SUPPORTS_LIMITS


@pytest.mark.parametrize("kind", ["directory", "delta"])
def test_every_row_is_read_once_over_restarts(spark: Any, tmp_path: Path, kind: str) -> None:
    spark.dataSource.register(pv.spark.VariantDataSource)
    source, target = tmp_path / "in", tmp_path / "out"

    def add(number: int) -> None:
        rows = {"v": pv.from_python([{"n": number}])}
        if kind == "delta":
            pv.write(source, rows, format="delta", mode="append")
        else:
            source.mkdir(exist_ok=True)
            pv.write(source / f"{number}.parquet", rows)

    def run() -> list[int]:
        stream = spark.readStream.format("variant").load(str(source))
        query = stream.writeStream.format("variant").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start(str(target)).awaitTermination()
        return sorted(row["n"] for row in pv.open(target).read().to_pylist())

    add(1)
    add(2)
    assert run() == [1, 2]
    add(3)
    assert run() == [1, 2, 3]
    assert run() == [1, 2, 3]


@pytest.mark.skipif(SUPPORTS_LIMITS, reason="this Spark limits micro-batches")
def test_limits_are_refused_where_spark_has_none(spark: Any, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"v": pv.parse_json(["1"])}, format="delta")
    stream = spark.readStream.format("variant").option("maxFilesPerTrigger", 1).load(str(tmp_path / "t"))
    query = stream.writeStream.format("memory").queryName("limited").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(Exception, match="maxFilesPerTrigger requires Spark"):
        query.start().processAllAvailable()
