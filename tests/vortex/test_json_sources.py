"""Vortex files whose columns have the official type ``vortex.json``, as sources."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

vortex = pytest.importorskip("vortex", reason="vortex-data is not installed")

TEXTS = ['{"a": 1,\n "s": "a longer text"}', None, "[1.50]", "null"]
CANONICAL = ['{"a":1,"s":"a longer text"}', None, "[1.5]", "null"]


def json(texts=TEXTS, kind=None):
    kind = kind or pa.string()
    return pa.ExtensionArray.from_storage(pa.json_(kind), pa.array(texts, kind))


def write(path, **columns):
    vortex.io.write(pa.table(columns), str(path))
    return str(path)


@pytest.fixture
def only(tmp_path):
    return write(tmp_path / "j.vortex", j=json())


def test_a_json_column_is_read_and_compressed(only, tmp_path):
    assert "vortex.json" in str(vortex.open(only).dtype)
    assert pv.open(only).read_json().storage.to_pylist() == CANONICAL
    assert pv.open(only).read_json("j", exact=True).storage.to_pylist() == TEXTS
    assert pv.to_json(pv.vortex.compress_json(json())).to_pylist() == CANONICAL
    assert pv.vortex.compress_json(json(), exact=True).texts.to_pylist() == [TEXTS[0], None, TEXTS[2], None]
    assert pv.vortex.compress_json(json()).schema.get("$.a") is not None
    source = write(tmp_path / "k.vortex", id=[1, 2, 3, 4], j=json(kind=pa.large_string()), text=["1"] * 4)
    info = pv.write(tmp_path / "v.vortex", pv.open(source).to_arrow(), json=["text"], exact=True)
    assert sorted(info.layouts) == ["j", "text"]
    assert pv.open(info.path).read_json("j", exact=True).storage.to_pylist() == TEXTS
    assert pv.open(info.path).to_arrow()["id"].to_pylist() == [1, 2, 3, 4]
    schema = pv.ShreddingSchema.from_ddl("a bigint")
    assert pv.vortex.compress_json(json(), schema).schema == schema
    info = pv.write(tmp_path / "w.vortex", pv.open(only).to_arrow(), schema=schema, layout="struct")
    assert pv.open(info.path).read().schema == schema


def test_what_is_refused(only, tmp_path):
    plain = write(tmp_path / "p.vortex", id=[1], text=["{"])
    for call, match in (
        (lambda: pv.write(tmp_path / "q.vortex", {"id": [1]}, json=["x"]), "json= names the column 'x'"),
        (lambda: pv.open(plain).read_json("text"), "is not a Variant or JSON column"),
        (lambda: pv.open(only).read(), "read JSON text \\(j\\) with read_json"),
        (lambda: pv.ingest(only, tmp_path / "d"), "name the column with json_column="),
    ):
        with pytest.raises(pv.VariantFileError, match=match):
            call()
    with pytest.raises(pv.JsonError):
        pv.write(tmp_path / "q.vortex", pv.open(plain).to_arrow(), json=["text"])
    assert not (tmp_path / "q.vortex").exists()


def test_ingest_of_a_json_column(only, tmp_path):
    result = pv.ingest(only, tmp_path / "d", json_column="j")
    assert result.rows == 4
    assert pv.to_json(pv.open(tmp_path / "d").read("j")).to_pylist() == CANONICAL
    source = write(tmp_path / "k.vortex", id=[1, 2, 3, 4], j=json())
    assert main(["ingest", source, str(tmp_path / "e.vortex"), "--json-column", "j", "--format", "vortex"]) == 0
    assert pv.open(tmp_path / "e.vortex").read_json().storage.to_pylist() == CANONICAL
    assert pv.open(tmp_path / "e.vortex").to_arrow()["id"].to_pylist() == [1, 2, 3, 4]


def test_a_struct_with_json_text_is_an_ordinary_column(tmp_path):
    inner = pa.StructArray.from_arrays([pa.array([1, 2, 3, 4]), json()], names=["k", "doc"])
    source = write(tmp_path / "s.vortex", s=inner)
    expected = [{"k": number, "doc": text} for number, text in enumerate(TEXTS, 1)]
    assert pv.open(source).scan({"s": "s"}).to_arrow()["s"].to_pylist() == expected
    assert pv.sql("SELECT s.k, s.doc FROM t WHERE s.k = 3", t=source).to_pylist() == [{"k": 3, "doc": "[1.5]"}]


def test_cat_prints_json(only, tmp_path, capsys):
    nested = pa.StructArray.from_arrays([json(['{"x": 1}', None])], names=["j"])
    source = write(tmp_path / "k.vortex", id=[1, 2], j=json(TEXTS[:2]), n=nested)
    shown = []
    for arguments in ([only], [source], [source, "--column", "j"]):
        assert main(["cat", *arguments]) == 0
        shown.append(capsys.readouterr().out.splitlines())
    assert shown[0] == ["null" if text is None else text for text in CANONICAL]
    assert shown[1] == [f'{{"id":1,"j":{CANONICAL[0]},"n":{{"j":{{"x":1}}}}}}', '{"id":2,"j":null,"n":{"j":null}}']
    assert shown[2] == [CANONICAL[0], "null"]


def test_rewrite_and_diff_of_a_json_column(only, tmp_path, capsys):
    source = write(tmp_path / "k.vortex", id=[1, 2, 3, 4], j=json())
    for name, more in (("a.parquet", []), ("b.vortex", []), ("t", ["--format", "delta"])):
        assert main(["rewrite", source, str(tmp_path / name), *more]) == 0
    read = pv.open(tmp_path / "a.parquet").to_arrow()
    assert pv.to_json(pv.VariantArray.from_arrow(read, "j")).to_pylist() == CANONICAL
    assert pv.open(tmp_path / "a.parquet").read().is_shredded
    assert pv.open(tmp_path / "b.vortex").inspect().columns[0].is_json
    (info,) = pv.open(source).rewrite(tmp_path / "c.parquet", schema="s string")
    assert pv.open(info.path).read().schema.to_ddl() == "s string"
    (info,) = pv.open(write(tmp_path / "e.vortex", j=json([]))).rewrite(tmp_path / "e.parquet")
    assert pv.open(info.path).read().to_pylist() == []
    for other in ("a.parquet", "t", "struct.vortex", "variant.vortex"):
        if layout := other.removesuffix(".vortex") * other.endswith("vortex"):
            pv.open(tmp_path / "a.parquet").rewrite(tmp_path / other, layout=layout)
        capsys.readouterr()
        assert main(["diff", str(tmp_path / "b.vortex"), str(tmp_path / other)]) == 0
        assert "no differences" in capsys.readouterr().out
        changed = pv.parse_json(['{"a":"x"}', None, "[1.5]", "null"])
        pv.write(tmp_path / "changed.vortex", changed, mode="overwrite")
        assert pv.open(tmp_path / "changed.vortex").diff(tmp_path / other).is_equal is False


def test_invalid_json_has_its_file_column_and_row(tmp_path, capsys):
    texts = ["{}"] * 70_000 + ["{oops", "{}"]
    source = write(tmp_path / "k.vortex", j=json(texts))
    for call in (
        lambda: pv.open(source).read_json(),
        lambda: pv.open(source).scan({"a": "$.a"}).to_arrow(),
        lambda: pv.open(source).rewrite(tmp_path / "a.parquet"),
    ):
        with pytest.raises(pv.JsonError, match=r"column 'j' holds invalid JSON: .*; fix the row, or ingest") as raised:
            call()
        assert (raised.value.file, raised.value.row) == (source, 70_000)
    assert main(["cat", source]) == 1
    assert "row 70000" in capsys.readouterr().err
    result = pv.ingest(source, tmp_path / "d", json_column="j", on_error="quarantine")
    assert (result.rows, len(list(tmp_path.glob("d/_bad_records/*")))) == (70_001, 1)


def test_queries_and_diff_read_json_text_as_variants(only, tmp_path):
    rows = pv.sql("SELECT j, j:a::int AS a, j[0]::double AS d FROM t", t=only).to_pylist()
    assert [row["j"] for row in rows] == CANONICAL
    assert [(row["a"], row["d"]) for row in rows] == [(1, None), (None, None), (None, 1.5), (None, None)]
    assert pv.open(only).scan({"a": "$.a:bigint"}, "a = 1").to_arrow().to_pylist() == [{"a": 1}]
    pv.write(tmp_path / "v.vortex", {"j": pv.parse_json(TEXTS)})
    assert pv.open(only).diff(tmp_path / "v.vortex").is_equal
    # Next to a Variant, JSON text must be named.
    both = {"v": pv.parse_json(['{"a": 2}'] * 4), "j": json()}
    vortex.io.write(pv.vortex.variant_table(both), str(tmp_path / "both.vortex"))
    query = "SELECT sum(v:a::int) AS v, sum(j:a::int) AS j FROM t"
    assert pv.sql(query, t=str(tmp_path / "both.vortex")).to_pylist() == [{"v": 8, "j": 1}]
    paths = {"a": "$.a:int"}
    for column, expected in ((None, 2), ("v", 2), ("j", 1)):
        scan = pv.open(tmp_path / "both.vortex").scan(paths, "a > 0", column=column)
        assert scan.to_arrow()["a"].to_pylist()[0] == expected
    invalid = write(tmp_path / "invalid.vortex", j=json(["1"] * 20_000 + ["{"]))
    with pytest.raises(pv.JsonError, match=r"column 'j' holds invalid JSON.*row 20000"):
        pv.open(invalid).scan({"a": "$"}).to_arrow()
