"""Spark's own Parquet reader takes the files that we write, and we take the files that it shreds, with equal JSON."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

import parquet_variant as pv

pytest.importorskip("pyspark", reason="PySpark is not installed")

ROWS = [
    '{"a":1,"b":"x","c":[1,2,"z"],"d":{"e":1.5,"f":null}}',
    '{"a":"n/a","g":true}',
    "null",
    '[1,{"a":2},[]]',
    None,
    '"s"',
    "12345678901234567890",
    "1.25",
    '{"z":1,"a":2,"d":{"e":2.5,"zz":[]},"":"empty","é":1}',
    "{}",
    "[]",
    "true",
]
SCHEMAS = [
    None,
    "a bigint, b string, c array<int>, d struct<e: decimal(9,2)>",
    "a decimal(30,2), d struct<e: double, zz: array<string>>",
    "a struct<q: int>, b date",
    "array<struct<a: int>>",
]


def value(text):
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


def by_spark(spark, path):
    frame = spark.read.parquet(str(path))
    assert frame.schema["v"].dataType.typeName() == "variant"
    return [value(row[0]) for row in frame.selectExpr("to_json(v)").collect()]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_spark_reads_ours(spark, schema, tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.parse_json(pa.array(ROWS)), schema=schema)
    assert by_spark(spark, path) == [value(row) for row in ROWS]


def test_spark_reads_what_rewrite_makes(spark, tmp_path):
    source, dest = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pv.write(source, pv.parse_json(ROWS), schema="a bigint, c array<int>", layout="draft-object")
    for layout in ("final", "unshredded"):
        pv.open(source).rewrite(dest, layout=layout, mode="overwrite")
        assert by_spark(spark, dest) == [value(row) for row in ROWS]


def test_we_read_what_spark_shreds(spark, tmp_path):
    forced = "a bigint, b string, d struct<e decimal(9,2)>, c array<int>"
    settings = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.forceShreddingSchemaForTest": forced,
    }
    for key, setting in settings.items():
        spark.conf.set(key, setting)
    try:
        frame = spark.createDataFrame(list(enumerate(ROWS)), "i int, j string").selectExpr("i", "parse_json(j) v")
        frame.coalesce(1).write.parquet(str(tmp_path / "spark"))
    finally:
        for key in settings:
            spark.conf.unset(key)
    array = pv.open(tmp_path / "spark").read()
    assert array.schema == pv.ShreddingSchema.from_ddl(forced)
    assert [None if item is None else value(item.to_json()) for item in array] == [value(row) for row in ROWS]
    assert pv.open(tmp_path / "spark").validate().ok
    answer = pv.open(tmp_path / "spark").scan({"i": "i", "a": "$.a:string", "e": "$.d.e:double"}, "i < 2").to_arrow()
    assert answer.to_pydict() == {"i": [0, 1], "a": ["1", "n/a"], "e": [1.5, None]}


@pytest.mark.parametrize(
    ("trait", "data", "schema"),
    [("TIME", [dt.time(1, 2, 3)], "time"), ("UUID", [uuid.UUID(int=5)], "uuid")],
)
def test_the_table_of_engines_is_true_of_spark(spark, trait, data, schema, tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist(data), schema=schema)
    report = pv.open(path).validate()
    assert report.ok
    assert any(note.engine.startswith("spark") and trait in note.why for note in report.engines)
    with pytest.raises(Exception, match=r"FAILED_READ_FILE|PARQUET_TYPE_ILLEGAL"):
        spark.read.parquet(str(path)).selectExpr("to_json(v)").collect()


def test_typed_columns_of_every_type_read_as_the_values_do(spark, tmp_path):
    """What Spark makes of a typed column is what it makes of the same value in bytes."""
    columns = {
        "boolean": [True, False],
        "tinyint": [1, -128],
        "smallint": [300],
        "int": [70_000],
        "bigint": [2**60],
        "double": [-0.0, 1e300],
        "decimal(9,2)": [Decimal("1.50")],
        "decimal(18,4)": [Decimal("-12345678901.2345")],
        "decimal(38,9)": [Decimal("12345678901234567890123456789.123456789")],
        "date": [dt.date(2024, 2, 29), dt.date(1900, 1, 1)],
        "timestamp": [dt.datetime(2024, 1, 31, 12, 0, 0, 1, tzinfo=dt.UTC)],
        "timestamp_ntz": [dt.datetime(1999, 12, 31, 23, 59, 59, 999999)],
        "binary": [b"\x00\xff"],
        "string": ["", "\U0001f600", "x" * 100],
    }
    rows = []
    for number, (kind, values) in enumerate(columns.items()):
        array = pv.VariantArray.from_pylist([{"a": item, "b": [item]} for item in values])
        for schema in (None, f"a {kind}, b array<{kind}>"):
            path = tmp_path / f"{number}-{'shredded' if schema else 'plain'}.parquet"
            info = pv.write(path, array, schema=schema)
            if schema:
                assert info.statistics["v", "typed_value", "a", "value"].all_null, kind
        rows += [(kind, item) for item in values]

    def texts(which):
        frame = spark.read.parquet(str(tmp_path / f"*-{which}.parquet"))
        return sorted(row[0] for row in frame.selectExpr("to_json(v)").collect())

    assert texts("plain") == texts("shredded")
    assert len(texts("plain")) == len(rows)
