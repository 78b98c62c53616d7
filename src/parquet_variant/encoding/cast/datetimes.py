"""Dates, times of day and timestamps from text, as Spark casts them.

Owns the accepted texts, with years beyond Python's 1 to 9999, and the conversion between an instant and the local time
of a zone. All results are integers: days or nanoseconds since 1970-01-01. Leaves types to `scalars`, zone names to
`zones`, and writing dates to `json_writer`.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import NamedTuple

from parquet_variant.encoding.cast.numbers import BLANKS
from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.errors import CastError

NANOS_PER_SECOND = 1_000_000_000
SECONDS_PER_DAY = 86_400
NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND

_DAYS_PER_CYCLE = 146_097  # of 400 years, after which the calendar, weekdays included, repeats
_SECONDS_PER_CYCLE = _DAYS_PER_CYCLE * SECONDS_PER_DAY
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_SECOND = (dt.datetime(2, 1, 1) - _EPOCH) // dt.timedelta(seconds=1)
_LAST_SECOND = (dt.datetime(9999, 1, 1) - _EPOCH) // dt.timedelta(seconds=1)

_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_CLOCK = (
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})"
    r"(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?"
)
_TIMESTAMP = re.compile(
    rf"(?P<sign>[+-]?)(?P<year>[0-9]{{4,6}})(?:-(?P<month>[0-9]{{1,2}})(?:-(?P<day>[0-9]{{1,2}})(?:[ T]{_CLOCK})?)?)?",
    re.DOTALL,
)
_TIME_OF_DAY = re.compile(rf"(?:T|(?=[0-9]{{1,2}}:)){_CLOCK}", re.DOTALL)


class ParsedTime(NamedTuple):
    """A parsed timestamp: its local time in nanoseconds since 1970, and the zone in the text, if any."""

    local: int
    zone: dt.tzinfo | None


def _offset(zone: dt.tzinfo, seconds: int, *, local: bool) -> int:
    """Return the offset of a zone from UTC in seconds, at an instant or at a local time."""
    cycles = 0
    if seconds < _FIRST_SECOND:
        cycles = (_FIRST_SECOND - seconds) // _SECONDS_PER_CYCLE + 1
    elif seconds > _LAST_SECOND:
        cycles = -((seconds - _LAST_SECOND) // _SECONDS_PER_CYCLE + 1)
    moment = _EPOCH + dt.timedelta(seconds=seconds + cycles * _SECONDS_PER_CYCLE)
    # fold=0: the earlier of two local times; a local time in a gap moves forward by the gap, as in Java.
    aware = moment.replace(tzinfo=zone) if local else moment.replace(tzinfo=dt.UTC).astimezone(zone)
    offset = aware.utcoffset()
    assert offset is not None
    return offset.days * SECONDS_PER_DAY + offset.seconds


def to_local(instant: int, zone: dt.tzinfo) -> int:
    """Return the local time of an instant, both in nanoseconds since 1970."""
    if zone is dt.UTC:
        return instant
    return instant + _offset(zone, instant // NANOS_PER_SECOND, local=False) * NANOS_PER_SECOND


def local_to_instant(local: int, zone: dt.tzinfo) -> int:
    """Return the instant of a local time: the earlier of two instants, or after the gap if the local time does not
    exist.
    """
    if zone is dt.UTC:
        return local
    return local - _offset(zone, local // NANOS_PER_SECOND, local=True) * NANOS_PER_SECOND


def _days(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970-01-01 of a proleptic Gregorian date of any year; None if the date does not exist."""
    cycles, in_cycle = divmod(year - 2000, 400)
    try:
        return dt.date(2000 + in_cycle, month, day).toordinal() - 719_163 + cycles * _DAYS_PER_CYCLE
    except ValueError:
        return None


def parse_date(text: str) -> int | None:
    """Return the days since 1970 of a text that starts with a date; None if it does not.

    >>> parse_date("1970-1-2"), parse_date("1971"), parse_date("1970-01-01T12:00"), parse_date("1970/01/01")
    (1, 365, 0, None)
    """
    match = _DATE.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    sign, year, month, day = match.groups()
    return _days(-int(year) if sign == "-" else int(year), int(month or 1), int(day or 1))


def parse_timestamp(text: str) -> ParsedTime | None:
    """Return the timestamp of a text, truncated to nanoseconds; None if the text is not a timestamp.

    >>> parse_timestamp("1970-01-01T00:00:01.5Z")
    ParsedTime(local=1500000000, zone=datetime.timezone.utc)
    >>> parse_timestamp("1970-01-01 25:00:00") is None
    True
    """
    match = _TIMESTAMP.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    year = -int(match["year"]) if match["sign"] == "-" else int(match["year"])
    days = _days(year, int(match["month"] or 1), int(match["day"] or 1))
    clock = _clock(match)
    if days is None or clock is None:
        return None
    zone = None
    if match["zone"] is not None:
        try:
            zone = zone_of(match["zone"])
        except CastError:
            return None
    return ParsedTime(days * NANOS_PER_DAY + clock, zone)


def parse_time_of_day(text: str) -> int | None:
    """Return the nanoseconds since midnight of a text such as ``10:11:12.5`` or ``T10:11``; None if it is not a time.

    >>> parse_time_of_day("T00:00:01"), parse_time_of_day("24:00:00")
    (1000000000, None)
    """
    match = _TIME_OF_DAY.fullmatch(text.strip(BLANKS))
    return None if match is None or match["zone"] is not None else _clock(match)


def _clock(match: re.Match[str]) -> int | None:
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((match["fraction"] or "")[:9].ljust(9, "0"))
    return ((hour * 60 + minute) * 60 + second) * NANOS_PER_SECOND + fraction


def offset_text(instant: int, zone: dt.tzinfo) -> str:
    """Return the offset of a zone at an instant as ``+01:00``, with seconds if they are not zero."""
    seconds = (to_local(instant, zone) - instant) // NANOS_PER_SECOND
    sign = "-" if seconds < 0 else "+"
    hours, minutes, remainder = abs(seconds) // 3600, abs(seconds) // 60 % 60, abs(seconds) % 60
    return f"{sign}{hours:02}:{minutes:02}" + (f":{remainder:02}" if remainder else "")
