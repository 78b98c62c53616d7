"""Both encodings of an array give the same answers: the RFC's open question, answered by tests."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import SchemaError
from parquet_variant.ops.variant_get import get_variant_element, get_variant_scalar
from variant_strategies import shredding_schemas, variants

TARGETS = [
    "boolean", "tinyint", "bigint", "decimal(38,2)", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz", "array<bigint>", "array<string>", "struct<a: bigint, b: string>", "map<string,bigint>", "variant",
]  # fmt: skip


ENCODINGS = ("unshredded", "final")


def in_every_encoding(array, schema):
    schema = pv.infer_shredding_schema(array) if schema is None else schema
    return {name: pv.shred_variant(array, schema, layout=name) for name in ENCODINGS}


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
    array = pv.open(corpus_file).read()
    values = list(array)
    schema = array.schema if array.schema is not None else pv.ShreddingSchema.variant()
    every = in_every_encoding(array, schema)
    for name, encoded in every.items():
        assert list(encoded) == values, name
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


@pytest.mark.parametrize("draft", ["draft-paths", "draft-object"])
def test_drafts_are_refused_by_every_operation(draft, tmp_path):
    array = pv.shred_variant(pv.parse_json(['{"a": 1}']), "a bigint", layout=draft)
    operations = [
        lambda: pv.vortex.collect_statistics(array), lambda: pv.vortex.decompress_json(array),
        lambda: pv.vortex.matching_rows(array, "$.a", "bigint", "=", 1), lambda: pv.vortex.dtype_of(array),
        lambda: pv.write(tmp_path / "a.vortex", array),
    ]  # fmt: skip
    for operation in operations:
        with pytest.raises(SchemaError, match="draft layout") as refused:
            operation()
        assert refused.value.reason == "draft-layout"
    assert list(tmp_path.iterdir()) == []


# ---- real data


@pytest.mark.slow
def test_data_sets_through_every_encoding(data_set):
    lines, paths = data_set
    array = pv.parse_json(lines)
    texts = pv.to_json(array)
    for encoding, encoded in in_every_encoding(array, None).items():
        assert pv.to_json(encoded).cast(texts.type).equals(texts), encoding
        for path in paths:
            for target in ("string", "bigint", "double"):
                found = get_variant_element(encoded, path, target)
                assert found.equals(get_variant_element(array, path, target)), (encoding, path, target)
