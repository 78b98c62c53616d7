"""The boundary to Spark's Arrow form of VARIANT: bytes unchanged, nulls kept, fields by position for Spark only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.functions import arrow_udf

import parquet_variant as pv
from parquet_variant.spark.arrow_variant import (
    SPARK_VARIANT,
    from_spark,
    is_spark_variant,
    nested_variants,
    row_bytes,
    slices_by_bytes,
    to_spark,
)

_TEXT = ['{"a": 1, "b": [true, null]}', None, "null", '"x"', '{"b": 1.25}']


def test_spark_reads_what_we_hand_over(spark):
    array = pv.parse_json(_TEXT)
    table = pa.table({"v": to_spark(array)}, schema=pa.schema([pa.field("v", SPARK_VARIANT)]))
    frame = spark.createDataFrame(table)
    assert frame.schema.simpleString() == "struct<v:variant>"
    rows = frame.selectExpr("to_json(v) AS text").collect()
    assert [row.text for row in rows] == ['{"a":1,"b":[true,null]}', None, "null", '"x"', '{"b":1.25}']


def _as_text(values: pa.Array) -> pa.Array:
    assert is_spark_variant(values.type)
    return pa.array([repr(value) for value in from_spark(values).to_pylist()], pa.string())


def test_a_column_of_spark_comes_in_whole(spark):
    frame = spark.sql("SELECT IF(id = 1, NULL, parse_json(concat('{\"id\": ', id, '}'))) AS v FROM range(3)")
    rows = frame.select(arrow_udf(_as_text, "string")("v").alias("text")).collect()
    assert [row.text for row in rows] == ["{'id': 0}", "None", "{'id': 2}"]


@pytest.mark.parametrize("dictionary", ["row", "batch"])
def test_there_and_back_keeps_every_value_and_slice(dictionary):
    array = pv.parse_json(_TEXT, dictionary=dictionary)
    assert from_spark(to_spark(array)) == array
    assert from_spark(to_spark(array).slice(1, 3)) == array[1:4]
    assert from_spark(to_spark(array[2:])) == array[2:]


def test_the_children_hold_no_null_below_a_null_struct():
    storage = to_spark(pv.parse_json(_TEXT))
    assert storage.type == SPARK_VARIANT
    assert storage.null_count == 1
    assert [storage.field(index).null_count for index in range(2)] == [0, 0]


def test_variants_are_found_inside_of_everything():
    schema = pa.schema(
        {
            "top": SPARK_VARIANT,
            "s": pa.struct({"a": SPARK_VARIANT}),
            "l": pa.list_(SPARK_VARIANT),
            "m": pa.map_(pa.string(), pa.struct({"b": SPARK_VARIANT})),
            "n": pa.struct({"value": pa.binary(), "metadata": pa.binary()}),
        }
    )
    assert nested_variants(schema) == ["s.a", "l.list.element", "m.key_value.value.b"]


def test_row_bytes_count_the_dictionary_of_every_row():
    array = pv.parse_json(_TEXT, dictionary="batch")
    plain = to_spark(array)
    expected = [0 if row is None else len(row["value"]) + len(row["metadata"]) for row in plain.to_pylist()]
    sizes = row_bytes(array)
    assert sizes[[0, 2, 3, 4]].tolist() == [expected[row] for row in (0, 2, 3, 4)]


def test_slices_cover_all_rows_within_the_limit():
    sizes = np.array([3, 0, 9, 1, 1, 1, 20, 0])
    slices = list(slices_by_bytes(sizes, 4))
    assert [row for start, stop in slices for row in range(start, stop)] == list(range(8))
    assert all(sizes[start:stop].sum() <= 4 or stop - start == 1 for start, stop in slices)
    assert list(slices_by_bytes(np.zeros(0, np.int64), 4)) == []
