"""Shredded storages whose lists, texts and bytes are views: what engines export (and pyarrow 26 casts wrongly)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv

_TEXTS = ['{"a":[1,2],"s":"a text that no view holds inline"}', None, '{"a":["q"]}', '{"a":[]}', '{"a":[3]}']


def _viewed(kind: pa.DataType, lists: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_viewed(field.type, lists)) for field in kind])
    if pa.types.is_list(kind):
        return lists(_viewed(kind.value_type, lists))
    if pa.types.is_dictionary(kind):
        return pa.binary_view()
    return {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}.get(kind, kind)


@pytest.mark.parametrize("lists", [pa.list_view, pa.large_list_view])
@pytest.mark.parametrize("part", [slice(None), slice(1, 4)])
def test_they_are_read_as_any_other(lists: Callable[[pa.DataType], pa.DataType], part: slice, tmp_path: Path) -> None:
    shredded = pv.shred_variant(pv.parse_json(_TEXTS), "struct<a array<bigint>, s string>").storage
    storage = pa.array(shredded.to_pylist(), _viewed(shredded.type, lists))[part]
    for array in (pv.VariantArray(storage), pv.VariantArray.from_arrow(pa.table({"v": storage}))):
        assert pv.to_json(array).to_pylist() == _TEXTS[part]
        assert pv.variant_get(array, "$.a[0]", "string").to_pylist() == ["1", None, "q", None, "3"][part]
        assert pv.validate(array).num_rows == 0 and pv.variant_explode(array).num_rows > 0
        pv.infer_shredding_schema(array)
        pv.parquet.write(tmp_path / "v.parquet", array, mode="overwrite")
        assert pv.to_json(pv.parquet.read(tmp_path / "v.parquet")).to_pylist() == _TEXTS[part]


def test_lists_in_other_columns_of_a_delta_table(tmp_path: Path) -> None:
    lists = [[{"a": "x"}], None, [], [{"a": None}, {"a": "y"}], [{"a": "z"}]]
    column = pa.array(lists, pa.list_view(pa.struct({"a": pa.string_view()})))
    pv.delta.write(tmp_path / "t", {"v": pv.parse_json(_TEXTS), "l": column})
    assert pv.delta.read_table(tmp_path / "t")["l"].to_pylist() == lists
