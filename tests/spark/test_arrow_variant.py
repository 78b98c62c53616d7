"""The boundary to Spark's Arrow form of VARIANT: bytes unchanged, nulls kept, fields by position for Spark only."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.functions import arrow_udf

import parquet_variant as pv
from parquet_variant.arrays.capsules import is_marked_by_spark
from parquet_variant.spark.arrow_variant import (
    SPARK_VARIANT,
    as_spark,
    from_spark,
    nested_variants,
    row_bytes,
    slices_by_bytes,
    to_spark,
)
from parquet_variant.spark.datasource.reading import spark_batches

_TEXT = ['{"a": 1, "b": [true, null]}', None, "null", '"x"', '{"b": 1.25}']


def test_spark_reads_what_we_hand_over(spark):
    array = pv.parse_json(_TEXT)
    table = pa.table({"v": to_spark(array)}, schema=pa.schema([pa.field("v", SPARK_VARIANT)]))
    frame = spark.createDataFrame(table)
    assert frame.schema.simpleString() == "struct<v:variant>"
    rows = frame.selectExpr("to_json(v) AS text").collect()
    assert [row.text for row in rows] == ['{"a":1,"b":[true,null]}', None, "null", '"x"', '{"b":1.25}']


def _as_text(values: pa.Array) -> pa.Array:
    assert is_marked_by_spark(values.type)
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
    assert row_bytes(array.storage, SPARK_VARIANT).sum() >= sum(expected)
    assert len(row_bytes(pa.array([1, 2]), pa.int64())) == 2


def test_variants_at_any_depth_take_sparks_form():
    storage = pv.shred_variant(pv.parse_json(_TEXT), "a bigint").storage
    struct = pa.StructArray.from_arrays(
        [storage, pa.array(range(5))], names=["v", "n"], mask=pa.array([False] * 4 + [True])
    )
    rows = pa.ListArray.from_arrays(pa.array([0, 2, None, 5], pa.int32()), struct)
    maps = pa.MapArray.from_arrays([0, 1, 1, 5], pa.array(list("abcde")), storage)
    of_list = pa.list_(pa.struct({"v": SPARK_VARIANT, "n": pa.int64()}))
    of_map = pa.map_(pa.string(), SPARK_VARIANT)
    for array, target in ((rows, of_list), (maps, of_map)):
        for part in (array, array.slice(1), array.slice(0, 2), array.slice(3)):
            done = as_spark(part, target)
            done.validate(full=True)
            assert done.type == target
            assert _read_back(done) == _read_back(part)
    assert _read_back(as_spark(rows, of_list))[0] == [{"v": {"a": 1, "b": [True, None]}, "n": 0}, {"v": None, "n": 1}]


def _read_back(array: pa.Array):
    """Python objects, Variants as what they hold."""
    if pa.types.is_struct(array.type) and "metadata" in [field.name for field in array.type]:
        if is_marked_by_spark(array.type):
            return from_spark(array).to_pylist()
        return pv.VariantArray(array).to_pylist()
    if pa.types.is_struct(array.type):
        columns = {field.name: _read_back(array.field(field.name)) for field in array.type}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        offsets = array.offsets.to_pylist()
        values = _read_back(array.items if pa.types.is_map(array.type) else array.values)
        cut = [values[start:stop] for start, stop in pairwise(offsets)]
        return [row if valid else None for row, valid in zip(cut, array.is_valid().to_pylist(), strict=True)]
    return array.to_pylist()


def test_slices_cover_all_rows_within_the_limit():
    sizes = np.array([3, 0, 9, 1, 1, 1, 20, 0])
    slices = list(slices_by_bytes(sizes, 4))
    assert [row for start, stop in slices for row in range(start, stop)] == list(range(8))
    assert all(sizes[start:stop].sum() <= 4 or stop - start == 1 for start, stop in slices)
    assert list(slices_by_bytes(np.zeros(0, np.int64), 4)) == []


def test_a_variant_that_is_read_as_a_string_is_one_error():
    table = pa.table({"v": pv.from_python([1]).storage})
    with pytest.raises(pv.VariantError, match=r"column v cannot be converted to string .* option columns") as raised:
        list(spark_batches(table, pa.schema({"v": pa.string()})))
    assert raised.value.reason == "type-mismatch"
