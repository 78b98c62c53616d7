"""What a new user meets: errors in one line, options of Spark's own sources, SQL over files by their paths."""

from __future__ import annotations

import os
import re

import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.fixture
def reader(spark):
    spark.dataSource.register(pv.spark.VariantDataSource)
    return spark.read.format("variant")


@pytest.fixture
def table(tmp_path):
    place = tmp_path / "table"
    for day in (1, 2):
        (place / f"day={day}").mkdir(parents=True)
        pv.write(place / f"day={day}" / "a.parquet", pv.from_python([{"n": day}, {"n": day * 10}]))
    return place


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({}, "nowhere", "nowhere does not exist: check the path"),
        ({"colum": "v"}, "table", "unknown read option 'colum'"),
        ({"column": "w", "columns": '{"n": ["$.n", "int"]}'}, "table", "column"),
        ({"column": "w"}, "table", "w is not a VARIANT column: choose from v"),
        ({"columns": "[1]"}, "table", "option columns"),
        ({"mergeSchema": "maybe"}, "table", "true or false"),
        ({"versionAsOf": "0"}, "table", "option versionAsOf is '0': it applies to Delta and Iceberg tables"),
        (
            {"timestampAsOf": "2026-01-01"},
            "table",
            "timestampAsOf is .2026-01-01.: it applies to Delta and Iceberg tables",
        ),
        ({}, None, "no path: name one in load"),
        ({"where": "lower(n", "columns": '{"n": ["$.n", "int"]}'}, "table", "PredicateError"),
    ],
)
def test_a_wrong_read_is_reported_in_one_line(reader, table, options, path, message):
    with pytest.raises(Exception, match=message) as raised:
        reader.options(**options).load(*([] if path is None else [str(table.parent / path)])).count()
    reported = str(raised.value)
    assert "Traceback" not in reported
    assert 'File "' not in reported


def test_a_wrong_write_is_reported_in_one_line(spark, reader, tmp_path):
    frame = spark.range(3)
    with pytest.raises(Exception, match="candidates: none") as raised:
        frame.write.format("variant").mode("append").save(str(tmp_path / "out"))
    assert 'File "' not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_write_whose_rows_are_wrong_leaves_nothing_and_says_it_once(spark, reader, tmp_path, form):
    writer = spark.sql("SELECT 'day' AS d, '{' AS v").write.format("variant").mode("append")
    writer = writer.options(format=form, column="v", schema="a int")
    with pytest.raises(Exception, match=r"column v, row 0 of partition 0: .*\[[a-z-]+\]") as raised:
        writer.save(str(tmp_path / "out"))
    assert len(re.findall(r"\[[a-z]+-[a-z-]+\]", str(raised.value))) == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()  # of the user's own: that stays
    with pytest.raises(Exception, match="column v, row 0"):
        writer.save(str(tmp_path / "out"))
    assert list(tmp_path.rglob("*")) == [tmp_path / "out"]


def test_files_of_different_columns_are_merged_if_so_asked(spark, reader, tmp_path):
    pv.write(tmp_path / "a.parquet", {"v": pv.from_python([1]), "x": pa.array([5])})
    pv.write(tmp_path / "b.parquet", {"v": pv.from_python([2]), "y": pa.array(["t"])})
    with pytest.raises(Exception, match="no column x: choose from v, y, or set mergeSchema to true"):
        reader.load(str(tmp_path)).collect()
    merged = reader.option("mergeSchema", "true").load(str(tmp_path))
    rows = merged.selectExpr("cast(v AS int) AS v", "x", "y").orderBy("v").collect()
    assert [tuple(row) for row in rows] == [(1, 5, None), (2, None, "t")]


def test_recursive_lookup_has_no_partition_columns(reader, table):
    assert reader.load(str(table)).columns == ["v", "day"]
    found = reader.option("recursiveFileLookup", "true").load(str(table))
    assert found.columns == ["v"]
    assert found.count() == 4


def test_sql_over_a_directory_by_its_path(spark, table):
    found = pv.sql("SELECT day, v:n::int AS n FROM t WHERE v:n::int > 1 ORDER BY n", engine=spark, t=str(table))
    assert [tuple(row) for row in found.collect()] == [(2, 2), (1, 10), (2, 20)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_named(tmp_path, usgs_sample):
    place = tmp_path / "closed"
    place.mkdir(mode=0o500)
    with pytest.raises(pv.VariantFileError, match=r"cannot write .*closed"):
        pv.ingest(usgs_sample, place / "out")


def test_a_catalog_table_and_a_view_over_a_directory(spark, reader, table):
    spark.sql(f"CREATE TABLE of_a_catalog USING variant LOCATION '{table}'")
    assert spark.sql("SELECT sum(variant_get(v, '$.n', 'int')) FROM of_a_catalog WHERE day = 2").collect()[0][0] == 22
    spark.sql("DROP TABLE of_a_catalog")
    spark.sql(f"CREATE TEMPORARY VIEW as_a_view USING variant OPTIONS (path '{table}')")
    assert spark.sql("SELECT sum(v:n::int) FROM as_a_view WHERE day = 2").collect()[0][0] == 22
    spark.catalog.dropTempView("as_a_view")


def test_the_format_is_found_where_the_package_is_installed(spark, table):
    # What was registered is of the session in which it was.
    found = spark.newSession().read.format("variant").load(str(table))
    assert sorted(row.v.toPython()["n"] for row in found.collect()) == [1, 2, 10, 20]


@pytest.fixture
def rows():
    """Two columns of Variants, and Variants in a struct."""
    first = pv.parse_json(['{"n": 1, "a b": "x"}', '{"n": "2"}', None, "7"])
    second = pv.parse_json(['{"m": [1, 2.5]}', "null", '{"m": "t"}', '{"m": [true]}'])
    inner = pa.field("v", second.storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    numbers = pa.array([1, 2, 3, 4])
    nested = pa.StructArray.from_arrays([second.storage, numbers], fields=[inner, pa.field("k", pa.int64())])
    return {"id": numbers, "a": pv.shred_variant(first, "n bigint"), "b": second, "s": nested}


def test_sql_over_several_variants_is_as_in_process(spark, rows, tmp_path):
    pv.write(tmp_path / "t" / "part.parquet", rows, variants=["s.v"])
    del rows["s"]
    pv.write(tmp_path / "d", rows, format="delta")
    for query in (
        "SELECT id, a:n::bigint AS n, b:m[0]::double AS m FROM t ORDER BY id",
        "SELECT s.v:m[1]::double AS m, s.k AS k, a['a b']::string AS x, b:m::string AS y FROM t ORDER BY k",
        "SELECT count(*) AS n FROM t WHERE a:n IS NOT NULL AND b:m IS NOT NULL",
        "SELECT l.id AS id, r.b:m::string AS m FROM t l JOIN t r ON l.id = r.s.k WHERE l.a:n::int = 1 ORDER BY id",
    ):
        expected = pv.sql(query, t=tmp_path / "t").to_pylist()
        for table in ("t",) if "s." in query else ("t", "d"):
            found = pv.sql(query, engine=spark, t=tmp_path / table).collect()
            assert [row.asDict() for row in found] == expected, (query, table)
    with pytest.raises(pv.VariantError, match=r"does not support the path \$\['a\\'b'\]"):
        pv.sql("""SELECT a["a'b"]::int, b:m::string FROM t""", engine=spark, t=tmp_path / "t")


def test_a_variant_inside_of_another_type_is_refused_by_name(spark, tmp_path):
    pv.write(tmp_path / "t.parquet", pv.parse_json(['{"id": 1, "items": [{"n": 1}, 3]}']))
    query = "SELECT e:n::int FROM t LATERAL VIEW explode(v:items::array<variant>) x AS e"
    with pytest.raises(
        pv.VariantError, match=r"cannot cast .*\['items'\] to array<variant>.*variant_explode"
    ) as raised:
        pv.sql(query, engine=spark, t=tmp_path / "t.parquet").collect()
    assert raised.value.reason == "unsupported-type"
    query = "SELECT value:n::int AS n FROM t, LATERAL variant_explode(v:items)"
    assert [row.n for row in pv.sql(query, engine=spark, t=tmp_path / "t.parquet").collect()] == [1, None]
