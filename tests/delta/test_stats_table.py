"""Statistics of the log as columns: what cannot be read is unknown, and of that file alone."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.delta.log.file_actions import rows_to_files
from parquet_variant.delta.protocol.schema import parse_schema
from parquet_variant.delta.statistics.stats_table import read_stats

SCHEMA = parse_schema('{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}')


def known(*texts: str | None) -> list[tuple[int | None, int | None]]:
    adds = [{"add": {"path": f"f{n}", "partitionValues": {}, "stats": text}} for n, text in enumerate(texts)]
    stats = read_stats(rows_to_files(adds), SCHEMA)
    columns: list[pa.ChunkedArray] = [stats.num_records, stats.get("minValues", ("a",))]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


GOOD = '{"numRecords":7,"minValues":{"a":3}}'


@pytest.mark.parametrize(
    "bad",
    ["", " ", "null", "[]", "7", '"x"', "{", "}", "x", '{"numRecords":"x"}', "[" * 100_000, '{"minValues":{"a":{}}}'],
)
def test_statistics_that_are_none_are_unknown(bad: str) -> None:
    assert known(bad) == [(None, None)]
    assert known(GOOD, bad, None, GOOD) == [(7, 3), (None, None), (None, None), (7, 3)]


def test_two_objects_in_one_row_are_not_taken_for_the_next_row() -> None:
    assert known("{}" + GOOD, "") == [(None, None), (None, None)]


def test_blanks_around_statistics_do_not_matter() -> None:
    assert known(f"  {GOOD}", f"{GOOD}\n", GOOD) == [(7, 3)] * 3


@given(st.lists(st.none() | st.tuples(st.integers(0, 2**62), st.integers(-(2**63), 2**63 - 1)), max_size=12))
def test_statistics_are_those_of_their_own_row(rows: list[tuple[int, int] | None]) -> None:
    def text(row: tuple[int, int] | None) -> Any:
        return None if row is None else json.dumps({"numRecords": row[0], "minValues": {"a": row[1]}})

    assert known(*map(text, rows)) == [row or (None, None) for row in rows]
