"""`get_variant_element` and `get_variant_scalar`: the null rules of Vortex's RFC, whatever the layout."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv

ROWS: list[Any] = [{"a": 1}, {"a": Decimal("1.00")}, {"a": "1"}, {"a": None}, {}, None, 5, {"a": 1.5}, {"a": [1, "x"]}]
LAYOUTS = [None, "a bigint", "a string", "a decimal(9,2)", "a array<int>", "b int", "a double"]


def column(ddl: str | None, rows: list[Any] = ROWS) -> pv.VariantArray:
    plain = pv.VariantArray.from_pylist(rows)
    return plain if ddl is None else pv.shred_variant(plain, pv.ShreddingSchema.from_ddl(ddl))


@pytest.mark.parametrize("ddl", LAYOUTS)
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("bigint", [1, 1, *[None] * 7]),
        ("tinyint", [1, 1, *[None] * 7]),
        ("decimal(5,3)", [Decimal("1.000"), Decimal("1.000"), *[None] * 7]),
        ("string", [None, None, "1", *[None] * 6]),
        ("double", [*[None] * 7, 1.5, None]),
        ("float", [None] * 9),
        ("boolean", [None] * 9),
        ("array<int>", [*[None] * 8, [1, None]]),
        (pa.list_(pa.string(), 2), [*[None] * 8, [None, "x"]]),
    ],
)
def test_missing_other_types_and_variantnull_become_null(ddl: str | None, dtype: Any, expected: list[Any]) -> None:
    assert pv.get_variant_element(column(ddl), "$.a", dtype).to_pylist() == expected


def test_structs_and_maps_are_taken_field_by_field_without_casts() -> None:
    array = column(None, [{"a": 1, "b": "x"}, {"a": "1"}, [1]])
    assert pv.get_variant_element(array, "$", "struct<a: int, b: string>").to_pylist() == [
        {"a": 1, "b": "x"},
        {"a": None, "b": None},
        None,
    ]
    assert pv.get_variant_element(array, "$", "map<string, string>").to_pylist() == [
        [("a", None), ("b", "x")],
        [("a", "1")],
        None,
    ]


@pytest.mark.parametrize(
    ("value", "dtype", "same"),
    [
        (2**53 + 1, pa.float64(), False),
        (np.float32(0.1), pa.float64(), True),
        (0.5, pa.float32(), False),
        (300, pa.int8(), False),
        (-1, pa.uint8(), False),
        (Decimal("0.999"), pa.decimal128(5, 2), False),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pa.timestamp("ns", "UTC"), True),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pa.timestamp("s", "UTC"), True),
        (dt.datetime(2020, 1, 1, 0, 0, 0, 5, dt.UTC), pa.timestamp("s", "UTC"), False),
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), pa.timestamp("us"), False),
        (dt.date(2020, 1, 1), pa.timestamp("us"), False),
        (dt.time(1, 2, 3, 4), pa.time32("s"), False),
        (dt.time(1, 2, 3), pa.time32("s"), True),
        (b"abc", pa.binary(3), True),
        (b"abc", pa.string(), False),
    ],
)
def test_only_the_same_value_is_of_the_type(value: Any, dtype: pa.DataType, same: bool) -> None:
    found = pv.get_variant_element(pv.VariantArray.from_pylist([value]), "$", dtype)
    assert found.type == dtype
    assert found[0].is_valid is same


def test_the_result_is_nullable_even_if_the_column_is_not() -> None:
    storage = pv.VariantArray.from_pylist([{"a": 1}]).storage
    assert storage.null_count == 0
    assert pv.get_variant_element(storage, "$.b", "int").null_count == 1


@pytest.mark.parametrize("ddl", LAYOUTS)
def test_scalars_tell_every_null_apart(ddl: str | None) -> None:
    array = column(ddl)
    states = [pv.get_variant_scalar(array, row, "$.a", "bigint").state for row in range(len(array))]
    assert states == [
        "value", "value", "other-type", "variantnull", "missing", "null", "missing", "other-type", "other-type",
    ]  # fmt: skip
    outer = pv.get_variant_scalar(array, 5, "$", "variant")
    assert outer.is_null and not outer.is_variant_null and outer.value is None
    inner = pv.get_variant_scalar(array, 3, "$.a")
    assert inner.is_variant_null and not inner.is_null
    assert isinstance(inner.value, pv.Variant) and inner.value.type == "null"


def test_scalars_are_of_the_type_asked_for() -> None:
    array = column(None)
    one = pv.get_variant_scalar(array, -9, "$.a", pa.int16())
    assert (one.as_py(), one.value.type) == (1, pa.int16())
    assert pv.get_variant_scalar(array, 4, "$.a", pa.int16()).value.type == pa.int16()
    with pytest.raises(IndexError):
        pv.get_variant_scalar(array, 99)
