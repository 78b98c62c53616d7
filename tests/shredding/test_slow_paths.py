"""The paths that DuckDB reads slowly are those that docs/interop.md measures, each with its reason."""

from __future__ import annotations

import json

import parquet_variant as pv
from parquet_variant.shredding.explain import explain, explain_json
from parquet_variant.shredding.infer import infer
from parquet_variant.shredding.policies.auto import AutoPolicy
from parquet_variant.shredding.slow_paths import slow_paths


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
    for policy in (AutoPolicy(), AutoPolicy(readers="duckdb")):
        (line,) = slow_paths(result_of('{"n": 1, "o": {"a": 1, "z": 2}}', policy))
        assert "in $.o slowly" in line and "has $.o.z in" in line and "readers" not in line


def test_a_column_without_a_type_makes_every_path_slow():
    lines = slow_paths(result_of('{"n": 1, "m": {}}', common='{"n": 1, "m": {}}'))
    assert any("all typed paths" in line and "$.m" in line for line in lines)


def test_the_lines_are_in_every_explanation():
    result = result_of('{"n": 1, "rare": 1}')
    (line,) = slow_paths(result)
    assert explain(result).splitlines()[-1] == line
    assert json.loads(explain_json(result))["slow_paths"] == [line]
