"""`cast_to_variant`: every Arrow type, and the same bytes as from Python."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv

NOON = dt.datetime(2020, 1, 2, 12, 0, 5)
UUID = uuid.UUID(int=5)
MAP = pa.map_(pa.string(), pa.list_(pa.int64()))
CASES: list[tuple[pa.Array, list[Any]]] = [
    *[(pa.array([0, None, 127], kind), [0, None, 127]) for kind in (pa.int8(), pa.int64(), pa.uint8(), pa.uint32())],
    (pa.array([2**64 - 1, 2**63, 2**63 - 1, None], pa.uint64()), [2**64 - 1, 2**63, 2**63 - 1, None]),
    (pa.array([-(2**63), 2**31, -129]), [-(2**63), 2**31, -129]),
    (pa.array([True, None, False]), [True, None, False]),
    (pa.array([1.5, None]), [1.5, None]),
    (pa.array([1.5, None], pa.float32()), [np.float32(1.5), None]),
    (pa.array([1.5], pa.float16()), [np.float32(1.5)]),
    (pa.array([Decimal("1.50"), None, Decimal("-0.01")]), [Decimal("1.50"), None, Decimal("-0.01")]),
    (pa.array([Decimal(10) ** 36], pa.decimal128(38, 1)), [Decimal("1000000000000000000000000000000000000.0")]),
    (pa.array([Decimal("1.50")], pa.decimal256(50, 2)), [Decimal("1.50")]),
    (pa.array([Decimal("1E+3")], pa.decimal128(5, -2)), [Decimal(1000)]),
    (pa.array(["a", None, "x" * 100, ""]), ["a", None, "x" * 100, ""]),
    (pa.array(["é", None]).cast(pa.large_string()), ["é", None]),
    (pa.array(["a", "longer than twelve bytes"], pa.string_view()), ["a", "longer than twelve bytes"]),
    (pa.array([b"a", None, b"b" * 80]), [b"a", None, b"b" * 80]),
    (pa.array([b"0123456789abcdef"], pa.binary(16)), [b"0123456789abcdef"]),
    (pa.array([UUID.bytes, None], pa.uuid()), [UUID, None]),
    (pa.array([NOON.date(), None]), [NOON.date(), None]),
    (pa.array([NOON.date(), None], pa.date64()), [NOON.date(), None]),
    (pa.array([NOON.time()], pa.time32("s")), [NOON.time()]),
    (pa.array([NOON.time()], pa.time64("ns")), [NOON.time()]),
    (pa.array([NOON, None], pa.timestamp("s")), [NOON, None]),
    (pa.array([NOON], pa.timestamp("ms", "Europe/Paris")), [NOON.replace(tzinfo=dt.UTC)]),
    (pa.array([1, None], pa.timestamp("ns")), [np.datetime64(1, "ns"), None]),
    (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
    (pc.run_end_encode(pa.array([1, 1, 2, None])), [1, 1, 2, None]),
    *[
        (pa.array([[1, None], None, [], [3]], kind), [[1, None], None, [], [3]])
        for kind in (pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_view(pa.int8()))
    ],
    (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    (pa.array([{"b": 1, "a": {"x": None}}, None]), [{"b": 1, "a": {"x": None}}, None]),
    (pa.array([{}, None], pa.struct([])), [{}, None]),
    (pa.array([[("k", [1]), ("j", None)], None, []], MAP), [{"k": [1], "j": None}, None, {}]),
    (pa.array([{"m": [("k", [1])]}, {"m": None}], pa.struct({"m": MAP})), [{"m": {"k": [1]}}, {"m": None}]),
    (pa.array(['{"a": [1]}', None], pa.json_()), [{"a": [1]}, None]),
    (pa.nulls(2), [None, None]),
    (pa.array([[None]], pa.list_(pa.null())), [[None]]),
    (pa.array([], pa.struct({"a": pa.int64()})), []),
]  # fmt: skip


@pytest.mark.parametrize(("array", "values"), CASES, ids=[str(array.type) for array, _ in CASES])
def test_a_column_gives_the_bytes_that_python_gives(array: pa.Array, values: list[Any]) -> None:
    found = pv.cast_to_variant(array)
    expected = pv.VariantArray.from_pylist(values)
    assert [value and (value.metadata, value.value) for value in found] == [
        value and (value.metadata, value.value) for value in expected
    ]
    assert all(value is None or value.validate() for value in found)


ARROW_TYPES = st.recursive(
    st.sampled_from([pa.int8(), pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.binary()]),
    lambda inner: (
        inner.map(pa.list_)
        | st.dictionaries(st.sampled_from(["a", "b", "é", ""]), inner, min_size=1, max_size=3).map(pa.struct)
    ),
    max_leaves=5,
)


@given(st.data(), ARROW_TYPES)
def test_nested_columns_keep_every_null_and_survive_slicing(data: st.DataObject, arrow: pa.DataType) -> None:
    rows = data.draw(st.lists(_values(arrow), min_size=1, max_size=5))
    array = pa.array(rows, arrow)
    start = data.draw(st.integers(0, len(rows) - 1))
    assert pv.cast_to_variant(array[start:]).equals(pv.VariantArray.from_pylist(rows[start:]))


def _values(arrow: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_list(arrow):
        return st.none() | st.lists(_values(arrow.value_type), max_size=3)
    if pa.types.is_struct(arrow):
        return st.none() | st.fixed_dictionaries({field.name: _values(field.type) for field in arrow})
    scalars: dict[pa.DataType, st.SearchStrategy[Any]] = {
        pa.int8(): st.integers(-128, 127),
        pa.int64(): st.integers(-(2**63), 2**63 - 1),
        pa.float64(): st.floats(),
        pa.string(): st.text(max_size=5),
        pa.bool_(): st.booleans(),
        pa.date32(): st.dates(),
        pa.binary(): st.binary(max_size=5),
    }
    return st.none() | scalars[arrow]


def test_chunks_and_variants_are_taken() -> None:
    chunked = pa.chunked_array([[1, 2], [3]])
    assert pv.cast_to_variant(chunked).to_pylist() == [1, 2, 3]
    array = pv.parse_json(['{"a": 1}', None])
    assert pv.cast_to_variant(array) is array
    assert pv.cast_to_variant(array.storage).equals(array)
    nested = pa.StructArray.from_arrays([array.storage], names=["v"])
    assert pv.cast_to_variant(nested).to_pylist() == [{"v": {"a": 1}}, {"v": None}]


def test_a_shredded_variant_without_residuals_is_a_variant() -> None:
    fields = {"metadata": pa.array([b"\x01\x00\x00"] * 2), "typed_value": pa.array([1, 2])}
    storage = pa.StructArray.from_arrays(list(fields.values()), names=list(fields))
    assert pv.cast_to_variant(storage).to_pylist() == [1, 2]
    assert pv.cast_to_variant(pa.StructArray.from_arrays([storage], names=["v"])).to_pylist() == [{"v": 1}, {"v": 2}]


@pytest.mark.parametrize("key", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_keys_of_maps_are_texts_in_any_form(key: pa.DataType) -> None:
    maps = pa.array([[("z", 0)], [("a", 1), ("b", 2)], None, [("c", 3)]], pa.map_(key, pa.int64()))
    assert pv.cast_to_variant(maps[1:]).to_pylist() == [{"a": 1, "b": 2}, None, {"c": 3}]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (pa.array([1], pa.duration("s")), "unsupported-type"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "unsupported-type"),
        (pa.array([[(1, "x")]], pa.map_(pa.int64(), pa.string())), "unsupported-type"),
        (pa.array([1], pa.time64("ns")), "bad-cast"),
        (pa.array([2**60], pa.timestamp("s")), "bad-cast"),
        (pa.array([Decimal(10) ** 45], pa.decimal256(60, 0)), "bad-cast"),
        (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "duplicate-key"),
        (pa.array([[[("a", 1), ("a", 2)]]], pa.list_(pa.map_(pa.string(), pa.int64()))), "duplicate-key"),
    ],
)
def test_what_no_variant_can_hold_is_refused(array: pa.Array, reason: str) -> None:
    with pytest.raises(pv.VariantError) as caught:
        pv.cast_to_variant(array)
    assert caught.value.reason == reason
