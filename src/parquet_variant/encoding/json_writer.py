r"""A Variant as JSON text.

Owns the text of each type, dates of any year included (years outside 1 to 9999 have a sign); `kernels` writes the same
text. Leaves the traversal to `walk`.

The text is compact, and fields are in the stored order. For types that Spark's ``to_json`` supports, the text equals
Spark's (``docs/json.md`` lists the exceptions):

============================  ====================================================================================
Type                          Text
============================  ====================================================================================
integers, decimals            plain, without zeros at the end of a fraction (``1.50`` is ``1.5``, ``1.0`` is ``1``)
double, float                 the fewest digits that give the same number back (of these the nearest), with a
                              fraction always; from 1e-3 up to below 1e7 plain (``100.0``), others as ``1.0E10``
NaN, Infinity, -Infinity      strings
string, key                   UTF-8 as it is; ``\b \t \n \f \r \" \\``; other characters below U+0020 as ``\u001F``
binary                        string, base64
uuid                          string, lower-case hex in groups
date, time, timestamps        strings, ISO 8601: ``2024-01-02``, ``03:04:05.5``, ``2024-01-02 03:04:05.5+00:00``
============================  ====================================================================================
"""

from __future__ import annotations

import math
import re
import uuid
from base64 import b64encode
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np

from parquet_variant.encoding.walk import END, KEY, Event
from parquet_variant.types import INSTANT_TYPES, INTEGERS, NANOS_OF, VariantType

_NANOS = 1_000_000_000
_MUST_ESCAPE = re.compile(r'[\x00-\x1f"\\]')
_ESCAPES = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}
# Java's Double.toString, and so Spark, writes numbers of these magnitudes without an exponent.
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def json_pieces(events: Iterator[Event]) -> Iterator[str]:
    """Yield the text of a walk in pieces."""
    closers: list[str] = []
    separator = ""
    for kind, raw, _, _ in events:
        if kind == END:
            yield closers.pop()
        elif kind == KEY:
            yield f"{separator}{_quote_string(raw)}:"
            separator = ""
            continue
        else:
            yield separator
            if kind in (VariantType.OBJECT, VariantType.ARRAY):
                opener, closer = "{}" if kind == VariantType.OBJECT else "[]"
                yield opener
                closers.append(closer)
                separator = ""
                continue
            yield _scalar_text(VariantType(kind), raw)
        separator = ","


def _quote_string(text: str) -> str:
    escaped = _MUST_ESCAPE.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}", text)
    return f'"{escaped}"'


def _scalar_text(kind: VariantType, raw: Any) -> str:
    match kind:
        case VariantType.NULL:
            return "null"
        case VariantType.BOOLEAN:
            return "true" if raw else "false"
        case VariantType.DOUBLE | VariantType.FLOAT:
            return number_text(raw, is_float=kind == VariantType.FLOAT)
        case VariantType.DECIMAL4 | VariantType.DECIMAL8 | VariantType.DECIMAL16:
            unscaled, scale = raw
            digits, sign = str(abs(unscaled)).rjust(scale + 1, "0"), "-" if unscaled < 0 else ""
            integer, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
            return f"{sign}{integer}.{fraction}" if fraction else f"{sign}{integer}"
        case VariantType.STRING:
            return _quote_string(raw)
        case VariantType.BINARY:
            return f'"{b64encode(raw).decode()}"'
        case VariantType.UUID:
            return f'"{uuid.UUID(bytes=raw)}"'
        case VariantType.DATE:
            return f'"{date_text(raw)}"'
        case VariantType.TIME:
            return f'"{time_text(raw * NANOS_OF[kind])}"'
        case _ if kind in NANOS_OF:
            return f'"{timestamp_text(raw * NANOS_OF[kind], has_zone=kind in INSTANT_TYPES)}"'
        case _:
            assert kind in INTEGERS
            return str(raw)


def number_text(number: float, *, is_float: bool = False) -> str:
    """Return a double (or, if ``is_float``, a float) as JSON.

    >>> [number_text(x) for x in (0.1, 1e7, -0.0, 5e-324, float("nan"))]
    ['0.1', '1.0E7', '-0.0', '5.0E-324', '"NaN"']
    >>> number_text(1.100000023841858, is_float=True)
    '1.1'
    """
    if not math.isfinite(number):
        return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    shortest = np.format_float_scientific(np.float32(number)) if is_float else repr(float(number))
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    padded = "".join(map(str, digits))
    text = padded.rstrip("0") or "0"
    exponent += len(padded) - len(text)
    minus = "-" if sign else ""
    if number == 0 or _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        plain = f"{Decimal(f'{text}E{exponent}'):f}"
        return minus + (plain if "." in plain else f"{plain}.0")
    return f"{minus}{text[0]}.{text[1:] or '0'}E{len(text) - 1 + exponent}"


def date_text(days: int) -> str:
    """Return the date ``days`` after 1970-01-01.

    >>> date_text(0), date_text(-735_525), date_text(3_789_391)
    ('1970-01-01', '-0044-03-15', '+12345-01-01')
    """
    text = str(np.datetime64(days, "D"))
    year = int(text[:-6])
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}{text[-6:]}"


def time_text(nanos: int) -> str:
    """Return the time of day a number of nanoseconds after midnight."""
    seconds, fraction = divmod(nanos, _NANOS)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{time}.{fraction:09d}".rstrip("0") if fraction else time


def timestamp_text(nanos: int, *, has_zone: bool) -> str:
    """Return the timestamp a number of nanoseconds after 1970-01-01 00:00:00.

    >>> timestamp_text(-1000, has_zone=True)
    '1969-12-31 23:59:59.999999+00:00'
    """
    days, ticks = divmod(nanos, NANOS_OF[VariantType.DATE])
    return f"{date_text(days)} {time_text(ticks)}{'+00:00' if has_zone else ''}"
