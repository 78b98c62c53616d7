"""Records at addresses, inside kernels: rows of 64-bit columns.

A column of a record is one load. An entry of a table that is passed as an array takes a multiplication by the table's
width, and the array's shape takes registers, which makes kernels that visit values a third slower.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_u64, store_u64


@helper
def get(record: int, column: int) -> int:
    """Return a column of a record."""
    return load_u64(record + 8 * column)


@helper
def put(record: int, column: int, value: int) -> None:
    """Set a column of a record."""
    store_u64(record + 8 * column, value)
