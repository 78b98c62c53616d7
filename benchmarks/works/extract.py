"""Typed paths out of a file: 1, 3 and 10 of them, from shredded and unshredded Variants, one thread."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import parquet_variant as pv
from benchmarks.data import data_sets
from benchmarks.files import our_file, plain_file, unshredded_file
from benchmarks.harness import OURS, Work
from benchmarks.peers import duckdb, spark

_DUCKDB_TYPES = {"string": "VARCHAR", "bigint": "BIGINT", "boolean": "BOOLEAN"}
_MISSES = "DuckDB's casts differ where a value has another type; row counts are compared, and our values with Spark's."


def works() -> Iterator[Work]:
    for data in data_sets():
        for count in (1, 3, 10):
            some = data.paths[:count]
            columns = {f"c{i}": pair for i, pair in enumerate(some)}
            for kind, path, goals in (
                ("shredded", our_file(data), {"pyarrow, plain columns": 0.8, "DuckDB": 10, "Spark": 3}),
                ("unshredded", unshredded_file(data), {"DuckDB": 10, "Spark": 3}),
            ):
                contenders: dict[str, Any] = {OURS: partial(_ours, path, columns)}
                if kind == "shredded":
                    contenders["pyarrow, plain columns"] = partial(
                        pq.read_table, plain_file(data), columns=list(columns), use_threads=False
                    )
                contenders["DuckDB"] = partial(_duckdb, path, some)
                contenders["Spark"] = partial(_spark, path, some)
                yield Work(
                    f"extract: {count} paths from {kind}, 1 thread, {data.name}",
                    contenders, goals, _same, data.size, _MISSES,
                )  # fmt: skip


def _ours(path: str, columns: dict[str, tuple[str, str]]) -> pa.Table:
    return pv.parquet.extract(path, columns)


def _duckdb(path: str, paths: list[tuple[str, str]]) -> int:
    # A hash of every value: reads all of them, hands over one number.
    columns = ", ".join(f"max(hash(TRY_CAST({_duckdb_path(p)} AS {_DUCKDB_TYPES[kind]})))" for p, kind in paths)
    row = duckdb(1).execute(f"SELECT count(*), {columns} FROM read_parquet('{path}')").fetchall()[0]
    return int(row[0])


def _duckdb_path(path: str) -> str:
    keys = path.removeprefix("$.").split(".")
    return "v" + "".join(f'."{key}"' for key in keys)


def _spark(path: str, paths: list[tuple[str, str]]) -> int:
    columns = [f"max(hash(try_variant_get(v, '{p}', '{kind}')))" for p, kind in paths]
    return int(spark().read.parquet(path).coalesce(1).selectExpr("count(*) AS n", *columns).collect()[0].n)


def _same(ours: pa.Table, theirs: Any) -> None:
    count = theirs if isinstance(theirs, int) else theirs.num_rows
    assert ours.num_rows == count, (ours.num_rows, count)
    if isinstance(theirs, pa.Table):
        assert ours.equals(theirs.cast(ours.schema))
