"""Typed UUIDs are compared with strings in quotes, as points in time are."""

from __future__ import annotations

from pathlib import Path

import pytest

import parquet_variant as pv

FIRST, SECOND = "00000007-aaaa-4aaa-8aaa-000000000000", "00000008-aaaa-4aaa-8aaa-000000000000"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f"v:id = '{FIRST}'", [1]),
        (f"'{SECOND.upper()}' = v:id", [2]),
        (f"v:id IN ('{FIRST}', '{SECOND}')", [1, 2]),
        (f"v:id > '{FIRST}'", [2]),
        (f"v:id BETWEEN '{FIRST}' AND '{FIRST}'", [1]),
        (f"v:id = UUID '{SECOND}'", [2]),
    ],
)
def test_a_path_of_uuids_is_compared_with_a_string(tmp_path: Path, condition: str, expected: list[int]) -> None:
    rows = pv.parse_json([f'{{"id": "{FIRST}", "n": 1}}', f'{{"id": "{SECOND}", "n": 2}}'], types={"$.id": "uuid!"})
    pv.write(tmp_path / "ids.parquet", {"v": rows}, schema="id uuid, n int")
    for table in (rows, tmp_path / "ids.parquet"):
        result = pv.sql(f"SELECT v:n AS n FROM t WHERE {condition}", t=table)
        assert (sorted(row["n"] for row in result.to_pylist()), result.warnings) == (expected, ())
    scanned = pv.open(tmp_path / "ids.parquet").scan({"n": "$.n:int"}, condition).to_pylist()
    assert sorted(row["n"] for row in scanned) == expected


def test_another_string_is_not_compared() -> None:
    rows = pv.parse_json([f'{{"id": "{FIRST}"}}'], types={"$.id": "uuid!"})
    result = pv.sql("SELECT 1 FROM t WHERE v:id = 'abc'", t=rows)
    assert (len(result), len(result.warnings)) == (0, 1)
