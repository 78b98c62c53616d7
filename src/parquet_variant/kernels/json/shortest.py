"""The shortest decimal that reads back as the same double, inside kernels.

Owns the algorithm (Raffaello Giulietti, "The Schubfach way to render doubles", 2020) and its table of powers. Leaves
the spelling of the number to `json.scalar_text`.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.int128 import multiply_add

_FIRST, _LAST = -292, 324


def _power(k: int) -> tuple[int, int]:
    """Return 10**k scaled to 128 bits and rounded up, as two halves."""
    if k >= 0:
        value = 10**k
        shift = value.bit_length() - 128
        scaled = -(-value >> shift) if shift > 0 else value << -shift
    else:
        divisor = 10**-k
        shift = 127 + divisor.bit_length()
        scaled = -(-(1 << shift) // divisor)
        if scaled.bit_length() > 128:
            scaled = -(-(1 << (shift - 1)) // divisor)
    return scaled >> 64, scaled & ((1 << 64) - 1)


_POWERS = [_power(k) for k in range(_FIRST, _LAST + 1)]
_HIGH = np.array([high for high, _ in _POWERS], np.uint64).view(np.int64)
_LOW = np.array([low for _, low in _POWERS], np.uint64).view(np.int64)


@helper
def _round_to_odd(high: int, low: int, factor: int) -> int:
    """Return the top 64 bits of ``power * factor``, with the last bit set if any lower bit was cut off."""
    carry, _ = multiply_add(0, low, factor, 0)
    upper, lower = multiply_add(0, high, factor, carry)
    return upper | (1 if lower != 0 and lower != 1 else 0)


@kernel
def shortest_decimal(bits: int) -> tuple[int, int]:
    """Return ``(digits, exponent)`` of a finite, positive double: digits * 10**exponent, digits as an integer."""
    fraction = bits & 0xFFFFFFFFFFFFF
    biased = (bits >> 52) & 0x7FF
    if biased != 0:
        c, q = fraction | (1 << 52), biased - 1075
        if -53 < q <= 0 and c & ((1 << -q) - 1) == 0:
            return c >> -q, 0
    else:
        c, q = fraction, -1074
    even = c & 1 == 0
    closer = 1 if fraction == 0 and biased > 1 else 0
    k = (q * 1262611 - (524031 if closer else 0)) >> 22
    h = q + ((-k * 1741647) >> 19) + 1
    high, low = _HIGH[-k - _FIRST], _LOW[-k - _FIRST]
    lower = _round_to_odd(high, low, (4 * c - 2 + closer) << h)
    value = _round_to_odd(high, low, (4 * c) << h)
    upper = _round_to_odd(high, low, (4 * c + 2) << h)
    if not even:
        lower += 1
        upper -= 1
    s = value >> 2
    if s >= 10:
        tens = s // 10
        fits_lower = lower <= 40 * tens
        fits_upper = 40 * tens + 40 <= upper
        if fits_lower != fits_upper:
            return tens + (1 if fits_upper else 0), k + 1
    fits_lower = lower <= 4 * s
    fits_upper = 4 * s + 4 <= upper
    if fits_lower != fits_upper:
        return s + (1 if fits_upper else 0), k
    middle = 4 * s + 2
    return s + (1 if value > middle or (value == middle and s & 1) else 0), k
