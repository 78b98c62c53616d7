"""DuckDB as the engine for SQL over Arrow data, without access to files or the network, in the session zone.

Owns the settings of the connection. Leaves the text of queries to `sql_expression` and `sql_query`. The dialect is
imported inside functions, so that DuckDB can start before it.
"""

from __future__ import annotations

import atexit
import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.errors import VariantError
from parquet_variant.io.parallel import thread_count
from parquet_variant.support.fork_safety import in_forked_child
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types.path import quoted

EARLIER = "_earlier_instant"  # the engine's name of the function for local times
_INSTANCES: dict[tuple[int, int], Any] = {}  # by process id (a forked process cannot use its parent's) and threads
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
    """Start DuckDB in a thread, for a process that calls `connect` later.

    Errors are ignored here: `connect` meets and raises them again.
    """

    def start() -> None:
        with suppress(Exception), connect(threads=threads):
            pass

    threading.Thread(target=start, name="parquet-variant-duckdb").start()


@contextmanager
def connect(*, zone: str = "UTC", threads: int | None = None) -> Iterator[Any]:
    """Open a DuckDB connection in memory, and close it at the end.

    Raises `VariantError` with reason ``missing-extra`` if DuckDB is not installed.
    """
    with optional_libraries("SQL"):
        import duckdb
    with _instance(duckdb, thread_count(threads)).cursor() as connection:
        if zone != "UTC":
            connection.execute("SET TimeZone = ?", [duckdb_zone(zone)])
        yield connection


@contextmanager
def interruptible(connection: Any) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Yield a function that runs work of a connection so that Ctrl-C stops it at once.

    The engine would not return to Python before the work ends, so that the main thread, the only one that receives
    signals, waits for another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda work: work()
        return

    def run(work: Callable[[], Any]) -> Any:
        future = None
        try:
            future = worker.submit(work)
            wait([future])
        except BaseException:
            last = future or worker.submit(int)  # if it is interrupted while it is submitted, work may run before this
            while not last.done():
                with suppress(KeyboardInterrupt):  # the connection is in use until the work ends
                    wait([last], 0.02)
                    connection.interrupt()  # an interrupt before the engine starts has no effect
            raise
        return future.result()

    with ThreadPoolExecutor(1, "parquet-variant-duckdb") as worker:
        worker.submit(int).result()  # the thread has started, so that leaving the block waits for it
        yield run


def duckdb_zone(zone: str) -> str:
    """Return the name that DuckDB and Arrow have for a time zone of Spark, which can be an offset or an abbreviation.

    Raises `CastError` for an unknown zone, and `VariantError` for an offset with minutes; reason ``bad-zone``.

    >>> duckdb_zone("PST"), duckdb_zone("+01:00"), duckdb_zone("Z")
    ('America/Los_Angeles', 'Etc/GMT-1', 'UTC')
    """
    timezone = zone_of(zone)
    if timezone is dt.UTC:
        return "UTC"
    if not isinstance(timezone, dt.timezone):
        return str(timezone)
    hours, seconds = divmod(int(timezone.utcoffset(None).total_seconds()), 3600)
    if seconds or not -12 <= hours <= 14:
        problem = f"DuckDB has no time zone {zone!r}: use a region such as 'Asia/Kolkata', or whole hours"
        raise VariantError(problem, reason="bad-zone")
    return f"Etc/GMT{-hours:+d}"


def _instance(duckdb: Any, threads: int) -> Any:
    """Return the database of this process, which queries share because creating one takes longer than a small query."""
    key = os.getpid(), threads
    with _LOCK:
        if key not in _INSTANCES:
            instance = duckdb.connect(":memory:", config=_CONFIG | {"threads": str(threads)})
            instance.execute("SET GLOBAL TimeZone = 'UTC'")
            kind, text = instance.sqltype("TIMESTAMPTZ"), instance.sqltype("VARCHAR")
            instance.create_function(
                EARLIER, _earlier_instants, [kind, text], kind, type="arrow", null_handling="special"
            )
            _INSTANCES[key] = instance
            atexit.register(instance.close)
        return _INSTANCES[key]


def _earlier_instants(instants: pa.Array, zones: pa.Array) -> pa.Array:
    """Return the first instant with the same local time as each one, in the time zone that all rows name."""
    zone = zones[0].as_py() if len(zones) else "UTC"
    local = pc.local_timestamp(instants.cast(pa.timestamp(instants.type.unit, zone)))
    return pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest").cast(instants.type)


def engine_type(connection: Any, kind: pa.DataType) -> Any:
    """Return DuckDB's type for an Arrow type."""
    return connection.from_arrow(pa.table([pa.nulls(0, kind)], names=["a"])).types[0]


@cache
def function_types() -> dict[str, str]:
    """Return the names of DuckDB's functions in lower case, each with its type, such as ``aggregate``."""
    with connect() as connection:
        query = "SELECT lower(function_name), any_value(function_type) FROM duckdb_functions() GROUP BY 1"
        return dict(connection.execute(query).fetchall())


@cache
def reserved_words() -> frozenset[str]:
    """Return the words that DuckDB reads as names of columns only in quotes."""
    with connect() as connection:
        query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
        return frozenset(word for (word,) in connection.execute(query).fetchall())


def sql_name(name: str) -> str:
    """Return the name of a column in SQL, in quotes only where DuckDB needs them."""
    return name if name.isidentifier() and name.islower() and name not in reserved_words() else quoted(name)
