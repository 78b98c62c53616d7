"""Whole rows of a shredded file as JSON, one thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

import parquet_variant as pv
from benchmarks.checks import difference_note, different_json
from benchmarks.data import data_sets
from benchmarks.files import our_file
from benchmarks.harness import OURS, Work
from benchmarks.peers import duckdb, spark


def works() -> Iterator[Work]:
    for data in data_sets():
        path = our_file(data)

        def ours(path: str = path) -> int:
            return _size(pv.to_json(pv.open(path).read()))

        def by_duckdb(path: str = path) -> int:
            sql = f"SELECT sum(strlen(v::JSON::VARCHAR)) FROM read_parquet('{path}')"
            return int(duckdb(1).execute(sql).fetchall()[0][0])

        def by_spark(path: str = path) -> int:
            frame = spark().read.parquet(path).coalesce(1)
            return int(frame.selectExpr("sum(length(to_json(v))) AS n").collect()[0].n)

        yield Work(
            f"to_json: whole rows of a shredded file → JSON, 1 thread, {data.name}",
            {OURS: ours, "DuckDB": by_duckdb, "Spark to_json": by_spark},
            {"DuckDB": 3, "Spark to_json": 3},
            partial(_check, path),
            data.size,
        )


def _check(path: str, who: str, ours: int, theirs: int) -> str:
    if who == "DuckDB":
        found = duckdb(1).execute(f"SELECT v::JSON::VARCHAR AS v FROM read_parquet('{path}')").to_arrow_table()
    else:
        found = spark().read.parquet(path).coalesce(1).selectExpr("to_json(v) AS v").toArrow()
    text = pv.to_json(pv.open(path).read())
    assert ours == _size(text)
    return difference_note(who, different_json(text, found["v"].to_pylist()), len(text))


def _size(text: pa.Array) -> int:
    return int(pc.sum(pc.binary_length(text)).as_py())
