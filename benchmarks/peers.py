"""The peers, each set up once: DuckDB connections and Spark sessions.

Owns how a peer is configured, so that all have the same cores, codec and row-group size. Leaves what they do to
`works`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks import sail
from benchmarks.data import scratch

ROW_GROUP_ROWS = 122_880


@cache
def duckdb(threads: int) -> Any:
    """A DuckDB connection with a number of threads."""
    import duckdb as module

    connection = module.connect()
    connection.execute(f"SET threads = {threads}")
    return connection


@cache
def chdb() -> Any:
    """A chDB session whose tables lie in a directory that is removed in the end; None where it is not installed."""
    try:
        from chdb.session import Session
    except ImportError:
        return None
    return Session(str(scratch() / "chdb"))


@cache
def spark() -> Any:
    """The Spark session: two cores; one partition is one core."""
    from parquet_variant.spark.session import local_session

    session = local_session("benchmarks", cores=2, memory="4g")
    session.conf.set("spark.sql.parquet.compression.codec", "zstd")
    return session


def versions() -> dict[str, str]:
    """Versions of everything that takes part."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("parquet-variant", "pyarrow", "numba", "numpy", "pyspark", "duckdb", "chdb", "polars"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return {**found, "pysail": sail.version()}
