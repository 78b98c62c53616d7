"""The profile as a distributed aggregate: that of the same rows in process, however they are parted."""

from __future__ import annotations

import json

import pytest

import parquet_variant as pv
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.inference.infer import infer
from parquet_variant.inference.profile import Profile


def _texts() -> list[str | None]:
    rows = [{"id": n, "d": n / 8, "l": ["x" * (n % 5)] * (n % 3), "o": {f"k{n % 7}": None}} for n in range(500)]
    return [*map(json.dumps, rows), None, '"other"', "null"]


@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_any_partition_of_json_gives_the_profile_of_the_process(spark, partitions):
    frame = spark.createDataFrame([(text,) for text in _texts()], "j string").repartition(partitions)
    found = pv.open(frame).profile()
    assert found == Profile.of_array(pv.parse_json(_texts()))
    assert pv.spark.infer_schema(frame, "j") == infer(found).schema


def test_a_variant_column_gives_it_too(spark):
    frame = spark.createDataFrame([(text, 1) for text in _texts()], "j string, n int")
    variants = frame.repartition(3).selectExpr("n", "parse_json(j) AS v", "n AS m")
    found, expected = pv.open(variants, column="v").profile(), Profile.of_array(pv.parse_json(_texts()))
    assert (found.rows, found.null_rows, found.values) == (503, 1, expected.values)
    assert [(str(path.path), path.count, path.rows, path.int_range) for path in found] == [
        (str(path.path), path.count, path.rows, path.int_range) for path in expected
    ]
    assert infer(found).schema == infer(expected).schema


def test_no_rows_are_an_empty_profile(spark):
    empty = spark.createDataFrame([], "j string")
    assert pv.open(empty).profile() == Profile()
    with pytest.raises(VariantError, match="has no rows"):
        pv.spark.infer_schema(empty)


def test_a_bad_row_and_a_missing_column_are_errors(spark):
    frame = spark.createDataFrame([("{}",), ('{"a": ',)], "j string")
    with pytest.raises(JsonError):
        pv.open(frame).profile()
    with pytest.raises(VariantError, match="absent"):
        pv.open(frame, column="absent").profile()


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_a_day_without_rows_is_written(spark, tmp_path, format):
    rows = spark.createDataFrame([('{"a": 1}',)], "v string").selectExpr("parse_json(v) AS v")
    target = str(tmp_path / "t")
    pv.write(str(tmp_path / "new"), rows.where("false"), format=format)
    assert len(pv.open(tmp_path / "new")) == 0
    pv.write(target, rows, format=format)
    pv.write(target, rows.where("false"), format=format, mode="append")
    assert pv.open(target).read().to_pylist() == [{"a": 1}]
    pv.write(target, rows.where("false"), format=format, mode="overwrite")
    assert len(pv.open(target)) == 0
