"""`to_python` and `from_python` over columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from variant_strategies import python_values


@given(st.lists(python_values(max_leaves=6), max_size=4))
def test_objects_come_back(values: list[Any]) -> None:
    found = pv.to_python(pv.from_python(values))
    assert (
        found == [pv.Variant.from_python(value).to_python() for value in values]
        or found != found
        or any("nan" in repr(value) for value in values)
    )
    assert pv.from_python(found) == pv.from_python(values)


def test_null_and_errors_with_rows() -> None:
    array = pv.from_python([None, pv.Variant.from_python(None), 1])
    assert array.null_count == 1 and pv.to_python(array) == [None, None, 1]
    assert pv.to_python(array[2]) == 1
    with pytest.raises(pv.CastError) as caught:
        pv.from_python(["a", object()])
    assert caught.value.row == 1
    assert pv.from_python(["a", object(), [[1]]], errors="null").to_pylist() == ["a", None, [[1]]]
    assert pv.from_python([[[1]]], max_depth=1, errors="null").to_pylist() == [None]
    not_a_time = pv.Variant(b"\x11\x00\x00", bytes([12 << 2]) + (-(2**63)).to_bytes(8, "little", signed=True))
    assert np.isnat(np.datetime64(-(2**63), "us"))
    rows = pv.VariantArray.from_variants([array[2], not_a_time, pv.Variant(b"\x11\x00\x00", b"\x0c")])
    with pytest.raises(pv.VariantError) as refused:
        pv.to_python(rows)
    assert refused.value.row == 1
    assert pv.to_python(rows, errors="null") == [1, None, None]
    assert pv.to_python(not_a_time, errors="null") is None


ONE_VALUES = [{"a": 1}, "abc", b"abc", bytearray(b"a"), {1, 2}, 5, None, pv.Variant(b"\1\0\0", b"\0")]


@pytest.mark.parametrize("value", ONE_VALUES)
def test_one_value_is_not_a_column(value: Any) -> None:
    for operation in (pv.VariantArray.from_pylist, pv.VariantArray.from_variants, pv.cast_to_variant):
        with pytest.raises(pv.SchemaError) as caught:
            operation(value)
        assert caught.value.reason == "one-value"
    assert len(pv.from_python(iter([value]), errors="null")) == 1
    assert pv.from_python({"a": 1, "b": 2}.values()).to_pylist() == [1, 2]


def test_one_value_gives_one_variant() -> None:
    for value in ({"a": 1}, "abc", b"abc", 5, None, True):
        assert pv.from_python(value) == pv.Variant.from_python(value)
        assert pv.from_python(value, errors="null") == pv.Variant.from_python(value)
    one = pv.parse_json("[1]")
    assert pv.from_python(one) is one
    with pytest.raises(pv.CastError):
        pv.from_python({1, 2})
    assert pv.from_python({1, 2}, errors="null") is None


def _one_by_one(column: list[pv.Variant | None]) -> list[str]:
    return [repr(None if value is None else pv.to_python(value, errors="null")) for value in column]


@given(st.lists(st.none() | testing.variants(max_leaves=12) | testing.mutated_variants(), max_size=8))
def test_a_column_gives_the_objects_of_its_values(column: list[pv.Variant | None]) -> None:
    array = pv.VariantArray.from_variants(column)
    assert [repr(item) for item in pv.to_python(array, errors="null")] == _one_by_one(column)
    try:
        expected = [None if value is None else value.to_python() for value in column]
    except pv.VariantError as error:
        with pytest.raises(pv.VariantError) as raised:
            array.to_pylist()
        assert (raised.value.reason, raised.value.offset) == (error.reason, error.offset)
    else:
        assert repr(array.to_pylist()) == repr(expected)
