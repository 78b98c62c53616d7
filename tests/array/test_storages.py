"""Storages of any layout, by one choice of the way."""

from __future__ import annotations

from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import parquet_variant as pv
from parquet_variant.arrays.storages import shredded_storage, unshredded_storage
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.support.options import Layout

VALUES = ['{"a": 1, "b": [true, "x"]}', '{"a": "n/a"}', None, "null", "[]", "7"]


@pytest.mark.parametrize("layout", get_args(Layout))
def test_every_layout_gives_the_values_back(layout: Any) -> None:
    plain = pv.parse_json(VALUES)
    schema = pv.ShreddingSchema.from_ddl("a bigint, b array<string>")

    storage = shredded_storage(plain.storage, schema, layout)

    assert detect_layout(storage.type) == layout
    assert pv.VariantArray(unshredded_storage(storage, layout)).equals(plain)


def test_a_malformed_row_is_named_by_every_layout_that_reads_it() -> None:
    rows = [pv.Variant.from_python({"a": 1}), pv.Variant(b"\x11\0\0", b"\x02\x01")]
    schema = pv.ShreddingSchema.from_ddl("a bigint")
    for layout in ("final", "draft-paths", "draft-object"):
        with pytest.raises(pv.MalformedVariantError) as caught:
            shredded_storage(pv.VariantArray.from_variants(rows).storage, schema, layout)
        assert caught.value.row == 1


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_bytes_that_go_as_text_are_values(kind: pa.DataType) -> None:
    """As of a Parquet file whose `value` says that it is text; row 1 is no UTF-8."""
    columns = [
        pa.array(item, pa.binary()).view(pa.string()) for item in ([b"\x01\0\0"] * 2, [b"\x0c\x05", b"\x0c\xff"])
    ]
    if pa.types.is_dictionary(kind):
        columns = [column.dictionary_encode() for column in columns]
    else:
        columns = [column.cast(kind) for column in columns]
    array = pv.VariantArray(pa.StructArray.from_arrays(columns, ["metadata", "value"]))
    assert array.to_pylist() == [array[0].to_python(), array[1].to_python()] == [5, -1]
    assert repr(array) == "<VariantArray unshredded, 2 rows: [5, -1]>"


_METADATA_FORMS = {
    "run ends": pc.run_end_encode,
    "views": lambda column: column.cast(pa.binary_view()),
}


@pytest.mark.parametrize("form", _METADATA_FORMS)
def test_rows_of_every_form_of_metadata_are_taken_filtered_and_compared(form: str) -> None:
    plain = pv.parse_json(VALUES)
    metadata = _METADATA_FORMS[form](plain.storage.field("metadata").dictionary_decode())
    columns = [metadata, plain.storage.field("value")]
    array = pv.VariantArray(pa.StructArray.from_arrays(columns, ["metadata", "value"], mask=plain.is_null()))
    assert array.take([4, 0, 2]).to_pylist() == [[], plain[0].to_python(), None]
    assert array[::2].equals(plain[::2])
    assert array.filter([False, True, False, False, False, True]).to_pylist() == [{"a": "n/a"}, 7]
    other = pv.parse_json(['{"a": 2}', *VALUES[1:]])
    assert pv.equals(array, other).to_pylist() == [False, True, None, True, True, True]


def test_storages_whose_metadata_has_null_entries_are_joined() -> None:
    """As an engine may write them under null rows; pyarrow joins no dictionaries with nulls among the values."""
    plain = pv.parse_json(["1", None])
    metadata = plain.storage.field("metadata").dictionary_decode()[:1]
    for column in (
        pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([metadata[0].as_py(), None], pa.binary())),
        pc.run_end_encode(pa.array([metadata[0].as_py(), None], pa.binary())),
    ):
        columns = [column, plain.storage.field("value")]
        storage = pa.StructArray.from_arrays(columns, ["metadata", "value"], mask=plain.is_null())
        joined = pv.VariantArray.concat([pv.VariantArray(storage), pv.VariantArray(storage)])
        assert joined.to_pylist() == [1, None, 1, None]
        assert pv.to_json(joined).to_pylist() == ["1", None, "1", None]


def test_unshredded_arrays_of_any_form_are_joined() -> None:
    parsed, values = pv.parse_json(['{"a":1}', None]), [{"a": 1}, None]
    metadata, value = (parsed.storage.field(name) for name in ("metadata", "value"))
    forms = [
        pa.StructArray.from_arrays(children, ["metadata", "value"], mask=parsed.is_null())
        for children in (
            [metadata, value],
            [metadata.dictionary_decode(), value],
            [metadata, value.cast(pa.large_binary())],
            [pc.run_end_encode(metadata.dictionary_decode()), value],
        )
    ]
    for first in (parsed.storage, *forms):
        for second in (parsed.storage[1:], *forms):
            joined = pv.VariantArray.concat([pv.VariantArray(first), pv.VariantArray(second)])
            joined.storage.validate(full=True)
            assert joined.to_pylist() == values + values[-len(second) :]
    with pytest.raises(pv.SchemaError, match="2 storage types"):
        pv.VariantArray.concat([parsed, pv.shred_variant(parsed, "a bigint")])


@pytest.mark.parametrize("encoded", ["dictionary", "runs"])
def test_values_of_columns_that_are_decoded_live_until_they_are_written(encoded: str) -> None:
    """Nodes point to copies of such columns, which nothing else holds."""
    plain = pv.from_python([{"a": f"text {row}", "b": [row] * 50} for row in range(300)])
    storage = pv.shred_variant(plain, "a bigint, b array<string>").storage
    encode = pc.dictionary_encode if encoded == "dictionary" else pc.run_end_encode

    def in_form(array: pa.Array) -> pa.Array:
        if pa.types.is_struct(array.type):
            children = [in_form(array.field(number)) for number in range(array.type.num_fields)]
            return pa.StructArray.from_arrays(children, names=array.type.names, mask=array.is_null())
        return encode(array) if array.type == pa.binary() else array

    for _ in range(20):
        column = pv.VariantArray(in_form(storage))
        assert pv.to_json(pv.unshred_variant(column)).equals(pv.to_json(plain))
        assert pv.to_json(column).equals(pv.to_json(plain))


def test_rows_that_do_not_change_may_be_of_wide_offsets_and_null() -> None:
    plain = pv.from_python([{"a": 1}, None, {"b": 2}])
    value = plain.storage.field("value").cast(pa.large_binary())
    missing = plain.storage.is_null()
    value = pc.if_else(missing, None, value)
    storage = pa.StructArray.from_arrays([plain.storage.field("metadata"), value], ["metadata", "value"], mask=missing)
    changed = pv.variant_array_append(storage, "$.a", 1, errors="null")
    assert changed.to_pylist() == [None, None, {"b": 2}]
