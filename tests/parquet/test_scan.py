"""What a scan reads: the leaf columns and row groups that it needs, counted in bytes, and nothing else."""

from __future__ import annotations

import os
import pickle
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import CastError, PathError, PredicateError, SchemaError, VariantError, VariantFileError
from parquet_variant.files.parquet.format.files import locate, open_file
from parquet_variant.files.parquet.format.thrift import BINARY, I64, encode_struct
from parquet_variant.files.parquet.reading.column_values import absent_values, xxh64

N = 2000
SCHEMA = "id bigint, mag double, place string, tags array<string>, deep struct<x: int>"


def rows():
    for n in range(N):
        yield {
            "id": n,
            "mag": n / 4,
            "place": f"place {n % 50:03}",
            "tags": ["a", str(n)],
            "deep": {"x": n},
            "rest": "r" * 50,
        }


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    name = tmp_path_factory.mktemp("scan") / "a.parquet"
    values = list(rows())
    values[5] = {"id": 5, "mag": "n/a", "place": 17}  # one residual, in the first row group
    pv.write(name, pv.VariantArray.from_pylist(values), schema=SCHEMA, row_group_bytes=40_000)
    return name


def chunks(path, *names):
    """Compressed bytes of some leaf columns, by row group."""
    metadata = pq.ParquetFile(path).metadata
    return [
        sum(
            metadata.row_group(group).column(leaf).total_compressed_size
            for leaf in range(metadata.num_columns)
            if metadata.row_group(group).column(leaf).path_in_schema in names
        )
        for group in range(metadata.num_row_groups)
    ]


def test_only_the_needed_columns_are_read(path):
    scan = pv.open(path).scan({"mag": "$.mag:double"})
    table = scan.to_arrow()
    typed = chunks(path, "v.typed_value.mag.typed_value")
    residual = chunks(path, "v.typed_value.mag.value", "v.metadata")
    assert scan.bytes_read == scan.explain().bytes_read == sum(typed) + residual[0]
    assert table["mag"].to_pylist()[4:7] == [1.0, None, 1.5]
    assert scan.explain().residuals == {"v.typed_value.mag.value": 1}


def test_a_point_predicate_reads_few_row_groups(path):
    scan = pv.open(path).scan({"id": "$.id:bigint", "rest": "$.rest:string"}, "id = 1234")
    assert scan.to_arrow().to_pydict() == {"id": [1234], "rest": ["r" * 50]}
    report = scan.explain()
    assert report.row_groups_read == 1
    assert scan.bytes_read <= report.bytes_read < report.bytes_total * 0.05
    assert "row groups  1 of" in str(report)


def test_what_no_row_group_can_hold_reads_nothing(path):
    select = {"id": "$.id:bigint", "place": "$.place:string", "mag": "$.mag:double"}
    for where in ("id < 0", "id is null", "id = 5 and id = 1500", "id not in (1, 2) and id > 1e6"):
        scan = pv.open(path).scan(select, where)
        assert scan.to_arrow().num_rows == scan.explain().row_groups_read == scan.bytes_read == 0, where
    for where in ("place like 'z%'", "mag > 1e9"):  # A residual keeps the first row group.
        scan = pv.open(path).scan(select, where)
        assert (scan.to_arrow().num_rows, scan.explain().row_groups_read) == (0, 1), where
    unshredded = pv.open(path).scan(select, '"$.nope:int" = 5').explain()
    assert unshredded.row_groups_read == unshredded.row_groups_total


def test_the_filter_is_read_before_the_rest(path):
    """A row group whose statistics promise a match that is not there: the other columns stay unread."""
    scan = pv.open(path).scan({"x": "$.deep.x:int", "rest": "$.rest:string"}, "$.id:double = 1000.5")
    assert scan.to_arrow().num_rows == 0
    assert scan.bytes_read < scan.explain().bytes_read


def test_a_residual_in_one_row_does_not_change_other_row_groups(path):
    report = pv.open(path).scan({"place": "$.place:string"}).explain()
    assert report.columns["v.typed_value.place.typed_value"] == report.row_groups_total > 5
    assert report.columns["v.typed_value.place.value"] == report.columns["v.metadata"] == 1


def test_only_wrong_types_are_skipped(path):
    scan = pv.open(path).scan({"tags": "$.tags:bigint", "id": "$.id:date"}, "tags > 5")
    assert scan.explain().row_groups_read == 0
    assert pv.open(path).scan({"tags": "$.tags:string"}, "tags > 'a'").explain().row_groups_read > 0


def test_variant_nulls_need_no_residual(tmp_path):
    values = [{"felt": None if n % 3 else n} for n in range(100)]
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist(values), schema="felt int")
    scan = pv.open(tmp_path).scan({"felt": "$.felt:int"}, "felt > 50")
    assert scan.to_arrow()["felt"].to_pylist() == list(range(51, 100, 3))
    assert scan.explain().residuals == {"v.typed_value.felt.value": 0}
    assert pv.open(tmp_path).scan({"felt": "$.felt:int"}, "felt > 99").explain().files_read == 0
    whole = pv.open(tmp_path).scan({"felt": "$.felt:variant"}).to_arrow()
    assert pv.VariantArray(whole["felt"])[1].to_json() == "null"


def test_nan_is_found_above_the_bounds(tmp_path):
    values = [{"x": 1.0}, {"x": float("nan")}]
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist(values), schema="x double")
    pv.write(tmp_path / "b.parquet", pv.VariantArray.from_pylist(values[:1]), schema="x double")
    report = pv.open(tmp_path).scan({"x": "$.x:double"}, "x > 5").explain()
    assert (report.files_read, report.files_total) == (1, 2)
    assert str(pv.open(tmp_path).scan({"x": "$.x:double"}, "x > 5").to_arrow()["x"].to_pylist()) == "[nan]"


def test_tasks_are_the_whole_answer(path):
    scan = pv.open(path).scan({"id": "$.id:bigint"}, "id >= 500 and id < 1500")
    tasks = pickle.loads(pickle.dumps(scan.tasks(task_bytes=1)))
    again = pickle.loads(pickle.dumps(scan))
    assert len(tasks) == scan.explain().row_groups_read > 3
    found = pa.concat_tables([table for task in tasks for table in again.read(task)])
    assert found["id"].to_pylist() == list(range(500, 1500))
    assert len(scan.tasks()) == 1
    assert sum(task.bytes for task in tasks) == scan.explain().bytes_read


def test_ordinary_columns_are_selected_and_skip(tmp_path):
    values = pv.VariantArray.from_pylist([{"a": n} for n in range(1000)])
    day = pa.array([n // 100 for n in range(1000)], pa.int32())
    pv.write(tmp_path / "a.parquet", {"v": values, "day": day}, schema="a int", row_group_bytes=400)
    scan = pv.open(tmp_path).scan({"a": "$.a:int"}, "day = 7")
    assert scan.to_arrow()["a"].to_pylist() == list(range(700, 800))
    assert scan.explain().row_groups_read <= scan.explain().row_groups_total / 5
    assert pv.open(tmp_path).scan(["day"], "day > 8").to_arrow()["day"].to_pylist() == [9] * 100
    with pytest.raises(VariantFileError, match="no column nope: choose from v, day"):
        pv.open(tmp_path).scan({"x": "nope"})


def test_columns_that_share_a_name_are_refused(tmp_path):
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], ["x", "x", "y"])
    with pytest.raises(VariantFileError, match="duplicate column names"):
        pv.write(tmp_path / "a.parquet", table)
    pq.write_table(table, tmp_path / "a.parquet")
    for read in ((lambda path: pv.open(path).to_arrow()), lambda path: pv.open(path).scan(["x"]).to_arrow()):
        with pytest.raises(VariantFileError, match="2 columns have the name x"):
            read(tmp_path / "a.parquet")
    assert pv.open(tmp_path / "a.parquet").to_arrow(["y"]).to_pydict() == {"y": [3]}


def test_nulls_everywhere_next_to_bounds_are_not_statistics(tmp_path):
    """One of the two is wrong: no row is left out, and no column taken for nulls."""
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist([{"a": n} for n in range(9)]), schema="a int")
    footer = path.read_bytes()
    counted = encode_struct((3, I64, 0), (5, BINARY, struct.pack("<i", 8)))[:-1]
    assert footer.count(counted) == 1
    lie = encode_struct((3, I64, 9), (5, BINARY, struct.pack("<i", 8)))[:-1]
    path.write_bytes(path.read_bytes().replace(counted, lie))
    for where in ("a >= 5", "a is not null", None):
        answers = [pv.open(path).scan({"a": "$.a:int"}, where, skipping=item).to_arrow() for item in (True, False)]
        assert answers[0].to_pylist() == answers[1].to_pylist() != [], where


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_a_nan_in_a_dictionary_is_above_the_bounds(tmp_path, kind):
    floats = pa.array([1.0, float("nan"), None], kind).dictionary_encode()
    info = pv.write(tmp_path / "a.parquet", {"f": floats, "v": pv.parse_json(["1", "2", "3"])})
    assert info.may_hold_nan
    answers = [pv.open(tmp_path).scan(["f"], "f > 5", skipping=item).to_arrow().num_rows for item in (True, False)]
    assert answers == [1, 1]


def test_bloom_filters_rule_out(tmp_path):
    values = [{"id": f"{n * 7919 % 100_003:x}", "n": n * 7919 % 100_003} for n in range(3000)]
    array = pv.VariantArray.from_pylist(values)
    options = {"schema": "id string, n int", "row_group_bytes": 30_000}
    pv.write(tmp_path / "a.parquet", array, bloom_filters=["$.id", "$.n"], **options)
    pv.write(tmp_path / "b.parquet", array, **options)
    for where in (f"id = '{values[1500]['id']}'", f"n = {values[1500]['n']}", f"n in ({values[1500]['n']}, -5)"):
        select = {"id": "$.id:string", "n": "$.n:bigint"}
        with_filter = pv.open(tmp_path / "a.parquet").scan(select, where)
        without = pv.open(tmp_path / "b.parquet").scan(select, where)
        assert with_filter.to_arrow().to_pylist() == without.to_arrow().to_pylist() == [values[1500]]
        assert with_filter.explain().row_groups_read <= 2 < without.explain().row_groups_read
    with open_file(locate(tmp_path / "b.parquet")[0]) as file:
        assert absent_values(file, 0, next(iter(file.schema.leaves()))) is None
    with pytest.raises(VariantFileError, match="as a primitive type"):
        pv.write(tmp_path / "c.parquet", array, bloom_filters=["$.nope"], schema="id string")


def test_xxh64_agrees_with_known_values():
    assert xxh64(b"a") == 0xD24EC4F1A98C6E5B
    assert xxh64(b"Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1
    assert xxh64(b"The quick brown fox jumps over the lazy dog") == 0x0B242D361FDA71BC


def test_errors_can_be_asked_for(path):
    with pytest.raises(CastError) as caught:
        pv.open(path).scan({"mag": "$.mag:double"}, errors="raise").to_arrow()
    assert (caught.value.row, caught.value.file) == (5, str(path))


@pytest.mark.parametrize(
    ("columns", "where", "error"),
    [
        ({"x": "$.["}, None, PathError),
        ({"x": "$.mag:duoble"}, None, VariantError),
        ({"x": ("$.mag", "duoble")}, None, VariantError),
        ({"x": 5}, None, VariantError),
        ({}, None, VariantFileError),
        ({"x": "$.mag:double"}, "x >", PredicateError),
        ({"x": "$.mag:double"}, "x = 'a'", PredicateError),
        ({"x": "$.mag:array<double>"}, [("x", "=", 1)], PredicateError),
        ({"x": "$.mag:double"}, [("x", "~", 1)], PredicateError),
    ],
)
def test_bad_queries_are_refused(path, columns, where, error):
    with pytest.raises(error) as caught:
        pv.open(path).scan(columns, where)
    assert "\n" not in str(caught.value)


def test_time_zones_of_casts(tmp_path):
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist(["2024-06-01 12:00:00"]))
    found = [
        pv.open(tmp_path).scan({"t": "$:timestamp"}, zone=zone).to_arrow()["t"][0].value for zone in ("UTC", "+02:00")
    ]
    assert found[0] - found[1] == 2 * 3600 * 1_000_000
    for zone in ("UTC", "+02:00", "Europe/Berlin"):
        where = "t = timestamp '2024-06-01 12:00:00'"
        assert len(pv.open(tmp_path).scan({"t": "$:timestamp"}, where, zone=zone).to_arrow()) == 1


def test_extraction_works_in_every_layout_with_wildcards(tmp_path):
    values = [{"a": [{"b": 1}, {"b": "x"}, {}]}, {"a": []}, {"a": {"b": 2}}, None, [1]]
    array = pv.VariantArray.from_pylist(values)
    expected = [[1, None, None], [], None, None, None]
    for number, (schema, layout) in enumerate(
        [(None, "final"), ("a array<struct<b: int>>", "final"), ("a array<struct<b: int>>", "draft-paths"),
         ("a array<struct<b: int>>", "draft-object"), ("a array<struct<c: int>>", "final")]
    ):  # fmt: skip
        pv.write(tmp_path / f"{number}.parquet", array, schema=schema, layout=layout)
        found = pv.open(tmp_path / f"{number}.parquet").scan({"b": "$.a[*].b:int", "c": "$.a[*].zzz:int"}).to_arrow()
        assert found["b"].to_pylist() == expected, (schema, layout)
        assert found["c"].to_pylist() == [[None] * 3, [], None, None, None]


def test_files_whose_ordinary_columns_differ(tmp_path):
    values = pv.VariantArray.from_pylist([1])
    for number, other in enumerate((pa.array([1], pa.int32()), pa.array([2], pa.int64()), pa.array(["x"]))):
        pv.write(tmp_path / f"{number}.parquet", {"v": values, "n": other})
    found = pv.open([tmp_path / "0.parquet", tmp_path / "1.parquet"]).scan({"n": "n"}, "n > 1").to_arrow()
    assert found["n"].to_pylist() == [2]
    with pytest.raises(SchemaError, match="column n is string") as caught:
        pv.open(tmp_path).scan({"n": "n"}).to_arrow()
    assert caught.value.file == str(tmp_path / "2.parquet")


def test_a_struct_reads_only_the_fields_that_are_asked_for(path):
    names = ["v.typed_value.mag.typed_value", "v.typed_value.deep.typed_value.x.typed_value"]
    report = pv.open(path).scan({"s": "$:struct<mag: double, deep: struct<x: int>>"}).explain()
    assert sorted(name for name in report.columns if name.endswith("typed_value")) == sorted(names)
    found = pv.open(path).scan({"s": "$:struct<mag: double, deep: struct<x: int>, rest: string>"}).to_arrow()["s"]
    assert found[7].as_py() == {"mag": 1.75, "deep": {"x": 7}, "rest": "r" * 50}
    assert found[5].as_py() == {"mag": None, "deep": None, "rest": None}
    only = pv.open(path).scan({"s": "$.deep:struct<nope: int>"})
    assert only.to_arrow()["s"][0].as_py() == {"nope": None}
    assert any(name.startswith("v.typed_value.deep.typed_value.x.") for name in only.explain().columns)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    rows = pv.parse_json([f'{{"n": {number}, "t": "{number:040}"}}' for number in range(8000)])
    pv.write(path, rows, schema="infer", row_group_bytes=40_000)
    scan = pv.open(path).scan({"n": "$.n:bigint", "t": "$.t:string"}, threads=1)
    everything = scan.to_arrow()
    parts = pv.open(path).scan({"n": "$.n:bigint", "t": "$.t:string"}, "n >= 0", threads=1).batches()
    next(parts)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(1000) + whole[1004:])
    with pytest.raises(pv.VariantFileError):
        list(parts)
    path.write_bytes(whole)
    parts = pv.open(path).scan({"n": "$.n:bigint", "t": "$.t:string"}, "n >= 0", threads=1).batches()
    first = next(parts)
    os.utime(path, ns=(1, 1))
    with pytest.raises(pv.VariantFileError, match="modified while it was read") as raised:
        list(parts)
    assert raised.value.reason == "files-changed"
    parts = pv.open(path).scan({"n": "$.n:bigint", "t": "$.t:string"}, "n >= 0", threads=1).batches()
    first = next(parts)
    path.unlink()  # what is open is still whole
    assert pa.concat_tables([first, *parts]).combine_chunks().equals(everything.combine_chunks())


def test_names_of_columns_may_be_quoted(tmp_path):
    names = ["order", '"x"', "$y"]
    pv.write(tmp_path / "t.parquet", {name: [name] for name in names})
    table = pv.open(tmp_path / "t.parquet")
    assert table.scan({"a": '"order"', "b": '"""x"""', "c": '"$y"'}).to_pylist() == [
        dict(zip("abc", names, strict=True))
    ]
    assert table.to_arrow().to_pylist() == [{name: name for name in names}]
    assert pv.sql("SELECT * FROM t", t=tmp_path / "t.parquet").to_pylist() == [{name: name for name in names}]


def test_a_single_column_needs_no_list(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.parse_json(['{"a": 1}', None]))
    assert pv.open(path).scan("$.a:int").to_arrow().equals(pv.open(path).scan(["$.a:int"]).to_arrow())


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("names", [["metadata", "value", "typed_value"], ["metadata", "value"]])
def test_rows_without_parts_are_variant_null_where_the_statistics_know_only_nulls(tmp_path, statistics, names):
    columns = [pa.array([b"\x01\x00\x00"] * 3), pa.nulls(3, pa.binary()), pa.nulls(3, pa.int32())][: len(names)]
    storage = pa.StructArray.from_arrays(columns, names, mask=pa.array([False, True, False]))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "v": storage}), path, write_statistics=statistics)
    null = pv.Variant.from_python(None)
    answer = pv.open(path).scan({"whole": "$", "text": "$:string"}).to_arrow()
    assert list(pv.VariantArray(answer["whole"])) == list(pv.open(path).read()) == [null, None, null]
    assert answer["text"].null_count == 3
    assert pv.sql("SELECT id FROM t WHERE v IS NULL", t=path).to_pylist() == [{"id": 2}]
    pv.write(tmp_path / "a.vortex", pv.VariantArray(storage), layout="struct")
    found = pv.open(tmp_path / "a.vortex").scan({"whole": "$"}).to_arrow()
    assert list(pv.VariantArray(found["whole"])) == [null, None, null]


def test_columns_that_a_writer_had_as_views_are_read_in_a_form_that_can_be_filtered(tmp_path):
    """pyarrow makes views of them, as the Arrow schema in the footer says, and can take no rows of those."""
    rows = pv.parse_json(["1", "2", "3"]).storage
    texts = pa.array(["a", None, "a text that no view holds inline"], pa.string_view())
    columns = {
        "id": pa.array([1, 2, 3]),
        "text": texts,
        "bytes": texts.cast(pa.binary_view()),
        "list": pa.array([["x"], None, ["y", None]], pa.list_(pa.string_view())),
        "group": pa.array([{"k": "x"}, None, {"k": "y"}], pa.struct({"k": pa.string_view()})),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "v": pa.StructArray.from_arrays([rows.field(0).dictionary_decode(), rows.field(1)], ["metadata", "value"]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    pv.open(tmp_path / "a.parquet").annotate(["v"])
    names = [name for name in columns if name != "v"]
    expected = pa.table(columns).select(names).to_pylist()
    for where, kept in (("id >= 2", [1, 2]), ("text is null", [1]), ("text like 'a t%'", [2]), ("kind = 'x'", [0, 2])):
        found = pv.open(tmp_path / "a.parquet").scan(names, where).to_arrow()
        assert found.to_pylist() == [expected[row] for row in kept]
    for key, order in (("text", [0, 2, 1]), ("kind", [0, 2, 1])):
        pv.open(tmp_path / "a.parquet").rewrite(tmp_path / f"{key}.parquet", sort_by=key)
        assert pv.open(tmp_path / f"{key}.parquet").to_arrow().select(names).to_pylist() == [
            expected[row] for row in order
        ]


def test_a_whole_column_is_returned_next_to_a_filter_on_one_of_its_paths(tmp_path):
    rows = {"id": [1, 2, 3], "v": pv.parse_json(['{"n": 1, "s": "x"}', '{"n": 2}', '{"n": 3, "s": "y"}'])}
    for name, schema in (("unshredded", "variant"), ("shredded", "n bigint")):
        pv.write(tmp_path / name, rows, schema=schema)
        found = pv.open(tmp_path / name).scan({"v": "v", "s": ("$.s", "string")}, "$.n:int > 1").to_arrow()
        assert found["s"].to_pylist() == [None, "y"]
        assert pv.to_json(found["v"]).to_pylist() == ['{"n":2}', '{"n":3,"s":"y"}']


@pytest.mark.parametrize("untyped", [None, 6, "x"])
def test_a_typed_value_next_to_an_untyped_one_is_refused_in_drafts_by_each_path(tmp_path, untyped):
    """A Variant null next to a typed value, too, which statistics of the untyped column would let be skipped."""
    value = pv.Variant.from_python(untyped)
    group = pa.struct([("untyped_value", pa.binary()), ("typed_value", pa.int64())])
    kind = pa.struct([("untyped_value", pa.binary()), ("object", pa.struct([("a", group)]))])
    rows = [{"object": {"a": {"untyped_value": value.metadata + value.value, "typed_value": 5}}}]
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / "a.parquet")
    table = pv.open(tmp_path / "a.parquet")
    for read in (
        lambda: table.read().to_pylist(),
        lambda: table.scan({"a": "$.a:bigint"}).to_arrow(),
        lambda: table.scan(["$.a"]).to_arrow(),
        lambda: pv.sql("SELECT v:a::bigint AS a FROM t", t=table).to_arrow(),
        lambda: pv.variant_get(pa.array(rows, kind), "$.a", "bigint"),
    ):
        with pytest.raises(pv.ConflictError):
            read()
