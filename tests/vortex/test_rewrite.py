"""Vortex files in and out of `variant rewrite` and `variant optimize`: the values are equal in every format."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.files.vortex.library import open_file
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.ops.interop.display import json_rows

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")

TEXTS = ['{"a":1,"b":[1,"x"]}', '{"a":2,"c":{"d":"2020-01-01"}}', "3", None, "null", '{"a":1.5}', "[]"] * 20


def rows(schema="a bigint, b array<bigint>", layout="final"):
    array = pv.parse_json(TEXTS)
    if schema:
        array = pv.shred_variant(array, schema, layout=layout)
    columns = {"id": pa.array(range(len(TEXTS))), "v": array, "s": [{"x": "t"}] * len(TEXTS)}
    table = pv.vortex.variant_table(columns, plain=False)
    return table.cast(pa.schema([table.schema.field("id").with_nullable(False), *list(table.schema)[1:]]))


def check(table):
    assert table.column_names == ["id", "v", "s"]
    array = pv.VariantArray.from_arrow(table, "v")
    same = pv.equals(array, pv.parse_json(TEXTS)).to_pylist()
    assert same == [None if text is None else True for text in TEXTS]
    assert [value is None for value in array] == [text is None for text in TEXTS]
    assert table["id"].to_pylist() == list(range(len(TEXTS)))
    assert table["s"].to_pylist() == [{"x": "t"}] * len(TEXTS)


def run(capsys, *words):
    code = main([str(word) for word in words])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


@pytest.mark.parametrize("layout", [None, "unshredded", "final", "variant", "struct"])
def test_parquet_to_vortex_and_back(layout, tmp_path, capsys):
    pv.write(tmp_path / "a.parquet", rows())
    words = [] if layout is None else ["--layout", layout]
    assert run(capsys, "rewrite", tmp_path / "a.parquet", tmp_path / "b.vortex", *words)[0] == 0
    assert run(capsys, "rewrite", tmp_path / "b.vortex", tmp_path / "c.parquet")[0] == 0
    assert run(capsys, "rewrite", tmp_path / "b.vortex", tmp_path / "d.vortex")[0] == 0
    stored = {None: "variant", "unshredded": "variant", "final": "struct"}.get(layout, layout)
    for name in ("b", "d"):
        assert pv.open(tmp_path / f"{name}.vortex").inspect().columns[0].layouts == {stored: 1}
        check(pv.open(tmp_path / f"{name}.vortex").to_arrow())
    back = pv.open(tmp_path / "c.parquet").to_arrow()
    check(back)
    assert not back.schema.field("id").nullable
    shredded = pv.open(tmp_path / "c.parquet").read().schema
    assert (shredded is not None) == (layout in (None, "final", "struct", "variant"))
    if layout is None:
        assert shredded.to_ddl() == "a bigint, b array<bigint>"


def test_drafts_schemas_and_nested_variants(tmp_path):
    for layout in ("draft-paths", "draft-object"):
        pv.write(tmp_path / f"{layout}.parquet", rows(layout=layout, schema="a bigint"))
        (info,) = pv.open(tmp_path / f"{layout}.parquet").rewrite(tmp_path / f"{layout}.vortex")
        assert info.layouts == {"v": "variant"}
        check(pv.open(info.path).to_arrow())
    for schema in ("a double", "infer"):
        for dest in ("e.vortex", "e.parquet"):
            (info,) = pv.open(tmp_path / "draft-paths.vortex").rewrite(
                tmp_path / dest, schema=schema, mode="overwrite", column="v"
            )
            is_vortex = dest.endswith("vortex")
            written = open_file(info.path).shredding_schema("v") if is_vortex else pv.open(info.path).read().schema
            assert written.get("$.a").type is not None
    variants = pv.parse_json(['{"n": 1}', "2"])
    inner = pa.StructArray.from_arrays([variants.storage], fields=[variants.arrow_field.with_name("w")])
    nested = pa.table({"s": inner, "v": variants.storage}, schema=pa.schema([
        pa.field("s", inner.type), variants.arrow_field.with_name("v"),
    ]))  # fmt: skip
    pv.write(tmp_path / "n.parquet", nested)
    pv.open(tmp_path / "n.parquet").rewrite(tmp_path / "n.vortex")
    pv.open(tmp_path / "n.vortex").rewrite(tmp_path / "m.parquet")
    shown = [list(json_rows(pv.open(tmp_path / f"{name}.parquet").to_arrow())) for name in "nm"]
    assert shown[0] == shown[1] == ['{"s":{"w":{"n":1}},"v":{"n":1}}', '{"s":{"w":2},"v":2}']


def test_directories_and_original_texts(tmp_path):
    texts = ['{"a": 1.50}', None]
    for name in ("1", "x/2"):
        pv.write(tmp_path / f"in/{name}.vortex", {"doc": pa.array(texts)}, json=["doc"], exact=True)
    infos = pv.open(tmp_path / "in").rewrite(tmp_path / "out")
    assert [info.path for info in infos] == [str(tmp_path / f"out/{name}.vortex") for name in ("1", "x/2")]
    assert pv.open(tmp_path / "out/x/2.vortex").read_json(exact=True).storage.to_pylist() == texts
    infos = pv.open(tmp_path / "in").rewrite(tmp_path / "parquet", format="parquet")
    assert pv.to_json(pv.open(tmp_path / "parquet").read()).to_pylist() == ['{"a":1.5}', None] * 2


def test_tables(tmp_path, capsys):
    pv.write(tmp_path / "a.parquet", rows())
    chain = ["a.parquet", "b.vortex", "delta", "c.vortex", "iceberg", "d.vortex", "e.parquet"]
    for source, dest in itertools.pairwise(chain):
        words = ["--format", dest] if dest in ("delta", "iceberg") else []
        code, shown = run(capsys, "rewrite", tmp_path / source, tmp_path / dest, *words)
        assert code == 0, shown
    check(pv.open(tmp_path / "delta").to_arrow())
    check(pv.open(tmp_path / "iceberg").to_arrow())
    check(pv.open(tmp_path / "d.vortex").to_arrow())
    check(pv.open(tmp_path / "e.parquet").to_arrow())
    code, shown = run(capsys, "rewrite", tmp_path / "b.vortex", tmp_path / "delta", "--format", "delta")
    assert code == 1
    assert "already" in shown


def test_what_is_refused(tmp_path, capsys):
    pv.write(tmp_path / "a.vortex", rows())
    for words, match in (
        (("b.vortex", "--layout", "draft-paths"), "the layout of Vortex files is 'draft-paths'"),
        (("b.parquet", "--layout", "struct"), "the layout of Parquet files is 'struct'"),
        (("b.vortex", "--engine", "spark"), "Parquet files as Parquet files only"),
        (("b.vortex", "--compression", "lz4"), "--compression applies to Parquet"),
        (("b.vortex", "--no-annotation"), "--no-annotation applies to Parquet"),
        (("a.vortex",), "already exists"),
        (("d", "--format", "delta", "--layout", "final"), "--layout applies"),
    ):
        code, shown = run(capsys, "rewrite", tmp_path / "a.vortex", tmp_path / words[0], *words[1:])
        assert code, words
        assert match in shown, (words, shown)
    with pytest.raises(pv.VariantError, match="unknown option"):
        pv.open(tmp_path / "a.vortex").rewrite(tmp_path / "b.vortex", compression="lz4")


def test_optimize(tmp_path, capsys):
    for name in ("1", "2", "x/3", "x/4"):
        pv.write(tmp_path / f"d/{name}.vortex", rows("a bigint"))
    code, shown = run(capsys, "optimize", tmp_path / "d", "--schema", "b array<bigint>")
    assert code == 0, shown
    assert "4 files" in shown
    files = vortex_files(tmp_path / "d")
    assert [file.count("/x/") for file in files] == [0, 1]
    for file in files:
        read = pv.open(file).to_arrow()
        check(read.slice(0, len(TEXTS)))
        check(read.slice(len(TEXTS)))
        assert open_file(file).shredding_schema("v").to_ddl() == "b array<bigint>"
    assert "nothing to do" in run(capsys, "optimize", tmp_path / "d", "--schema", "b array<bigint>")[1]
    # Layouts and original texts are kept.
    for name in ("1", "2"):
        pv.write(
            tmp_path / f"c/{name}.vortex", {"j": pa.array(['{"a": 1.0}'])}, json=["j"], exact=True, layout="struct"
        )
    result = pv.open(tmp_path / "c").optimize()
    assert (result.files_removed, result.files_added) == (2, 1)
    (file,) = vortex_files(tmp_path / "c")
    assert pv.open(file).inspect().columns[0].layouts == {"struct": 1}
    assert pv.open(file).read_json(exact=True).storage.to_pylist() == ['{"a": 1.0}'] * 2
    assert pv.open(tmp_path / "c").optimize().files_removed == 0
    with pytest.raises(pv.VariantFileError, match="not a directory"):
        pv.open(file).optimize()


def test_optimize_keeps_typed_fields_inside_the_variant_type(tmp_path):
    texts = [f'{{"n":{n},"o":{{"a":{n}}}}}' for n in range(100)]
    schema = "n bigint, o struct<a: bigint>"
    for name in ("1", "2"):
        pv.write(tmp_path / f"{name}.vortex", pv.parse_json(texts), schema=schema, layout="variant")
    before = pv.open(tmp_path).inspect().columns[0]
    result = pv.open(tmp_path).optimize(reshred=True)
    assert (result.files_removed, result.files_added) == (2, 1)
    after = pv.open(tmp_path).inspect().columns[0]
    assert (after.layouts, after.types) == ({"variant": 1}, before.types) == ({"variant": 1}, {"$['n']": ("bigint",)})
    assert pv.to_json(pv.open(tmp_path).read()).to_pylist() == pv.to_json(pv.parse_json(texts * 2)).to_pylist()
    assert pv.open(tmp_path).optimize(reshred=True).files_removed == 0


def test_diff_reads_vortex_files(tmp_path, capsys):
    pv.write(tmp_path / "d/a.vortex", rows())
    pv.write(tmp_path / "p/a.parquet", rows())
    code, shown = run(capsys, "diff", tmp_path / "d", tmp_path / "p")
    assert code == 0, shown
    assert "no differences" in shown
