"""JSON text to shredded Variants and back, one call each way: the same JSON by meaning."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import JsonError, SchemaError, VariantError
from parquet_variant.files.vortex import compress_json, decompress_json
from parquet_variant.files.vortex.paths import vortex_files
from variant_strategies import json_texts

TEXTS = [f'{{"id": {n}, "tags": ["a", {n}], "price": {n}.50}}' for n in range(200)] + [None, "null", "[]"]


def forms():
    plain = pa.array(TEXTS, pa.string())
    return {
        "list": TEXTS,
        "string": plain,
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "dictionary": plain.dictionary_encode(),
        "json": pa.ExtensionArray.from_storage(pa.json_(), plain),
        "chunked": pa.chunked_array([plain[:100], plain[100:]]),
    }


@pytest.mark.parametrize("form", forms())
def test_every_form_of_text(form):
    column = compress_json(forms()[form])
    assert column.layout == "final"
    assert column.schema.to_ddl().startswith("id bigint")
    assert meaning(decompress_json(column)) == meaning(pa.array(TEXTS))
    assert decompress_json(column).type.extension_name == "arrow.json"
    assert decompress_json(column, extension=False).type == pa.string()


@pytest.mark.parametrize("shred", [True, False])
def test_every_layout(shred):
    column = compress_json(TEXTS, shred=shred)
    assert column.is_shredded == shred
    assert meaning(decompress_json(column)) == meaning(pa.array(TEXTS))


def test_a_schema_or_a_policy_decides():
    schema = pv.ShreddingSchema.from_ddl("price double")
    assert compress_json(TEXTS, schema).schema == schema
    from parquet_variant.inference.policies.auto import AutoPolicy

    assert compress_json(TEXTS, AutoPolicy(max_columns=1)).schema.to_ddl() == "id bigint"


def test_what_is_refused():
    with pytest.raises(JsonError) as refused:
        compress_json(["{}", '{"a": '])
    assert refused.value.row == 1
    with pytest.raises(SchemaError, match="not JSON text"):
        compress_json(pa.array([1, 2]))


@given(st.lists(st.none() | json_texts(), max_size=6))
def test_any_json_comes_back(texts):
    found = decompress_json(compress_json(pa.array(texts, pa.string())), extension=False)
    assert found.equals(pv.to_json(pv.parse_json(pa.array(texts, pa.string()))))


def meaning(texts):
    texts = texts.storage if isinstance(texts, pa.ExtensionArray) else texts
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


@pytest.mark.slow
def test_data_sets(data_set):
    lines, _ = data_set
    found = decompress_json(compress_json(pa.array(lines, pa.large_string())), extension=False)
    assert all(json.loads(a) == json.loads(b) for a, b in zip(found.to_pylist(), lines, strict=True))


# ---- in files

SPELLINGS = ['{"b": 1.50, "a": "\\u0041"}', " [1,2 ] ", '{"a":1}', None, '{"a":1e2}', '{"x": {"y": null}}', "null"]


@pytest.mark.parametrize("layout", ["auto", "variant", "struct"])
@pytest.mark.parametrize("policy", ["auto", "hints"])
def test_json_columns_through_files(layout, policy, tmp_path):
    pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
    texts = pa.array(SPELLINGS * 3)
    table = pa.table({"id": range(21), "doc": pa.ExtensionArray.from_storage(pa.json_(), texts), "named": texts})
    path = tmp_path / "a.vortex"
    pv.write(path, table, format="vortex", json=["named"], policy=policy, layout=layout, exact=True)
    canonical = pv.to_json(pv.parse_json(texts)).to_pylist()
    for name in ("doc", "named"):
        found = pv.open(path).read_json(name, exact=True)
        assert found.type.extension_name == "arrow.json"
        assert found.storage.to_pylist() == texts.to_pylist()
        assert pv.open(path).read_json(name).storage.to_pylist() == canonical
        assert pv.open(path).scan({"a": "$.a:string"}, column=name).to_arrow()["a"].to_pylist()[:3] == [
            "A",
            None,
            "1",
        ]
    assert pv.open(path).to_arrow().column_names == ["id", "doc", "named"]
    assert [column.has_texts for column in pv.open(path).inspect().columns] == [True, True]
    pv.write(path, table.select(["doc"]), format="vortex", mode="overwrite")
    with pytest.raises(VariantError, match="exact=True") as refused:
        pv.open(path).read_json(exact=True)
    assert refused.value.reason == "no-texts"
    with pytest.raises(pv.JsonError):
        pv.write(tmp_path / "b.vortex", {"doc": pa.array(["{"])}, json=["doc"])
    assert not (tmp_path / "b.vortex").exists()


@pytest.mark.parametrize("dest", ["one.vortex", "directory"])
def test_ingest_of_a_json_column_keeps_the_texts(dest, tmp_path):
    pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
    pq.write_table(pa.table({"id": range(7), "doc": SPELLINGS}), tmp_path / "a.parquet")
    pv.ingest(tmp_path / "a.parquet", tmp_path / dest, json_column="doc", column="doc", exact=True, format="vortex")
    (file,) = vortex_files(tmp_path / dest)
    assert pv.open(file).read_json(exact=True).storage.to_pylist() == SPELLINGS
    assert pv.open(file).to_arrow()["id"].to_pylist() == list(range(7))
