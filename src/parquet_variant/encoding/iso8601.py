"""Dates, times and timestamps as ISO 8601 text, for the whole range of their integers.

Owns the proleptic Gregorian calendar beyond the years 1 to 9999 that `datetime` knows, and Spark's spelling: a space
between date and time, no zeros at the end of a fraction, ``+00:00`` for UTC, a sign before years of over four digits.
"""

from __future__ import annotations

_SECONDS_PER_DAY = 86_400
_DAYS_PER_ERA = 146_097  # 400 years
_DAYS_TO_1970 = 719_468  # from 0000-03-01


def date_text(days: int) -> str:
    """The date ``days`` after 1970-01-01.

    >>> date_text(0), date_text(-735_525), date_text(3_789_391)
    ('1970-01-01', '-0044-03-15', '+12345-01-01')
    """
    # Years start in March here, so that the leap day comes last.
    era, day_of_era = divmod(days + _DAYS_TO_1970, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = era * 400 + year_of_era + (month <= 2)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def time_text(count: int, per_second: int) -> str:
    """The time of day ``count`` ticks after midnight, ``per_second`` (a power of ten) of which are a second.

    >>> time_text(45_296_500_000, 1_000_000)
    '12:34:56.5'
    """
    seconds, ticks = divmod(count, per_second)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    width = len(str(per_second)) - 1
    fraction = f".{ticks:0{width}d}".rstrip("0") if ticks else ""
    return f"{hour:02d}:{minute:02d}:{second:02d}{fraction}"


def timestamp_text(count: int, per_second: int, *, has_zone: bool) -> str:
    """The moment ``count`` ticks after 1970-01-01 00:00:00.

    >>> timestamp_text(-1, 1_000_000, has_zone=True)
    '1969-12-31 23:59:59.999999+00:00'
    """
    days, ticks = divmod(count, _SECONDS_PER_DAY * per_second)
    return f"{date_text(days)} {time_text(ticks, per_second)}{'+00:00' if has_zone else ''}"
