"""128-bit integers as two ``int64`` halves, inside kernels, for decimals of up to 38 digits.

Owns the arithmetic. Leaves the meaning of the numbers (scale, precision) to the callers. A number is ``(high, low)`` in
two's complement; ``low`` holds raw bits.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.machine_code.functions import helper, intrinsics, kernel

# 10**k as two halves, for k = 0 to 38: used to count digits and to scale.
_POWERS = [10**k for k in range(39)]
POWER_HIGH = np.array([p >> 64 for p in _POWERS], np.int64)
POWER_LOW = np.array([p & (1 << 64) - 1 for p in _POWERS], np.uint64).view(np.int64)

# ``(high, low, factor, term)``: return number * factor + term modulo 2**128; factor and term are unsigned.
(multiply_add,) = intrinsics(__name__, "multiply_add")


@helper
def negate(high: int, low: int) -> tuple[int, int]:
    """Return the number times -1."""
    if low == 0:
        return -high, low
    return ~high, -low


@helper
def _is_less(high: int, low: int, other_high: int, other_low: int) -> bool:
    """Return whether a magnitude is less than another one (unsigned comparison)."""
    if high != other_high:
        return np.uint64(high) < np.uint64(other_high)  # type: ignore[return-value]
    return np.uint64(low) < np.uint64(other_low)  # type: ignore[return-value]


@kernel
def digits_of(high: int, low: int) -> int:
    """Return the number of decimal digits: 1 for zero, 39 for more than 38."""
    if high < 0:
        high, low = negate(high, low)
    if high == 0 and low >= 0:
        digits = 1
        while digits <= 18 and low >= POWER_LOW[digits]:
            digits += 1
        return digits
    digits = 19
    while digits <= 38 and not _is_less(high, low, POWER_HIGH[digits], POWER_LOW[digits]):
        digits += 1
    return digits


@helper
def fits_int64(high: int, low: int) -> bool:
    """Return whether the number is an int64, which is ``low`` in that case."""
    return (high == 0 and low >= 0) or (high == -1 and low < 0)


@kernel
def multiply_power(high: int, low: int, power: int) -> tuple[bool, int, int]:
    """Return ``(ok, high, low)``: number * 10**power, ok if the result has at most 38 digits."""
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
def divide_small(high: int, low: int, divisor: int) -> tuple[int, int, int]:
    """Return ``(high, low, remainder)`` of an unsigned number divided by less than 2**31, by long division."""
    remainder = 0
    out_high = out_low = 0
    for part in range(4):
        word = high if part < 2 else low
        limb = (word >> 32) & 0xFFFFFFFF if part % 2 == 0 else word & 0xFFFFFFFF
        remainder = (remainder << 32) | limb
        digit = remainder // divisor
        remainder -= digit * divisor
        if part < 2:
            out_high = (out_high << 32) | digit
        else:
            out_low = (out_low << 32) | digit
    return out_high, out_low, remainder


@kernel
def divide_by_power(high: int, low: int, power: int, rounds: bool) -> tuple[bool, int, int]:
    """Return ``(exact, high, low)``: number / 10**power, exact if the remainder is 0.

    An inexact quotient is rounded, halves away from zero, if ``rounds``, and is undefined otherwise.
    """
    negative = high < 0
    if negative:
        high, low = negate(high, low)
    exact, dropped = True, 0
    while power > 0 and (exact or rounds):
        step = min(power, 9)
        high, low, remainder = divide_small(high, low, POWER_LOW[step])
        exact = exact and remainder == 0
        dropped = remainder // POWER_LOW[step - 1]  # the first removed digit decides
        power -= step
    if rounds and dropped >= 5:
        high, low = multiply_add(high, low, 1, 1)
    if negative:
        high, low = negate(high, low)
    return exact, high, low
