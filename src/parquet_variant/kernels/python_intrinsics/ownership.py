"""The C library's memory, which `kernels.ownership` declares, in Python.

Owns the list of blocks that kernels own, by which tests find leaks.
"""

from __future__ import annotations

from parquet_variant.kernels.c_memory import HEADER_BYTES, raw_free, raw_realloc
from parquet_variant.kernels.machine_code.interpreting.registered_memory import MEMORY, OWNED_BLOCKS, is_checking


def reallocated(block: int, size: int) -> int:
    """Return the address of bytes that begin with those of a block, which is freed; 0 if memory ran out."""
    new = raw_realloc(block, size)
    if new:
        OWNED_BLOCKS.discard(block + HEADER_BYTES)
        OWNED_BLOCKS.add(new + HEADER_BYTES)
        if is_checking():
            MEMORY.remove(("block", block))
            MEMORY.add(("block", new), new, size)
    return new


def released(block: int) -> None:
    """Free a block."""
    OWNED_BLOCKS.discard(block + HEADER_BYTES)
    MEMORY.remove(("block", block))
    raw_free(block)
