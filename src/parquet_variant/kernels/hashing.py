"""Hashes of bytes in kernels.

Owns the multipliers and the seed. Leaves hash tables to the modules that fill them.
"""

from __future__ import annotations

import os

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_u64, short_word

# Different in every process, so that colliding keys cannot be crafted; results do not depend on it.
HASH_SEED = int.from_bytes(os.urandom(7), "little") | 1
# Odd numbers, by which bits are spread.
MIX_A, MIX_B = 0x2127599BF4325C37, 0x2545F4914F6CDD1D


@helper
def hash_bytes(address: int, length: int, seed: int) -> int:
    """Return a 62-bit hash of bytes."""
    value = seed ^ (length * MIX_B)
    i = 0
    while i + 8 <= length:
        value = (value ^ load_u64(address + i)) * MIX_A
        value ^= (value >> 29) & 0x7FFFFFFFF
        i += 8
    tail = load_u64(address + length - 8) if length >= 8 else short_word(address, length)
    value = (value ^ tail) * MIX_A
    value ^= (value >> 32) & 0xFFFFFFFF
    return value & 0x3FFFFFFFFFFFFFFF
