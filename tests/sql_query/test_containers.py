"""Functions over containers: from typed columns where files allow, from bytes otherwise, always with one result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import parquet_variant as pv
from parquet_variant.query.containment import contains, contains_each
from parquet_variant.sql_query.sql import columns_text, plan_sql

_ROWS = [
    {"a": [{"n": 1, "s": "x" * 90}, {"n": 2}], "b": [1, 2, 3], "c": [], "o": {"y": 1, "x": 2}, "k": "p"},
    {"a": [], "b": [4], "c": [1, "x"], "o": [], "k": "q"},
    {"c": 5, "o": None},
]
_FUNCTIONS = {
    "array_size(v:a)": [2, 0, None],
    "cardinality(v:b)": [3, 1, None],
    "variant_array_length(v, 'b')": [3, 1, None],
    "array_size(v, 'b')": [3, 1, None],
    "size(v, 'b')": [3, 1, None],
    "variant_array_length(v:c)": [0, 2, 0],
    "array_size(v:c)": [0, 2, None],
    "size(v:o)": [2, 0, None],
    "variant_keys(v:o)": [["x", "y"], [], []],
    "object_keys(v:o)": [["x", "y"], None, None],
    "variant_type(v:k)": ["string", "string", None],
    "variant_exists(v, 'k')": [True, True, False],
    "is_variant_null(v:k)": [False, False, False],
    "v:k IS NULL": [False, False, True],
    "variant_contains(v, 2)": [True, False, False],
}


def test_containers_in_memory_and_in_files(tmp_path: Any) -> None:
    rows = pv.parse_json([json.dumps(row) for row in _ROWS])
    schema = "a array<struct<n: bigint, s: string>>, b array<bigint>, c array<bigint>, k string"
    pv.write(tmp_path / "rows.parquet", rows, schema=schema)
    query = "SELECT " + ", ".join(f"{text} AS c{number}" for number, text in enumerate(_FUNCTIONS)) + " FROM t"
    for source in (rows, tmp_path / "rows.parquet"):
        for errors in ("null", "raise"):
            result = pv.sql(query, t=source, errors=errors).to_arrow()
            assert dict(zip(_FUNCTIONS, (column.to_pylist() for column in result.columns), strict=True)) == _FUNCTIONS
    query = "SELECT array_size(v:a), cardinality(v:b), variant_type(v:k), count(v:k) FROM t GROUP BY ALL"
    planned = plan_sql(query, {"t": tmp_path / "rows.parquet"})
    assert columns_text(planned.rewritten.uses[0]) == [
        "v:a[*].n::array<bigint>", "v:b[*]::array<bigint>", "v:k::string"
    ]  # fmt: skip


def test_a_batch_is_searched_as_each_value_is() -> None:
    rng = random.Random(3)

    def value(depth: int) -> Any:
        kind = rng.random()
        if depth == 0 or kind < 0.6:
            return rng.choice([1, 1.0, "1", "a", True, None, 2.5, 10**20, "é" * 40, False, 0, ""])
        if kind < 0.8:
            return [value(depth - 1) for _ in range(rng.randint(0, 3))]
        return {rng.choice("abc"): value(depth - 1) for _ in range(rng.randint(0, 3))}

    for trial in range(60):
        rows = pv.parse_json(pa.array([json.dumps(value(4)) for _ in range(11)] + [None], pa.string()))
        repeated = [json.dumps(value(2)), json.dumps(value(1))] * 6
        texts = repeated if trial % 3 else [json.dumps(value(2)) for _ in range(12)]
        needles = pv.parse_json(texts)
        expected = [None if row is None else contains(row, needle) for row, needle in zip(rows, needles, strict=True)]
        assert contains_each(rows, needles).to_pylist() == expected


def test_len_of_an_array_counts_elements_and_of_other_values_characters(tmp_path: Path) -> None:
    rows = ['{"l": [1, "x", null], "s": "text", "m": [1, 2]}', '{"l": [], "s": "y", "m": "abc"}', '{"l": null}']
    pv.write(tmp_path / "f.parquet", {"v": pv.parse_json(rows)}, schema={"v": "l array<bigint>, s string"})
    query = "SELECT len(v:l) l, length(v:s) s, len(v:m) m, len(v:l::string) t, array_length([1]) a, len(NULL) n FROM t"
    expected = [(3, 4, 2, 12, 1, None), (0, 1, 3, 2, 1, None), (None, None, None, None, 1, None)]
    for table in (pv.parse_json(rows), tmp_path / "f.parquet"):
        assert [tuple(row.values()) for row in pv.sql(query, t=table).to_pylist()] == expected
    assert pv.open(tmp_path / "f.parquet").scan({"s": "$.s"}, where="len(v:l) = 3").to_pylist() == [{"s": "text"}]
