"""Every encoding holds the same values and gives the same answers: the RFC's open question, answered by tests."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import CastError, MalformedVariantError, SchemaError, VariantError
from parquet_variant.files.vortex import (
    ENCODINGS,
    ColumnarVariant,
    answers,
    encode,
    get_variant_element,
    get_variant_scalar,
)
from parquet_variant.testing import mutated_variants, shredding_schemas, variants

TARGETS = [
    "boolean", "tinyint", "bigint", "decimal(38,2)", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "array<bigint>", "array<string>", "struct<a: bigint, b: string>", "map<string,bigint>", "variant",
]  # fmt: skip


def values_of(array):
    return list(array.to_variant() if isinstance(array, ColumnarVariant) else array)


def in_every_encoding(array, schema):
    return {name: encode(array, name, schema) for name in ENCODINGS}


def paths_of(values, limit=12):
    found = {"$"}
    todo = [("$", value) for value in values if value is not None]
    while todo and len(found) < limit:
        path, value = todo.pop(0)
        if value.type == "object":
            below = [(str(pv.VariantPath.parse(path) / key), child) for key, child in value.items()]
        elif value.type == "array":
            below = [(f"{path}[{index}]", child) for index, child in enumerate(value)][:2]
            found.add(f"{path}[*]")
        else:
            below = []
        found.update(path for path, _ in below)
        todo += below
    return sorted(found)


# ---- lossless


@given(st.data())
def test_any_encoding_to_any_other_is_the_identity(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=8), max_size=6))
    schema = data.draw(shredding_schemas(values))
    array = pv.VariantArray.from_variants(values)
    for first in ENCODINGS:
        encoded = encode(array, first, schema)
        assert values_of(encoded) == values, first
        for second in ENCODINGS:
            assert values_of(encode(encoded, second, schema)) == values, (first, second)


@given(st.data())
def test_extraction_is_equal_over_all_encodings(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=8), min_size=1, max_size=6))
    schema = data.draw(shredding_schemas(values))
    path = data.draw(st.sampled_from(paths_of(values)))
    target = data.draw(st.sampled_from(TARGETS))
    wanted = None
    for name, encoded in in_every_encoding(pv.VariantArray.from_variants(values), schema).items():
        found = get_variant_element(encoded, path, target)
        found.validate(full=True)
        assert len(found) == len(values)
        wanted = found if wanted is None else wanted
        assert found.type == wanted.type
        assert same(found, wanted), (name, path, target)


def same(found, wanted):
    """Equality with NaN equal to itself; Variants by meaning."""
    if found.type == pv.parse_json(["1"]).storage.type or "metadata" in str(found.type):
        return repr(decoded(found)) == repr(decoded(wanted))
    return found.equals(wanted) or repr(found.to_pylist()) == repr(wanted.to_pylist())


def decoded(array):
    if pa.types.is_struct(array.type):
        return [None if value is None else value.to_json() for value in pv.VariantArray(array)]
    return [None if row is None else decoded(row) for row in (entry.values for entry in array)]


@given(st.data())
def test_scalars_are_equal_over_all_encodings(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=6), min_size=1, max_size=4))
    path = data.draw(st.sampled_from([path for path in paths_of(values) if "*" not in path]))
    target = data.draw(st.sampled_from(["variant", "bigint", "string", "double"]))
    row = data.draw(st.integers(-len(values), len(values) - 1))
    found = [
        get_variant_scalar(encoded, row, path, target)
        for encoded in in_every_encoding(pv.VariantArray.from_variants(values), None).values()
    ]
    # A shredded column may keep an integer in another width.
    expected = {
        (item.state, item.value.to_json() if isinstance(item.value, pv.Variant) else repr(item)) for item in found
    }
    assert len(expected) == 1
    element = get_variant_element(pv.VariantArray.from_variants(values), path, target)[row]
    assert element.is_valid == (found[0].state == "value" or (target == "variant" and found[0].is_variant_null))


def test_corpus_through_every_encoding(corpus_file):
    array = pv.parquet.read(corpus_file)
    values = list(array)
    schema = array.schema if array.schema is not None else pv.ShreddingSchema.variant()
    every = in_every_encoding(array, schema)
    for name, encoded in every.items():
        assert values_of(encoded) == values, name
        for other in ENCODINGS:
            assert values_of(encode(encoded, other, schema)) == values, (name, other)
    for path in paths_of(values):
        for target in TARGETS:
            wanted = get_variant_element(every["unshredded"], path, target)
            for name, encoded in every.items():
                assert same(get_variant_element(encoded, path, target), wanted), (name, path, target)


# ---- nulls, and types


def test_scalars_tell_the_nulls_apart():
    array = pv.parse_json([None, "null", "{}", '{"a": null}', '{"a": 1}', '{"a": "x"}'])
    for encoded in in_every_encoding(array, pv.ShreddingSchema.from_ddl("a bigint")).values():
        outer = get_variant_scalar(encoded, 0)
        inner = get_variant_scalar(encoded, 1)
        assert (outer.is_null, outer.is_variant_null) == (True, False)
        assert (inner.is_null, inner.is_variant_null) == (False, True)
        assert [get_variant_scalar(encoded, row, "$.a", "bigint").state for row in range(6)] == [
            "null", "missing", "missing", "variantnull", "value", "other-type",
        ]  # fmt: skip
        with pytest.raises(IndexError):
            get_variant_scalar(encoded, 6)


def test_extraction_is_nullable_though_the_column_is_not():
    array = pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"a": null}', "{}"])
    for encoded in in_every_encoding(array, pv.ShreddingSchema.from_ddl("a bigint")).values():
        assert str(pv.vortex.dtype_of(encoded)) == "variant?"  # no field declares otherwise
        assert get_variant_element(encoded, "$.a", "bigint").to_pylist() == [1, None, None, None]


def test_encodings_declare_what_they_can_answer():
    array = pv.parse_json(['{"a": 1, "b": {"c": [1]}}'])
    schema = pv.ShreddingSchema.from_ddl("a bigint")
    every = in_every_encoding(array, schema)
    expected = {name: (answers(e, "$.a", "bigint"), answers(e, "$.b", "variant")) for name, e in every.items()}
    assert expected == {
        "unshredded": ("bytes", "bytes"),
        "final": ("columns-and-bytes", "bytes"),
        "columnar": ("columns", "decode"),
    }
    typed_only = _without_values(every["final"])
    assert answers(typed_only, "$.a", "bigint") == "columns"


def _without_values(array):
    storage = array.storage
    leaf = storage.field("typed_value").field("a").field("typed_value")
    inner = pa.StructArray.from_arrays([leaf], names=["typed_value"])
    typed = pa.StructArray.from_arrays([inner], names=["a"])
    return pv.VariantArray(
        pa.StructArray.from_arrays([storage.field("metadata"), typed], names=["metadata", "typed_value"])
    )


def test_what_is_refused():
    array = pv.parse_json(["1"])
    with pytest.raises(VariantError, match=r"to is .*: use "):
        encode(array, "parquet")
    with pytest.raises(SchemaError):
        encode([1], "columnar")
    with pytest.raises(CastError):
        get_variant_element(encode(array, "columnar"), "$", pa.duration("s"))


@pytest.mark.parametrize("draft", ["draft-paths", "draft-object"])
def test_drafts_are_refused_by_every_operation(draft, tmp_path):
    array = pv.shred_variant(pv.parse_json(['{"a": 1}']), "a bigint", layout=draft)
    operations = [
        lambda: get_variant_element(array, "$.a", "bigint"), lambda: get_variant_scalar(array, 0),
        lambda: encode(array, "columnar"), lambda: pv.vortex.collect_statistics(array),
        lambda: pv.vortex.write(tmp_path / "a.vortex", array),
    ]  # fmt: skip
    for operation in operations:
        with pytest.raises(SchemaError, match="draft layout") as refused:
            operation()
        assert refused.value.reason == "draft-layout"
    with pytest.raises(VariantError, match=r"to is .*: use "):
        encode(pv.parse_json(["1"]), draft)
    assert list(tmp_path.iterdir()) == []


# ---- the columnar encoding


def test_missing_paths_are_free():
    rows = ['{"id": 1}'] * 10_000
    dense = encode(pv.parse_json(rows), "columnar")
    rows[77] = '{"id": 1, "rare": {"deep": [1]}}'
    sparse = encode(pv.parse_json(rows), "columnar")
    assert sparse.nbytes - dense.nbytes < 200


def test_one_type_needs_no_discriminator():
    column = encode(pv.parse_json(['{"a": 1}', '{"a": 2}', '{"a": 3}']), "columnar").column
    assert column.types is None
    assert column.children[0].fields["a"].column.types is None
    assert column.children[0].fields["a"].positions is None


@given(st.data())
def test_columnar_rows_can_be_taken_and_concatenated(data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=6), min_size=1, max_size=6))
    columnar = ColumnarVariant.from_variant(pv.VariantArray.from_variants(values))
    wanted = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8))
    taken = columnar.take(np.array(wanted, np.int64))
    assert list(taken.to_variant()) == [values[row] for row in wanted]
    joined = ColumnarVariant.concat([taken, columnar, taken[:0]])
    assert list(joined.to_variant()) == [*(values[row] for row in wanted), *values]
    assert joined.null_count == joined.to_variant().null_count


def test_columnar_keeps_deep_values_and_every_integer_width():
    deep = "[" * 900 + "]" * 900
    array = pv.parse_json([deep, '{"a": 1, "b": 300, "c": 70000, "d": 5000000000}'])
    columnar = encode(array, "columnar")
    assert pv.to_json(columnar.to_variant()).to_pylist()[0] == deep
    assert [value.type for value in columnar[1].values()] == ["int8", "int16", "int32", "int64"]
    assert ColumnarVariant.concat([columnar, columnar]).take([2, 1]).to_variant()[0] == array[0]


@given(mutated_variants())
def test_columnar_refuses_or_keeps_malformed_bytes(variant):
    array = pv.VariantArray.from_variants([variant])
    try:
        wanted = variant.to_json()
    except VariantError:
        wanted = None
    try:
        columnar = ColumnarVariant.from_variant(array)
        found = columnar.to_variant()
    except MalformedVariantError:
        return
    if wanted is not None:
        assert fields_of(found[0].to_json()) == fields_of(wanted)


def fields_of(text):
    """JSON with the fields of objects sorted: where names in metadata are not, as that says, a value's order is any."""
    return json.loads(text, object_pairs_hook=lambda pairs: sorted(pairs, key=repr), parse_float=str)


# ---- real data


@pytest.mark.slow
def test_data_sets_through_every_encoding(data_set):
    lines, paths = data_set
    array = pv.parse_json(lines)
    texts = pv.to_json(array)
    for encoding in ENCODINGS:
        encoded = encode(array, encoding)
        back = encoded.to_variant() if isinstance(encoded, ColumnarVariant) else encoded
        assert pv.to_json(back).cast(texts.type).equals(texts), encoding
        for path in paths:
            for target in ("string", "bigint", "double"):
                found = get_variant_element(encoded, path, target)
                assert found.equals(get_variant_element(array, path, target)), (encoding, path, target)
