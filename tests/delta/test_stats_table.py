"""Statistics of the log as columns: what cannot be read is unknown, and of that file alone."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.tables.delta.log.file_actions import rows_to_files
from parquet_variant.tables.delta.protocol.actions import parse_schema
from parquet_variant.tables.delta.statistics import read_stats

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


@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("damaged", [False, True])
def test_bounds_with_an_offset_are_widened_by_its_possible_seconds(is_mixed: bool, damaged: bool) -> None:
    fields = '{"name":"t","type":"timestamp"},{"name":"n","type":"timestamp_ntz"},{"name":"d","type":"date"}'
    schema = parse_schema(f'{{"type":"struct","fields":[{fields}]}}')

    def text(low: str, high: str) -> str:
        bounds = (f'"{name}":{{"t":"{value}","n":"1900-01-01T00:00:00","d":"1900-01-01"}}' for name, value in
                  (("minValues", low), ("maxValues", high)))  # fmt: skip
        return f'{{"numRecords":1,{",".join(bounds)}}}'

    rows = [text("1883-11-18T00:00:00.000-07:52", "1883-11-18T00:00:00.000-07:52")]
    if is_mixed:
        rows.append(text("1883-11-18T00:00:00.000Z", "1883-11-18T00:00:00.000Z"))
    if damaged:
        rows.append('{"numRecords":1,"minValues":{"t":17}}')
    files = rows_to_files([{"add": {"path": str(at), "size": 1, "stats": row}} for at, row in enumerate(rows)])
    stats = read_stats(files, schema)
    low, high = (stats.get(kind, ("t",)).to_pylist() for kind in ("minValues", "maxValues"))
    # In Los Angeles the offset was -07:52:58, so the exact time lies up to 59 seconds later or earlier.
    exact = datetime(1883, 11, 18, 7, 52, 58, tzinfo=UTC)
    assert low[0] <= exact <= high[0]
    assert high[0] - low[0] <= timedelta(minutes=2)
    if is_mixed:
        assert low[1] == high[1] == datetime(1883, 11, 18, tzinfo=UTC)
    assert stats.get("minValues", ("n",)).to_pylist()[0] == datetime(1900, 1, 1)
    assert stats.get("maxValues", ("d",)).to_pylist()[0] == date(1900, 1, 1)
