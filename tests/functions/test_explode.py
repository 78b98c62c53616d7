"""`variant_explode` gives every child of every row, as the reference reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from variant_strategies import mutated_variants, variants

Line = tuple[int, int | None, str | None, pv.Variant | None]


def _lines(table: pa.Table) -> list[Line]:
    columns = [table[name].to_pylist() for name in ("row", "pos", "key")]
    return list(zip(*columns, pv.VariantArray(table["value"]), strict=True))


def _children(row: int, value: pv.Variant | None) -> list[Line]:
    if value is not None and value.type == "object":
        return [(row, pos, key, child) for pos, (key, child) in enumerate(value.items())]
    if value is not None and value.type == "array":
        return [(row, pos, None, child) for pos, child in enumerate(value)]
    return []


@given(st.lists(st.none() | variants(), max_size=4))
def test_every_child_with_its_place_and_key(values: list[Any]) -> None:
    array = pv.VariantArray.from_variants(values)
    expected = [_children(row, value) for row, value in enumerate(values)]
    assert _lines(pv.variant_explode(array)) == [line for lines in expected for line in lines]
    outer = [lines or [(row, None, None, None)] for row, lines in enumerate(expected)]
    assert _lines(pv.variant_explode(array, outer=True)) == [line for lines in outer for line in lines]


@given(mutated_variants())
def test_malformed_values_raise_or_are_passed_over(value: pv.Variant) -> None:
    array = pv.VariantArray.from_variants([pv.parse_json("[1]"), value, pv.parse_json('{"a":2}')])
    there = _lines(pv.variant_explode(array, errors="null"))
    assert [line[:3] for line in there if line[0] != 1] == [(0, 0, None), (2, 0, "a")]
    try:
        lines = _lines(pv.variant_explode(array))
    except pv.MalformedVariantError as error:
        assert error.row == 1
        assert not [line for line in there if line[0] == 1]
        assert [line[1] for line in _lines(pv.variant_explode(array, outer=True, errors="null"))] == [0, None, 0]
    else:
        assert [line[:3] for line in lines] == [line[:3] for line in there]


def test_one_value_a_slice_a_shredded_array_and_the_type() -> None:
    value = pv.parse_json('{"b":[1],"a":2}')
    expected = [(0, 0, "a", value["a"]), (0, 1, "b", value["b"])]
    assert _lines(pv.variant_explode(value)) == expected
    array = pv.VariantArray.from_variants([None, value])
    assert _lines(pv.variant_explode(array[1:])) == expected
    shredded = pv.shred_variant(array, "struct<a int>")
    table = pv.variant_explode(shredded)
    assert [line[1:] for line in _lines(table)] == [line[1:] for line in expected]
    assert table.schema.field("value").metadata == {
        b"ARROW:extension:name": b"arrow.parquet.variant",
        b"ARROW:extension:metadata": b"",
    }
    assert table.schema.field("pos").type == pa.int32() and not table.schema.field("row").nullable
    assert pv.variant_explode(array[:0], outer=True).num_rows == 0


def test_a_conflict_is_not_a_row_to_pass_over() -> None:
    with pytest.raises(pv.SchemaError):
        pv.variant_explode(pa.array([1]), errors="null")
