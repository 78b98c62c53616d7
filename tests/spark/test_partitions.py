"""Hive partitions through Spark: the option partitionBy by columns and by paths, and typed, pruned reads."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import parquet_variant as pv


@pytest.fixture
def frame(spark):
    spark.dataSource.register(pv.spark.VariantDataSource)
    rows = [
        (number, f"2026-01-0{1 + number % 2}", f'{{"n": {number}, "kind": "k{number % 3}"}}') for number in range(12)
    ]
    return spark.createDataFrame(rows, "id int, day string, text string")


@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_columns_and_paths_partition_and_come_back(frame, spark, tmp_path, form):
    dest = str(tmp_path / "out")
    writer = frame.write.format("variant").mode("append").option("format", form).option("column", "text")
    writer.option("partitionBy", "day, kind=$.kind").save(dest)
    assert (tmp_path / "out" / "day=2026-01-01" / "kind=k0").is_dir()
    back = spark.read.format("variant").load(dest)
    assert set(back.columns) == {"id", "text", "day", "kind"}
    rows = back.selectExpr("id", "cast(day AS string) AS day", "kind", "variant_get(text, '$.n', 'int') AS n").collect()
    assert sorted((row.id, row.day, row.kind, row.n) for row in rows) == [
        (number, f"2026-01-0{1 + number % 2}", f"k{number % 3}", number) for number in range(12)
    ]
    if form == "parquet":
        assert dict(back.dtypes)["day"] == "string"  # as written; plain Spark infers a date from the names
        plain = spark.read.parquet(dest).select("day", "kind").distinct().collect()
        assert {(row.day, row.kind) for row in plain} == {
            (date(2026, 1, day), f"k{kind}") for day in (1, 2) for kind in (0, 1, 2)
        }


@pytest.mark.parametrize("form", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("by", ["day", "other=$.othre:date"])
def test_a_partition_column_without_values_is_reported_by_the_commit(tmp_path, form, by):
    options = {"path": str(tmp_path / form), "format": form, "column": "v", "partitionBy": f"{by}, k=$.k"}
    source = pv.spark.VariantDataSource(options)
    values = {"v": ['{"other": "2026-01-01", "k": 1}', '{"k": 2}'], "day": pa.nulls(2, pa.date32())}
    name = by.partition("=")[0]
    for rows in (2, 4):
        writer = source.writer(StructType().add("v", "string").add("day", "date"), overwrite=False)
        with pytest.warns(UserWarning, match=f"the partition column '{name}' is null in all 2 rows") as caught:
            writer.commit([writer.write(iter([pa.RecordBatch.from_pydict(values)]))])
        assert len(caught) == 1
        read = pv.sql(f"SELECT count(*) AS n FROM t WHERE {name} IS NULL", t=tmp_path / form)
        assert read.to_pylist() == [{"n": rows}]


def test_a_read_by_paths_takes_partition_columns_along(frame, spark, tmp_path):
    dest = str(tmp_path / "out")
    frame.write.format("variant").mode("append").option("column", "text").option("partitionBy", "day").save(dest)
    found = pv.open(dest, engine=spark).scan({"n": ("$.n", "int")}).to_spark(reader="python").schema
    assert found.simpleString() == "struct<n:int>"
    typed = spark.read.format("variant").option("columns", '{"n": ["$.n", "int"]}').option("where", "n > 3")
    assert typed.schema("n int, day date").load(dest).where("day = DATE'2026-01-02'").count() == 4


def test_an_ingest_on_spark_partitions(spark, tmp_path, usgs_sample):
    dest = tmp_path / "out"
    result = pv.ingest(usgs_sample, dest, engine=spark, partition_by=["kind=$.properties.type"])
    assert result.rows == 1707
    assert len(list(dest.glob("kind=*"))) == 3
    counts = {
        row["kind"]: row["count"]
        for row in spark.read.format("variant").load(str(dest)).groupBy("kind").count().collect()
    }
    assert counts == {"earthquake": 1679, "explosion": 15, "quarry blast": 13}


@pytest.mark.parametrize(
    ("by", "message"),
    [("nobody", "unknown column 'nobody'"), ("text", "is not a scalar"), ("id=$.n:int", "already")],
)
def test_what_cannot_partition_is_one_line(frame, tmp_path, by, message):
    with pytest.raises(Exception, match=message):
        frame.write.format("variant").mode("append").option("column", "text").option("partitionBy", by).save(
            str(tmp_path / "out")
        )
    assert not (tmp_path / "out").exists()


def test_an_append_without_partition_columns_uses_those_of_the_directory(spark, tmp_path):
    dest = str(tmp_path / "t")
    frame = spark.sql("SELECT id, parse_json('{}') AS v FROM range(3)")
    frame.write.format("variant").mode("append").option("partitionBy", "id").save(dest)
    frame.write.format("variant").mode("append").save(dest)
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.is_dir()) == ["id=0", "id=1", "id=2"]
    for other, options in [(frame.select("v"), {}), (frame.selectExpr("id", "1 AS k", "v"), {"partitionBy": "k"})]:
        with pytest.raises(Exception, match=r"partition columns of .* are id|is partitioned by id"):
            other.write.format("variant").mode("append").options(**options).save(dest)
    assert sorted(row.id for row in pv.open(dest, engine=spark).scan().to_spark().collect()) == [0, 0, 1, 1, 2, 2]


def test_an_overwrite_of_some_partitions_is_refused(frame, spark, tmp_path):
    name = "spark.sql.sources.partitionOverwriteMode"
    spark.conf.set(name, "dynamic")
    try:
        with pytest.raises(pv.VariantError, match="replaces all partitions"):
            pv.write(tmp_path / "out", frame, column="text", schema="n int", mode="overwrite", partitionBy="day")
    finally:
        spark.conf.unset(name)


def test_values_that_look_like_numbers_stay_strings(frame, spark, tmp_path):
    dest = str(tmp_path / "out")
    rows = spark.createDataFrame([(text, '{"a": 1}') for text in ("001", "01", "1")], "k string, v string")
    for _ in range(2):
        rows.write.format("variant").mode("append").option("column", "v").option("partitionBy", "k").save(dest)
    counts = spark.read.format("variant").load(dest).groupBy("k").count().collect()
    assert sorted((row.k, row["count"]) for row in counts) == [("001", 2), ("01", 2), ("1", 2)]
    assert sorted(pv.open(dest).to_arrow(["k"])["k"].to_pylist()) == ["001", "001", "01", "01", "1", "1"]
