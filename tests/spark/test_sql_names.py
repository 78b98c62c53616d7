"""Names that look like something else, and Variants inside other types, mean what they mean in Spark."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.errors import VariantError

NAMES = ["a", "b", "a.b", "b.a", "v", "value", "metadata", "a b", 'a"b', "a'b", "é", "__row", "_table_1", "id", "%"]
EXAMPLES = 12


def quoted(parts: list[str], mark: str) -> str:
    return ".".join(mark + part.replace(mark, 2 * mark) + mark for part in parts)


def test_dotted_names_mean_what_they_mean_in_spark(spark: Any) -> None:
    from pyspark.errors import AnalysisException

    random_names = random.Random(32)
    resolved = 0
    for _ in range(EXAMPLES):
        names = random_names.sample(NAMES, 3)
        fields = random_names.sample(NAMES, 2)
        columns = {name: pa.array([number, number + 100]) for number, name in enumerate(names)}
        columns[names[1]] = pa.array([{field: 10 + number for number, field in enumerate(fields)}] * 2)
        table = pa.table(columns)
        spark.createDataFrame(table).createOrReplaceTempView("adversarial_names")
        for parts in ([names[1], fields[0]], [fields[1]], [f"{names[1]}.{fields[1]}"], ["t", names[0]], [names[2]]):
            try:
                rows = spark.sql(f"SELECT {quoted(parts, '`')} AS x FROM adversarial_names t").collect()
                expected: Any = [row.asDict(recursive=True)["x"] for row in rows]
            except AnalysisException:
                expected = None
            try:
                ours: Any = pv.sql(f"SELECT {quoted(parts, chr(34))} AS x FROM t", t=table).to_arrow()["x"].to_pylist()
            except VariantError:
                ours = None
            assert ours == expected, (names, fields, parts)
            resolved += expected is not None
    assert resolved >= EXAMPLES


def test_variants_inside_other_types_are_those_of_spark(spark: Any) -> None:
    texts = ['{"a": 1, "a.b": "x", "A": {"": [1, null]}}', '{"a": [true], "o\'k": 2.5}', "null"]
    spark.createDataFrame([(text,) for text in texts], "s string").createOrReplaceTempView("adversarial_json")
    for inner in ("v:a", "v:['a.b']", "v:A", "v"):
        ours = pv.sql(f"SELECT to_json([{inner}, {inner}]) AS x FROM t", t=pv.parse_json(texts)).to_pylist()
        query = f"SELECT to_json(array({inner}, {inner})) AS x FROM (SELECT parse_json(s) AS v FROM adversarial_json)"
        expected = [row.x for row in spark.sql(query).collect()]
        assert [json.loads(row["x"]) for row in ours] == [json.loads(text) for text in expected], inner


def test_functions_of_spark_take_variants_in_pv_spark_sql(spark: Any, tmp_path: Any) -> None:
    pv.write(tmp_path / "t.parquet", pv.parse_json(['{"a": {"b": 1}, "c": null}', '{"a": [1, "x"]}']))
    query = """SELECT to_json(v:a) AS a, to_json(array(v:a, v:c)) AS l, to_json(named_struct('x', v)) AS s,
               is_variant_null(v:c) AS n, schema_of_variant(v:a) AS k FROM t ORDER BY a"""
    assert [tuple(row) for row in pv.sql(query, engine=spark, t=tmp_path / "t.parquet").collect()] == [
        ('[1,"x"]', '[[1,"x"],null]', '{"x":{"a":[1,"x"]}}', False, "ARRAY<VARIANT>"),
        ('{"b":1}', '[{"b":1},null]', '{"x":{"a":{"b":1},"c":null}}', True, "OBJECT<b: BIGINT>"),
    ]
