"""The paths that DuckDB reads slowly are those that docs/internals/duckdb-reads.md measures, each with its reason."""

from __future__ import annotations

import datetime
import json
import uuid

import pyarrow as pa

import parquet_variant as pv
from parquet_variant.inference.explain import explain, explain_json, slow_paths
from parquet_variant.inference.infer import infer
from parquet_variant.inference.policies.auto import AutoPolicy


def result_of(rare: str, policy: AutoPolicy | None = None, common: str = '{"n": 1, "o": {"a": 1}}'):
    return infer(pv.parse_json([common] * 99 + [rare]), policy or AutoPolicy())


def test_nothing_is_slow_without_residuals():
    assert slow_paths(result_of('{"n": 2}')) == []
    assert slow_paths(result_of('{"n": "text", "o": null}')) == []


def test_a_rare_key_of_the_root_makes_every_path_slow():
    (line,) = slow_paths(result_of('{"n": 1, "rare": 1, "rarer": 2}'))
    assert "in $ slowly" in line and "$.rare, $.rarer" in line and "1.0%" in line and "readers=duckdb" in line
    assert slow_paths(result_of('{"n": 1, "rare": 1}', AutoPolicy(readers="duckdb"))) == []


def test_a_rare_key_of_an_object_makes_its_paths_slow():
    rare = '{"n": 1, "o": {"a": 1, "z": 2}}'
    (line,) = slow_paths(result_of(rare))
    assert "in $.o slowly" in line and "has $.o.z in" in line and "too small for more columns" in line
    assert slow_paths(result_of(rare, AutoPolicy(readers="duckdb"))) == []


def test_rare_keys_get_columns_at_every_level_where_they_cost_little():
    common = [json.dumps({"n": n, "o": {"a": n, "b": f"{n * 7919:09d}" * 7}}) for n in range(12_000)]
    rare = ['{"n": 1, "o": {"a": 1, "z": {"deep": [1]}}, "r": null}'] * 3
    rows = pv.parse_json(common + rare)
    result = infer(rows)
    assert slow_paths(result) == []
    assert result.schema.get("$.o.z").type == result.schema.get("$.r").type == pa.string()
    assert result.decision("$.o.z").reason.startswith("completes $.o for engines")
    assert slow_paths(infer(rows, AutoPolicy(completion=0)))
    twins = infer(pv.parse_json([*common, '{"n": 1, "N": 2}']))
    assert (
        "n and N differ only in case" in slow_paths(twins)[0] or "N and n differ only in case" in slow_paths(twins)[0]
    )


def test_plain_spark_gets_no_columns_of_types_that_it_cannot_read():
    values = pv.from_python([{"id": uuid.UUID(int=n), "n": n, "t": datetime.time(1, 2, n)} for n in range(20)])
    default, for_spark = infer(values).schema, infer(values, AutoPolicy(readers="spark"))
    assert {str(child.type) for _, child in default.fields} >= {"time64[us]"}
    assert for_spark.schema.get("$.id").kind == for_spark.schema.get("$.t").kind == "variant"
    assert "plain Spark cannot read columns of uuid" in for_spark.decision("$.id").reason


def test_a_column_without_a_type_makes_every_path_slow():
    lines = slow_paths(result_of('{"n": 1, "m": {}}', common='{"n": 1, "m": {}}'))
    assert any("all typed paths" in line and "$.m" in line for line in lines)


def test_the_lines_are_in_every_explanation():
    result = result_of('{"n": 1, "rare": 1}')
    (line,) = slow_paths(result)
    assert explain(result).splitlines()[-1] == line
    assert json.loads(explain_json(result))["slow_paths"] == [line]
