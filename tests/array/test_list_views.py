"""Shredded storages whose lists, texts and bytes are views: what engines export (and pyarrow 26 casts wrongly)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.types.forms import without_encoding

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
        pv.write(tmp_path / "v.parquet", array, mode="overwrite")
        assert pv.to_json(pv.open(tmp_path / "v.parquet").read()).to_pylist() == _TEXTS[part]


def test_lists_in_other_columns_of_a_delta_table(tmp_path: Path) -> None:
    lists = [[{"a": "x"}], None, [], [{"a": None}, {"a": "y"}], [{"a": "z"}]]
    column = pa.array(lists, pa.list_view(pa.struct({"a": pa.string_view()})))
    pv.write(tmp_path / "t", {"v": pv.parse_json(_TEXTS), "l": column}, format="delta")
    assert pv.open(tmp_path / "t").to_arrow()["l"].to_pylist() == lists


def _aliased(rows: int, text: bytes, kind: pa.DataType) -> pa.Array:
    """Views of one text, which the array holds once."""
    views = np.zeros((rows, 4), np.int32)
    views[:, 0], views[:, 1] = len(text), np.frombuffer(text[:4], np.int32)[0]
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(views), pa.py_buffer(text)])


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_texts_that_views_share_count_once_for_each_row(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow's cast to 32-bit offsets wraps around: 3,000 views of one megabyte are three gigabytes."""
    monkeypatch.setattr("parquet_variant.arrays.capsules.MAX_OFFSET", 20_000)
    fields = [pa.array([b"\x01\0\0"] * 50), pa.nulls(50, pa.binary()), _aliased(50, b"text" * 200, kind)]
    array = pv.VariantArray(pa.StructArray.from_arrays(fields, ["metadata", "value", "typed_value"]))
    assert array.storage.type.field("typed_value").type in (pa.large_string(), pa.large_binary())
    assert array[49].to_python() in ("text" * 200, b"text" * 200)


@pytest.mark.parametrize("encoded", ["runs", "dictionary"])
def test_encoded_texts_that_outgrow_32_bits_get_64(encoded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parquet_variant.types.forms.MAX_OFFSET", 1000)
    texts = pa.array([b"\x11x", b"\x0c\x05" * 100])
    if encoded == "runs":
        values: pa.Array = pa.RunEndEncodedArray.from_arrays(pa.array([2, 20]), texts)[1:]
    else:
        values = pa.DictionaryArray.from_arrays(pa.array([0] + [1] * 18), texts)
    plain = without_encoding(values)
    assert plain.type == pa.large_binary()
    assert plain.to_pylist() == values.to_pylist()
    assert without_encoding(values[:2]).type == pa.binary()


def test_an_empty_column_without_offsets_is_empty() -> None:
    """Arrow lets an empty list go without offsets; pyarrow's sizes follow what lies there."""

    def bare(values: pa.Array) -> pa.Array:
        nowhere = pa.py_buffer(np.array([1 << 30], np.int32)).slice(0, 0)
        group = pa.StructArray.from_arrays([pa.nulls(0, pa.binary()), values], ["value", "typed_value"])
        return pa.Array.from_buffers(pa.list_(group.type), 0, [None, nowhere], children=[group])

    typed = bare(bare(bare(pa.nulls(0, pa.int64()))))
    fields = [pa.nulls(0, pa.binary()), pa.nulls(0, pa.binary()), typed]
    array = pv.VariantArray(pa.StructArray.from_arrays(fields, ["metadata", "value", "typed_value"]))
    assert array.nbytes == 0
    assert pv.to_json(array).to_pylist() == []
