"""DuckDB, as what runs SQL text over Arrow data: no file access, no network, our session zone.

Owns the connection's settings and the words of its errors. Leaves what the text is to `sql_expression` and `sql`; the
dialect is imported where it is needed, so that DuckDB can start before it.
"""

from __future__ import annotations

import atexit
import datetime as dt
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.errors import VariantError
from parquet_variant.fork_safety import in_forked_child
from parquet_variant.io.parallel import thread_count
from parquet_variant.lazy_names import optional_libraries

_INSTANCES: dict[tuple[int, int], Any] = {}  # by process (a fork has no use for its parent's) and threads
_LOCK = threading.Lock()
_CONFIG: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


@in_forked_child
def _renew_lock() -> None:
    global _LOCK
    _LOCK = threading.Lock()


def begin(*, threads: int | None = None) -> None:
    """Start DuckDB in a thread, for a process that will `connect` and has something else to do before.

    What goes wrong in it, `connect` meets again, and tells.
    """

    def start() -> None:
        with suppress(Exception), connect(threads=threads):
            pass

    threading.Thread(target=start, name="parquet-variant-duckdb").start()


@contextmanager
def connect(*, zone: str = "UTC", threads: int | None = None) -> Iterator[Any]:
    """A DuckDB connection in memory, closed at the end.

    Raises `VariantError` with reason ``missing-extra`` if DuckDB is not installed.
    """
    with optional_libraries("SQL"):
        import duckdb
    with _instance(duckdb, thread_count(threads)).cursor() as connection:
        if zone != "UTC":
            connection.execute("SET TimeZone = ?", [duckdb_zone(zone)])
        yield connection


def duckdb_zone(zone: str) -> str:
    """The name that DuckDB and Arrow have for a zone of Spark's: it may be an offset or an abbreviation.

    Raises `CastError` for what is none, and `VariantError` for an offset of parts of an hour; both ``bad-zone``.

    >>> duckdb_zone("PST"), duckdb_zone("+01:00"), duckdb_zone("Z")
    ('America/Los_Angeles', 'Etc/GMT-1', 'UTC')
    """
    known = zone_of(zone)
    if known is dt.UTC:
        return "UTC"
    if not isinstance(known, dt.timezone):
        return str(known)
    hours, rest = divmod(int(known.utcoffset(None).total_seconds()), 3600)
    if rest or not -12 <= hours <= 14:
        raise VariantError(
            f"{zone!r} is an offset that DuckDB does not have: use a region such as 'Asia/Kolkata', or whole hours",
            reason="bad-zone",
        )
    return f"Etc/GMT{-hours:+d}"


def _instance(duckdb: Any, threads: int) -> Any:
    """The database of this process: making one takes longer than a small query; what queries register is their own."""
    key = os.getpid(), threads
    with _LOCK:
        if key not in _INSTANCES:
            instance = duckdb.connect(":memory:", config=_CONFIG | {"threads": str(threads)})
            instance.execute("SET GLOBAL TimeZone = 'UTC'")
            _INSTANCES[key] = instance
            atexit.register(instance.close)
        return _INSTANCES[key]


def run_sql(text: str, tables: Mapping[str, Any], *, zone: str = "UTC") -> pa.Table:
    """The answer to a query over Arrow tables or streams.

    `tables`: Arrow tables, or readers of batches (each is read once), by the names that the text has.
    Raises `SqlError`: what DuckDB has against the query.

    >>> run_sql("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1, 2]})}).to_pydict()
    {'b': [2, 3]}
    """
    from parquet_variant.query.sql_dialect import SqlError

    with connect(zone=zone) as connection:
        import duckdb

        try:
            for name, table in tables.items():
                connection.register(name, table)
            return connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            raise SqlError(f"the SQL cannot be run: {str(error).strip().splitlines()[0]}") from None
