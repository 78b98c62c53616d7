"""128-bit integers as two ``int64`` halves, inside kernels: what decimals of up to 38 digits need.

Owns the arithmetic. Leaves the meaning of the numbers (scale, precision) to its callers. A number is ``(high, low)``,
two's complement, ``low`` holding raw bits.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.compiling import helper, intrinsic, kernel

# 10**k as halves, k = 0..38: for counting digits and for scaling.
_POWERS = [10**k for k in range(39)]
POWER_HIGH = np.array([p >> 64 for p in _POWERS], np.int64)
POWER_LOW = np.array([p & (1 << 64) - 1 for p in _POWERS], np.uint64).view(np.int64)

# ``(high, low, factor, term)``: number * factor + term modulo 2**128; factor and term are unsigned 64-bit.
multiply_add = intrinsic(__name__, "multiply_add")


@helper
def negate(high, low):
    """The number times -1."""
    if low == 0:
        return -high, low
    return ~high, -low


@helper
def _below(high, low, other_high, other_low):
    """Unsigned comparison of two magnitudes."""
    if high != other_high:
        return np.uint64(high) < np.uint64(other_high)
    return np.uint64(low) < np.uint64(other_low)


@kernel
def digits_of(high: int, low: int) -> int:
    """Count of decimal digits; 1 for zero, 39 where there are more than 38."""
    if high < 0:
        high, low = negate(high, low)
    if high == 0 and low >= 0:
        digits = 1
        while digits <= 18 and low >= POWER_LOW[digits]:
            digits += 1
        return digits
    digits = 19
    while digits <= 38 and not _below(high, low, POWER_HIGH[digits], POWER_LOW[digits]):
        digits += 1
    return digits


@helper
def fits_int64(high, low):
    """Whether the number is an int64, which then is ``low``."""
    return (high == 0 and low >= 0) or (high == -1 and low < 0)


@kernel
def multiply_power(high: int, low: int, power: int) -> tuple[bool, int, int]:
    """``(ok, high, low)``: number * 10**power, ok where at most 38 digits come out."""
    negative = high < 0
    if negative:
        high, low = negate(high, low)
    if (high != 0 or low != 0) and digits_of(high, low) + power > 38:
        return False, high, low
    if high != 0 or low != 0:
        while power > 0:
            step = min(power, 18)
            high, low = multiply_add(high, low, POWER_LOW[step], 0)
            power -= step
    if negative:
        high, low = negate(high, low)
    return True, high, low


@helper
def divide_small(high, low, divisor):
    """``(high, low, rest)``: quotient and rest of an unsigned number by a divisor below 2**31, by long division."""
    rest = 0
    out_high = out_low = 0
    for part in range(4):
        word = high if part < 2 else low
        limb = (word >> 32) & 0xFFFFFFFF if part % 2 == 0 else word & 0xFFFFFFFF
        rest = (rest << 32) | limb
        digit = rest // divisor
        rest -= digit * divisor
        if part < 2:
            out_high = (out_high << 32) | digit
        else:
            out_low = (out_low << 32) | digit
    return out_high, out_low, rest


@kernel
def divide_by_power(high: int, low: int, power: int) -> tuple[bool, int, int]:
    """``(exact, high, low)``: number / 10**power, exact where nothing remains."""
    negative = high < 0
    if negative:
        high, low = negate(high, low)
    exact = True
    while power > 0 and exact:
        step = min(power, 9)
        high, low, rest = divide_small(high, low, POWER_LOW[step])
        exact = rest == 0
        power -= step
    if negative:
        high, low = negate(high, low)
    return exact, high, low


@helper
def round_by_power(high, low, power):
    """``(high, low)``: number / 10**power, halves away from zero."""
    negative = high < 0
    if negative:
        high, low = negate(high, low)
    dropped = 0
    while power > 0:
        step = min(power, 9)
        high, low, rest = divide_small(high, low, POWER_LOW[step])
        dropped = rest // POWER_LOW[step - 1]  # of the digits that go, the first decides
        power -= step
    if dropped >= 5:
        high, low = multiply_add(high, low, 1, 1)
    if negative:
        high, low = negate(high, low)
    return high, low
