"""Columns of Arrow's type of JSON text become Variants at any depth, and Variants become such columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv

TEXTS = ['{"a":1}', None, '[1.50,"x"]', "null"]
VALUES = pv.parse_json(TEXTS)
STORAGES = [pa.string(), pa.large_string(), pa.string_view()]


def _json(storage: pa.DataType, texts: list[str | None] = TEXTS) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(storage), pa.array(texts, storage))


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_json_text_becomes_variants(storage: pa.DataType) -> None:
    column = _json(storage)
    for source in (column, pa.chunked_array([column[:1], column[1:]]), column[0:0]):
        for convert in (pv.cast_to_variant, pv.VariantArray.from_arrow):
            assert convert(source).equals(VALUES[: len(source)])
    table = pa.table({"id": range(4), "j": pa.chunked_array([column[:1], column[1:]])})
    assert pv.VariantArray.from_arrow(table).equals(VALUES)
    assert pv.VariantArray.from_arrow(table, "j").equals(VALUES)


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_json_text_inside_other_columns(storage: pa.DataType) -> None:
    column = _json(storage)
    struct = pa.StructArray.from_arrays([column, pa.array([1, 2, 3, 4])], names=["j", "n"])
    first = {"j": {"a": 1}, "n": 1}
    assert pv.cast_to_variant(struct).to_pylist()[:2] == [first, {"j": None, "n": 2}]
    assert pv.cast_to_variant(pa.ListArray.from_arrays([0, 1, 4], struct)).to_pylist()[0] == [first]
    assert pv.cast_to_variant(pa.ListArray.from_arrays([0, 1, 4], column)).to_pylist()[0] == [{"a": 1}]


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_variants_become_json_text(storage: pa.DataType) -> None:
    target = pa.json_(storage)
    found = pv.variant_get(VALUES, "$", target)
    assert found.type == target and found.storage.to_pylist() == ['{"a":1}', None, '[1.5,"x"]', "null"]
    assert pv.variant_get(VALUES, "$.a", target).storage.to_pylist() == ["1", None, None, None]
    assert [None if value is None else pv.variant_get(value, "$.a", target) for value in VALUES] == [
        "1",
        None,
        None,
        None,
    ]
    assert pv.VariantArray.from_arrow(pv.variant_get(pv.shred_variant(VALUES, "a int"), "$", target)).equals(VALUES)


def test_errors_have_the_row_of_the_column() -> None:
    bad = pa.chunked_array([_json(pa.string()), _json(pa.string(), ["1", "{"])])
    for convert in (pv.cast_to_variant, pv.VariantArray.from_arrow):
        with pytest.raises(pv.JsonError) as caught:
            convert(bad)
        assert caught.value.row == 5
