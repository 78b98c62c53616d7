"""Variants in DuckDB: a relation with a VARIANT column.

Owns registering an array with a connection. Leaves the values to `VariantArray`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.variant_array import VariantArray


def to_duckdb(array: VariantArray, connection: Any, name: str, column: str = "v") -> Any:
    """Register an array as a relation with one VARIANT column.

    Parameters
    ----------
    connection
        A connection of DuckDB 1.4 or newer.
    name, column
        Names of the relation and of its column.

    Returns
    -------
    duckdb.DuckDBPyRelation
        The relation.

    Examples
    --------
    >>> import duckdb, parquet_variant as pv
    >>> connection = duckdb.connect()
    >>> _ = to_duckdb(pv.parse_json(['{"a": 1}', '{"a": 2}']), connection, "events")
    >>> connection.sql("SELECT sum(v.a::int) FROM events").fetchall()
    [(3,)]
    """
    connection.register(name, variant_table({column: array.to_unshredded()}))
    return connection.table(name)
