"""What a new user meets: errors in one line, options of Spark's own sources, SQL over files by their paths."""

from __future__ import annotations

import os

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
        pv.parquet.write(place / f"day={day}" / "a.parquet", pv.from_python([{"n": day}, {"n": day * 10}]))
    return place


@pytest.mark.parametrize(
    ("options", "path", "message"),
    [
        ({}, "nowhere", "nowhere does not exist: check the path"),
        ({"colum": "v"}, "table", "unknown read option 'colum'"),
        ({"column": "w", "columns": '{"n": ["$.n", "int"]}'}, "table", "column"),
        ({"columns": "[1]"}, "table", "option columns"),
        ({"mergeSchema": "maybe"}, "table", "true or false"),
        ({}, None, "no path: name one in load"),
    ],
)
def test_a_wrong_read_is_told_in_one_line(reader, table, options, path, message):
    with pytest.raises(Exception, match=message) as raised:
        reader.options(**options).load(*([] if path is None else [str(table.parent / path)])).count()
    told = str(raised.value)
    assert "Traceback" not in told
    assert 'File "' not in told


def test_a_wrong_write_is_told_in_one_line(spark, reader, tmp_path):
    frame = spark.range(3)
    with pytest.raises(Exception, match="candidates: none") as raised:
        frame.write.format("variant").mode("append").save(str(tmp_path / "out"))
    assert 'File "' not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_files_of_different_columns_are_merged_if_so_asked(spark, reader, tmp_path):
    pv.parquet.write(tmp_path / "a.parquet", {"v": pv.from_python([1]), "x": pa.array([5])})
    pv.parquet.write(tmp_path / "b.parquet", {"v": pv.from_python([2]), "y": pa.array(["t"])})
    merged = reader.option("mergeSchema", "true").load(str(tmp_path))
    rows = merged.selectExpr("cast(v AS int) AS v", "x", "y").orderBy("v").collect()
    assert [tuple(row) for row in rows] == [(1, 5, None), (2, None, "t")]


def test_recursive_lookup_has_no_partition_columns(reader, table):
    assert reader.load(str(table)).columns == ["v", "day"]
    found = reader.option("recursiveFileLookup", "true").load(str(table))
    assert found.columns == ["v"]
    assert found.count() == 4


def test_sql_over_a_directory_by_its_path(spark, table):
    found = pv.spark.sql(spark, "SELECT day, v:n::int AS n FROM t WHERE v:n::int > 1 ORDER BY n", t=str(table))
    assert [tuple(row) for row in found.collect()] == [(2, 2), (1, 10), (2, 20)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_named(tmp_path, usgs_sample):
    place = tmp_path / "closed"
    place.mkdir(mode=0o500)
    with pytest.raises(pv.VariantFileError, match=r"closed.*cannot be written"):
        pv.parquet.ingest(usgs_sample, place / "out")


def test_a_catalogs_table_is_refused_in_one_line_and_a_view_is_there_instead(spark, reader, table):
    with pytest.raises(Exception, match="use CREATE TEMPORARY VIEW") as raised:
        spark.sql(f"CREATE TABLE of_a_catalog USING variant LOCATION '{table}'")
    assert 'File "' not in str(raised.value)
    spark.sql(f"CREATE TEMPORARY VIEW as_a_view USING variant OPTIONS (path '{table}')")
    assert spark.sql("SELECT sum(v:n::int) FROM as_a_view WHERE day = 2").collect()[0][0] == 22
    spark.catalog.dropTempView("as_a_view")
