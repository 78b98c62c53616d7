"""Strings that are written in the form of another type: dates, timestamps, UUIDs, numbers and booleans.

Owns the forms, which are exact: a string has a form only if the value of that type contains all that the string says,
apart from its spelling. `profile` counts the forms, and `inference.typed_strings` decides which strings are typed.
"""

from __future__ import annotations

from parquet_variant.kernels.json.scan import DOUBLE_TEXT, STATUS, scan_number
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, load_u8, load_u32, store_u64

# The forms, in the order of their columns in a profile. A BIGINT has thousands separators; in profiles and types an
# integer of 64 bits among the numbers is one, too.
FORM = numbered("DATE TIMESTAMP TIMESTAMP_NTZ UUID NUMBER BOOLEAN BIGINT")
FORMS = len(FORM)
NO_FORM = -1
# The bytes ``true``, ``fals`` and `` UTC``, and the largest integer.
_TRUE, _FALS, _UTC, MAX_INT64 = 0x65757274, 0x736C6166, 0x43545520, 2**63 - 1
# The longest string with a form: a decimal of 38 digits with sign, a zero and a point.
_MAX_SIZE = 41
# Microseconds of 0001-01-01T00:00:00 and of 9999-12-31T23:59:59.999999.
MIN_MICROS, MAX_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
# Microseconds up to which nanoseconds fit 64 bits.
_MAX_MICROS_OF_NANOS = 9_223_372_036_854_774


# The result of `_days_since_epoch` for an invalid date.
_NO_DAY = -1 << 40


@helper(inline=True)
def _digits_value(address: int, count: int) -> int:
    """Return the number of a fixed count of decimal digits, or -1 if another character occurs."""
    number = 0
    for i in range(count):
        digit = load_u8(address + i) - 48
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@helper
def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Return the days since 1970-01-01, or _NO_DAY if the date does not exist."""
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if month == 2:
        last = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        last = 30
    else:
        last = 31
    if month < 1 or month > 12 or day < 1 or day > last:
        return _NO_DAY
    # Years start in March here, so that the leap day comes last.
    y = year - (1 if month <= 2 else 0)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


@helper
def _hex_bytes(address: int, count: int) -> tuple[int, bool]:
    """Return a number of bytes in hexadecimal digits as a little-endian integer, and whether all digits are valid."""
    value, valid = 0, True
    for i in range(count):
        byte = 0
        for half in range(2):
            digit = load_u8(address + 2 * i + half)
            if 48 <= digit <= 57:
                digit -= 48
            elif 97 <= digit <= 102 or 65 <= digit <= 70:
                digit = (digit | 0x20) - 87
            else:
                digit, valid = 0, False
            byte = byte << 4 | digit
        value |= byte << (8 * i)
    return value, valid


@helper
def _uuid(address: int) -> tuple[int, int, int]:
    """Return ``(form, first 8 bytes, last 8 bytes)`` of 36 characters with dashes at the places of a UUID's."""
    a, valid_a = _hex_bytes(address, 4)
    b, valid_b = _hex_bytes(address + 9, 2)
    c, valid_c = _hex_bytes(address + 14, 2)
    d, valid_d = _hex_bytes(address + 19, 2)
    e, valid_e = _hex_bytes(address + 24, 6)
    if not (valid_a and valid_b and valid_c and valid_d and valid_e):
        return NO_FORM, 0, 0
    return FORM.UUID, a | b << 32 | c << 48, d | e << 16


@helper
def _offset(address: int, size: int) -> int:
    """Return the minutes of a zone such as ``Z``, `` UTC``, ``+02:00``, ``-0230`` or ``+02``; -9999 for other text."""
    if (size == 1 and load_u8(address) | 0x20 == 122) or (size == 4 and load_u32(address) == _UTC):
        return 0
    if size == 6 and load_u8(address + 3) == 58:
        minutes = _digits_value(address + 4, 2)
    elif size == 5:
        minutes = _digits_value(address + 3, 2)
    elif size == 3:
        minutes = 0
    else:
        return -9999
    sign, hours = load_u8(address), _digits_value(address + 1, 2)
    if (sign != 43 and sign != 45) or hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 18 * 60:
        return -9999
    total = hours * 60 + minutes
    return -total if sign == 45 else total


@helper
def _timestamp(address: int, size: int, days: int) -> tuple[int, int, int]:
    """Return ``(form, kind, value)`` of a string that begins with a date: a time must follow, and may have a zone."""
    separator = load_u8(address + 10)
    if size < 16 or (separator != 84 and separator != 116 and separator != 32) or load_u8(address + 13) != 58:
        return NO_FORM, 0, 0
    hour, minute, second = _digits_value(address + 11, 2), _digits_value(address + 14, 2), 0
    at = 16
    if size >= 19 and load_u8(address + 16) == 58:
        second = _digits_value(address + 17, 2)
        at = 19
    if hour < 0 or minute < 0 or second < 0 or hour > 23 or minute > 59 or second > 59:
        return NO_FORM, 0, 0
    fraction, digits = 0, 0
    if at == 19 and at < size and load_u8(address + at) == 46:
        at += 1
        while at < size and digits < 10 and 48 <= load_u8(address + at) <= 57:
            fraction = fraction * 10 + load_u8(address + at) - 48
            digits += 1
            at += 1
        if digits == 0 or digits > 9:
            return NO_FORM, 0, 0
        for _ in range(9 - digits):
            fraction *= 10
    form, offset = FORM.TIMESTAMP_NTZ, 0
    if at < size:
        form, offset = FORM.TIMESTAMP, _offset(address + at, size - at)
    if offset == -9999:
        return NO_FORM, 0, 0
    seconds = (days * 24 + hour) * 3600 + (minute - offset) * 60 + second
    micros = seconds * 1_000_000 + fraction // 1000
    if micros < MIN_MICROS or micros > MAX_MICROS:
        return NO_FORM, 0, 0
    nanos = fraction % 1000
    if nanos == 0:
        return form, (KIND.TIMESTAMP if form == FORM.TIMESTAMP else KIND.TIMESTAMP_NTZ), micros
    if micros < -_MAX_MICROS_OF_NANOS or micros > _MAX_MICROS_OF_NANOS:
        return NO_FORM, 0, 0
    kind = KIND.TIMESTAMP_NANOS if form == FORM.TIMESTAMP else KIND.TIMESTAMP_NTZ_NANOS
    return form, kind, micros * 1000 + nanos


@helper
def _grouped_integer(address: int, size: int) -> tuple[int, int]:
    """Return ``(form, value)`` of digits with thousands separators, such as ``-1,234,567``, if 64 bits hold it."""
    sign = 1 if load_u8(address) == 45 else 0
    first, value, largest = (size - sign) % 4, 0, MAX_INT64
    if first == 0 or size - sign < 5 or load_u8(address + sign) == 48:
        return NO_FORM, 0
    for at in range(sign, size):
        digit = load_u8(address + at) - 48
        if (at - sign - first) % 4 == 0:
            if digit != -4:  # a comma
                return NO_FORM, 0
        elif digit < 0 or digit > 9 or value > largest // 10 or (value == largest // 10 and digit > 7 + sign):
            return NO_FORM, 0
        else:
            value = value * 10 + digit
    return FORM.BIGINT, -value if sign else value


@helper
def string_form(address: int, size: int) -> tuple[int, int, int, int, int]:
    """Return ``(form, kind, a, b, scale)`` of a string: the node of its value; the form of other strings is NO_FORM.

    For a UUID, ``a`` and ``b`` are its bytes.
    """
    if size < 1 or size > _MAX_SIZE:
        return NO_FORM, 0, 0, 0, 0
    first = load_u8(address)
    if (
        size == 36 and load_u8(address + 8) == 45 and load_u8(address + 13) == 45
        and load_u8(address + 18) == 45 and load_u8(address + 23) == 45
    ):  # fmt: skip
        form, a, b = _uuid(address)
        return form, KIND.UUID, a, b, 0
    if first != 45 and (first < 48 or first > 57):
        if size == 4 and load_u32(address) == _TRUE:
            return FORM.BOOLEAN, KIND.TRUE, 0, 0, 0
        if size == 5 and load_u32(address) == _FALS and load_u8(address + 4) == 101:
            return FORM.BOOLEAN, KIND.FALSE, 0, 0, 0
        return NO_FORM, 0, 0, 0, 0
    if size >= 10 and load_u8(address + 4) == 45 and load_u8(address + 7) == 45:
        year, month, day = _digits_value(address, 4), _digits_value(address + 5, 2), _digits_value(address + 8, 2)
        days = _days_since_epoch(year, month, day) if year >= 1 else _NO_DAY
        if days == _NO_DAY:
            return NO_FORM, 0, 0, 0, 0
        if size == 10:
            return FORM.DATE, KIND.DATE, days, 0, 0
        form, kind, value = _timestamp(address, size, days)
        return form, kind, value, 0, 0
    status, stop, kind, a, b, scale = scan_number(address, address + size, False)
    if status == STATUS.OK and stop < address + size and load_u8(stop) == 44:
        form, a = _grouped_integer(address, size)
        return form, KIND.INT64, a, 0, 0
    if status != STATUS.OK or stop != address + size or kind == DOUBLE_TEXT:
        return NO_FORM, 0, 0, 0, 0
    return FORM.NUMBER, kind, a, b, scale


@kernel
def type_strings(nodes: Int64Table, positions: Int64s, form: int, uuids: int) -> int:
    """Replace the strings of a form at some nodes by their values; return their number.

    `uuids`: the address of 16 bytes for each node, to which the bytes of UUIDs are written.
    """
    typed = 0
    for position in positions:
        actual_form, kind, a, b, scale = string_form(nodes[position, 1], nodes[position, 2])
        if form == FORM.DATE and actual_form == FORM.NUMBER and kind <= KIND.INT64 and 9_999_999 < a < 100_000_000:
            a = _days_since_epoch(a // 10000, a // 100 % 100, a % 100)
            actual_form, kind = FORM.DATE if a != _NO_DAY else NO_FORM, KIND.DATE
        if actual_form != form and (form != FORM.BIGINT or actual_form != FORM.NUMBER or kind > KIND.INT64):
            continue
        if actual_form == FORM.UUID:
            place = uuids + 16 * typed
            store_u64(place, a)
            store_u64(place + 8, b)
            a, b = place, 16
        nodes[position, 0] = (nodes[position, 0] & ~0xFFFF) | kind | scale << 8
        nodes[position, 1] = a
        nodes[position, 2] = b
        typed += 1
    return typed
