"""`variant_type`, `is_variant_null`, `schema_of_variant` and its aggregate, whatever the layout."""

from __future__ import annotations

import contextlib
import warnings
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.schema_of import merge_all, schema_of
from parquet_variant.types import VariantType

columns = st.lists(st.none() | testing.variants(max_leaves=8), min_size=1, max_size=6)


@given(st.data(), columns)
def test_types_are_those_of_the_values(data: st.DataObject, column: list[pv.Variant | None]) -> None:
    array = pv.VariantArray.from_variants(column)
    shredded = pv.shred_variant(array, data.draw(testing.shredding_schemas()))
    assert pv.variant_type(array).to_pylist() == [value and str(value.type) for value in array]
    assert pv.variant_type(shredded).to_pylist() == [value and str(value.type) for value in shredded]


@given(st.data(), columns, st.sampled_from(["$", "$.a", "$.a.b", "$[0]", "$.a[1]"]))
def test_variantnull_is_distinguished_from_null_and_missing(
    data: st.DataObject, column: list[pv.Variant | None], path: str
) -> None:
    array = pv.VariantArray.from_variants(column)
    shredded = pv.shred_variant(array, data.draw(testing.shredding_schemas()))
    found = [value is not None and value.get(path) is not None and value.get(path).type == "null" for value in column]
    assert pv.is_variant_null(array, path).to_pylist() == found
    assert pv.is_variant_null(shredded, path).to_pylist() == found


@given(columns)
def test_the_type_of_a_column_is_the_merge_of_its_rows(column: list[pv.Variant | None]) -> None:
    array = pv.VariantArray.from_variants(column)
    merged = merge_all(schema_of(value) for value in column if value is not None)
    assert pv.schema_of_variant_agg(array) == str(merged)
    assert pv.schema_of_variant(array).to_pylist() == [value and str(schema_of(value)) for value in column]


@given(st.permutations([1, 2.5, None, "x", [1], [2.5], {"a": 1}, {"a": "y", "b": []}, True]))
def test_merging_does_not_depend_on_the_order(values: list[object]) -> None:
    whole = pv.VariantArray.from_pylist([values])
    assert pv.schema_of_variant(whole).to_pylist() == ["ARRAY<VARIANT>"]
    for kind in (list, dict):
        part = [value for value in values if isinstance(value, kind)]
        expected = {list: "ARRAY<ARRAY<DOUBLE>>", dict: "ARRAY<OBJECT<a: VARIANT, b: ARRAY<VOID>>>"}[kind]
        assert pv.schema_of_variant(pv.Variant.from_python(part)) == expected


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        (VariantType.TIME, 0, "TIME"),
        (VariantType.UUID, bytes(16), "UUID"),
        (VariantType.TIMESTAMP_NANOS, 0, "TIMESTAMP_NANOS"),
        (VariantType.TIMESTAMP_NTZ_NANOS, 0, "TIMESTAMP_NTZ_NANOS"),
    ],
)
def test_types_that_spark_lacks_have_names(kind: VariantType, raw: object, text: str) -> None:
    variant = pv.Variant(EMPTY_METADATA, encode_scalar(kind, raw))
    array = pv.VariantArray.from_variants([variant, variant])
    assert (pv.schema_of_variant(variant), pv.schema_of_variant_agg(array)) == (text, text)
    assert pv.variant_type(array).to_pylist() == [str(kind)] * 2


def test_a_value_too_deep_for_a_schema_is_refused() -> None:
    deep: object = 1
    for _ in range(400):
        deep = [deep]
    array = pv.VariantArray.from_pylist([deep])
    assert pv.variant_type(array).to_pylist() == ["array"]
    for function in (pv.schema_of_variant, pv.schema_of_variant_agg):
        with pytest.raises(pv.VariantError) as caught:
            function(array)
        assert caught.value.reason == "depth"


@given(st.lists(testing.mutated_variants(), min_size=1, max_size=4))
def test_malformed_bytes_never_crash(broken: list[object]) -> None:
    parts = [one if isinstance(one, pv.Variant) else pv.Variant(*one) for one in broken]  # type: ignore[misc]
    array = pv.VariantArray.from_variants(parts)
    for function in (pv.variant_type, pv.is_variant_null, pv.schema_of_variant, pv.schema_of_variant_agg):
        with contextlib.suppress(pv.VariantError):
            function(array)


def test_storages_of_any_form_are_taken() -> None:
    storage = pv.VariantArray.from_pylist([1, None]).storage
    assert pv.variant_type(pa.chunked_array([storage])).to_pylist() == ["int8", None]
    with pytest.raises(pv.VariantError):
        pv.variant_type([1])


@given(st.lists(testing.mutated_variants(), min_size=1, max_size=6))
def test_try_twins_give_null_where_a_row_would_raise(broken: list[object]) -> None:
    parts = [one if isinstance(one, pv.Variant) else pv.Variant(*one) for one in broken]  # type: ignore[misc]
    array = pv.VariantArray.from_variants(parts)
    for name in ("schema_of_variant", "variant_type", "is_variant_null", "to_json"):
        by_value = getattr(pv, name)
        whole = partial(by_value, errors="null")
        expected: list[object] = []
        for row in range(len(array)):
            try:
                expected.append(by_value(array[row : row + 1])[0].as_py())
            except pv.VariantError:
                expected.append(None)
        assert whole(array).to_pylist() == expected, name
        if None in expected and len(expected) == 1:
            with pytest.raises(pv.VariantError):
                by_value(array)
    readable = [
        row for row, text in enumerate(pv.schema_of_variant(array, errors="null").to_pylist()) if text is not None
    ]
    assert pv.schema_of_variant_agg(array, errors="null") == pv.schema_of_variant_agg(array.take(readable))


@pytest.mark.parametrize(
    "value", [bytes.fromhex("204000000000"), bytes.fromhex("44ffffffffffffffff")], ids=["decimal", "time"]
)
def test_a_scalar_out_of_range_has_no_common_type(value: bytes) -> None:
    array = pv.VariantArray.from_variants([pv.Variant.from_python(1), pv.Variant(b"\x11\0\0", value)])
    with pytest.raises(pv.MalformedVariantError) as caught:
        pv.schema_of_variant_agg(array)
    assert caught.value.row == 1
    assert pv.schema_of_variant_agg(array, errors="null") == "BIGINT"


def test_try_twins_give_null_where_columns_contradict_each_other() -> None:
    storage = pa.array(
        [
            {"metadata": b"\x11\0\0", "value": None, "typed_value": 7},
            {"metadata": b"\x11\0\0", "value": b"\x0c\x01", "typed_value": 7},
            {"metadata": b"\x11\0\0", "value": b"\x0c\x01", "typed_value": None},
            None,
        ],
        pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()}),
    )
    with pytest.raises(pv.ConflictError):
        pv.schema_of_variant(storage)
    assert pv.schema_of_variant(storage, errors="null").to_pylist() == ["BIGINT", None, "BIGINT", None]
    assert pv.to_json(storage, errors="null").to_pylist() == ["7", None, "1", None]
    assert pv.schema_of_variant_agg(storage, errors="null") == "BIGINT"


def test_the_kernel_spells_types_like_the_reference() -> None:
    texts = [
        '{"\U0001f600": 1, "\ufb01": [], "a b": {}, "a`b": [[]], "": null, "_x9": 1.50, "9": 1e3}',
        '[{"a": 1, "c": "x"}, {"b": 1.5, "a": 2.25}, {"c": null, "a": null}, {}]',
        '[{"a": [1]}, {"a": [null]}, {"a": ["x"]}, {"a": {"b": 1}}, {"a": []}]',
        '[[[1], [2.5]], [], [[12345678901234567890123456789012345678, 0.00000000000000000001]]]',
        '[100.00, 0.000, 1, -0.001, 12345678901234567890.123456789]',
        '[1, {"a": {"b": [1, 2]}}, {"a": 3}]',
        '{"a": {"b": {"c": [{"d": 1}, {"d": 2.5, "e": [true, null]}]}}, "z": false}',
        '{"' + "k" * 3000 + '": {"' + "l" * 3000 + '": 1}}',
        "99999999999999999999999999999999999999", "-0.5", "null", '"x"', "[]", "{}", "true",
    ]  # fmt: skip
    array = pv.parse_json(texts * 3)
    expected = [str(schema_of(pv.parse_json(text))) for text in texts] * 3
    assert pv.schema_of_variant(array).to_pylist() == expected
    assert pv.schema_of_variant(array[1:-1]).to_pylist() == expected[1:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parquet_variant.arrays.value_positions.CHUNK_BYTES", 1)
        assert pv.schema_of_variant(array).to_pylist() == expected


def test_depth_is_counted_in_values_that_count_for_nothing_else() -> None:
    deep = "[" * 199 + "1" + "]" * 199
    array = pv.parse_json([f"[1, {deep}]", f"[1, [{deep}]]", "[1, []]"])
    assert pv.schema_of_variant(array, errors="null").to_pylist() == ["ARRAY<VARIANT>", None, "ARRAY<VARIANT>"]


def test_numbers_of_several_types_are_cast_without_a_warning():
    values = [np.float32(1.5), 0x7F800001, "x", 0xFF812345]  # as a float, the last would be a signalling NaN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = pv.variant_get(pv.VariantArray.from_pylist(values), "$", pa.float64(), errors="null")
    assert answer.to_pylist() == [1.5, float(0x7F800001), None, float(0xFF812345)]
