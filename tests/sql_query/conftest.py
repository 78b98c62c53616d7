"""Tables of the SQL tests: one with a Variant and ordinary columns, one to join with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

EVENTS = (
    '{"kind": "a", "n": 1, "items": [{"n": 1}, {"n": 2}], "day": "x", "o": {"p": 1}}',
    '{"kind": "b", "n": 5}',
    '{"kind": "a", "n": 20}',
    "null",
    '{"kind": null, "n": "z"}',
)
KEYS = ('{"k": "a", "w": 10}', '{"k": "b", "w": 20}')


@pytest.fixture(scope="session")
def events() -> dict[str, Any]:
    return {"day": pa.array([1, 2, 3, 4, 5]), "v": pv.parse_json(list(EVENTS)), "name": pa.array(list("abcde"))}


@pytest.fixture(scope="session")
def ask(events: dict[str, Any]) -> Callable[[str], list[Any]]:
    """Rows as tuples (one-column answers as plain values) of a query over t and u."""

    def asked(query: str) -> list[Any]:
        columns = [
            column.to_pylist() for column in pv.sql(query, t=events, u=pv.parse_json(list(KEYS))).to_arrow().columns
        ]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    return asked
