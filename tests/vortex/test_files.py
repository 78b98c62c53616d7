"""Vortex files lose nothing, and queries over them answer as those over Parquet files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.arrays.capsules import plain_metadata
from parquet_variant.cli.app import main
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.support.lazy_names import arrow_compute as pc
from variant_strategies import shredding_schemas, variants

# Not `vortex` alone: these tests' own directory has that name.
pytest.importorskip("vortex.expr", reason="vortex-data is not installed")

LAYOUTS = ["auto", "variant", "struct"]


def rows_of(table):
    return [repr(row) for row in table.to_pylist()]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_come_in_order_whatever_the_threads(tmp_path, layout):
    rows = pv.parse_json([f'{{"n": {number}}}' for number in range(50_000)])
    pv.write(tmp_path / "a.vortex", rows, layout=layout)
    found = [pv.open(tmp_path / "a.vortex").scan({"n": "$.n:int"}, "n > 9", threads=n).to_arrow() for n in (1, 3)]
    assert [table["n"].to_pylist() for table in found] == [list(range(10, 50_000))] * 2
    with pytest.raises(VariantError, match="threads is 0"):
        pv.open(tmp_path / "a.vortex").scan({"n": "$.n:int"}, threads=0)


# ---- lossless


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", [pa.binary(), pa.binary_view(), None])
def test_rows_and_elements_without_a_value_are_written_as_variant_null(tmp_path, layout, value):
    names = pv.Variant.from_python({"a": 1, "l": 1}).metadata
    residual = [] if value is None else [("value", value)]
    element = pa.struct([*residual, ("typed_value", pa.int64())])
    items = pa.struct([*residual, ("typed_value", pa.list_(element))])
    typed = pa.struct([("a", pa.struct([*residual, ("typed_value", pa.int64())])), ("l", items)])
    rows = [
        {"metadata": names},
        {"metadata": names, "typed_value": {"l": {"typed_value": [{"typed_value": 1}, {}, None]}}},
        {"metadata": names, "typed_value": {"a": {"typed_value": 3}}},
        None,
    ]
    lacking = pv.VariantArray(pa.array(rows, pa.struct([("metadata", pa.binary()), *residual, ("typed_value", typed)])))
    pv.write(tmp_path / "a.vortex", lacking, layout=layout)
    found = pv.open(tmp_path / "a.vortex").read()
    assert list(found) == list(lacking)
    assert [item and item.to_json() for item in found] == ["null", '{"l":[1,null,null]}', '{"a":3}', None]
    if layout == "struct":
        top = dict(zip(found.storage.type.names, found.storage.flatten(), strict=True))["value"]
        assert top.to_pylist() == [b"\x00", None, None, None]
        elements = found.storage.field("typed_value").field("l").field("typed_value").values
        assert elements.field("value").to_pylist() == [None, b"\x00", b"\x00"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_corpus_through_files(corpus_file, layout, tmp_path):
    array = pv.open(corpus_file).read()
    info = pv.write(tmp_path / "a.vortex", array, layout=layout)
    assert info.fallbacks == {}
    assert info.layouts == {"v": "variant" if layout == "auto" else layout}
    found = pv.open(tmp_path / "a.vortex").read()
    assert list(found) == list(array)
    assert found.null_count == array.null_count


@settings(max_examples=25)
@given(st.data())
def test_any_values_under_any_schema(tmp_path_factory, data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=8), min_size=1, max_size=6))
    schema = data.draw(st.none() | shredding_schemas(values))
    path = tmp_path_factory.mktemp("v") / "a.vortex"
    layout = data.draw(st.sampled_from(LAYOUTS))
    array = pv.VariantArray.from_variants(values)
    pv.write(path, array, format="vortex", schema=schema, layout=layout, compact=data.draw(st.booleans()))
    assert list(pv.open(path).read()) == values


def test_every_type_has_a_typed_column(tmp_path):
    values = [True, 2**40, Decimal("1.25"), 2.5, np.float32(1.5), "x", b"\0\xff", uuid.UUID(int=7)]
    values += [np.datetime64(1, "ns"), np.datetime64(1, "us"), np.datetime64(1, "D")]
    kinds = ["boolean", "bigint", "decimal(9,2)", "double", "float", "string", "binary", "uuid"]
    kinds += ["timestamp_ntz_nanos", "timestamp_ntz", "date"]
    for value, kind in zip(values, kinds, strict=True):
        array = pv.VariantArray.from_pylist([value, None, "other", {"a": value}])
        path = tmp_path / "a.vortex"
        info = pv.write(path, array, format="vortex", schema=f"struct<a: {kind}>", layout="struct", mode="overwrite")
        assert info.layouts == {"v": "struct"}, info
        found = pv.open(path).read()
        assert found.schema.to_ddl() == pv.ShreddingSchema.from_ddl(f"struct<a: {kind}>").to_ddl()
        assert found.equals(array), kind
        # Vortex's own type keeps the type of a value, whether the library can type it or not.
        fields = pv.VariantArray.from_pylist([{"a": value}, {"a": None}, None, {}])
        fields = fields if kind != "decimal(9,2)" else fields[:1]
        info = pv.write(path, fields, format="vortex", schema=f"struct<a: {kind}>", mode="overwrite")
        assert info.layouts == {"v": "variant"}, info
        found = pv.open(path).read()
        assert found.equals(fields), kind
        assert found[0]["a"].type == fields[0]["a"].type


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("schema", [None, "t timestamp_ntz_nanos", "t timestamp_nanos", "infer"])
def test_whole_microseconds_in_nanoseconds_keep_their_type(tmp_path, layout, schema):
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        table = pa.table({"t": pa.array([1_000_000, 2_000_001, 3_000_000, 0], kind)})
        array = pv.cast_to_variant(pa.array(table.to_struct_array().combine_chunks()))
        pv.write(tmp_path / "a.vortex", array, schema=schema, layout=layout, mode="overwrite")
        found = pv.open(tmp_path / "a.vortex").read()
        assert [value["t"].type for value in found] == [value["t"].type for value in array]
        assert {str(value["t"].type) for value in array} <= {"timestamp_ntz_nanos", "timestamp_nanos"}
        assert found.equals(array)


def test_tables_keep_other_columns_and_several_variants(tmp_path):
    one, two = pv.parse_json(['{"a": 1}', None, "[1]"]), pv.parse_json(["1", "null", '{"b": 2}'])
    columns = {
        "id": pa.array([1, 2, None]), "one": one, "name": pa.array(["x", None, "y"]),
        "two": pv.shred_variant(two, pv.ShreddingSchema.from_ddl("struct<b: bigint>")),
        "f": pa.array([float("nan"), None, 1.5]),
    }  # fmt: skip
    for data in (columns, pv.vortex.variant_table(columns)):
        info = pv.write(tmp_path / "t.vortex", data, mode="overwrite")
        assert info.layouts == {"one": "variant", "two": "variant"}
        table = pv.open(tmp_path / "t.vortex").to_arrow()
        assert table.column_names == list(columns)
        assert table["id"].to_pylist() == [1, 2, None]
        assert table["name"].to_pylist() == ["x", None, "y"]
        assert pv.VariantArray.from_arrow(table, "one").equals(one)
        assert pv.open(tmp_path / "t.vortex").read("two").equals(two)
        assert sum(part.num_rows for part in pv.open(tmp_path / "t.vortex").scan().batches()) == 3
        with pytest.raises(VariantFileError, match="Variant columns"):
            pv.open(tmp_path / "t.vortex").read()


def containers_of(variants):
    """Two rows of lists, maps and structs with marked Variants."""
    ends, field = pa.array([0, 1, 2], pa.int32()), variants.arrow_field
    struct = pa.StructArray.from_arrays([variants.storage], fields=[field.with_name("v")])
    maps = pa.map_(pa.string(), field.with_name("value"))
    return {
        "struct": struct,
        "list": pa.ListArray.from_arrays(ends, variants.storage, type=pa.list_(field.with_name("element"))),
        "map": pa.MapArray.from_arrays(ends, pa.array(["x", "y"]), variants.storage, type=maps),
        "structs": pa.ListArray.from_arrays(ends, struct),
    }


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("struct", ['{"c":{"v":{"a":1}}}', '{"c":{"v":2}}']),
        ("list", ['{"c":[{"a":1}]}', '{"c":[2]}']),
        ("map", ['{"c":{"x":{"a":1}}}', '{"c":{"y":2}}']),
        ("structs", ['{"c":[{"v":{"a":1}}]}', '{"c":[{"v":2}]}']),
    ],
)
def test_variants_inside_of_other_columns(tmp_path, capsys, name, texts, plain):
    variants = pv.parse_json(['{"a":1}', "2"])
    column = containers_of(pv.VariantArray(plain_metadata(variants.storage)) if plain else variants)[name]
    pv.write(tmp_path / "t.vortex", pa.table({"c": column}))
    assert main(["cat", str(tmp_path / "t.vortex")]) == 0
    assert capsys.readouterr().out.splitlines() == texts


def test_shredded_and_unshredded_files_are_read_and_compacted_together(tmp_path):
    texts = ['{"n":%d}' % n for n in range(20)]  # noqa: UP031
    for name, options in (("a", {"schema": "n bigint"}), ("b", {}), ("c", {"layout": "struct"}), ("d", {})):
        pv.write(tmp_path / f"{name}.vortex", pv.parse_json(texts), **options)
    expected = sorted(texts * 4)
    assert sorted(pv.to_json(pv.open(tmp_path).read()).to_pylist()) == expected
    assert pv.open(tmp_path).optimize().files_removed >= 3
    assert sorted(pv.to_json(pv.open(tmp_path).read()).to_pylist()) == expected


@pytest.mark.parametrize("schema", [None, "a bigint"])
def test_a_variant_inside_of_structs_is_rewritten_scanned_and_compared(tmp_path, schema):
    variants = pv.parse_json(['{"a":1}', '{"a":"x"}', None, '{"a":4}'])
    if schema:
        variants = pv.shred_variant(variants, schema)
    inner = pa.StructArray.from_arrays([variants.storage], fields=[variants.arrow_field.with_name("v")])
    hidden = pa.array([False, False, False, True])
    outer = pa.StructArray.from_arrays([inner, pa.array([1, 2, 3, 4])], names=["s", "n"], mask=hidden)
    parquet, file = tmp_path / "t.parquet", tmp_path / "t.vortex"
    pv.write(parquet, pa.table({"o": outer, "id": pa.array(range(4))}))
    pv.open(parquet).rewrite(file)
    pv.open(file).rewrite(tmp_path / "back.parquet")
    for place in (file, tmp_path / "back.parquet"):
        scan = pv.open(place, column="o.s.v").scan
        rows = scan({"a": "$.a:string", "id": "id", "v": "$"}).to_arrow()
        assert rows["a"].to_pylist() == ["1", "x", None, None]
        assert pv.VariantArray.from_arrow(rows, "v").to_pylist() == [{"a": 1}, {"a": "x"}, None, None]
        assert scan({"id": "id", "a": "$.a:int"}, "a = 1").to_arrow()["id"].to_pylist() == [0]
    assert pv.open(parquet, column="o.s.v").diff(file).is_equal
    with pytest.raises(VariantFileError, match=r"'o\.v' is not a Variant column"):
        pv.open(file).scan({"a": "$.a"}, column="o.v")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"a": {"b": 1}}, {"a": {"b": 2}}, {"a": None}, None])[1:],
        pa.array([[{"a": 1}, {"a": 2}], [{"a": 3}, {"a": 4}], None], pa.list_(pa.struct([("a", pa.int8())]), 2))[1:],
        pc.run_end_encode(pa.array([1, 1, None], pa.timestamp("us"))),
        pa.array([0.5, None, float("nan")], pa.float16()),
    ],
    ids=lambda column: str(column.type),
)
def test_other_columns_in_any_form(tmp_path, column):
    for data in ({"c": column}, pa.table({"c": column})):
        pv.write(tmp_path / "t.vortex", data, mode="overwrite")
        assert str(pv.open(tmp_path / "t.vortex").to_arrow()["c"].to_pylist()) == str(column.to_pylist())


def test_empty_and_all_null_columns(tmp_path):
    for rows in ([], [None, None]):
        for schema in (None, "a bigint"):
            array = pv.parse_json(pa.array(rows, pa.string()))
            pv.write(tmp_path / "e.vortex", array, schema=schema, mode="overwrite")
            assert list(pv.open(tmp_path / "e.vortex").read()) == rows


# ---- what goes wrong


def test_a_file_that_lost_something_is_not_made(tmp_path, monkeypatch):
    module = import_module("parquet_variant.files.vortex.writer")

    written = module.stored_column

    def losing(array, layout, **options):
        kept, storage = written(array, layout, **options)
        return (kept, storage) if layout == "struct" else (kept, pa.concat_arrays([storage[:1], storage[:1]]))

    array = pv.parse_json(['{"a": 1}', '{"a": 2}'])
    monkeypatch.setattr(module, "first_difference", lambda given, found: 1)
    with pytest.raises(VariantFileError) as refused:
        pv.write(tmp_path / "a.vortex", array)
    assert refused.value.reason == "lost-in-file"
    assert refused.value.row == 1
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(module, "stored_column", losing)
    info = pv.write(tmp_path / "a.vortex", array, schema="a bigint")
    assert info.layouts == {"v": "struct"}
    assert pv.open(tmp_path / "a.vortex").read().to_pylist() == [{"a": 1}, {"a": 2}]


def test_falls_back_to_the_layout_that_holds_the_column(tmp_path, monkeypatch):
    module = import_module("parquet_variant.files.vortex.writer")
    compare = module.first_difference

    def no_dtype(given, found):
        is_dtype = pa.types.is_struct(found.type) and found.type.get_field_index("typed_value") < 0
        return 0 if is_dtype else compare(given, found)

    monkeypatch.setattr(module, "first_difference", no_dtype)
    array = pv.parse_json(['{"a": 1}', None])
    info = pv.write(tmp_path / "a.vortex", array, schema="a bigint")
    assert info.layouts == {"v": "struct"}
    assert "did not preserve" in info.fallbacks["v"]
    assert pv.open(tmp_path / "a.vortex").read().equals(array)
    with pytest.raises(VariantFileError):
        pv.write(tmp_path / "b.vortex", array, schema="a bigint", layout="variant")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fields_whose_names_contain_nul_are_kept(tmp_path, layout):
    rows = ['{"a\\u0000b": 1, "o": {"x\\u0000": 2, "y": 3}, "l": [{"\\u0000": 1}]}', '{"a\\u0000b": 5}', None]
    array = pv.parse_json(rows)
    pv.write(tmp_path / "a.vortex", array, schema=pv.infer_shredding_schema(array), layout=layout)
    assert list(pv.open(tmp_path / "a.vortex").read()) == list(array)
    columns = {"a": "$['a\\u0000b']:int", "x": "$.o['x\\u0000']:int", "y": "$.o.y:int"}
    found = pv.open(tmp_path / "a.vortex").scan(columns).to_arrow().to_pydict()
    assert found == {"a": [1, 5, None], "x": [2, None, None], "y": [3, None, None]}


READ_ALL = "import sys, vortex; print(sum(batch.num_rows for batch in vortex.open(sys.argv[1]).to_arrow()))"


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("text", ['{{"n": {n}}}', "null", "{{}}", None, '{{"n": "{n:0200}"}}'])
def test_any_rows_keep_the_dtype(tmp_path, text, compact):
    """However short rows are, other Vortex readers get a Variant, and do not crash over blocks that were joined."""
    for rows in (1, 8192, 8193, 20_000):
        array = pv.parse_json(pa.array([text and text.format(n=n) for n in range(rows)], pa.string()))
        info = pv.write(tmp_path / "a.vortex", array, compact=compact, mode="overwrite")
        assert (info.layouts, info.fallbacks) == ({"v": "variant"}, {})
        assert pv.to_json(pv.open(tmp_path / "a.vortex").read()).equals(pv.to_json(array))
    read = [sys.executable, "-c", READ_ALL, str(tmp_path / "a.vortex")]
    done = subprocess.run(read, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["20000"], done.stderr


def test_files_of_other_writers_that_crash_the_library_are_read(tmp_path):
    vortex = import_module("vortex")
    array = pv.parse_json([f'{{"n": {n}}}' for n in range(20_000)])
    vortex.io.write(pv.vortex.variant_table({"v": array}, plain=True), str(tmp_path / "a.vortex"))
    if vortex.__version__.startswith("0.90."):
        with pytest.raises(pv.VariantFileError, match=r"vortex-data cannot process the file: .*cannot export Variant"):
            pv.open(tmp_path / "a.vortex").read()
        return
    assert pv.to_json(pv.open(tmp_path / "a.vortex").read()).equals(pv.to_json(array))
    query = pv.open(tmp_path / "a.vortex").scan({"n": "$.n:long"}, "n >= 19990")
    assert query.to_arrow()["n"].to_pylist() == list(range(19_990, 20_000))


def test_only_files_are_replaced_and_only_if_that_is_allowed(tmp_path):
    array = pv.parse_json(["1"])
    (tmp_path / "d.vortex").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "d.vortex", tmp_path / "pipe", f"{tmp_path}/x/"):
        for mode in ("error", "overwrite"):
            with pytest.raises(VariantFileError, match="is a directory or not a file name"):
                pv.write(path, array, format="vortex", mode=mode)
    for path, match in (("s3://bucket/a.vortex", "not on a local disk"), (None, "not a path"), ("a\0.vortex", "NUL")):
        with pytest.raises(VariantFileError, match=match):
            pv.write(path, array, format="vortex")
    assert pv.write(f"file://{tmp_path}/a.vortex", array).path == str(tmp_path / "a.vortex")

    def write(number):
        try:
            return pv.write(tmp_path / "b.vortex", pv.parse_json([str(number)])) and number
        except VariantFileError as error:
            assert error.reason == "exists"
            return None

    with ThreadPoolExecutor(4) as pool:
        written = [number for number in pool.map(write, range(4)) if number is not None]
    assert pv.open(tmp_path / "b.vortex").read().to_pylist() == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.vortex", "b.vortex", "d.vortex", "pipe"]


@pytest.mark.parametrize("name", ["read", "to_arrow", "read_json", "inspect", "optimize"])
def test_what_is_not_a_path_is_refused(name):
    with pytest.raises(VariantError):
        getattr(pv.open(5, format="vortex"), name)()
    with pytest.raises(VariantError):
        pv.vortex.dtype_of(5)


def test_what_is_refused(tmp_path):
    array = pv.parse_json(["1"])
    vortex = import_module("vortex")
    vortex.io.write(vortex.array([1, 2]), str(tmp_path / "array.vortex"))
    for call in (
        (lambda path: pv.open(path).read()),
        lambda path: pv.open(path).read_json(),
        (lambda path: pv.open(path).inspect()),
        pv.vortex.dtype_of,
        (lambda path: pv.open(path).to_arrow()),
    ):
        with pytest.raises(pv.VariantFileError, match="the file holds one array of the type i64, not columns"):
            call(tmp_path / "array.vortex")
    texts = pa.table({"v": ['{"a": 1}'], "v$text": ["x"]})
    with pytest.raises(pv.VariantFileError, match=r"need the column 'v\$text', which the data has"):
        pv.write(tmp_path / "t.vortex", texts, json=["v"], exact=True)
    pv.write(tmp_path / "a.vortex", array)
    with pytest.raises(VariantFileError, match="already exists"):
        pv.write(tmp_path / "a.vortex", array)
    with pytest.raises(VariantFileError, match="no Vortex file found"):
        pv.open(tmp_path / "none.vortex").read()
    (tmp_path / "bad.vortex").write_bytes(b"not a vortex file at all")
    with pytest.raises(VariantFileError, match="not a Vortex file"):
        pv.open(tmp_path / "bad.vortex").read()
    with pytest.raises(VariantFileError, match="column 'x' does not exist"):
        pv.open(tmp_path / "a.vortex").scan(["x"])
    with pytest.raises(VariantFileError, match="length"):
        pv.write(tmp_path / "c.vortex", {"v": array, "n": pa.array([1, 2])})
    with pytest.raises(VariantError, match="layout is 'shredded': use auto"):
        pv.write(tmp_path / "c.vortex", array, layout="shredded")


def test_without_the_library_the_error_names_the_extra():
    script = (
        "import sys; sys.modules['vortex'] = None\n"
        "import parquet_variant as pv\n"
        "pv.vortex.collect_statistics(pv.parse_json(['1']))\n"
        "try:\n    pv.open('a.vortex', format='vortex').read()\n"
        "except pv.VariantError as error:\n    assert 'parquet-variant[vortex]' in str(error)\n"
        "else:\n    raise SystemExit('no error')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- queries

ROWS = [
    '{"n": 1, "s": "a", "o": {"x": 1.5, "deep": {"y": [1, 2]}}, "l": [1, "two", {"z": 3}]}',
    '{"n": "text", "s": 5, "o": [1], "l": {"z": 1}, "extra": {"k": true}}',
    None, "null", "{}", "17",
    '{"n": null, "s": null, "o": {"x": "wide", "more": 1}, "l": []}',
    '{"n": 300, "s": "b", "o": {"x": 2, "deep": {"y": null}}, "l": [[1], null]}',
    '{"n": 12345678901, "s": "ab", "o": {}, "extra": 1}',
]  # fmt: skip
SCHEMA = "n bigint, s string, o struct<x: double, deep: struct<y: array<bigint>>>, l array<variant>"
QUERIES = [
    ({"n": "$.n:bigint"}, None),
    ({"n": "$.n:bigint"}, "n > 1"),
    ({"n": "$.n:bigint", "s": "$.s:string"}, "n <= 300 and s <> 'a'"),
    ({"n": "$.n:int"}, "n = 300 or n is null"),
    ({"s": "$.s:string"}, "s >= 'ab'"),
    ({"s": "$.s:string"}, "s like 'a%'"),
    ({"x": "$.o.x:double"}, "x <= 2"),
    ({"x": "$.o.x:double"}, "x > 1"),
    ({"x": "$.o.x:string", "more": "$.o.more:bigint"}, None),
    ({"y": "$.o.deep.y[*]:bigint", "first": "$.o.deep.y[0]:bigint"}, None),
    ({"o": "$.o"}, None),
    ({"all": "$", "deep": "$.o.deep"}, None),
    ({"l": "$.l[*]:string", "z": "$.l[2].z:bigint"}, None),
    ({"k": "$.extra.k:boolean", "none": "$.no.such.path:bigint"}, None),
    ({"row": "$:struct<n: bigint, s: string>"}, None),
    ({"n": "$.n:decimal(20,2)"}, "n > 1.5"),
    ({"extra": "$.extra"}, "\"$.n:bigint\" = 12345678901"),
    ({"n": "$.n:bigint"}, "not n = 1"),
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows as Parquet, and as Vortex in both layouts; long enough for several zones."""
    folder = tmp_path_factory.mktemp("files")
    # Long enough rows: vortex-data 0.90 cannot read its Variant type where several blocks of rows fit into a megabyte.
    rest = (f'{{"n": {n}, "s": "row {n}", "pad": "{n:0150}"}}' for n in range(1000, 19_000))
    array = pv.parse_json([*ROWS, *rest])
    pv.write(folder / "a.parquet", array, schema=SCHEMA)
    info = pv.write(folder / "variant.vortex", array)
    assert info.layouts == {"v": "variant"}, info
    for layout, schema in (("struct", SCHEMA), ("typed", SCHEMA)):
        info = pv.write(
            folder / f"{layout}.vortex", array, schema=schema, layout="variant" if layout == "typed" else layout
        )
        assert info.fallbacks == {}
    return folder


@pytest.mark.parametrize("layout", ["variant", "typed", "struct"])
@pytest.mark.parametrize(("columns", "where"), QUERIES, ids=str)
def test_scans_answer_as_over_parquet(files, layout, columns, where):
    wanted = pv.open(files / "a.parquet").scan(columns, where).to_arrow()
    for pushdown in (True, False) if where is not None else (True,):
        found = pv.open(files / f"{layout}.vortex").scan(columns, where, skipping=pushdown).to_arrow()
        assert found.schema.equals(wanted.schema, check_metadata=False)
        assert found.num_rows == wanted.num_rows
        for name in columns:
            assert decoded(found[name]) == decoded(wanted[name])


def decoded(column):
    kind = column.type
    if pa.types.is_struct(kind) and kind.get_field_index("metadata") >= 0:
        return pv.to_json(pv.VariantArray(column)).to_pylist()
    return column.to_pylist()


@pytest.mark.parametrize(("kind", "dtype"), [("bigint", "int_(64)"), ("string", "utf8()"), ("boolean", "bool_()")])
def test_vortexs_own_extraction_answers_as_ours(tmp_path, kind, dtype):
    """Through `vortex.expr.variant_get`, over a file as another Vortex reader sees it.

    But for booleans, which Vortex makes of numbers and texts, and numbers of them; here an unexpected type is null.
    """
    vortex = import_module("vortex")
    expr = import_module("vortex.expr")
    texts = ['{"a": 1, "b": {"c": "x"}}', '{"a": "two", "b": {"c": 7}}', None, "null", '{"b": {"c": null}}', "[1]"]
    texts += ['{"a": 9007199254740993, "b": 5}', '{"b": {"c": [1]}}']
    if kind == "boolean":
        texts = ['{"a": true}', '{"a": "x", "b": {"c": false}}', None, '{"b": false}']
    array = pv.parse_json(texts)
    pv.write(tmp_path / "a.vortex", array, layout="variant")
    nullable = eval(f"vortex.{dtype[:-1]}{', ' if dtype[-2] != '(' else ''}nullable=True)", {"vortex": vortex})
    for path in (["a"], ["b", "c"], ["missing"]):
        asked = expr.pack({"x": expr.variant_get(expr.column("v"), path, nullable)})
        theirs = vortex.open(str(tmp_path / "a.vortex")).to_arrow(projection=asked).read_all()["x"].to_pylist()
        assert theirs == pv.get_variant_element(array, "$." + ".".join(path), kind).to_pylist(), path


@pytest.mark.parametrize("layout", ["variant", "struct"])
def test_a_variant_at_a_path_returns_what_is_there(tmp_path, layout):
    array = pv.parse_json(['{"a": 1}', '{"a": null}', '{"b": 1}', None])
    for rows in (array, array.take([0, 2, 3]), array.take([3])):
        pv.write(tmp_path / "a.vortex", rows, schema="a bigint", layout=layout, mode="overwrite")
        scanned = pv.open(tmp_path / "a.vortex").scan({"x": ("$.a", "variant")}).to_arrow().column("x")
        assert (
            pv.to_json(pv.VariantArray.from_arrow(scanned)).to_pylist()
            == pv.to_json(pv.variant_get(rows, "$.a", "variant")).to_pylist()
        )


def test_filters_on_typed_columns_are_left_to_vortex(files):
    asked = {
        "n > 5": True, "n > 5 and s like 'a%'": True, "n > 5 or s = 'x'": True, "n > 5 or s like 'a%'": False,
        "n is null": False, "x < 5": True, "x > 5": False, "w = 1": False,
    }  # fmt: skip
    columns = {"n": "$.n:bigint", "s": "$.s:string", "x": "$.o.x:double", "w": "$.n:double"}
    for where, pushed in asked.items():
        assert pv.open(files / "struct.vortex").scan(columns, where).explain().filters_in_file is pushed, where
        assert pv.open(files / "variant.vortex").scan(columns, where).explain().filters_in_file is False


def test_only_the_columns_on_the_path_are_asked_for(files):
    scan = pv.open(files / "struct.vortex").scan({"n": "$.n:bigint", "x": "$.o.x:double", "k": "$.extra.k:boolean"})
    parts = list(scan.plan.files[0].parts.values())
    assert [part.levels for part in parts] == [("n",), ("o", "x"), ()]
    assert [part.only_value for part in parts] == [False, False, True]


def test_bytes_that_are_read_are_counted(files):
    counts = []
    for columns in ({"n": "$.n:bigint"}, {"v": "$"}):
        scan = pv.open(files / "struct.vortex").scan(columns)
        assert scan.bytes_read == 0
        scan.to_arrow()
        counts.append(scan.bytes_read)
    assert 0 < counts[0] < counts[1]


@settings(max_examples=25)
@given(st.data())
def test_extraction_through_files_equals_ours(tmp_path_factory, data):
    values = data.draw(st.lists(st.none() | variants(max_leaves=8), min_size=1, max_size=5))
    schema = data.draw(shredding_schemas(values))
    array = pv.VariantArray.from_variants(values)
    keys = sorted({key for value in values if value is not None and value.type == "object" for key in value})
    path = pv.VariantPath()
    if keys and data.draw(st.booleans()):
        path = path / data.draw(st.sampled_from(keys))
    if data.draw(st.booleans()):
        path = path / data.draw(st.sampled_from([0, 1]))
    target = data.draw(st.sampled_from(["bigint", "string", "double", "decimal(38,3)", "boolean", "binary"]))
    file = tmp_path_factory.mktemp("v") / "a.vortex"
    layout = data.draw(st.sampled_from(LAYOUTS))
    pv.write(file, array, format="vortex", schema=schema, layout=layout)
    for cast, wanted in (
        (True, pv.variant_get(array, str(path), target, errors="null")),
        (False, pv.get_variant_element(array, str(path), target)),
    ):
        found = pv.open(file).scan({"x": (str(path), target)}, cast=cast).to_arrow()["x"]
        assert repr(found.to_pylist()) == repr(wanted.to_pylist()), (layout, cast)


def test_other_readers_get_parts_of_a_typed_variant(tmp_path):
    """vortex-data cannot give them of columns that are typed for some rows only: those lie in bytes."""
    vortex = import_module("vortex")
    expr = import_module("vortex.expr")
    texts = [f'{{"a": {n}, "b": {n if n % 3 else "true"}, "o": {{"x": {n}}}, "l": [{n}]}}' for n in range(300)]
    array = pv.parse_json(texts)
    schema = "a bigint, b bigint, o struct<x: bigint>, l array<bigint>, u uuid"
    columns = {"v": array, "id": pa.array(range(300))}
    info = pv.write(tmp_path / "a.vortex", columns, schema={"v": schema}, layout="variant")
    assert sorted(info.in_bytes["v"]) == ["$['b']", "$['l']", "$['o']", "$['u']"]
    assert pv.open(tmp_path / "a.vortex").inspect().columns[0].types == {"$['a']": ("bigint",)}
    file = vortex.open(str(tmp_path / "a.vortex"))
    assert "v=variant?" in str(file.dtype)
    for reader in (
        file.to_arrow(expr=expr.column("id") > 200), file.to_arrow(limit=7), file.to_arrow(batch_size=7),
        file.to_repeated_scan().execute(row_range=(10, 20)).to_arrow(),
    ):  # fmt: skip
        table = reader.read_all()
        found = pv.VariantArray.from_arrow(table, "v")
        assert list(found) == [array[row] for row in table["id"].to_pylist()]
    for name, kind in (("a", "bigint"), ("b", "bigint"), ("o", "string")):
        scan = pv.open(tmp_path / "a.vortex").scan({"x": (f"$.{name}", kind)})
        assert scan.to_arrow()["x"].combine_chunks().equals(pv.variant_get(array, f"$.{name}", kind, errors="null"))


def test_a_directory_is_read_as_its_files_are(tmp_path):
    """What an ingest writes: rows in the order of the files, whatever is shredded in each."""
    first, second = pv.parse_json(['{"n": 1}', None]), pv.parse_json(['{"n": "x"}'])
    for name, rows, schema in (("a", first, "n bigint"), ("b", first, "n bigint"), ("c", second, "n string")):
        columns = {"k": pa.array([name] * len(rows)), "v": rows}
        pv.write(tmp_path / "t" / f"{name}.vortex", columns, schema=schema, layout="struct")
    assert pv.open(tmp_path / "t" / "[ab].vortex").read().is_shredded
    texts = ['{"n":1}', None, '{"n":1}', None, '{"n":"x"}']
    assert pv.to_json(pv.open(tmp_path / "t").read()).to_pylist() == texts
    scan = pv.open(tmp_path / "t").scan({"n": "$.n:string", "k": "k"})
    assert scan.to_arrow().to_pydict() == {"n": ["1", None, "1", None, "x"], "k": ["a", "a", "b", "b", "c"]}
    assert scan.explain().files_total == 3
    assert pv.open(tmp_path / "t" / "[ab].vortex").to_arrow()["k"].to_pylist() == ["a", "a", "b", "b"]
    assert pv.open(tmp_path / "t").to_arrow(["k"])["k"].to_pylist() == ["a", "a", "b", "b", "c"]
    rows = pv.open(tmp_path / "t").to_arrow()
    assert pv.to_json(pv.VariantArray.from_arrow(rows, "v")).to_pylist() == texts
    (tmp_path / "empty").mkdir()
    with pytest.raises(VariantFileError, match="no Vortex file found"):
        pv.open(tmp_path / "empty", format="vortex").scan({"n": "$.n:int"}).to_arrow()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_that_are_not_nullable_stay_so(tmp_path, layout):
    vortex = import_module("vortex")
    array = pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"a": null}', "{}", "null"])
    table = pv.vortex.variant_table({"v": array})
    table = pa.table(table.columns, schema=pa.schema([table.schema.field("v").with_nullable(False)]))
    pv.write(tmp_path / "a.vortex", table, layout=layout)
    dtype = str(vortex.open(str(tmp_path / "a.vortex")).dtype)
    assert not dtype.endswith("?}"), dtype
    assert pv.open(tmp_path / "a.vortex").inspect().columns[0].dtype == "variant"
    assert not pv.open(tmp_path / "a.vortex").to_arrow().schema.field("v").nullable
    found = pv.open(tmp_path / "a.vortex").scan({"a": "$.a:bigint"}, cast=False).to_arrow()
    assert found.schema.field("a").nullable
    assert found["a"].to_pylist() == [1, None, None, None, None]
    nulls = pv.vortex.variant_table({"v": pv.parse_json(["1", None])})
    nulls = pa.table(nulls.columns, schema=pa.schema([nulls.schema.field("v").with_nullable(False)]))
    with pytest.raises(VariantFileError, match="not nullable"):
        pv.write(tmp_path / "b.vortex", nulls, layout=layout)
    assert not (tmp_path / "b.vortex").exists()


def test_a_column_with_nul_in_its_name_is_refused(tmp_path):
    for columns in ({"n\0m": [1], "v": pv.parse_json(["1"])}, {"v\0w": pv.parse_json(["1"])}):
        with pytest.raises(pv.SchemaError, match="rename the column") as raised:
            pv.write(tmp_path / "a.vortex", columns)
        assert raised.value.reason == "bad-name"
        assert not (tmp_path / "a.vortex").exists()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wide_and_deep_values(tmp_path, layout):
    often = {f"key {m}": m for m in range(240)}
    rows = [often | {f"rare {n} {m}": m for m in range(20)} | {"id": n} for n in range(20)]
    deep = ["[" * 200 + "1" + "]" * 200, '{"a":' * 200 + "1" + "}" * 200]
    array = pv.parse_json([*map(json.dumps, rows), *deep, '{"a": [[1], {"b\\u0000": 2}]}'])
    pv.write(tmp_path / "a.vortex", array, layout=layout, schema="infer")
    assert list(pv.open(tmp_path / "a.vortex").read()) == list(array)
    for path in ("$.id", "$['key 3']", "$['key 239']", "$['rare 7 3']", "$.a[1]['b\\u0000']", "$.a.a.a"):
        found = pv.open(tmp_path / "a.vortex").scan({"x": (path, "string")}).to_arrow()["x"]
        assert found.to_pylist() == pv.variant_get(array, path, "string", errors="null").to_pylist()


# ---- real data


@pytest.mark.slow
def test_data_sets_through_files(data_set, tmp_path):
    lines, paths = data_set
    array = pv.parse_json(lines)
    texts = pv.to_json(array)
    for schema, layout in ((None, "auto"), ("infer", "auto"), ("infer", "variant"), ("infer", "struct")):
        info = pv.write(tmp_path / "a.vortex", array, schema=schema, layout=layout, mode="overwrite")
        assert info.fallbacks == {}
        assert info.rows == len(lines)
        assert pv.to_json(pv.open(tmp_path / "a.vortex").read()).cast(texts.type).equals(texts)
        for path in paths:
            for target in ("string", "double"):
                found = pv.open(tmp_path / "a.vortex").scan({"x": (path, target)}).to_arrow()["x"].combine_chunks()
                assert found.equals(pv.variant_get(array, path, target, errors="null")), (schema, path, target)


def test_tables_for_the_library_are_read_by_it(tmp_path):
    import vortex

    rows = ['{"a": 1, "b": [1, 2], "o": {"x": 1}}', '{"a": 2, "b": ["s"]}', None] * 5
    array = pv.parse_json(rows)
    shredded = pv.shred_variant(array, "a bigint, b array<bigint>, o struct<x: bigint>")
    for column in (array, shredded, pv.vortex.ChunkedVariantArray([shredded[:7], shredded[7:]])):
        table = pv.vortex.variant_table({"v": column, "id": list(range(15))})
        vortex.io.write(table, str(tmp_path / "a.vortex"))
        assert pv.open(tmp_path / "a.vortex").read().to_pylist() == array.to_pylist()
        assert len(vortex.array(table)) == 15
    typed = pv.vortex.variant_table({"v": shredded})
    assert pv.VariantArray.from_arrow(typed).schema.to_ddl() == "a bigint"
    plain = pv.vortex.variant_table({"v": shredded}, plain=False)
    assert pv.VariantArray.from_arrow(plain).schema == shredded.schema
    with pytest.raises(RuntimeError):  # otherwise `plain=True` is not needed any more
        vortex.io.write(plain, str(tmp_path / "b.vortex"))


@pytest.mark.parametrize("kind", ["shredded", "json", "unshredded", "ingested"])
def test_the_expression_of_vortex_works_on_files_of_the_default(tmp_path, kind):
    vortex, expr = import_module("vortex"), import_module("vortex.expr")
    texts = [f'{{"a": {n}, "s": "x{n}", "o": {{"b": {n}}}, "l": [{n}]}}' for n in range(10_000)] + [None, "null", "[1]"]
    path = tmp_path / "a.vortex"
    if kind == "json":
        column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
        info = pv.write(path, pa.table({"v": column}), format="vortex", exact=True)
    elif kind == "ingested":
        lines = [text for text in texts if text is not None]
        (tmp_path / "a.ndjson").write_text("\n".join(lines) + "\n")
        pv.ingest(tmp_path / "a.ndjson", path, format="vortex")
        texts = lines
        info = None
    else:
        schema = "a bigint, s string, o struct<b: bigint>, l array<bigint>" if kind == "shredded" else None
        info = pv.write(path, pv.parse_json(texts), format="vortex", schema=schema)
    assert info is None or (info.layouts, info.fallbacks) == ({"v": "variant"}, {})
    file = vortex.open(str(path))
    assert "v=variant?" in str(file.dtype)
    array = pv.parse_json(texts)
    for fields, name, dtype in (
        (["a"], "bigint", vortex.int_(64, nullable=True)), (["s"], "string", vortex.utf8(nullable=True)),
        (["o", "b"], "bigint", vortex.int_(64, nullable=True)), (["l", 0], "bigint", vortex.int_(64, nullable=True)),
    ):  # fmt: skip
        request = expr.pack({"x": expr.variant_get(expr.column("v"), fields, dtype)})
        theirs = file.to_repeated_scan(request, batch_size=8192).execute().to_arrow().read_all()["x"]
        assert theirs.to_pylist() == pv.get_variant_element(array, str(pv.VariantPath(tuple(fields))), name).to_pylist()


def test_a_file_of_another_name_is_recognized_by_its_first_bytes(tmp_path):
    pv.write(tmp_path / "events", pv.parse_json(["1"]), format="vortex")
    table = pv.open(tmp_path / "events")
    assert (table.format, len(table)) == ("vortex", 1)
    assert table.data_files() == [str(tmp_path / "events")]
    table.rewrite(tmp_path / "copy.parquet")
    assert pv.open(tmp_path / "copy.parquet").read().equals(table.read())
