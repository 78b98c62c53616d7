"""Arrays over memory, which `kernels.native_vectors` declares, in Python."""

from __future__ import annotations

from typing import Any

from parquet_variant.kernels.machine_code.interpreting.interpreter import array_at


def vector_at(address: int, size: int) -> Any:
    """Return the vector of entries at an address."""
    return array_at(address, "int64", (size,))


def table_at(address: int, rows: int, columns: int) -> Any:
    """Return the table of entries at an address."""
    return array_at(address, "int64", (rows, columns))


def address_in(array: Any) -> int:
    """Return the address of the first byte of an array."""
    return int(array.__array_interface__["data"][0])
