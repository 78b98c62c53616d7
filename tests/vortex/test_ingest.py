"""Several tasks into one Vortex file, without Spark."""

from __future__ import annotations

import json

import pytest

import parquet_variant as pv

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")


def test_parts_of_different_shapes_make_one_file(tmp_path):
    rows = [{"a": 1}] * 3, [{"a": "x", "b": [1]}, {"c": None}], [5, {"b": ["y", {}]}]
    for number, part in enumerate(rows):
        (tmp_path / f"{number}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in part))
    sources = [tmp_path / f"{number}.ndjson" for number in range(3)]
    dest = tmp_path / "t.vortex"
    result = pv.ingest(sources, dest, schema="a bigint, b array<bigint>", split_bytes=10, threads=2, format="vortex")
    assert result.rows == 7
    assert pv.open(dest).read().to_pylist() == [row for part in rows for row in part]
    assert not list(tmp_path.glob(".*"))
