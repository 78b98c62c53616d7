"""Time zones by name, as Spark reads them.

Owns regions, offsets and abbreviations. Leaves instants and local times to `datetimes`.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import cache, lru_cache

from parquet_variant.errors import CastError

# The characters that Java's String.trim removes; Spark also removes DEL where it reads bytes itself.
JAVA_BLANKS = "".join(map(chr, range(0x21)))
BLANKS = JAVA_BLANKS + "\x7f"
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

    Raises `CastError` with reason ``bad-zone``.

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
