"""Write scalars as JSON text inside kernels; the counterpart of `encoding.json_writer`.

Owns the text of every scalar except strings and floats, the shortest digits of a double, and dates in digits. Leaves
strings and structure to `operations.to_json`, and rows with floats to the scalar fallback. Every function that writes
does so at an address with room for `SCALAR_ROOM` bytes, and returns the address after the text.
"""

from __future__ import annotations

import numpy as np

from parquet_variant.kernels.int128 import divide_small, multiply_add, negate
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.memory import load_u8, store_u8, store_u64

# Longest text of a scalar that is not a string or binary: 38 digits with sign, point and zeros, or a timestamp.
SCALAR_ROOM = 96

_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8).copy()
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8).copy()
_PAIRS = np.frombuffer(b"".join(b"%02d" % n for n in range(100)), np.uint8).copy()
_NULL, _TRUE = int.from_bytes(b"null", "little"), int.from_bytes(b"true", "little")
_FALS = int.from_bytes(b"fals", "little")
_NAN, _INFINITY = int.from_bytes(b'"NaN"', "little"), int.from_bytes(b"Infinity", "little")
_ZONE = int.from_bytes(b"+00:00", "little")
_SECONDS_PER_DAY = 86_400
_POWERS = np.array([10**k for k in range(19)], np.int64)


@helper
def word(at: int, kind: int) -> int:
    """Write null (kind 0), true (1) or false (2)."""
    if kind == 0:
        store_u64(at, _NULL)
        return at + 4
    if kind == 1:
        store_u64(at, _TRUE)
        return at + 4
    store_u64(at, _FALS | (0x65 << 32))
    return at + 5


@helper
def _count_digits(value: int) -> int:
    """Return the number of decimal digits of a non-negative number, at least 1."""
    count = 1
    while count < 19 and value >= _POWERS[count]:
        count += 1
    return count


@helper
def _digits(at: int, value: int, width: int) -> int:
    """Write a non-negative number with at least ``width`` digits."""
    end = at + max(_count_digits(value), width)
    place = end
    while place - at >= 2:
        pair = value % 100
        value //= 100
        place -= 2
        store_u8(place, _PAIRS[2 * pair])
        store_u8(place + 1, _PAIRS[2 * pair + 1])
    if place > at:
        store_u8(at, 0x30 + value % 10)
    return end


@helper
def int_text(at: int, value: int) -> int:
    """Write an int64."""
    if value < 0:
        store_u8(at, 0x2D)
        at += 1
        if value == -0x8000000000000000:
            store_u8(at, 0x39)
            return _digits(at + 1, 223372036854775808, 18)
        value = -value
    return _digits(at, value, 1)


@helper
def decimal_text(at: int, high: int, low: int, scale: int) -> int:
    """Write a decimal without trailing zeros in its fraction."""
    if high < 0:
        store_u8(at, 0x2D)
        at += 1
        high, low = negate(high, low)
    if high == 0 and low >= 0 and scale <= 18:
        while scale > 0 and low % 10 == 0:
            low //= 10
            scale -= 1
        if scale == 0:
            return _digits(at, low, 1)
        power = _POWERS[scale]
        at = _digits(at, low // power, 1)
        store_u8(at, 0x2E)
        return _digits(at + 1, low % power, scale)
    # Up to 39 digits in chunks of nine, written behind the place of the text and then moved there.
    digits = at + 1
    for i in range(4, -1, -1):
        high, low, chunk = divide_small(high, low, 1_000_000_000)
        _digits(digits + 9 * i, chunk, 9)
    integer_digits = 45 - scale
    first = 0
    while first < integer_digits - 1 and load_u8(digits + first) == 0x30:
        first += 1
    last = 45
    while last > integer_digits and load_u8(digits + last - 1) == 0x30:
        last -= 1
    for i in range(first, last):
        if i == integer_digits:
            store_u8(at, 0x2E)
            at += 1
        store_u8(at, load_u8(digits + i))
        at += 1
    return at


@helper
def _quoted_word(at: int, negative: bool, infinite: bool) -> int:
    """Write NaN, Infinity or -Infinity in quotes."""
    if not infinite:
        store_u64(at, _NAN)
        return at + 5
    store_u8(at, 0x22)
    at += 1
    if negative:
        store_u8(at, 0x2D)
        at += 1
    store_u64(at, _INFINITY)
    store_u8(at + 8, 0x22)
    return at + 9


@helper
def double_text(at: int, bits: int) -> int:
    """Write the shortest digits of a double: plain from 1e-3 to below 1e7, else with an exponent."""
    negative = bits < 0
    bits &= 0x7FFFFFFFFFFFFFFF
    if bits >= 0x7FF0000000000000:
        return _quoted_word(at, negative, bits == 0x7FF0000000000000)
    if negative:
        store_u8(at, 0x2D)
        at += 1
    if bits == 0:
        store_u8(at, 0x30)
        store_u8(at + 1, 0x2E)
        store_u8(at + 2, 0x30)
        return at + 3
    digits, exponent = shortest_decimal(bits)
    while digits % 10 == 0:
        digits //= 10
        exponent += 1
    count = _count_digits(digits)
    point = count + exponent  # digits before the point
    if -2 <= point <= 7:
        if exponent >= 0:
            at = _digits(at, digits, 1)
            for _ in range(exponent):
                store_u8(at, 0x30)
                at += 1
            store_u8(at, 0x2E)
            store_u8(at + 1, 0x30)
            return at + 2
        integer, fraction = 0, digits
        if -exponent <= 18:
            integer, fraction = digits // _POWERS[-exponent], digits % _POWERS[-exponent]
        at = _digits(at, integer, 1)
        store_u8(at, 0x2E)
        at += 1
        zeros = -exponent - 18
        for _ in range(zeros):
            store_u8(at, 0x30)
            at += 1
        return _digits(at, fraction, min(-exponent, 18))
    end = _digits(at + 1, digits, 1)
    store_u8(at, load_u8(at + 1))  # the first digit goes before the point
    store_u8(at + 1, 0x2E)
    if count == 1:
        store_u8(end, 0x30)
        end += 1
    store_u8(end, 0x45)
    return int_text(end + 1, point - 1)


@helper
def date_text(at: int, days: int) -> int:
    """Write the date ``days`` days after 1970-01-01 (proleptic Gregorian calendar, any year)."""
    days += 719_468  # days since 0000-03-01: years start in March, so that the leap day is the last day
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = era * 400 + year_of_era + (1 if month <= 2 else 0)
    if year < 0 or year > 9999:
        store_u8(at, 0x2D if year < 0 else 0x2B)
        at += 1
        year = abs(year)
    at = _digits(at, year, 4)
    store_u8(at, 0x2D)
    at = _digits(at + 1, month, 2)
    store_u8(at, 0x2D)
    return _digits(at + 1, day, 2)


@helper
def time_text(at: int, count: int, per_second: int, fraction_digits: int) -> int:
    """Write a time of day, given in ticks, without trailing zeros in the fraction of a second."""
    seconds = count // per_second
    ticks = count - seconds * per_second
    at = _digits(at, seconds // 3600, 2)
    store_u8(at, 0x3A)
    at = _digits(at + 1, seconds // 60 % 60, 2)
    store_u8(at, 0x3A)
    at = _digits(at + 1, seconds % 60, 2)
    if ticks != 0:
        while ticks % 10 == 0:
            ticks //= 10
            fraction_digits -= 1
        store_u8(at, 0x2E)
        at = _digits(at + 1, ticks, fraction_digits)
    return at


@helper
def timestamp_text(at: int, count: int, per_second: int, fraction_digits: int, has_zone: bool) -> int:
    """Write the moment ``count`` ticks after 1970-01-01."""
    per_day = _SECONDS_PER_DAY * per_second
    days = count // per_day
    at = date_text(at, days)
    store_u8(at, 0x20)
    at = time_text(at + 1, count - days * per_day, per_second, fraction_digits)
    if has_zone:
        store_u64(at, _ZONE)
        at += 6
    return at


@helper
def uuid_text(at: int, source: int) -> int:
    """Write a UUID as lower-case hexadecimal digits in groups."""
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            store_u8(at, 0x2D)
            at += 1
        byte = load_u8(source + i)
        store_u8(at, _HEX[byte >> 4])
        store_u8(at + 1, _HEX[byte & 15])
        at += 2
    return at


@helper
def base64_text(at: int, source: int, size: int) -> int:
    """Write bytes in base64 with padding."""
    i = 0
    while i < size:
        remaining = size - i
        group = load_u8(source + i) << 16
        if remaining > 1:
            group |= load_u8(source + i + 1) << 8
        if remaining > 2:
            group |= load_u8(source + i + 2)
        store_u8(at, _BASE64[group >> 18])
        store_u8(at + 1, _BASE64[(group >> 12) & 63])
        store_u8(at + 2, _BASE64[(group >> 6) & 63] if remaining > 1 else 0x3D)
        store_u8(at + 3, _BASE64[group & 63] if remaining > 2 else 0x3D)
        at += 4
        i += 3
    return at


# The shortest decimal that reads back as the same double (Raffaello Giulietti, "The Schubfach way to render doubles",
# 2020): powers of ten from the first to the last exponent.
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


_SCALED = np.array([_power(k) for k in range(_FIRST, _LAST + 1)], np.uint64).view(np.int64)
_HIGH, _LOW = _SCALED[:, 0].copy(), _SCALED[:, 1].copy()


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
