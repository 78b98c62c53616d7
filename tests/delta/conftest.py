"""Small tables of events for the Delta tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

SCHEMA = "id bigint, name string, mag decimal(12,1), props struct<a: bigint>"


def event(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"n{number:05}", "mag": number + 1.5, "props": {"a": number % 5}, "odd": [number]}


def events(start: int, stop: int) -> dict[str, Any]:
    """Columns `k` (long), `p` (string, for partitions) and `v` (variant)."""
    numbers = range(start, stop)
    return {
        "k": pa.array(numbers, pa.int64()),
        "p": pa.array([f"p{n % 2}" for n in numbers], pa.string()),
        "v": pv.parse_json(pa.array([json.dumps(event(n)) for n in numbers], pa.string())),
    }


def ids(table: Any, **options: Any) -> list[int]:
    """The ids in a table's variants, sorted."""
    return sorted(row["id"] for row in pv.open(table, **options).read().to_pylist())


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Path]:
    """Makes a table of events at ``tmp_path / name``, a file for each count."""

    def make(*counts: int, name: str = "table", **options: Any) -> Path:
        table = tmp_path / name
        start = 0
        for count in counts:
            pv.write(table, events(start, start + count), format="delta", mode="append", schema=SCHEMA, **options)
            start += count
        return table

    return make
