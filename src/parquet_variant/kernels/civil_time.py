"""Dates and times of the Gregorian calendar in decimal digits."""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper
from parquet_variant.kernels.memory import load_u8

# The result of `days_since_epoch` for an invalid date.
NO_DAY = -1 << 40


@helper(inline=True)
def digits_value(address: int, count: int) -> int:
    """Return the number of a fixed count of decimal digits, or -1 if another character occurs."""
    number = 0
    for i in range(count):
        digit = load_u8(address + i) - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@helper
def days_since_epoch(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01, or NO_DAY if the date does not exist."""
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if month == 2:
        last = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        last = 30
    else:
        last = 31
    if month < 1 or month > 12 or day < 1 or day > last:
        return NO_DAY
    # Years start in March here, so that the leap day comes last.
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468
