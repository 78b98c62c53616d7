"""Memory from the system, and arrays over it, which `kernels.native_vectors` declares, in Python.

Owns the list of blocks that kernels own, by which tests find leaks.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.kernels.c_memory import free, realloc
from parquet_variant.machine_code.interpreting.interpreter import array_at
from parquet_variant.machine_code.interpreting.registered_memory import MEMORY, OWNED_BLOCKS, is_checking


def reallocated(address: int, size: int) -> int:
    """Return the address of ``size`` bytes that begin with those at an address, which is freed; 0 if memory ran out."""
    new = realloc(address, size)
    if new:
        OWNED_BLOCKS.discard(address)
        OWNED_BLOCKS.add(new)
        if is_checking():
            MEMORY.remove(("block", address))
            MEMORY.add(("block", new), new, size)
    return new


def released(address: int) -> None:
    """Free the memory at an address that was allocated here."""
    OWNED_BLOCKS.discard(address)
    MEMORY.remove(("block", address))
    free(address)


def vector_at(address: int, size: int) -> Any:
    """Return the vector of entries at an address."""
    return array_at(address, "int64", (size,))


def table_at(address: int, rows: int, columns: int) -> Any:
    """Return the table of entries at an address."""
    return array_at(address, "int64", (rows, columns))


def address_in(array: Any) -> int:
    """Return the address of the first byte of an array."""
    return int(array.__array_interface__["data"][0])
