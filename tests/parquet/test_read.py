"""Reading: which column, which files, which layouts together, and clear words when it cannot be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import SchemaError, VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import locate, open_file


def array(*values):
    return pv.VariantArray.from_pylist(values)


@pytest.fixture
def folder(tmp_path):
    pv.write(tmp_path / "a.parquet", array({"a": 1}), schema="a bigint")
    pv.write(tmp_path / "sub" / "b.parquet", array({"a": "x"}, None), schema="a string")
    pv.write(tmp_path / "sub" / "c.parquet", array([1]), annotation=False)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.txt").write_text("no Parquet")
    (tmp_path / ".hidden.parquet").write_text("no Parquet")
    return tmp_path


def test_files_of_any_schema_are_read_together(folder):
    expected = [{"a": 1}, {"a": "x"}, None, [1]]
    assert pv.open(folder).read().to_pylist() == expected
    assert pv.open(f"{folder}/**/*.parquet").read().to_pylist() == expected
    assert pv.open([folder / "sub", folder / "a.parquet"]).read().to_pylist() == [{"a": "x"}, None, [1], {"a": 1}]
    assert pv.open(folder).read().layout == "unshredded"
    assert pv.open(f"{folder}/a.p*").read().layout == "final"
    tables = pv.open(folder).to_arrow()
    assert pv.VariantArray(tables["v"]).to_pylist() == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nope.parquet", "does not exist"),
        ("empty", "no Parquet files"),
        ("nope*.parquet", "no file matches"),
        ([], "list of files is empty"),
        ("notes.txt", "not a Parquet file"),
    ],
)
def test_a_missing_source_is_reported_in_one_line(folder, source, words):
    (folder / "empty").mkdir()
    source = source if isinstance(source, list) else folder / source
    for action in (
        (lambda path: pv.open(path).read()),
        (lambda path: pv.open(path).inspect()),
        (lambda path: pv.open(path).validate()),
    ):
        with pytest.raises(VariantFileError, match=words) as caught:
            action(source)
        assert "\n" not in str(caught.value)
    with pytest.raises(VariantFileError, match=words):
        pv.open(source).scan({"a": "$.a:int"}).to_arrow()
    with pytest.raises(VariantFileError, match=words):
        pv.open(source).rewrite(folder / "dest.parquet")


def test_a_column_must_be_named_if_there_are_several(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, {"v": array(1), "w": array(2), "id": pa.array([1])})
    with pytest.raises(VariantFileError, match="choose one with column=, from v, w"):
        pv.open(path).read()
    assert pv.open(path).read("w").to_pylist() == [2]
    assert pv.open(path).scan({"x": "$:int", "id": "id"}, column="v").to_arrow().to_pydict() == {"x": [1], "id": [1]}
    with pytest.raises(VariantFileError, match="id is not a Variant column: choose from v, w"):
        pv.open(path).read("id")


def test_a_file_without_a_variant_says_what_it_has(tmp_path):
    pq.write_table(pa.table({"id": [1], "s": [{"x": 1}]}), tmp_path / "a.parquet")
    for action in (
        (lambda path: pv.open(path).read()),
        (lambda path: pv.open(path).inspect()),
        (lambda path: pv.open(path).validate()),
    ):
        with pytest.raises(VariantFileError, match=r"no Variant column.*columns are id, s"):
            action(tmp_path / "a.parquet")


def test_a_delta_table_is_not_read_as_plain_files(folder):
    (folder / "_delta_log").mkdir()
    with pytest.raises(VariantFileError, match="Delta table"):
        pv.open(folder, format="parquet").read()


def test_columns_are_found_by_shape_without_an_annotation(tmp_path):
    storage = pv.shred_variant(array({"a": 1}, "x"), "a bigint").storage
    nested = pa.StructArray.from_arrays([storage, pa.array([1, 2])], ["event", "n"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": nested, "plain": pa.array([{"value": b"1"}] * 2)}), path)
    assert pv.open(path).read("s.event").to_pylist() == [{"a": 1}, "x"]
    assert pv.open(path).scan({"a": "$.a:int"}).to_arrow()["a"].to_pylist() == [1, None]
    lists = pa.ListArray.from_arrays([0, 1, 2], storage)
    pq.write_table(pa.table({"l": lists}), path)
    with pytest.raises(VariantFileError, match="list or map"):
        pv.open(path).read()
    assert pv.open(path).inspect().columns[0].name == "l"


def test_names_that_start_with_an_underscore_are_ignored(tmp_path):
    kind = pa.struct({"metadata": pa.binary(), "_x": pa.int32(), "value": pa.binary(), "typed_value": pa.int64()})
    rows = [{"metadata": b"\x01\x00\x00", "_x": 1, "value": None, "typed_value": 5}]
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / "a.parquet")
    pv.open(tmp_path / "a.parquet").annotate(["v"])
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == [5]
    other = pa.struct([field if field.name != "_x" else pa.field("x", pa.int32()) for field in kind])
    pq.write_table(pa.table({"v": pa.array([{**rows[0], "x": 1}], other)}), tmp_path / "b.parquet")
    pv.open(tmp_path / "b.parquet").annotate(["v"])
    with pytest.raises(SchemaError, match="unknown field 'x'") as caught:
        pv.open(tmp_path / "b.parquet").read()
    assert caught.value.file == str(tmp_path / "b.parquet")


def test_variants_in_lists_and_maps_go_round(tmp_path):
    storage = pv.shred_variant(array({"a": 1}, "x", None), "a bigint").storage
    table = pa.table({
        "l": pa.ListArray.from_arrays([0, 2, 2, 3], storage),
        "m": pa.MapArray.from_arrays([0, 1, 1, 3], ["p", "q", "r"], storage),
        "f": pa.FixedSizeListArray.from_arrays(pa.concat_arrays([storage[:1], storage]), 1)[1:],
        "id": [1, 2, 3],
    })  # fmt: skip
    named = ["l.list.element", "m.key_value.value", "f.list.element"]
    pv.write(tmp_path / "a.parquet", table, variants=named)
    assert {column.name for column in pv.open(tmp_path / "a.parquet").inspect().columns} == {"l", "m.value", "f"}
    back = pv.open(tmp_path / "a.parquet").to_arrow()
    for layout in ("unshredded", "draft-object", "final"):
        pv.open(tmp_path / "a.parquet").rewrite(tmp_path / f"{layout}.parquet", layout=layout)
        found = pv.open(tmp_path / f"{layout}.parquet").to_arrow()
        values = found["l"].combine_chunks().values
        assert pv.VariantArray(values).layout == layout
        assert pv.VariantArray(values).to_pylist() == [{"a": 1}, "x", None]
        assert pv.VariantArray(found["m"].combine_chunks().items).to_pylist() == [{"a": 1}, "x", None]
        fixed = found["f"].combine_chunks().flatten()
        assert (pv.VariantArray(fixed).layout, pv.VariantArray(fixed).to_pylist()) == (layout, [{"a": 1}, "x", None])
        assert found["id"].to_pylist() == back["id"].to_pylist() == [1, 2, 3]


def test_truncated_data_is_an_error_not_a_crash(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, array(*({"a": n, "b": "x" * n} for n in range(200))), schema="a bigint")
    data = bytearray(path.read_bytes())
    for place in range(10, 400, 13):
        data[place] ^= 0x5A
    path.write_bytes(bytes(data))
    with pytest.raises(VariantError):
        list(pv.open(path).read())


def test_reading_without_dictionaries_gives_the_same(tmp_path):
    """The way taken for row groups of which pyarrow cannot join the dictionaries."""
    rows = array(*({f"k{n}": n, "a": "x"} for n in range(50)))
    pv.write(tmp_path / "a.parquet", rows, schema="a string", row_group_bytes=500)
    with open_file(locate(tmp_path / "a.parquet")[0]) as file:
        groups = list(range(file.metadata.num_row_groups))
        leaves = [leaf.leaf for leaf in file.schema.leaves()]
        plain, joined = file.read_plain(groups, leaves), file.read_leaves(groups, leaves)
    assert len(groups) > 2
    assert list(pv.VariantArray(plain["v"])) == list(pv.VariantArray(joined["v"])) == list(rows)


UNLISTED = [
    pa.array([b"a" * 16], pa.binary(16)), pa.array([1], pa.float16()), pa.nulls(1), pa.array([1], pa.uint32()),
    pa.array([1], pa.time32("ms")), pa.array([1], pa.timestamp("ms")), pa.array([1], pa.decimal256(50, 2)),
]  # fmt: skip


@pytest.mark.parametrize("typed", UNLISTED, ids=lambda typed: str(typed.type))
def test_types_that_the_specification_does_not_list_are_refused_however_they_are_read(tmp_path, typed):
    group = pa.StructArray.from_arrays([pa.nulls(1, pa.binary()), typed], ["value", "typed_value"])
    fields = pa.StructArray.from_arrays([group], ["a"])
    parts = [pa.array([b"\x11\x01\0\x01a"]), pa.nulls(1, pa.binary()), fields]
    storage = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    pq.write_table(pa.table({"v": storage}), tmp_path / "a.parquet")
    table = pv.open(tmp_path / "a.parquet")
    for read in (
        table.read,
        lambda: table.scan(["$.a"]).to_arrow(),
        lambda: table.scan({"a": "$.a:bigint"}, "$.a = 1").to_arrow(),
        lambda: pv.sql("SELECT v:a FROM t", t=table).to_arrow(),
    ):
        with pytest.raises(SchemaError, match="does not list"):
            read()
    if typed.type not in (pa.binary(16), pa.float16()):  # Arrow's types of fixed bytes and halves have a Variant type
        with pytest.raises(SchemaError) as raised:
            pv.variant_get(storage, "$.a", "bigint")
        assert raised.value.reason == "unsupported-type"


def test_a_row_that_is_there_without_a_value_is_variant_null(tmp_path):
    kind = pa.struct({"metadata": pa.binary(), "value": pa.binary()})
    rows = [{"metadata": b"\x11\0\0", "value": None}, None, {"metadata": b"\x11\0\0", "value": b"\x0c\x01"}]
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / "a.parquet")
    found = pv.open(tmp_path / "a.parquet").read(column="v")
    assert pv.to_json(found).to_pylist() == ["null", None, "1"]
    assert [None if item is None else item.to_json() for item in found] == ["null", None, "1"]
    assert found[0] == pv.Variant.from_python(None)
    assert pv.is_variant_null(found).to_pylist() == [True, False, False]
    assert pv.unshred_variant(pv.shred_variant(found, "bigint")) == found


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_metadata_in_any_encoding_is_read(tmp_path, encoding):
    rows = array(*({f"k{n}": n} for n in range(50)))
    metadata = rows.storage.field("metadata").dictionary_decode()
    storage = pa.StructArray.from_arrays([metadata, rows.storage.field("value")], ["metadata", "value"])
    path = tmp_path / "a.parquet"
    encodings = {"v.metadata": encoding, "v.value": encoding}
    pq.write_table(pa.table({"v": storage}), path, use_dictionary=False, column_encoding=encodings, row_group_size=20)
    assert encoding in pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
    assert pv.open(path).read() == rows
    assert pv.VariantArray(pv.open(path).to_arrow()["v"]) == rows
    assert pv.open(path).scan({"x": ("$.k7", "int")}).to_arrow()["x"].to_pylist() == [None] * 7 + [7] + [None] * 42
    assert pv.open(path).validate().rows == 50


def test_the_files_of_duckdb_with_pages_of_version_2_are_read(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "a.parquet"
    query = """SELECT v::JSON::VARIANT AS v FROM (SELECT unnest(['{"a":1,"b":"x"}', '{"c":[1,2]}']) AS v)"""
    duckdb.sql(f"COPY ({query}) TO '{path}' (PARQUET_VERSION V2)")
    assert pv.open(path).read().to_pylist() == [{"a": 1, "b": "x"}, {"c": [1, 2]}]
    assert pv.open(path).scan({"a": ("$.a", "int")}).to_arrow()["a"].to_pylist() == [1, None]


def test_draft_paths_with_many_key_sets_are_read(tmp_path):
    rows = array(*({f"k{n}": n, f"j{n}": "x", "a": 1} for n in range(300)))
    pv.write(tmp_path / "a.parquet", rows, schema="struct<a int>", layout="draft-paths")
    assert pv.open(tmp_path / "a.parquet").read() == rows


@pytest.mark.parametrize("layout", ["final", "draft-paths", "draft-object"])
@pytest.mark.parametrize("ddl", ["array<uuid>", "struct<a array<uuid>>", "array<struct<a uuid, b array<uuid>>>"])
def test_lists_of_uuids_that_no_row_has(tmp_path, ddl, layout):
    rows = array(1, None, "x")
    shredded = pv.shred_variant(rows, ddl, layout=layout)
    assert shredded == rows
    pv.write(tmp_path / "a.parquet", rows, schema=ddl, layout=layout)
    assert pv.open(tmp_path / "a.parquet").read() == rows
    assert pv.open(tmp_path / "a.parquet").validate().rows == 3
    assert pv.variant_get(shredded, "$[*]", "string").to_pylist() == [None, None, None]


def test_metadata_of_an_unknown_version_is_refused_next_to_a_scalar(tmp_path):
    good, bad = ({"metadata": bytes([version, 0, 0]), "value": b"\x0c\x05"} for version in (1, 2))
    rows = [good, None, bad]
    storage = pa.array(rows, pa.struct({"metadata": pa.binary(), "value": pa.binary()}))
    pq.write_table(pa.table({"v": storage}), tmp_path / "a.parquet")
    table = pv.open(tmp_path / "a.parquet")
    uses = (
        table.read,
        table.scan({"n": "$:int"}).to_arrow,
        lambda: pv.sql(f"SELECT v::int FROM '{tmp_path}/a.parquet'").to_pylist(),
    )
    for use in uses:
        with pytest.raises(pv.MalformedVariantError) as caught:
            use()
        assert (caught.value.reason, caught.value.row) == ("bad-version", 2)


def test_a_partition_column_is_read_without_the_columns_of_the_file(tmp_path):
    (tmp_path / "day=2026-01-01").mkdir()
    pv.write(tmp_path / "day=2026-01-01" / "a.parquet", pv.VariantArray.from_pylist([1, 2]))
    assert [str(day) for day in pv.open(tmp_path).to_arrow(["day"])["day"].to_pylist()] == ["2026-01-01"] * 2


@pytest.mark.parametrize("place", ["$", "$.a"])
def test_a_duration_that_only_the_arrow_schema_names_is_an_integer_for_every_reader(tmp_path: Path, place: str) -> None:
    missing, typed = pa.nulls(2, pa.binary()), pa.array([1, 2], pa.duration("us"))
    metadata = pv.parse_json(['{"a": 1}'] * 2).storage.field("metadata").cast(pa.binary())
    if place == "$.a":
        typed = pa.StructArray.from_arrays(
            [pa.StructArray.from_arrays([missing, typed], ["value", "typed_value"])], ["a"]
        )
    storage = pa.StructArray.from_arrays([metadata, missing, typed], ["metadata", "value", "typed_value"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": storage, "id": [1, 2], "d": pa.array([5, 6], pa.duration("s"))}), path)
    table, expected = pv.open(path, column="v"), [1, 2] if place == "$" else [{"a": 1}, {"a": 2}]
    assert table.read().to_pylist() == expected
    assert pv.VariantArray.from_arrow(table.to_arrow(), "v").to_pylist() == expected
    assert table.scan({"x": f"{place}:bigint"}).to_arrow()["x"].to_pylist() == [1, 2]
    assert table.scan(["id"], f"{place}:bigint > 1").to_arrow()["id"].to_pylist() == [2]
    text = "v::bigint" if place == "$" else "v:a::bigint"
    assert pv.sql(f"SELECT {text} AS x FROM t", t=table).to_arrow()["x"].to_pylist() == [1, 2]
    table.rewrite(tmp_path / "b.parquet")
    assert pv.open(tmp_path / "b.parquet").read().to_pylist() == expected
    assert table.schema.field("d").type == pa.duration("s")
