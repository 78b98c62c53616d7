"""Typed paths out of a file: 1, 3 and 10 of them, from shredded and unshredded Variants, one thread."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import parquet_variant as pv
from benchmarks import sail
from benchmarks.checks import difference_note, different_rows
from benchmarks.data import DataSet, data_sets
from benchmarks.files import our_file, plain_file, unshredded_file
from benchmarks.harness import OURS, Work
from benchmarks.peers import chdb, duckdb, spark

Paths = list[tuple[str, str]]

_DUCKDB_TYPES = {"string": "VARCHAR", "bigint": "BIGINT", "boolean": "BOOLEAN"}
_CHDB_TYPES = {"string": "String", "bigint": "Int64", "boolean": "Bool"}
_LIMIT = "pyarrow, plain columns"


def works() -> Iterator[Work]:
    for data in data_sets():
        for count in (1, 3, 10):
            some = data.paths[:count]
            yield _shredded(data, some)
            yield _unshredded(data, some)


def _shredded(data: DataSet, some: Paths) -> Work:
    path = our_file(data)
    return Work(
        f"extract: {len(some)} paths from shredded, 1 thread, {data.name}",
        {
            OURS: partial(_ours, path, some),
            _LIMIT: partial(pq.read_table, plain_file(data), columns=list(_columns(some)), use_threads=False),
            "DuckDB": partial(_duckdb, path, some),
            "Spark": partial(_spark, path, some),
        },
        {_LIMIT: 0.8, "DuckDB": 10, "Spark": 3},
        partial(_check, path, some),
        data.size,
    )


def _unshredded(data: DataSet, some: Paths) -> Work:
    path = unshredded_file(data)
    contenders: dict[str, Any] = {
        OURS: partial(_ours, path, some),
        "DuckDB": partial(_duckdb, path, some),
        "Spark": partial(_spark, path, some),
    }
    if sail.is_installed():
        contenders["PySail, its own file"] = partial(_sail, sail.unshredded_directory(data), some)
    if chdb():
        _fill_chdb(data)
        contenders["chDB, its JSON type"] = partial(_chdb, data.name, some)
    return Work(
        f"extract: {len(some)} paths from unshredded, 1 thread, {data.name}",
        contenders,
        {"DuckDB": 10, "Spark": 3, "PySail, its own file": 1.5},
        partial(_check, path, some),
        data.size,
    )


def _columns(paths: Paths) -> dict[str, tuple[str, str]]:
    return {f"c{i}": pair for i, pair in enumerate(paths)}


def _ours(path: str, paths: Paths) -> pa.Table:
    return pv.open(path).scan(_columns(paths)).to_arrow()


def _duckdb(path: str, paths: Paths) -> int:
    # A hash of every value: reads all of them, hands over one number.
    columns = ", ".join(f"max(hash({value}))" for value in _duckdb_values(paths))
    return int(duckdb(1).execute(f"SELECT count(*), {columns} FROM read_parquet('{path}')").fetchall()[0][0])


def _duckdb_values(paths: Paths) -> list[str]:
    keys = [path.removeprefix("$.").split(".") for path, _ in paths]
    texts = ["v" + "".join(f'."{key}"' for key in each) for each in keys]
    return [f"TRY_CAST({text} AS {_DUCKDB_TYPES[kind]})" for text, (_, kind) in zip(texts, paths, strict=True)]


def _spark(path: str, paths: Paths) -> int:
    columns = [f"max(hash({value}))" for value in _spark_values(paths)]
    return int(spark().read.parquet(path).coalesce(1).selectExpr("count(*) AS n", *columns).collect()[0].n)


def _spark_values(paths: Paths) -> list[str]:
    return [f"try_variant_get(v, '{path}', '{kind}')" for path, kind in paths]


def _sail(directory: str, paths: Paths) -> list[Any]:
    # Its `hash` is not Spark's; the greatest value and the number of values read all of them as well.
    values = _spark_values(paths)
    return sail.query(directory, "count(*)", *(f"{call}({value})" for value in values for call in ("count", "max")))


@cache
def _fill_chdb(data: DataSet) -> None:
    session = chdb()
    session.query(f"CREATE TABLE {data.name} (v JSON CODEC(ZSTD(3))) ENGINE = MergeTree ORDER BY tuple()")
    session.query(f"INSERT INTO {data.name} SELECT v FROM file('{data.file}', JSONAsObject, 'v JSON')")


def _chdb(table: str, paths: Paths) -> list[str]:
    values = [f"v.{path.removeprefix('$.')}.:{_CHDB_TYPES[kind]}" for path, kind in paths]
    columns = ", ".join(f"count({value}), max({value})" for value in values)
    text = str(chdb().query(f"SELECT count(*), {columns} FROM {table} SETTINGS max_threads = 1", "JSONCompactEachRow"))
    return list(json.loads(text))


def _check(path: str, paths: Paths, who: str, ours: pa.Table, theirs: Any) -> str:
    names = list(_columns(paths))
    if isinstance(theirs, list):
        wanted = [pair for name in names for pair in (pc.count(ours[name]).as_py(), pc.max(ours[name]).as_py())]
        assert int(theirs[0]) == ours.num_rows, (who, theirs, ours.num_rows)
        other = sum(str(a) != str(b) for a, b in zip(wanted, theirs[1:], strict=True))
        return f"{who}: {other or 'none'} of {len(wanted)} counts and maxima are others."
    if who == _LIMIT:
        found = theirs
    elif who == "DuckDB":
        values = ", ".join(_duckdb_values(paths))
        found = duckdb(1).execute(f"SELECT {values} FROM read_parquet('{path}')").to_arrow_table()
    else:
        found = spark().read.parquet(path).coalesce(1).selectExpr(*_spark_values(paths)).toArrow()
    return difference_note(who, different_rows(ours, found), ours.num_rows)
