"""`pv.duckdb.register`: functions over Variants, and tables, in a DuckDB connection of the user; `Table.to_ibis`.

Owns how a Variant enters and leaves DuckDB, and which functions are registered. Leaves the functions to
`query.variant_functions`.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_NAME
from parquet_variant.arrays.variant_array import VariantArray, plain_storage
from parquet_variant.query.duckdb_engine import engine_type
from parquet_variant.query.variant_functions import VariantColumns, column_of
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.opening import open as open_table
from parquet_variant.tables.table.scan import Scan
from parquet_variant.tables.table.table import Table
from parquet_variant.types.targets import VARIANT_STORAGE

_NUMBERS = count(1)


def register(connection: Any, **tables: Any) -> list[str]:
    """Give a DuckDB connection functions over Variants, and tables by name.

    DuckDB's ``VARIANT`` columns, those of its own Parquet reader too, go into the functions and come out of them.
    ``v:a.b``, which DuckDB reads as an alias, and the skipping of data by path are those of `pv.sql`. A table is read
    when a query runs, with all of its columns: give a scan of the needed paths for a large one.

    Parameters
    ----------
    connection
        A connection of DuckDB. Before version 2, Variants are structs for the functions, which cannot take DuckDB's
        own ``VARIANT`` columns.
    **tables
        By name: what `pv.open` opens, or a `Scan`.

    Returns
    -------
    list of str
        The functions, without those that DuckDB has itself: ``parse_json(text)``, ``variant_get(v, path)``,
        ``variant_get_bigint(v, path)`` and so on, ``variant_set(v, path, x)``, ``variant_insert``,
        ``variant_array_append`` (x is a VARIANT), ``variant_delete(v, path)``, ``variant_strip_nulls(v)``,
        ``schema_of_variant(v)``, ``is_variant_null(v)``; with ``try_`` an error is NULL. ``canonical(v)``: bytes that
        are equal for equal values.

    Examples
    --------
    >>> import duckdb, parquet_variant as pv
    >>> connection = duckdb.connect()
    >>> _ = pv.duckdb.register(connection, events=pv.parse_json(['{"n": 1, "at": {"x": 5}}', '{"n": 2}']))
    >>> connection.sql("SELECT sum(v.n::int), max(variant_get_int(v, '$.at.x')) FROM events").fetchall()
    [(3, 5)]
    """
    names = {name for (name,) in connection.execute("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()}
    ((zone,),) = connection.execute("SELECT current_setting('TimeZone')").fetchall()
    registered = []
    for name, (work, kind) in VariantColumns(column_of, _variants, _extension()).functions(zone).items():
        if name in names:
            continue
        returns = engine_type(connection, kind or _extension())
        connection.create_function(name, work, None, returns, type="arrow", null_handling="special")
        registered.append(name)
    for name, source in tables.items():
        opened = source if isinstance(source, Scan | Table) else open_table(source)
        # An Arrow stream, which each query reads again.
        connection.register(name, opened.scan() if isinstance(opened, Table) else opened)
    return registered


@cache
def _extension() -> Any:
    """Return the extension type whose arrays DuckDB takes for Variants; it is not registered with pyarrow."""

    class VariantType(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(VARIANT_STORAGE, EXTENSION_NAME)

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

    return VariantType()


def _variants(values: VariantArray) -> pa.Array:
    return pa.ExtensionArray.from_storage(_extension(), plain_storage(values))


def to_ibis(table: Table, columns: Any = None, where: Any = None, *, connection: Any = None) -> Any:
    """Return a table of ibis; see `Table.to_ibis`."""
    with optional_libraries("Table.to_ibis"):
        import ibis
    backend = ibis.get_backend() if connection is None else connection  # one for all tables, so that they can be joined
    if connection is None and backend.name != "duckdb":
        backend = ibis.duckdb.connect()
    name = f"variant_table_{next(_NUMBERS)}"
    backend.con.register(name, table.typed() if columns is None else table.scan(columns, where))
    return backend.table(name)
