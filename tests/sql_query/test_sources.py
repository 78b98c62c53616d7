"""What a name of a query stands for where it is not what it looks like: broken JSON, text, structs like a Variant."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.sql_query.result import SqlResult
from parquet_variant.sql_query.sql import plan_sql

BROKEN = {
    "text.json": (b"hello world\n", None),
    "cut.ndjson": (b'{"a": 1}\n{"a":', None),
    "utf16.json": ("\ufeff{}".encode("utf-16-le"), "encoding"),
    "cut.json.gz": (gzip.compress(b'{"a": 1}\n' * 9)[:20], "bad-compression"),
    "text.json.gz": (b"no gzip", None),
    "text.json.zst": (b"no zstd", None),
}
EMPTY = {
    "empty.json": b"", "empty.ndjson": b"", "blank.jsonl": b" \n\n", "mark.json": b"\xef\xbb\xbf",
    "nothing.json.gz": gzip.compress(b""),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("in_directory", [False, True])
def test_json_that_is_broken_is_reported_as_json(tmp_path, name, in_directory):
    data, reason = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    source = tmp_path if in_directory else tmp_path / name
    with pytest.raises(pv.VariantError) as caught:
        pv.sql("SELECT count(*) FROM t", t=str(source)).to_arrow()
    assert "Parquet" not in str(caught.value)
    assert reason in (None, caught.value.reason)


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("in_directory", [False, True])
def test_json_without_rows_is_a_table_without_rows(tmp_path, name, in_directory):
    (tmp_path / name).write_bytes(EMPTY[name])
    source = tmp_path if in_directory else tmp_path / name
    result = pv.sql("SELECT count(*) AS n, count(v:a) AS a FROM t", t=str(source))
    assert result.to_arrow().to_pylist() == [{"n": 0, "a": 0}]


@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal256(60), pa.list_(pa.float16())])
def test_a_type_that_duckdb_has_not_is_reported(tmp_path, kind):
    pv.write(tmp_path / "t", {"c": pa.nulls(1, kind), "v": pv.parse_json(["1"])})
    with pytest.raises(pv.VariantError, match="DuckDB has no type for c "):
        pv.sql("SELECT c FROM t", t=str(tmp_path / "t"))
    assert pv.sql("SELECT v::int AS n FROM t", t=str(tmp_path / "t")).to_pylist() == [{"n": 1}]


def test_values_that_are_not_objects_are_rows(tmp_path):
    (tmp_path / "a.ndjson").write_text('"x"\n1\n')
    assert pv.sql("SELECT count(*) AS n FROM t", t=str(tmp_path / "a.ndjson")).to_arrow()["n"].to_pylist() == [2]


def test_a_parquet_file_under_the_name_of_json_is_read(tmp_path):
    pv.write(tmp_path / "a.json", pv.parse_json(['{"a": 1}']))
    assert pv.sql("SELECT v:a::int AS a FROM t", t=str(tmp_path / "a.json")).to_arrow()["a"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.parquet", b"", "it is empty"),
        ("a.parquet", b'{"a": 1}\n', "it is text"),
        ("a.txt", b"a,b\n1,2\n", "it is text"),
        ("a.parquet", gzip.compress(b"x"), "it is compressed with gzip"),
        ("a.parquet", b"PAR1" + bytes(40), "it begins like one but is truncated"),
        ("a.bin", bytes(range(99)), "it does not end with the bytes PAR1"),
    ],
    ids=["empty", "json", "text", "gzip", "cut", "bytes"],
)
def test_a_file_that_is_not_parquet_is_reported_by_what_it_is(tmp_path, name, data, expected):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(pv.VariantFileError, match=expected) as caught:
        pv.sql("SELECT count(*) FROM t", t=str(tmp_path / name)).to_arrow()
    assert caught.value.reason == "not-parquet"
    assert "variant ingest" in str(caught.value)


# ---- a struct that looks like a Variant next to one that says that it is one

PLAIN = pa.array([{"metadata": b"\x01\0\0", "value": b"\x0c\x07"}])


def both():
    array = pv.parse_json(['{"a": 1}'])
    return pa.table([array.storage, PLAIN], schema=pa.schema([array.arrow_field.with_name("v"), ("s", PLAIN.type)]))


def assert_only_v(source):
    assert pv.sql("SELECT v:a::int AS a FROM t", t=source).to_arrow()["a"].to_pylist() == [1]
    for query in ("SELECT s FROM t", "SELECT * FROM t", "SELECT s:a FROM t", "SELECT v:a FROM t WHERE s IS NULL"):
        with pytest.raises(pv.VariantError, match="s of t has the fields of a Variant") as caught:
            pv.sql(query, t=source).to_arrow()
        assert caught.value.reason == "not-a-variant"


def test_in_arrow_data_the_extension_decides():
    assert_only_v(both())


def test_in_parquet_files_the_annotation_decides(tmp_path):
    pv.write(tmp_path / "a.parquet", both())
    assert_only_v(str(tmp_path / "a.parquet"))


def test_in_vortex_files_the_notes_decide(tmp_path):
    pytest.importorskip("vortex")
    pv.write(tmp_path / "a.vortex", both())
    assert_only_v(str(tmp_path / "a.vortex"))
    assert pv.open(tmp_path / "a.vortex").read().to_pylist() == [{"a": 1}]
    assert pv.open(tmp_path / "a.vortex").to_arrow()["s"].to_pylist() == PLAIN.to_pylist()


def test_where_no_column_says_it_is_one_the_shape_decides():
    table = pa.table({"v": pv.parse_json(['{"a": 1}']).storage})
    assert pv.sql("SELECT v:a::int AS a FROM t", t=table).to_arrow()["a"].to_pylist() == [1]


# ---- ordinary columns whose names look like paths


def test_shredded_rows_in_memory_have_paths_with_values_of_several_types(tmp_path):
    texts = ['{"a": 1, "m": 1}', '{"a": 2}', '{"m": "x"}', None]
    pv.write(tmp_path / "t.parquet", pv.parse_json(texts), schema="a bigint, m variant")
    rows = pv.open(tmp_path / "t.parquet").to_arrow()
    assert [row["m"] for row in pv.sql("SELECT v:m FROM t", t=rows).to_pylist()] == ["1", None, '"x"', None]
    with pytest.warns(UserWarning, match="1 string at v:m was not compared with a number"):
        assert pv.open(rows).scan({"a": "$.a"}, "v:m = 1").to_arrow()["a"].to_pylist() == [1]


NAMES = ("$", "$.a", "$price", "$.a:int", "a:b", "v:$.a")


@pytest.mark.parametrize("form", ["parquet", "delta", "vortex", "arrow"])
def test_a_column_named_as_a_path_is_the_column(tmp_path, form):
    array = pv.parse_json(['{"a": 9, "price": 9}'])
    columns = {name: pa.array([number]) for number, name in enumerate(NAMES)}
    fields = [*(pa.field(name, pa.int64()) for name in NAMES), array.arrow_field.with_name("v")]
    table = pa.table([*columns.values(), array.storage], schema=pa.schema(fields))
    source = table if form == "arrow" else str(tmp_path / f"t.{form}")
    if form == "vortex":
        pytest.importorskip("vortex")
    if form != "arrow":
        pv.write(source, table, format=form)
    assert pv.sql("SELECT * EXCLUDE (v) FROM t", t=source).to_pylist() == [
        dict(zip(NAMES, range(len(NAMES)), strict=True))
    ]
    for number, name in enumerate(NAMES):
        query = f'SELECT "{name}" AS x, v:a::int AS a FROM t WHERE "{name}" = {number}'
        assert pv.sql(query, t=source).to_pylist() == [{"x": number, "a": 9}]
    opened = pv.open(source)
    whole = opened.scan().to_arrow()
    assert whole.select(NAMES).to_pylist() == [dict(zip(NAMES, range(len(NAMES)), strict=True))]
    for number, name in enumerate(NAMES):
        quoted = f'"{name}"' if name.startswith("$") else name
        # In quotes too, a path with a type is a path.
        of_name = [] if name == "$.a:int" else [f'"{name}" = {number}']
        for condition in (*of_name, f'"{name}" + 0 = {number}', [(quoted, "=", number)]):
            assert opened.scan({"x": quoted}, condition).to_arrow().to_pylist() == [{"x": number}]
    assert opened.scan({"x": "$.a"}, '"$.a:int" = 9').to_arrow().to_pylist() == [{"x": 9}]
    assert opened.scan({"x": "$.a"}, "$.a = 9 AND `$.a` = 1").to_arrow().to_pylist() == [{"x": 9}]
    conditions = [("$.a", "=", 9), ('"$.a"', "=", 1)]
    assert opened.scan({"x": "$.a"}, conditions).to_arrow().to_pylist() == [{"x": 9}]


# ---- files that are replaced in the middle of a query

TWICE = "SELECT v:a::int AS a FROM t UNION ALL SELECT v:a::int FROM t"
TWO_VARIANTS = "SELECT v:a::int AS a, w:a::int AS b FROM t"


@pytest.mark.parametrize("query", [TWICE, TWO_VARIANTS, "SELECT v:a::int AS a FROM t"])
@pytest.mark.parametrize("changed", [False, True])
def test_scans_of_one_query_see_one_version_of_a_file(tmp_path, query, changed):
    for name in ("t", "new"):
        array = pv.parse_json([f'{{"a": {len(name)}}}'])
        pv.write(tmp_path / f"{name}.parquet", {"v": array, "w": array}, schema="a int")
    parts = plan_sql(query, {"t": str(tmp_path / "t.parquet")}).batches()
    next(parts)
    if changed:
        (tmp_path / "new.parquet").replace(tmp_path / "t.parquet")
    if changed and query == TWICE:
        with pytest.raises(pv.VariantFileError) as caught:
            list(parts)
        assert caught.value.reason == "files-changed"
    else:
        list(parts)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view()])
def test_json_is_parsed_from_text_and_from_bytes(kind):
    table = pa.table({"p": pa.array(['{"a": "\\u00e9", "b": 1}', "bad", None]).cast(kind)})
    assert pv.sql("SELECT try_parse_json(p):a::string AS a FROM t", t=table).to_arrow()["a"].to_pylist() == [
        "é", None, None,
    ]  # fmt: skip
    assert pv.sql("SELECT parse_json(p):b AS b FROM t", t=table.slice(0, 1)).to_pylist() == [{"b": 1}]
    with pytest.raises(pv.VariantError):
        pv.sql("SELECT parse_json(p) AS b FROM t", t=table)


def test_json_in_the_columns_of_a_subquery_is_parsed_from_bytes():
    table = pa.table({"p": [b'{"a": 1}']})
    query = "WITH c AS (SELECT p AS q FROM t) SELECT try_parse_json(q):a::int AS a FROM c"
    assert pv.sql(query, t=table).to_pylist() == [{"a": 1}]


def test_columns_that_only_some_files_have_are_null_in_the_others(tmp_path):
    values = [pv.parse_json([f'{{"a": {number}}}']) for number in range(3)]
    pv.write(tmp_path / "a.parquet", {"v": values[0]})
    pv.write(tmp_path / "b.parquet", {"v": values[1], "id": pa.array([7])})
    pv.write(tmp_path / "c.parquet", {"v": values[2], "id": pa.array([8]), "s": pa.array([{"x": "y"}])})
    query = lambda text: pv.sql(text, t=tmp_path).to_pylist()  # noqa: E731
    assert query("SELECT id, s.x, v:a FROM t ORDER BY v:a") == [
        {"id": None, "x": None, "a": 0}, {"id": 7, "x": None, "a": 1}, {"id": 8, "x": "y", "a": 2},
    ]  # fmt: skip
    assert query("SELECT count(*) AS n FROM t WHERE id > 7") == [{"n": 1}]
    assert query("SELECT count(*) AS n FROM t WHERE id IS NULL") == [{"n": 1}]
    assert set(query("SELECT * FROM t")[0]) == {"v", "id", "s"}


def test_rows_whose_metadata_has_an_unknown_version_are_refused() -> None:
    rows = pa.array([{"metadata": bytes([version, 0, 0]), "value": b"\x0c\x05"} for version in (0x11, 0x12)])
    with pytest.raises(pv.MalformedVariantError) as caught:
        pv.sql("SELECT v:a::int FROM t", t={"v": pv.VariantArray(rows)})
    assert caught.value.reason == "bad-version"


@pytest.mark.parametrize("statement", ["SUMMARIZE", "DESCRIBE", "FROM"])
def test_statements_over_a_path_alone_are_those_over_its_rows(tmp_path, statement):
    rows, path = pa.table({"n": [1, 2]}), tmp_path / "a.parquet"
    pq.write_table(rows, path)
    assert pv.sql(f"{statement} '{path}'").to_arrow().equals(pv.sql(f"{statement} t", t=rows).to_arrow())


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg", "vortex", "json", "memory"])
@pytest.mark.parametrize("columns", [["v"], {"v": "$"}, {"v": "v"}])
def test_a_query_over_a_scan_reads_paths_into_a_variant_that_the_scan_selects(tmp_path, form, columns):
    table = opened_rows(tmp_path, form, v=pv.parse_json(['{"a": 1, "b": {"c": "x"}}', '{"a": 2}', '{"b": 3}']))
    scan = table.scan(columns, "$.a:int < 9")
    assert pv.sql("SELECT v:b.c::varchar AS c FROM s WHERE v:a::int = 1", s=scan).to_pylist() == [{"c": "x"}]
    assert pv.sql("SELECT v:a::int AS a FROM s", s=scan).to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
def test_a_query_over_a_scan_of_files_reads_paths_into_all_of_its_variants(tmp_path, form):
    both = {"v": pv.parse_json(['{"a": 1}', '{"a": 2}']), "w": pv.parse_json(['{"k": 3}', '{"k": 4}'])}
    table = opened_rows(tmp_path, form, **both)
    scan = table.scan({"x": "v", "y": "w", "k": "$.k"}, "$.k:int = 4", column="w")
    assert pv.sql("SELECT y:k::int AS n, k::int AS k FROM s", s=scan).to_pylist() == [{"n": 4, "k": 4}]
    assert pv.sql("SELECT w:k::int AS k FROM s", s=table.scan(["v", "w"])).to_pylist() == [{"k": 3}, {"k": 4}]
    assert pv.sql("SELECT x:a::int AS a, y:k::int AS k FROM s", s=scan).to_pylist() == [{"a": 2, "k": 4}]


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg", "vortex"])
def test_paths_into_two_variants_are_read_by_one_scan_which_skips_files(tmp_path, form):
    for number in (1, 3):
        rows = [{"a": number, "b": {"c": "x"}}, {"a": number + 1}]
        both = {"v": pv.VariantArray.from_pylist(rows), "w": pv.VariantArray.from_pylist([{"k": "p"}, {"k": [number]}])}
        if form in ("parquet", "vortex"):
            pv.write(str(tmp_path / f"t{number}.{form}"), both, format=form, schema="a int")
        elif number == 1:
            pv.write(str(tmp_path / "t"), both, format=form)
        else:
            pv.open(str(tmp_path / "t")).append(both)
    source = str(tmp_path / (f"*.{form}" if form in ("parquet", "vortex") else "t"))
    planned = plan_sql("SELECT w:k::array<int> AS k, v:b.c::string AS c, w FROM t WHERE v:a::int > 2", {"t": source})
    rows = sorted(SqlResult(planned.run()).to_pylist(), key=str)
    assert rows == [{"k": None, "c": "x", "w": '{"k":"p"}'}, {"k": [3], "c": None, "w": '{"k":[3]}'}]
    (plan,) = planned.plans.values()
    report = plan.explain()
    assert getattr(report, "inside", report).files_read == 1


def opened_rows(folder, form, **variants):
    if form == "memory":
        return pv.open(variants)
    path = str(folder / f"rows.{form}")
    if form == "json":
        (folder / "rows.json").write_text("\n".join(pv.to_json(variants["v"]).to_pylist()))
    else:
        pv.write(path, variants, format=form)
    return pv.open(path)
