"""Scan the tokens of JSON: strings, escapes, UTF-8, numbers, line ends, marks between strings, elements of arrays.

Owns the tokens of RFC 8259, the status codes of the parser, and finding strings in text that arrives in blocks. Leaves
structure (objects, arrays, keys) to `tapes.parse_json`, and the meaning of marks to `ingestion.formats`. Positions are
absolute addresses; ``end`` is the address after the text.
"""

from __future__ import annotations

from parquet_variant.kernels.int128 import digits_of, fits_int64, multiply_add, negate
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import UInt8s
from parquet_variant.kernels.memory import (
    KIND,
    copy,
    copy_32_in_page,
    high_of_32,
    load_u8,
    load_u64,
    newlines_of_32,
    short_word,
    stops_of_32,
    store_u8,
    trailing_zeros,
)
from parquet_variant.kernels.native_vectors import Memory, address_in, export_vector, new_vector, reserve

# Status codes of the parser. The scalar reader words the errors.
STATUS = numbered(
    "OK TRUNCATED NUMBER ESCAPE SURROGATE UTF8 CONTROL DEPTH DUPLICATE TRAILING KEY COLON COMMA_OBJECT COMMA_ARRAY "
    "VALUE SIZE"
)

_HIGH = -0x7F7F7F7F7F7F7F80  # 0x80 in every byte, as a signed number

# Kind of a double that Python still has to round: a = address, b = length of its text.
DOUBLE_TEXT = 32


@helper
def utf8_length(pos: int, end: int) -> int:
    """Return the length of the well-formed UTF-8 sequence at a position; 0 if it is malformed (Unicode, table 3-7)."""
    first = load_u8(pos)
    if first < 0x80:
        return 1
    if first < 0xC2 or first > 0xF4:
        return 0
    length = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if pos + length > end:
        return 0
    second = load_u8(pos + 1)
    low, high = 0x80, 0xBF
    if first == 0xE0:
        low = 0xA0
    elif first == 0xED:
        high = 0x9F
    elif first == 0xF0:
        low = 0x90
    elif first == 0xF4:
        high = 0x8F
    if second < low or second > high:
        return 0
    for i in range(2, length):
        if (load_u8(pos + i) & 0xC0) != 0x80:
            return 0
    return length


@helper
def is_utf8(pos: int, end: int) -> bool:
    """Return whether text is well-formed UTF-8."""
    if is_ascii(pos, end):
        return True
    while pos < end:
        while pos + 32 <= end and high_of_32(pos) == 0:
            pos += 32
        while pos + 8 <= end and load_u64(pos) & _HIGH == 0:
            pos += 8
        while pos < end and load_u8(pos) < 0x80:
            pos += 1
        if pos < end:
            length = utf8_length(pos, end)
            if length == 0:
                return False
            pos += length
    return True


@helper(inline=True)
def is_ascii(pos: int, end: int) -> bool:
    """Return whether text is ASCII; its last bytes are read in words that overlap, without a loop."""
    size = end - pos
    if size < 8:
        return short_word(pos, size) & _HIGH == 0
    if size < 32:
        middle = pos + ((size - 8) >> 1)
        ends = load_u64(pos) | load_u64(end - 8) | load_u64(middle)
        if size > 24:
            ends |= load_u64(pos + 8) | load_u64(end - 16)
        return ends & _HIGH == 0
    while pos + 32 <= end:
        if high_of_32(pos) != 0:
            return False
        pos += 32
    return high_of_32(end - 32) == 0


@helper
def plain_until(pos: int, end: int) -> int:
    """Return the position of the next byte that may end plain text, or of the last 31 bytes."""
    while pos + 32 <= end:
        hits = stops_of_32(pos)
        if hits != 0:
            return pos + trailing_zeros(hits)
        pos += 32
    return pos


@helper
def scan_string(pos: int, end: int) -> tuple[int, int]:
    """Find the end of a string whose opening quote is before ``pos``, or its first backslash.

    Returns ``(status, stop)``; after an error, ``stop`` is the offending byte.
    """
    while True:
        pos = plain_until(pos, end)
        if pos >= end:
            return STATUS.TRUNCATED, end
        byte = load_u8(pos)
        if byte == 0x22 or byte == 0x5C:
            return STATUS.OK, pos
        if byte < 0x20:
            return STATUS.CONTROL, pos
        if byte >= 0x80:
            length = utf8_length(pos, end)
            if length == 0:
                return STATUS.UTF8, pos
            pos += length
        else:
            pos += 1


@helper
def _hex4(pos: int, end: int) -> int:
    """Return the value of four hexadecimal digits; -1 if they are missing or invalid."""
    if pos + 4 > end:
        return -1
    value = 0
    for i in range(4):
        byte = load_u8(pos + i)
        if 0x30 <= byte <= 0x39:
            digit = byte - 0x30
        elif 0x41 <= byte <= 0x46:
            digit = byte - 0x37
        elif 0x61 <= byte <= 0x66:
            digit = byte - 0x57
        else:
            return -1
        value = (value << 4) | digit
    return value


@helper
def _store_code_point(out: int, code: int) -> int:
    """Write a code point as UTF-8; return the address after it."""
    if code < 0x80:
        store_u8(out, code)
        return out + 1
    if code < 0x800:
        store_u8(out, 0xC0 | (code >> 6))
        store_u8(out + 1, 0x80 | (code & 0x3F))
        return out + 2
    if code < 0x10000:
        store_u8(out, 0xE0 | (code >> 12))
        store_u8(out + 1, 0x80 | ((code >> 6) & 0x3F))
        store_u8(out + 2, 0x80 | (code & 0x3F))
        return out + 3
    store_u8(out, 0xF0 | (code >> 18))
    store_u8(out + 1, 0x80 | ((code >> 12) & 0x3F))
    store_u8(out + 2, 0x80 | ((code >> 6) & 0x3F))
    store_u8(out + 3, 0x80 | (code & 0x3F))
    return out + 4


@helper
def _escaped_code(pos: int, end: int, replace_surrogates: bool) -> tuple[int, int, int]:
    """Return ``(status, code, length)`` of the Unicode escape at a position; a surrogate pair is one code."""
    code = _hex4(pos + 2, end)
    if code < 0:
        return STATUS.TRUNCATED if pos + 6 > end else STATUS.ESCAPE, 0, 0
    if not 0xD800 <= code <= 0xDFFF:
        return STATUS.OK, code, 6
    low = -1
    if code < 0xDC00 and pos + 12 <= end and load_u8(pos + 6) == 0x5C and load_u8(pos + 7) == 0x75:
        low = _hex4(pos + 8, end)
    if 0xDC00 <= low <= 0xDFFF:
        return STATUS.OK, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), 12
    return STATUS.OK if replace_surrogates else STATUS.SURROGATE, 0xFFFD, 6


@helper
def unescape(start: int, slash: int, end: int, out: int, replace_surrogates: bool) -> tuple[int, int, int]:
    """Write a string without its escapes; it starts at ``start`` and has its first backslash at ``slash``.

    Returns ``(status, stop, out)``: the closing quote or the offending byte, and the address after the output.
    """
    copy(out, start, slash - start)
    out += slash - start
    pos = slash
    while True:
        # The output is never longer than the text, so that it has room for as many bytes.
        while pos + 32 <= end:
            length = trailing_zeros(stops_of_32(pos) | (1 << 32))
            copy_32_in_page(out, pos)
            pos += length
            out += length
            if length < 32:
                break
        if pos >= end:
            return STATUS.TRUNCATED, end, out
        byte = load_u8(pos)
        if byte == 0x22:
            return STATUS.OK, pos, out
        if byte != 0x5C:
            status, stop = scan_string(pos, end)
            if status != STATUS.OK:
                return status, stop, out
            copy(out, pos, stop - pos)
            out += stop - pos
            pos = stop
            continue
        if pos + 1 >= end:
            return STATUS.TRUNCATED, end, out
        byte = load_u8(pos + 1)
        if byte == 0x75:  # u
            status, code, length = _escaped_code(pos, end, replace_surrogates)
            if status != STATUS.OK:
                return status, end if status == STATUS.TRUNCATED else pos, out
            out = _store_code_point(out, code)
            pos += length
            continue
        if byte == 0x6E:
            byte = 0x0A
        elif byte == 0x74:
            byte = 0x09
        elif byte == 0x72:
            byte = 0x0D
        elif byte == 0x62:
            byte = 0x08
        elif byte == 0x66:
            byte = 0x0C
        elif byte != 0x22 and byte != 0x5C and byte != 0x2F:
            return STATUS.ESCAPE, pos, out
        store_u8(out, byte)
        out += 1
        pos += 2


@helper
def int_kind(value: int) -> int:
    """Return the narrowest integer type for a value."""
    if -0x80 <= value <= 0x7F:
        return KIND.INT8
    if -0x8000 <= value <= 0x7FFF:
        return KIND.INT16
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return KIND.INT32
    return KIND.INT64


@helper
def decimal_kind(precision: int, scale: int) -> int:
    """Return the narrowest decimal type that every reader accepts: Spark refuses a scale above the precision."""
    widest = max(precision, scale)
    if widest <= 9:
        return KIND.DECIMAL4
    if widest <= 18:
        return KIND.DECIMAL8
    return KIND.DECIMAL16


@helper
def _is_digit(pos: int, end: int) -> bool:
    """Return whether there is a decimal digit at a position."""
    return pos < end and 0x30 <= load_u8(pos) <= 0x39


@helper(inline=True)
def _scan_digits(pos: int, end: int, mantissa: int, digits: int) -> tuple[int, int, int]:
    """Scan digits; return ``(stop, mantissa, digits)``: the first 18 significant digits, and the number of all."""
    while pos < end:
        digit = load_u8(pos) - 0x30
        if digit < 0 or digit > 9:
            break
        if digits < 18:
            mantissa = mantissa * 10 + digit
        if digits > 0 or digit != 0:
            digits += 1
        pos += 1
    return pos, mantissa, digits


@helper
def _wide_number(start: int, stop: int, negative: bool, fraction: bool, scale: int) -> tuple[int, int, int, int]:
    """Return ``(kind, a, b, scale)`` of a number of more than 18 digits."""
    high, low = 0, 0
    for at in range(start, stop):
        digit = load_u8(at) - 0x30
        if 0 <= digit <= 9:
            high, low = multiply_add(high, low, 10, digit)
    if negative:
        high, low = negate(high, low)
    if fraction:
        return decimal_kind(digits_of(high, low), scale), low, high, scale
    if fits_int64(high, low):
        return int_kind(low), low, 0, 0
    return KIND.DECIMAL16, low, high, 0


@helper
def scan_number(pos: int, end: int, as_double: bool) -> tuple[int, int, int, int, int, int]:
    """Scan a number; return ``(status, stop, kind, a, b, scale)``.

    - Integers, and fractions without an exponent, are exact up to 38 digits.
    - Every other number, and every fraction if ``as_double``, is a DOUBLE_TEXT node over its own text.
    """
    start = pos
    negative = load_u8(pos) == 0x2D
    if negative:
        pos += 1
    if pos >= end:
        return STATUS.TRUNCATED, end, 0, 0, 0, 0
    first = load_u8(pos)
    if first < 0x30 or first > 0x39:
        return STATUS.NUMBER, pos, 0, 0, 0, 0
    mantissa = 0
    digits = 0  # significant digits: leading zeros do not count
    if first == 0x30:
        pos += 1
        if _is_digit(pos, end):
            return STATUS.NUMBER, pos, 0, 0, 0, 0
    else:
        pos, mantissa, digits = _scan_digits(pos, end, mantissa, digits)
    scale = 0
    fraction = False
    if pos < end and load_u8(pos) == 0x2E:
        pos += 1
        fraction = True
        begin = pos
        pos, mantissa, digits = _scan_digits(pos, end, mantissa, digits)
        scale = pos - begin
        if scale == 0:
            return (STATUS.TRUNCATED if pos >= end else STATUS.NUMBER), pos, 0, 0, 0, 0
    if pos < end and (load_u8(pos) | 0x20) == 0x65:
        pos += 1
        if pos < end and (load_u8(pos) == 0x2B or load_u8(pos) == 0x2D):
            pos += 1
        if not _is_digit(pos, end):
            return (STATUS.TRUNCATED if pos >= end else STATUS.NUMBER), pos, 0, 0, 0, 0
        while _is_digit(pos, end):
            pos += 1
        return STATUS.OK, pos, DOUBLE_TEXT, start, pos - start, 0
    if digits > 38 or scale > 38 or (fraction and as_double):
        return STATUS.OK, pos, DOUBLE_TEXT, start, pos - start, 0
    if digits <= 18:
        if negative:
            mantissa = -mantissa
        if not fraction:
            return STATUS.OK, pos, int_kind(mantissa), mantissa, 0, 0
        kind = decimal_kind(digits, scale)
        return STATUS.OK, pos, kind, mantissa, (-1 if mantissa < 0 else 0), scale
    kind, a, b, scale = _wide_number(start, pos, negative, fraction, scale)
    return STATUS.OK, pos, kind, a, b, scale


@kernel
def line_ends(memory: Memory, address: int, size: int) -> tuple[int, int]:
    """Find the positions after each newline, counted from the address; return their vector for `adopt`.

    The last line may lack a newline.
    """
    ends = new_vector(memory, 1024)
    count = pos = 0
    while pos < size:
        if pos + 32 <= size:
            hits = newlines_of_32(address + pos)
        else:
            hits = 0
            for k in range(size - pos):
                if load_u8(address + pos + k) == 0x0A:
                    hits |= 1 << k
        ends = reserve(ends, count + 33)
        while hits != 0:
            ends[count] = pos + trailing_zeros(hits) + 1
            count += 1
            hits &= hits - 1
        pos += 32
    if size > 0 and (count == 0 or ends[count - 1] != size):
        ends[count] = size
        count += 1
    return export_vector(ends, count)


# Low bits of an entry that hold the class of the mark; the position is in the bits above.
KIND_BITS = 3
QUOTE, BACKSLASH, NEWLINE, RETURN, VERTICAL_TAB = 0x22, 0x5C, 0x0A, 0x0D, 0x0B
_SPACE, _TAB, _COMMA = 0x20, 0x09, 0x2C


@helper(inline=True)
def last_of_escape(data: UInt8s, pos: int) -> int:
    """Return the position of a quote or backslash that the backslash at a position escapes, or else the position."""
    escapes = pos + 1 < len(data) and (data[pos + 1] == QUOTE or data[pos + 1] == BACKSLASH)
    return pos + 1 if escapes else pos


@kernel
def find_marks(memory: Memory, data: UInt8s, classes: UInt8s, in_string: bool) -> tuple[tuple[int, int], bool]:
    """Find the marks outside of strings; return them for `adopt`, and whether the text ends inside a string.

    ``classes`` has the class of each byte; 0 means that the byte is not a mark. Line ends inside strings are
    overwritten by a byte that JSON forbids as well. The text must not end in a backslash.
    """
    size, address = len(data), address_in(data)
    marks = new_vector(memory, size // 8 + 64)
    count = pos = 0
    while pos < size:
        if in_string:
            pos = plain_until(address + pos, address + size) - address
            if pos >= size:
                break
        byte = data[pos]
        if byte == BACKSLASH:
            pos = last_of_escape(data, pos)
        elif byte == QUOTE:
            in_string = not in_string
        elif in_string:
            if byte == NEWLINE or byte == RETURN:
                data[pos] = VERTICAL_TAB
        elif classes[byte] != 0:
            marks = reserve(marks, count + 1)
            marks[count] = pos << KIND_BITS | classes[byte]
            count += 1
        pos += 1
    return export_vector(marks, count), in_string


@kernel
def split_elements(
    data: UInt8s, depth: int, in_string: bool, has_text: bool
) -> tuple[tuple[int, bool, bool], int, int, int, int]:
    """Put a line end after each element of an array, and spaces for line ends inside elements.

    ``depth`` brackets are open before the text, a string if ``in_string``, and an element if ``has_text``. A line end
    inside a string is overwritten by another byte that JSON forbids. The text must not end in a backslash.
    Returns ``(place, start, stop, ended, empty)``: the three arguments for the text that follows; where the elements
    begin and where the last one that ended stops; the number that ended; and the number of these without text.
    """
    size, address = len(data), address_in(data)
    start = stop = ended = empty = pos = 0
    while pos < size:
        if in_string:
            pos = plain_until(address + pos, address + size) - address
            if pos >= size:
                break
        byte = data[pos]
        if byte == BACKSLASH:
            has_text = True
            pos = last_of_escape(data, pos)
        elif byte == QUOTE:
            in_string, has_text = not in_string, True
        elif byte == NEWLINE or byte == RETURN:
            data[pos] = VERTICAL_TAB if in_string else _SPACE
        elif in_string or byte == _SPACE or byte == _TAB:
            pass
        elif byte == 0x5B or byte == 0x7B:
            if depth == 0:
                start = pos + 1
            else:
                has_text = True
            depth += 1
        elif (byte == _COMMA and depth == 1) or ((byte == 0x5D or byte == 0x7D) and depth <= 1):
            empty += 0 if has_text else 1
            has_text = False
            ended += 1
            stop = pos + 1
            if byte != _COMMA:
                return (0, False, False), start, stop, ended, empty
            data[pos] = NEWLINE
        else:
            has_text = True
            depth -= 1 if byte == 0x5D or byte == 0x7D else 0
        pos += 1
    return (depth, in_string, has_text), start, stop, ended, empty
