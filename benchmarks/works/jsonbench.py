"""JSONBench: generated Bluesky events, five queries, loading and sizes, and those of chDB, DuckDB and Spark.

Owns the queries in each peer's SQL, and what the goals are. ``python -m benchmarks.works.jsonbench [--rows N]
[--rounds N] [--engine spark]`` runs it alone; `JSONBENCH_ROWS` says how many events there are (1,000,000). What takes a
peer longer than `_PATIENCE` it does once, so that all takes about five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import parquet_variant as pv
from benchmarks.data import ROOT, scratch
from benchmarks.harness import OURS, Work, as_markdown, measure
from benchmarks.peers import chdb, duckdb, spark
from benchmarks.works import startup

THREADS = 2
_PATIENCE = 2.0
_CHDB, _TABLE, _OWN, _READS_OURS = "chDB, JSON type", "DuckDB, its table", "DuckDB, its Parquet", "DuckDB, our Parquet"
_PLAIN, _SPARK = "plain columns", "Spark, its Parquet"
_PATHS = {
    "collection": ("$.commit.collection", "string"), "operation": ("$.commit.operation", "string"),
    "kind": ("$.kind", "string"), "did": ("$.did", "string"), "time_us": ("$.time_us", "bigint"),
}  # fmt: skip
# The queries over names for the five paths; {hour} of {time_us}, and {distinct} values, are each engine's own.
_CREATED = "{kind} = 'commit' AND {operation} = 'create'"
_POST = _CREATED + " AND {collection} = 'app.bsky.feed.post'"
_FEED = "('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')"
QUERIES = {
    "Q1": "SELECT {collection} AS event, count(*) AS n FROM {t} GROUP BY event ORDER BY n DESC",
    "Q2": "SELECT {collection} AS event, count(*) AS n, {distinct} AS users FROM {t} WHERE " + _CREATED
    + " GROUP BY event ORDER BY n DESC",
    "Q3": "SELECT {collection} AS event, {hour} AS hour_of_day, count(*) AS n FROM {t} WHERE " + _CREATED
    + " AND {collection} IN " + _FEED + " GROUP BY event, hour_of_day ORDER BY hour_of_day, event",
    "Q4": "SELECT {did} AS user_id, min({time_us}) AS first FROM {t} WHERE " + _POST
    + " GROUP BY user_id ORDER BY first, user_id LIMIT 3",
    "Q5": "SELECT {did} AS user_id, max({time_us}) - min({time_us}) AS span FROM {t} WHERE " + _POST
    + " GROUP BY user_id ORDER BY span DESC, user_id LIMIT 3",
}  # fmt: skip


def text(query: str, table: str, path: Callable[[str, str], str], hour: str = "hour(make_timestamp({}))") -> str:
    """A query in an engine's SQL, by how it writes a typed path."""
    names = {name: path(where.removeprefix("$."), kind) for name, (where, kind) in _PATHS.items()}
    distinct = f"count(DISTINCT {names['did']})"
    return QUERIES[query].format(t=table, hour=hour.format(names["time_us"]), distinct=distinct, **names)


def works() -> Iterator[Work]:
    yield _load()
    for query in QUERIES:
        yield _hot(query)
    yield _cold()
    yield from _threads()


# ---- the data


def _rows() -> int:
    return int(os.environ.get("JSONBENCH_ROWS", "1000000"))


def events() -> Path:
    """The events as NDJSON."""
    return generated(_rows())


@cache
def generated(rows: int) -> Path:
    """A file of as many events."""
    path = scratch() / f"jsonbench-{rows}.json"
    if not path.exists():
        maker = Path(os.environ.get("VARIANT_TEST_DATA") or ROOT / "../shared").resolve() / "tools" / "jsonbench.py"
        subprocess.run([sys.executable, str(maker), str(rows), str(path)], check=True, stdout=subprocess.DEVNULL)
    return path


@cache
def ours() -> Path:
    path = scratch() / "jsonbench-ours"
    return path if path.exists() else _ingest()


def _ingest() -> Path:
    path = scratch() / "jsonbench-ours"
    pv.ingest(str(events()), str(path), mode="overwrite", threads=THREADS)
    return path


@cache
def plain() -> Path:
    path = scratch() / "jsonbench-plain.parquet"
    pq.write_table(pv.open(str(ours())).scan(_PATHS).to_arrow(), path, compression="zstd")
    return path


@cache
def duckdb_table() -> str:
    return "bench.events" if _is_attached() else _duckdb_load()


def _is_attached() -> bool:
    names = duckdb(THREADS).execute("SELECT database_name FROM duckdb_databases()").fetchall()
    return ("bench",) in names


def _duckdb_load() -> str:
    connection = duckdb(THREADS)
    file = scratch() / "jsonbench.duckdb"
    if _is_attached():
        connection.execute("DETACH bench")
    file.unlink(missing_ok=True)
    connection.execute(f"ATTACH '{file}' AS bench")
    connection.execute(f"CREATE TABLE bench.events AS SELECT json::VARIANT AS v FROM read_ndjson_objects('{events()}')")
    connection.execute("CHECKPOINT bench")
    return "bench.events"


@cache
def duckdb_parquet() -> Path:
    path = scratch() / "jsonbench-duckdb.parquet"
    duckdb(THREADS).execute(f"COPY {duckdb_table()} TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    return path


@cache
def chdb_table() -> str:
    is_there = str(chdb().query("EXISTS TABLE jsonbench", "TSV")).strip() == "1"
    return "jsonbench" if is_there else _chdb_load()


def _chdb_load() -> str:
    session = chdb()
    session.query("DROP TABLE IF EXISTS jsonbench")
    session.query("CREATE TABLE jsonbench (v JSON CODEC(ZSTD(1))) ENGINE = MergeTree ORDER BY tuple()")
    source = f"file('{events()}', JSONAsObject, 'v JSON')"
    session.query(f"INSERT INTO jsonbench SELECT v FROM {source} SETTINGS max_threads = {THREADS}")
    session.query("SYSTEM STOP MERGES jsonbench")  # they would take CPU from whatever is measured next
    return "jsonbench"


# ---- the contenders


def _ours_path(path: str, kind: str) -> str:
    return f"v:{path}::{kind}"


def _duckdb_path(path: str, kind: str) -> str:
    place = "v" + "".join(f"['{key}']" for key in path.split("."))
    return f"TRY_CAST({place} AS {'VARCHAR' if kind == 'string' else 'BIGINT'})"


def _chdb_path(path: str, kind: str) -> str:
    return f"v.{path}.:{'String' if kind == 'string' else 'Int64'}"


def run_ours(query: str) -> list[tuple[Any, ...]]:
    sql = text(query, "t", _ours_path, "hour(timestamp_micros({}))")
    return [tuple(row.values()) for row in pv.sql(sql, t=str(ours()), threads=THREADS).to_pylist()]


def run_duckdb(query: str, table: Callable[[], str]) -> list[tuple[Any, ...]]:
    return list(duckdb(THREADS).execute(text(query, table(), _duckdb_path)).fetchall())


def run_chdb(query: str) -> list[tuple[Any, ...]]:
    sql = text(query, chdb_table(), _chdb_path, "toHour(fromUnixTimestamp64Micro({}, 'UTC'))")
    answer = str(chdb().query(f"{sql} SETTINGS max_threads = {THREADS}", "JSONCompactEachRow"))
    return [tuple(number(value) for value in json.loads(line)) for line in answer.splitlines()]


def number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else value


def _same(name: str, our: Any, their: Any) -> str:
    mine, other = (sorted(map(str, rows)) for rows in (our, their))
    if mine != other:
        raise AssertionError(f"{name} answers {other[:3]}, we {mine[:3]}")
    return ""


def _hot(query: str) -> Work:
    contenders: dict[str, Callable[[], Any]] = {OURS: partial(run_ours, query)}
    goals: dict[str, float] = {_OWN: 10}
    own = duckdb_parquet()  # now, so that a first run is no more than the query
    if chdb():
        contenders[_CHDB] = partial(run_chdb, query)
        goals[_CHDB] = 1.0
    contenders[_TABLE] = partial(run_duckdb, query, duckdb_table)
    if query == "Q2":
        goals[_TABLE] = 50
    contenders[_OWN] = partial(run_duckdb, query, lambda: f"read_parquet('{own}')")
    if query == "Q1":  # the others take it half a minute each, for the same reason
        contenders[_READS_OURS] = partial(run_duckdb, query, lambda: f"read_parquet('{ours()}/*.parquet')")
    note = "The goal compared with DuckDB's own Parquet is for queries that take it over a second."
    name = f"JSONBench {query}, hot, {THREADS} threads, {_rows():,} events"
    return Work(name, contenders, goals, _same, note=note, patience=_PATIENCE)


def _load() -> Work:
    contenders: dict[str, Callable[[], Any]] = {OURS: _ingest, _TABLE: _duckdb_load}
    goals = {_TABLE: 8.0}
    if chdb():
        contenders[_CHDB], goals[_CHDB] = _chdb_load, 6.0
    name = f"JSONBench load, {THREADS} threads, {_rows():,} events"
    return Work(name, contenders, goals, _sizes, events().stat().st_size, patience=_PATIENCE)


def _sizes(name: str, our: Any, their: Any) -> str:
    own = sum(each.stat().st_size for each in ours().glob("*.parquet"))
    if name == _TABLE:
        other = (scratch() / "jsonbench.duckdb").stat().st_size
    else:
        query = "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'jsonbench'"
        other = int(str(chdb().query(query, "TSV")).strip())
    return f"size: {own / 1e6:.1f} MB, {name} {other / 1e6:.1f} MB ({'met' if own <= other else 'missed'})"


def _cold() -> Work:
    """A process each, of what pip installed: ours over Variants, DuckDB's over plain columns of the same values."""
    sql = text("Q1", "t", _ours_path)
    their = f"SELECT collection AS event, count(*) AS n FROM read_parquet('{plain()}') GROUP BY event ORDER BY n DESC"
    program = f"import duckdb; print(duckdb.sql({their!r}).fetchall())"
    return Work(
        f"JSONBench Q1, a process, {_rows():,} events",
        {
            OURS: partial(startup.command, "query", str(ours()), sql),
            _PLAIN: partial(startup.python, program),
        },
        {_PLAIN: 0.4},
    )


def _threads() -> Iterator[Work]:
    read = partial(
        (lambda path, *query, **options: pv.open(path).scan(*query, **options).to_arrow()), str(ours()), _PATHS
    )
    yield Work(
        f"JSONBench, five paths extracted, {_rows():,} events",
        {
            OURS: partial(read, threads=THREADS),
            "ours, 1 thread": partial(read, threads=1),
            _PLAIN: partial(pq.read_table, plain(), use_threads=True),
        },
        {"ours, 1 thread": 1.8, _PLAIN: 0.8},
    )


# ---- Spark


def spark_works() -> Iterator[Work]:
    """The same SQL by Spark: over our files through `pv.spark`, and over its own by its own functions."""
    from parquet_variant.spark.operations.read import sql

    session = spark()
    own = scratch() / "jsonbench-spark"
    lines = session.read.text(str(events()))
    lines.selectExpr("parse_json(value) AS v").write.mode("overwrite").parquet(str(own))

    def native(path: str, kind: str) -> str:
        return f"try_variant_get(v, '$.{path}', '{kind}')"

    for query in QUERIES:
        hour = "hour(timestamp_micros({}))"
        mine, theirs = text(query, "t", _ours_path, hour), text(query, f"parquet.`{own}`", native, hour)
        yield Work(
            f"JSONBench {query} in Spark, {_rows():,} events",
            {
                OURS: lambda mine=mine: [tuple(row) for row in sql(session, mine, t=str(ours())).collect()],
                _SPARK: lambda theirs=theirs: [tuple(row) for row in session.sql(theirs).collect()],
            },
            {_SPARK: 3.0},
            _same,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.works.jsonbench")
    parser.add_argument("--rows", type=int, help="events; 1,000,000 by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", choices=["local", "spark"], default="local")
    options = parser.parse_args()
    if options.rows:
        os.environ["JSONBENCH_ROWS"] = str(options.rows)
    for work in spark_works() if options.engine == "spark" else works():
        print(as_markdown(work, *measure(work, options.rounds)), flush=True)


if __name__ == "__main__":
    main()
