"""The part of Thrift's compact protocol that Parquet needs, and the numbers of the fields of a footer.

Owns the conversion between bytes and Python values. Leaves the meaning of structs to `footer` and
`files.parquet.pages`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

# FileMetaData
SCHEMA, ROW_GROUPS, KEY_VALUES, ENCRYPTION = 2, 4, 5, 8
# SchemaElement
PHYSICAL_TYPE, CONVERTED_TYPE, SCALE, PRECISION, LOGICAL_TYPE = 1, 6, 7, 8, 10
# RowGroup
COLUMNS, NUM_ROWS = 1, 3
# ColumnChunk
FILE_PATH, METADATA, OFFSET_INDEX, OFFSET_INDEX_SIZE, COLUMN_INDEX, COLUMN_INDEX_SIZE = 1, 3, 4, 5, 6, 7
# ColumnMetaData
PATH, CODEC, PLAIN_SIZE, SIZE, DATA_AT, DICTIONARY_AT = 3, 4, 6, 7, 9, 11
STATISTICS, ENCODING_STATS, BLOOM_AT, BLOOM_SIZE, SIZE_STATISTICS = 12, 13, 14, 15, 16
# PageEncodingStats
PAGE_TYPE, PAGE_ENCODING = 1, 2
# OffsetIndex and PageLocation
LOCATIONS, TEXT_BYTES = 1, 2
PAGE_AT, PAGE_SIZE, FIRST_ROW = 1, 2, 3
# ColumnIndex
NULL_PAGES, LOW_VALUES, HIGH_VALUES, NULL_COUNTS, REPETITION_COUNTS, DEFINITION_COUNTS = 1, 2, 3, 5, 6, 7
# PageType
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3


# Compact protocol type codes.
_TRUE, _FALSE, I8, _I16, I32, I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
BOOL = _TRUE
_MAX_DEPTH = 32


class ThriftError(ValueError):
    """Raised for bytes that are not valid in the compact protocol."""


class ThriftField(NamedTuple):
    """A field of a struct: its id, type code, and the offsets of its header and its value in the buffer."""

    id: int
    type: int
    header: int
    start: int


_BYTES = [bytes([number]) for number in range(256)]


def _put_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def varint(number: int) -> bytes:
    """Encode an unsigned number.

    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    _put_varint(out, number)
    return bytes(out)


def zigzag(number: int) -> bytes:
    """Encode a signed number.

    >>> zigzag(16).hex(), zigzag(-1).hex()
    ('20', '01')
    """
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def encode_struct(*fields: tuple[int, int, Any]) -> bytes:
    """Encode a struct from fields ``(id, type code, value)`` in ascending order of ids; None skips a field.

    The value of a `STRUCT` is its encoded bytes; the value of a `LIST` is the type code of its items, and the items.

    >>> encode_struct((1, I32, 5), (2, BINARY, None), (4, LIST, (BOOL, [True, False]))).hex()
    '150a3921010200'
    """
    out, last = bytearray(), 0
    for number, kind, value in fields:
        if value is None:
            continue
        code = _FALSE if kind == BOOL and not value else kind
        if 0 < number - last < 16:
            out.append((number - last) << 4 | code)
        else:
            out += field_header(number, code, last)
        last = number
        if kind in (I32, I64):
            _put_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
        elif kind == STRUCT:
            out += value
        elif kind == BINARY:
            _put_varint(out, len(value))
            out += value
        elif kind == LIST:
            _put_list(out, *value)
        elif kind == I8:
            out.append(value & 0xFF)
        elif kind != BOOL:
            raise ThriftError(f"cannot encode values of type code {kind}")
    out.append(0)
    return bytes(out)


def _put_list(out: bytearray, kind: int, items: Any) -> None:
    count = len(items)
    out += _BYTES[count << 4 | kind] if count < 15 else _BYTES[0xF0 | kind] + varint(count)
    if kind == BOOL:
        out += bytes(_TRUE if item else _FALSE for item in items)
    elif kind == STRUCT:
        out += b"".join(items)
    elif kind in (I32, I64):
        for item in items:
            _put_varint(out, item << 1 if item >= 0 else (-item << 1) - 1)
    elif kind == BINARY:
        out += b"".join(varint(len(item)) + item for item in items)
    else:
        raise ThriftError(f"cannot encode lists of type code {kind}")


def _byte(buffer: bytes, position: int) -> int:
    if position >= len(buffer):
        raise ThriftError(f"the footer ends at byte {len(buffer)}, inside a value")
    return buffer[position]


def _read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = _byte(buffer, position)
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
        if shift > 63:
            raise ThriftError(f"number longer than 64 bits at byte {position}")


def _read_zigzag(buffer: bytes, position: int) -> tuple[int, int]:
    number, position = _read_varint(buffer, position)
    return (number >> 1) ^ -(number & 1), position


def _field_start(buffer: bytes, position: int, last: int) -> tuple[int, int, int]:
    """Return the id and type code of the field after the field `last`, 0 at the end, and where its value starts."""
    byte = _byte(buffer, position)
    if byte == 0:
        return 0, 0, position + 1
    if byte >> 4:
        return last + (byte >> 4), byte & 0x0F, position + 1
    number, position = _read_zigzag(buffer, position + 1)
    return number, byte & 0x0F, position


def struct_fields(buffer: bytes, position: int) -> Iterator[ThriftField]:
    """Yield the fields of the struct that starts at `position`; the last one, of type 0, is the stop byte.

    Raises `ThriftError` if the bytes end early or are nested too deeply.
    """
    number, kind = 0, _TRUE
    while kind:
        header = position
        number, kind, position = _field_start(buffer, header, number)
        yield ThriftField(number, kind, header, position)
        if kind not in (0, _TRUE, _FALSE):  # The header of a boolean field contains its value.
            _, position = read_value(buffer, position, kind, 1)


def list_items(buffer: bytes, position: int) -> tuple[int, int, int]:
    """Return the number of items of a list, their type code, and the offset of the first item."""
    byte = _byte(buffer, position)
    position += 1
    count = byte >> 4
    if count == 15:
        count, position = _read_varint(buffer, position)
    if count > len(buffer):
        raise ThriftError(f"a list of {count} items does not fit into {len(buffer)} bytes")
    return count, byte & 0x0F, position


def structs_of_list(buffer: bytes, position: int | None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each struct of the list at `position`; nothing for None."""
    count, _, start = (0, 0, 0) if position is None else list_items(buffer, position)
    for _ in range(count):
        _, end = read_value(buffer, start, STRUCT)
        yield start, end
        start = end


def read_value(buffer: bytes, position: int, kind: int, depth: int = 0) -> tuple[Any, int]:
    """Read a value of type code `kind`; structs become dicts by field id. Return the value and its end."""
    if depth > _MAX_DEPTH:
        raise ThriftError(f"nested deeper than {_MAX_DEPTH}")
    if kind in (_TRUE, _FALSE):  # A boolean in a list takes a byte.
        return _byte(buffer, position) == _TRUE, position + 1
    if kind == I8:
        return struct.unpack("b", bytes([_byte(buffer, position)]))[0], position + 1
    if kind in (_I16, I32, I64):
        return _read_zigzag(buffer, position)
    if kind == _DOUBLE:
        _byte(buffer, position + 7)
        return struct.unpack_from("<d", buffer, position)[0], position + 8
    if kind == BINARY:
        length, position = _read_varint(buffer, position)
        if position + length > len(buffer):
            raise ThriftError(f"a string of {length} bytes does not fit at byte {position}")
        return buffer[position : position + length], position + length
    if kind in (LIST, _SET):
        count, item, position = list_items(buffer, position)
        items = []
        for _ in range(count):
            value, position = read_value(buffer, position, item, depth + 1)
            items.append(value)
        return items, position
    if kind == _MAP:
        count, position = _read_varint(buffer, position)
        kinds, position = (_byte(buffer, position), position + 1) if count else (0, position)
        entries = []
        for _ in range(count):
            key, position = read_value(buffer, position, kinds >> 4, depth + 1)
            value, position = read_value(buffer, position, kinds & 0x0F, depth + 1)
            entries.append((key, value))
        return entries, position
    if kind == STRUCT:
        return read_struct(buffer, position, depth)
    raise ThriftError(f"unknown type code {kind} at byte {position}")


def read_struct(
    buffer: bytes, position: int, depth: int = 0, kinds: Mapping[int, int] | None = None
) -> tuple[dict[int, Any], int]:
    """Return the values of a struct by field id, and its end. Raises `ThriftError` for a type code not in `kinds`.

    Generated Thrift readers skip a field whose type differs from its declaration.
    """
    values: dict[int, Any] = {}
    last, size = 0, len(buffer)
    while True:
        last, kind, position = _field_start(buffer, position, last)
        if kind == 0:
            return values, position
        if kinds is not None and kinds.get(last, kind) != kind:
            raise ThriftError(f"field {last} before byte {position} has the type code {kind}, not {kinds[last]}")
        if kind in (_TRUE, _FALSE):
            values[last] = kind == _TRUE
        elif _I16 <= kind <= I64 and position < size and (byte := buffer[position]) < 0x80:
            values[last] = (byte >> 1) ^ -(byte & 1)  # Nearly all numbers of a schema take one byte.
            position += 1
        else:
            values[last], position = read_value(buffer, position, kind, depth + 1)


def with_fields(buffer: bytes, position: int, changes: Mapping[int, int | bytes | None]) -> bytes:
    """Return the bytes of a struct with new values of some fields: a number, an encoded struct, or None to remove it.

    A struct that is not there yet is added; a number that is not there is not.
    """
    pairs = pairwise(struct_fields(buffer, position))  # without the stop byte
    fields = {field.id: (field.type, buffer[field.start : following.header]) for field, following in pairs}
    for number, value in changes.items():
        if value is None:
            fields.pop(number, None)
        elif isinstance(value, bytes):
            fields[number] = STRUCT, value
        elif number in fields:
            fields[number] = fields[number][0], zigzag(value)
    out, last = bytearray(), 0
    for number in sorted(fields):
        kind, encoded = fields[number]
        out += field_header(number, kind, last) + encoded
        last = number
    out.append(0)
    return bytes(out)


def field_header(number: int, kind: int, last: int) -> bytes:
    """Return the header of a field that follows the field `last` in a struct.

    >>> field_header(10, STRUCT, 6).hex(), field_header(16, STRUCT, 0).hex()
    ('4c', '0c20')
    """
    return _BYTES[(number - last) << 4 | kind] if 0 < number - last < 16 else _BYTES[kind] + zigzag(number)


def find_field(buffer: bytes, position: int, number: int) -> int | None:
    """Return the offset of the value of a field in the struct that starts at `position`; None if it is not set."""
    return next((field.start for field in struct_fields(buffer, position) if field.id == number), None)
