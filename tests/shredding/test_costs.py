"""What a choice costs: shares that sum to one, bytes of what stays, and what one more path would change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

import parquet_variant as pv
from parquet_variant.inference.columns import estimate_path
from parquet_variant.inference.explain import explain, explain_table
from parquet_variant.inference.infer import infer
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.profile import Profile
from parquet_variant.types.path import VariantPath
from variant_strategies import variants

ROWS = pv.parse_json(
    [json.dumps({"id": n, "a": n if n % 4 else None, "b": "x" * 40 if n % 3 else [n]}) for n in range(100)]
    + ['{"rare": {"deep": "some text that is not typed"}}']
)


def test_shares_sum_to_one_and_say_what_is_there() -> None:
    result = infer(ROWS)
    by_path = {decision.path: decision for decision in result.decisions}
    a = by_path[VariantPath(("a",))]
    assert (a.typed, a.null, a.residual, a.missing) == (75, 25, 0, 1)
    b = by_path[VariantPath(("b",))]
    assert (b.typed, b.residual, b.missing) == (66, 34, 1)
    rare = by_path[VariantPath(("rare",))]
    assert (rare.residual, rare.missing) == (1, 100)
    assert rare.residual_bytes > len("some text that is not typed")
    assert 0 < result.residual_bytes < result.total_bytes
    for cost in result.decisions:
        assert sum(map(cost.share, ("typed", "null", "residual", "missing"))) == pytest.approx(1)


@given(variants())
@settings(max_examples=50, deadline=None)
def test_no_count_is_negative(value: Any) -> None:
    array = pv.VariantArray.from_variants([value, value, None, pv.Variant.from_python({"a": [1, "x"]})])
    result = infer(array, AutoPolicy(min_row_share=0.0))
    for cost in result.decisions:
        assert min(cost.typed, cost.null, cost.residual, cost.missing, cost.residual_bytes) >= 0
    explain(result)


def test_a_list_is_sorted_and_cut() -> None:
    lines = explain_table(infer(ROWS), "missing", 2).splitlines()
    assert lines[0].startswith("101 rows, 4 paths with values, 3 typed (auto): ")
    assert lines[1].startswith("$.rare  residual  1.0% residual (")
    assert "99.0% missing" in lines[1]
    assert len(lines) == 3


def test_one_more_path() -> None:
    profile = Profile.of_array(ROWS)
    what = estimate_path(profile, "$.rare.deep", "string")
    assert (what.values, what.typed) == (1, 1)
    assert estimate_path(profile, "$.b", "bigint").typed == 0
    assert estimate_path(profile, "$.none", "bigint").values == 0
    assert estimate_path(profile, "$.b", "string").saved > 0  # forty times the same text
    for kind in ("nonsense", "array<int>"):
        with pytest.raises(pv.VariantError):
            estimate_path(profile, "$.b", kind)
