"""Jobs of tasks: results in order, errors whole, progress reported, the session left as it was."""

from __future__ import annotations

import operator

import pytest

from parquet_variant.errors import JsonError, VariantError
from parquet_variant.spark.engine import SparkEngine
from parquet_variant.spark.task_errors import from_spark_errors


def _square(task: int, attempt: int, item: int) -> tuple[int, int]:
    return task, item * item


def _value(task: int, attempt: int, item: int) -> int:
    return item


def _fail_on_three(task: int, attempt: int, item: int) -> int:
    if item == 3:
        raise JsonError("it is three", reason="three", file="a.json", offset=7)
    return item


def test_results_come_in_the_order_of_the_items(spark):
    assert SparkEngine(spark, None).run("square", _square, [3, 1, 2]) == [(0, 9), (1, 1), (2, 4)]
    assert SparkEngine(spark, None).run("nothing", _square, []) == []


def test_results_are_merged(spark):
    assert SparkEngine(spark, None).reduce("add", _value, list(range(50)), operator.add) == sum(range(50))


def test_a_task_error_arrives_as_it_was_raised(spark):
    with pytest.raises(JsonError) as raised:
        SparkEngine(spark, None).run("fail", _fail_on_three, [1, 2, 3])
    assert str(raised.value) == "it is three (file a.json, byte offset 7)"
    assert raised.value.reason == "three"
    assert raised.value.__cause__ is None


def test_progress_begins_at_nothing_and_ends_at_all(spark):
    expected = []
    SparkEngine(spark, lambda *step: expected.append(step)).run("square", _square, [1, 2, 3])
    assert expected[0] == ("square", 0, 3)
    assert expected[-1] == ("square", 3, 3)
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_cancelled_job_is_reported_in_one_line():
    with pytest.raises(VariantError, match="was cancelled") as raised, from_spark_errors():
        raise RuntimeError("org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 22 cancelled\n\tat org.apache…")
    assert raised.value.reason == "cancelled"
