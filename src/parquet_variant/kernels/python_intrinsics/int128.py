"""Arithmetic in 128 bits, which `kernels.int128` declares, in Python."""

from __future__ import annotations

from parquet_variant.kernels.machine_code.interpreting.translation import wrap

_MASK = (1 << 64) - 1


def multiply_add(high: int, low: int, factor: int, term: int) -> tuple[int, int]:
    """Return ``number * factor + term`` modulo 2**128 as ``(high, low)``; factor and term are unsigned.

    >>> multiply_add(0, -1, 2, 1)
    (1, -1)
    """
    number = (((high & _MASK) << 64) | (low & _MASK)) * (factor & _MASK) + (term & _MASK)
    return wrap((number >> 64) & _MASK), wrap(number & _MASK)
