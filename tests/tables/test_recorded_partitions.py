"""`Table.append` of rows without a partition column: its path is the one that the first ingest recorded."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import parquet_variant as pv

ROW = '{"at": "2026-01-%02dT10:00:00Z", "n": %d}'


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_an_append_partitions_by_the_recorded_path(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(ROW % (1, 1))
    table = tmp_path / "table"
    pv.ingest(tmp_path / "a.ndjson", table, format=kind, partition_by="day=$.at:date")
    pv.open(table).append({"v": pv.parse_json([ROW % (2, 2), ROW % (1, 3)])})
    pv.open(table).append({"day": [date(2026, 1, 9)], "v": pv.parse_json([ROW % (2, 4)])})
    rows = pv.open(table).scan({"day": "day", "n": "$.n:int"}).to_pylist()
    expected = [("2026-01-01", 1), ("2026-01-01", 3), ("2026-01-02", 2), ("2026-01-09", 4)]
    assert sorted((str(row["day"]), row["n"]) for row in rows) == expected
