"""Numbers, booleans, dates and times from text, and conversions to narrower numbers, as Spark casts them.

Owns the accepted strings, with years beyond Python's 1 to 9999; rounding to a narrower number; time zones by name; and
the conversion between an instant and the local time of a zone. Dates and times are integers: days or nanoseconds since
1970-01-01. Leaves types and nulls to `values`, and writing text to `json_writer`.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal, DecimalException
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from parquet_variant.errors import CastError

# The characters that Java's String.trim removes; Spark also removes DEL where it reads bytes itself.
JAVA_BLANKS = "".join(map(chr, range(0x21)))
BLANKS = JAVA_BLANKS + "\x7f"
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_NOT_FINITE = re.compile(r"(?ai:[+-]?inf(?:inity)?|nan)")
# int() does not accept longer strings, and no target holds such a number.
_MAX_DIGITS = 4000


def text_to_bool(text: str) -> bool | None:
    """Return the boolean of a text, in any case; None if the text is not a boolean.

    >>> text_to_bool(" YES "), text_to_bool("0"), text_to_bool("on")
    (True, False, None)
    """
    word = text.strip(BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def text_to_integer(text: str) -> int | None:
    """Return the integer of a text; None for any other text, such as a number with a decimal point.

    >>> text_to_integer(" +12 "), text_to_integer("1.0")
    (12, None)
    """
    word = text.strip(BLANKS)
    if not _INTEGER.fullmatch(word) or len(word.lstrip("+-").lstrip("0")) > _MAX_DIGITS:
        return None
    sign = -1 if word[0] == "-" else 1
    return sign * int(word.lstrip("+-").lstrip("0") or "0")


def text_to_decimal(text: str) -> Decimal | None:
    """Return the exact decimal of a text; None if the text is not a number, or the exponent is out of range.

    >>> text_to_decimal("1.50"), text_to_decimal("1e3"), text_to_decimal("NaN")
    (Decimal('1.50'), Decimal('1E+3'), None)
    """
    word = text.strip(JAVA_BLANKS)
    if not _DECIMAL.fullmatch(word):
        return None
    try:
        return Decimal(word)
    except DecimalException:
        return None


def text_to_double(text: str) -> float | None:
    """Return the double of a text in Java's grammar: suffixes d and f, hexadecimal, inf and nan in any case.

    >>> text_to_double("1.5d"), text_to_double("-Infinity"), text_to_double("1_0")
    (1.5, -inf, None)
    """
    word = text.strip(JAVA_BLANKS)
    if _NOT_FINITE.fullmatch(word):
        return float(word)
    bare = word[:-1] if word[-1:] in ("d", "D", "f", "F") else word
    if _DECIMAL.fullmatch(bare):
        return float(bare)
    if _HEX_FLOAT.fullmatch(bare):
        try:
            return float.fromhex(bare)
        except OverflowError:
            return float("-inf") if bare[0] == "-" else float("inf")
    return None


def text_to_float32(text: str) -> float | None:
    """Return the float (as the equal double) of a text, rounded once."""
    double = text_to_double(text)
    if double is None or not np.isfinite(double):
        return double
    exact = text_to_decimal(text.strip(JAVA_BLANKS).rstrip("dDfF"))
    return narrow_float(double) if exact is None or double == 0 else nearest_float32(Fraction(exact))


def nearest_float32(exact: Fraction) -> float:
    """Return the float (as the equal double) nearest to a number, ties to even; infinity beyond the largest float.

    >>> nearest_float32(Fraction(2**24 + 1)), nearest_float32(Fraction(10**39))
    (16777216.0, inf)
    """
    try:
        double = exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
    error = exact - Fraction(double)
    if error and not struct.unpack("<q", struct.pack("<d", double))[0] & 1:
        # An odd last bit, as "more or less than this", so that rounding again does not meet a tie.
        double = math.nextafter(double, math.inf if error > 0 else -math.inf)
    return narrow_float(double)


def narrow_float(double: float, to: type[np.floating[Any]] = np.float32) -> float:
    """Return a double rounded to a narrower type, as the equal double."""
    with np.errstate(over="ignore", under="ignore"):
        return float(to(double))


def integer_of_float(number: float, low: int, high: int) -> int | None:
    """Return a float without its fraction; None for NaN and for values outside ``low`` to ``high``.

    The bounds are compared as doubles, as in Java: 2**63 becomes the largest int64.

    >>> integer_of_float(-1.5, -128, 127), integer_of_float(2.0**63, -(2**63), 2**63 - 1) == 2**63 - 1
    (-1, True)
    """
    if not np.isfinite(number):
        return None
    integer = int(number)
    if float(np.floor(number)) <= float(high) and float(np.ceil(number)) >= float(low):
        return min(max(integer, low), high)
    return None


def round_to_decimal(exact: Decimal, precision: int, scale: int) -> int | None:
    """Return the unscaled integer of a number rounded half up to a scale; None if it has too many digits.

    >>> round_to_decimal(Decimal("99.995"), 5, 2), round_to_decimal(Decimal("1000"), 5, 2)
    (10000, None)
    """
    if exact.is_zero() or exact.adjusted() < -scale - 1:
        return 0
    if exact.adjusted() >= precision - scale:
        return None
    numerator, denominator = exact.as_integer_ratio()
    unscaled = (2 * abs(numerator) * 10**scale + denominator) // (2 * denominator)
    return None if unscaled >= 10**precision else unscaled if numerator > 0 else -unscaled


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


_OFFSETS = (
    re.compile(r"[+-]([0-9]{1,2})()()"),
    re.compile(r"[+-]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?"),
    re.compile(r"[+-]([0-9]{2})([0-9]{2})([0-9]{2})?"),
)
_SINGLE_HOUR = re.compile(r"([+-])([0-9]):")
_SINGLE_MINUTE = re.compile(r"([+-])([0-9][0-9]):([0-9])$")
_MAX_OFFSET = 18 * 3600
# Java's ZoneId.SHORT_IDS, which Spark accepts.
_SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def zone_of(name: str) -> dt.tzinfo:
    """Return the time zone of a name, as Spark's session time zone accepts it: a region, an offset or an abbreviation.

    >>> zone_of("+01:00"), zone_of("PST")
    (datetime.timezone(datetime.timedelta(seconds=3600)), zoneinfo.ZoneInfo(key='America/Los_Angeles'))
    """
    if not isinstance(name, str):
        raise CastError(f"zone is {name!r}: give the name of a time zone", reason="bad-zone")
    return dt.UTC if name == "UTC" else _zone_of(name)


@lru_cache(maxsize=256)
def _zone_of(name: str) -> dt.tzinfo:
    from zoneinfo import ZoneInfo  # zoneinfo takes longer to import than many queries take

    text = _SINGLE_HOUR.sub(r"\g<1>0\2:", name.strip(BLANKS), count=1)
    text = _SINGLE_MINUTE.sub(r"\1\2:0\3", text, count=1)
    text = _SHORT_ZONES.get(text, text)
    if text in ("Z", "UTC", "GMT", "UT"):
        return dt.UTC
    offset = text[3:] if text[:3] in ("UTC", "GMT") and text[3:4] in ("+", "-") else text
    offset = offset[2:] if offset[:2] == "UT" and offset[2:3] in ("+", "-") else offset
    if offset[:1] in ("+", "-"):
        return _fixed(offset, name)
    if text in _regions():
        return ZoneInfo(text)
    message = f"unknown time zone {name!r}: use a region such as 'Europe/Berlin' or an offset such as '+01:00'"
    raise CastError(message, reason="bad-zone")


@cache
def _regions() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def _fixed(offset: str, name: str) -> dt.tzinfo:
    for pattern in _OFFSETS:
        if match := pattern.fullmatch(offset):
            hours, minutes, seconds = (int(part or 0) for part in match.groups())
            total = (hours * 60 + minutes) * 60 + seconds
            if total <= _MAX_OFFSET and minutes <= 59 and seconds <= 59:
                return dt.timezone(dt.timedelta(seconds=-total if offset[0] == "-" else total)) if total else dt.UTC
    raise CastError(
        f"invalid time zone offset {name!r}: use an offset of at most 18 hours, such as '+01:00'", reason="bad-zone"
    )
