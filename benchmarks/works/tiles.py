"""The case of JSON Tiles: the rows of TPC-H's eight tables mixed in one column, compared with relational Parquet.

Owns the mixed file and queries 1, 3, 6 and 18. `TPCH_SCALE` (0.1) is the scale factor; ``tpchgen-cli`` makes the
tables. Each row is a JSON object with the columns of its table; rows are in the order of a hash, so that no row group
has the rows of one table only. The queries are those of the standard over one subquery per table, which selects the
rows that have the table's key.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import parquet_variant as pv
from benchmarks.data import scratch
from benchmarks.harness import OURS, Work
from benchmarks.peers import duckdb

_THREADS = 2
_RELATIONAL, _DUCKDB = "DuckDB, relational Parquet", "DuckDB, its Parquet with one Variant"
_PATIENCE = 5.0
_KEYS = {
    "lineitem": "l_orderkey", "orders": "o_orderkey", "partsupp": "ps_partkey", "part": "p_partkey",
    "customer": "c_custkey", "supplier": "s_suppkey", "nation": "n_nationkey", "region": "r_regionkey",
}  # fmt: skip
_TYPES = {
    "l_orderkey": "bigint", "l_quantity": "decimal(15,2)", "l_extendedprice": "decimal(15,2)",
    "l_discount": "decimal(15,2)", "l_tax": "decimal(15,2)", "l_returnflag": "string", "l_linestatus": "string",
    "l_shipdate": "date", "o_orderkey": "bigint", "o_custkey": "bigint", "o_orderdate": "date",
    "o_shippriority": "bigint", "o_totalprice": "decimal(15,2)", "c_custkey": "bigint", "c_name": "string",
    "c_mktsegment": "string",
}  # fmt: skip
QUERIES = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
        sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, avg(l_quantity) AS avg_qty,
        avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc, count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q3": """SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey
        AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
        AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "Q18": """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
        AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
}


def works() -> Iterator[Work]:
    yield _load()
    for query in QUERIES:
        contenders: dict[str, Callable[[], Any]] = {
            OURS: partial(_run_ours, query),
            _RELATIONAL: partial(_run_relational, query),
            _DUCKDB: partial(_run_duckdb, query),
        }
        yield Work(
            f"JSON Tiles, TPC-H {query} over eight tables in one column, scale {_scale()}, {_THREADS} threads",
            contenders, {_RELATIONAL: 0.5}, _check, patience=_PATIENCE,
        )  # fmt: skip


def _scale() -> str:
    return os.environ.get("TPCH_SCALE", "0.1")


@cache
def _tables() -> Path:
    """Return the folder of the relational tables, each a Parquet file."""
    folder = scratch() / "tpch"
    program = Path(sys.executable).with_name("tpchgen-cli")
    command = [
        str(program) if program.exists() else "tpchgen-cli",
        "parquet",
        "-s",
        _scale(),
        "--output-dir",
        str(folder),
    ]
    subprocess.run([*command, "--compression", "ZSTD(1)"], check=True, stdout=subprocess.DEVNULL)
    return folder


@cache
def _mixed() -> Path:
    """Return the NDJSON file of all rows."""
    file = scratch() / "tpch.ndjson"
    rows = " UNION ALL ".join(f"SELECT to_json(t)::VARCHAR AS j FROM '{_tables()}/{name}.parquet' t" for name in _KEYS)
    options = r"FORMAT csv, HEADER false, QUOTE '', DELIMITER '\x01'"
    duckdb(_THREADS).execute(f"COPY (SELECT j FROM ({rows}) ORDER BY hash(j), j) TO '{file}' ({options})")
    return file


def _ingest() -> Path:
    folder = scratch() / "tpch-ours"
    pv.ingest(str(_mixed()), str(folder), mode="overwrite", threads=_THREADS)
    return folder


@cache
def _ours() -> Path:
    return _ingest()


def _copy() -> Path:
    file = scratch() / "tpch-duckdb.parquet"
    source = f"SELECT json::VARIANT AS v FROM read_ndjson_objects('{_mixed()}')"
    duckdb(_THREADS).execute(f"COPY ({source}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    return file


@cache
def _duckdb_file() -> Path:
    return _copy()


def _load() -> Work:
    return Work(
        f"JSON Tiles, load of eight tables in one column, scale {_scale()}, {_THREADS} threads",
        {OURS: _ingest, _DUCKDB: _copy},
        {_DUCKDB: 6},
        _sizes,
        _mixed().stat().st_size,
        patience=_PATIENCE,
    )


def _sizes(name: str, ours: Path, theirs: Path) -> str:
    own = sum(file.stat().st_size for file in ours.glob("*.parquet"))
    relational = sum(file.stat().st_size for file in _tables().glob("*.parquet"))
    return (
        f"Size: {own / 1e6:.1f} MB, {name} {theirs.stat().st_size / 1e6:.1f} MB, relational Parquet with zstd "
        f"{relational / 1e6:.1f} MB."
    )


def _with_tables(query: str, source: str, path: Callable[[str, str], str]) -> str:
    """Return the query after subqueries that select the columns it uses from the mixed rows."""
    text = QUERIES[query]
    tables = []
    for table, key in _KEYS.items():
        prefix = key[: key.index("_") + 1]
        columns = sorted(set(re.findall(rf"\b{prefix}\w+", text)))
        if re.search(rf"\b{table}\b", text):
            selected = ", ".join(f"{path(column, _TYPES[column])} AS {column}" for column in columns)
            tables.append(f"{table} AS (SELECT {selected} FROM {source} WHERE {path(key, _TYPES[key])} IS NOT NULL)")
    return f"WITH {', '.join(tables)} {text}"


def _run_ours(query: str) -> list[tuple[Any, ...]]:
    sql = _with_tables(query, "t", lambda column, kind: f"v:{column}::{kind}")
    return [tuple(row.values()) for row in pv.sql(sql, t=str(_ours()), threads=_THREADS).to_pylist()]


def _run_duckdb(query: str) -> list[tuple[Any, ...]]:
    types = {"string": "VARCHAR"}
    sql = _with_tables(
        query,
        f"read_parquet('{_duckdb_file()}')",
        lambda column, kind: f"TRY_CAST(v['{column}'] AS {types.get(kind, kind)})",
    )
    return list(duckdb(_THREADS).execute(sql).fetchall())


def _run_relational(query: str) -> list[tuple[Any, ...]]:
    tables = ", ".join(f"{name} AS (FROM '{_tables()}/{name}.parquet')" for name in _KEYS)
    return list(duckdb(_THREADS).execute(f"WITH {tables} {QUERIES[query]}").fetchall())


def _check(name: str, ours: Any, theirs: Any) -> str:
    mine, other = ([list(map(str, row)) for row in rows] for rows in (ours, theirs))
    assert mine and mine == other, f"{name} answers {other[:2]}, we {mine[:2]}"
    return ""
