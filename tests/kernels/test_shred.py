"""The shredding kernels mean what the reference layout means, from text and from values, and back."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.encoding.variant import Variant
from parquet_variant.kernels.shredding import json_batch
from parquet_variant.layouts.reference import rows as reference
from parquet_variant.layouts.reference.rows import rows_of_array
from variant_strategies import json_texts, mutated_variants, shredding_schemas, variants


def outcome(work: Any) -> Any:
    try:
        return work()
    except pv.VariantError as error:
        return type(error), error.reason, error.row, error.path


@given(st.data())
def test_shredding_is_the_reference(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | variants(max_leaves=8), max_size=5))
    schema = data.draw(shredding_schemas(values))
    array = pv.VariantArray.from_variants(values)
    shredded = pv.shred_variant(array, schema)
    shredded.storage.validate(full=True)
    assert rows_of_array(shredded.storage) == rows_of_array(reference.shredded_storage(values, schema, "final"))
    assert shredded == array
    assert pv.unshred_variant(shredded) == array


def test_columns_grow_with_their_rows() -> None:
    """Entries of nested levels, strings and residuals far beyond the first room of each column."""
    values = [
        Variant.from_python(
            {
                "a": [{"x": [k] * (i % 3), "y": "t" * (i % 70)} if k % 2 else "s" * k for k in range(i % 11)],
                "b": "u" * (7 * i) if i % 5 else i,
                **({"c": {"d": i, "e": [None] * (i % 4)}} if i % 3 else {}),
            }
        )
        for i in range(300)
    ]
    array = pv.VariantArray.from_variants([None if i % 17 == 0 else value for i, value in enumerate(values)])
    shredded = pv.shred_variant(array, "a array<struct<x array<int>, y string>>, b string, c struct<d bigint>")
    shredded.storage.validate(full=True)
    expected = reference.shredded_storage(list(array), shredded.schema, "final")
    assert rows_of_array(shredded.storage) == rows_of_array(expected)
    assert pv.unshred_variant(shredded) == array


def test_a_malformed_row_between_others_is_reported() -> None:
    values = [Variant.from_python({"a": [f"{i}", {"b": "x" * i}]}) for i in range(100)]
    malformed = bytearray(values[70].value)
    malformed[malformed.index(b"70")] = 0xFF
    values[70] = Variant(values[70].metadata, bytes(malformed))
    with pytest.raises(pv.MalformedVariantError) as raised:
        pv.shred_variant(pv.VariantArray.from_variants(values), "a array<string>")
    assert (raised.value.reason, raised.value.row) == ("bad-utf8", 70)


@given(st.data())
def test_rows_that_contradict_themselves(data: st.DataObject) -> None:
    """The value column of one row next to the typed columns of another: the kernel gives them to the reference."""
    values = data.draw(st.lists(variants(max_leaves=6, layouts=False), min_size=2, max_size=4))
    schema = data.draw(shredding_schemas(values))
    shredded = pv.shred_variant(pv.VariantArray.from_variants(values), schema).storage
    if "typed_value" not in shredded.type.names:
        return
    # One dictionary for all rows, so that a moved value still means something.
    names = sorted({name for value in values for name in decode_metadata(value.metadata)})
    rewritten = pv.VariantArray.from_variants(
        [Variant.from_python([value, dict.fromkeys(names)])[0] for value in values]
    )
    shredded = pv.shred_variant(rewritten, schema).storage
    moved = shredded.field("value").take(pa.array([*range(1, len(values)), 0]))
    columns = {name: shredded.field(name) for name in shredded.type.names} | {"value": moved}
    storage = pa.StructArray.from_arrays(list(columns.values()), fields=list(shredded.type))
    for on_conflict in ("error", "typed"):
        by_kernel = outcome(partial(pv.unshred_variant, pv.VariantArray(storage), on_conflict=on_conflict))
        by_reference = outcome(partial(reference.variants_of_storage, storage, on_conflict))
        assert (list(by_kernel) if isinstance(by_kernel, pv.VariantArray) else by_kernel) == by_reference


@given(st.data())
def test_text_is_shredded_as_its_values_are(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.none() | json_texts(max_leaves=8), min_size=1, max_size=5))
    plain = pv.parse_json(pa.array(texts, pa.string()))
    schema = data.draw(shredding_schemas(list(plain)))
    at_once = pv.parse_json(pa.array(texts, pa.string()), schema=schema)
    assert at_once.storage.equals(pv.shred_variant(plain, schema).storage)


@given(st.data())
def test_malformed_values_never_crash(data: st.DataObject) -> None:
    value = data.draw(mutated_variants(max_leaves=8))
    schema = data.draw(shredding_schemas([]))
    array = pv.VariantArray.from_variants([value])
    by_kernel = outcome(partial(pv.shred_variant, array, schema))
    by_reference = outcome(lambda: rows_of_array(reference.shredded_storage([value], schema, "final")))
    if isinstance(by_kernel, pv.VariantArray):
        # The typed columns are read without another check.
        by_kernel.storage.validate(full=True)
        assert by_kernel.is_checked or by_kernel is array
    elif isinstance(by_reference, list):
        pytest.fail(f"the reference shreds the value, the kernel answers {by_kernel}")


EXACT = [
    ("bigint", 1, 1),
    ("bigint", "1.00", 1),
    ("bigint", "1.5", None),
    ("tinyint", 127, 127),
    ("tinyint", 128, None),
    ("int", "2147483648.0", None),
    ("decimal(9,2)", 123, "123.00"),
    ("decimal(9,2)", "1.234", None),
    ("decimal(9,2)", "1.2300", "1.23"),
    ("decimal(3,2)", "12.3", None),
    ("decimal(38,10)", 10**27, f"{10**27}.0000000000"),
    ("decimal(38,10)", 10**28, None),
    ("decimal(38,0)", 10**38 - 1, str(10**38 - 1)),
    ("decimal(38,38)", "-0." + "9" * 38, "-0." + "9" * 38),
    ("double", 1, None),
    ("double", "1.5", None),
    ("double", "1.5e0", 1.5),
    ("float", "1.5e0", None),
    ("bigint", "1e0", None),
    ("bigint", '"1"', None),
    ("string", 1, None),
    ("boolean", "true", True),
    ("string", '"x"', "x"),
]


@pytest.mark.parametrize(("ddl", "text", "cell"), EXACT)
def test_only_what_is_exactly_the_same_is_typed(ddl: str, text: Any, cell: Any) -> None:
    typed = pv.parse_json([str(text)], schema=ddl).storage.field("typed_value")[0].as_py()
    assert (typed if cell is None or not ddl.startswith("decimal") else str(typed)) == cell


def test_null_variant_null_and_missing_stay_three_things() -> None:
    array = pv.parse_json(pa.array([None, "null", "{}", '{"a": null}', '{"a": 1}']), schema="a bigint")
    back = pv.unshred_variant(array)
    assert [None if v is None else v.to_json() for v in back] == [None, "null", "{}", '{"a":null}', '{"a":1}']


def test_missing_columns_optional_groups_and_wide_types_are_read() -> None:
    group = pa.struct([("_ignored", pa.int64()), ("typed_value", pa.large_string())])
    metadata = Variant.from_python({"a": 1}).metadata
    storage = pa.array(
        [
            {"typed_value": {"a": {"typed_value": "x", "_ignored": 1}}, "metadata": metadata},
            {"typed_value": {"a": None}, "metadata": metadata},
        ],
        pa.struct([("typed_value", pa.struct([("a", group)])), ("metadata", pa.large_binary())]),
    )
    assert pv.VariantArray(storage).to_pylist() == [{"a": "x"}, {}]


def test_slices_of_shredded_arrays() -> None:
    texts = [f'{{"a": [{i}, "s{i}", {i}.5], "b": {{"c": true}}}}' for i in range(20)]
    array = pv.parse_json(texts, schema="a array<bigint>, b struct<c boolean>")
    assert array[7:13].to_pylist() == pv.parse_json(texts[7:13]).to_pylist()
    assert array[19] == pv.parse_json(texts[19])


def test_rows_of_unsorted_dictionaries() -> None:
    metadata = bytes.fromhex("0103000102037a6162")  # names z, a, b, not sorted
    value = bytes.fromhex("02030102000002040 60c010c020c03".replace(" ", ""))  # fields a, b, z by name
    array = pv.VariantArray.from_variants([Variant(metadata, value)])
    shredded = pv.shred_variant(array, "b bigint")
    assert shredded.to_pylist() == [{"a": 1, "b": 2, "z": 3}]
    assert shredded.storage.field("typed_value").field("b").field("typed_value").to_pylist() == [2]


@pytest.mark.parametrize("text", ['{"a": 1, "b": 1e3, "c": 1e3, "d": 1e3}', '{"b": "0123456789012345678901234567"}'])
def test_what_is_left_of_an_object_may_not_be_too_large_either(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_batch, "MAX_OFFSET", 28)
    assert pv.parse_json(['{"a": 1, "b": 1e3}'], schema="a int").to_pylist() == [{"a": 1, "b": 1000.0}]
    with pytest.raises(pv.VariantError) as caught:
        pv.parse_json(['{"a": 1}', text], schema="a int")
    assert (caught.value.reason, caught.value.row) == ("too-large", 1)
