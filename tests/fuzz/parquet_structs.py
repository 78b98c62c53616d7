"""Parquet footers that are well-formed Thrift and say what no writer says: any field of any struct may be there.

Owns the declarations of the structs (``parquet.thrift``), the compact protocol to and from trees, and random changes of
them, with code of its own. Leaves which bytes of a file are its footer to `files_child`.
"""

from __future__ import annotations

import random
import struct
from typing import Any

__all__ = ["changed_footer"]

BOOL, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
_KINDS = {"bool": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "double": DOUBLE, "binary": BINARY}
_DECLARED = """
FileMetaData 1 i32 2 [SchemaElement 3 i64 4 [RowGroup 5 [KeyValue 6 binary 7 [ColumnOrder 8 Encryption 9 binary
SchemaElement 1 i32 2 i32 3 i32 4 binary 5 i32 6 i32 7 i32 8 i32 9 i32 10 LogicalType
LogicalType 1 Empty 2 Empty 3 Empty 4 Empty 5 Decimal 6 Empty 7 Time 8 Time 10 Int 11 Empty 12 Empty 13 Empty 14 Empty\
 15 Empty 16 Variant 17 Geometry 18 Geography 19 Empty
Empty
Decimal 1 i32 2 i32
Time 1 bool 2 Unit
Unit 1 Empty 2 Empty 3 Empty
Int 1 i8 2 bool
Variant 1 i8
Geometry 1 binary
Geography 1 binary 2 i32
RowGroup 1 [ColumnChunk 2 i64 3 i64 4 [Sorting 5 i64 6 i64 7 i16
Sorting 1 i32 2 bool 3 bool
KeyValue 1 binary 2 binary
ColumnOrder 1 Empty 2 Empty
Encryption 1 Aes 2 Aes
Aes 1 binary 2 binary 3 bool
ColumnChunk 1 binary 2 i64 3 ColumnMetaData 4 i64 5 i32 6 i64 7 i32 8 Crypto 9 binary
Crypto 1 Empty 2 Key
Key 1 [binary 2 binary
ColumnMetaData 1 i32 2 [i32 3 [binary 4 i32 5 i64 6 i64 7 i64 8 [KeyValue 9 i64 10 i64 11 i64 12 Statistics\
 13 [PageEncoding 14 i64 15 i32 16 SizeStatistics 17 Geospatial
Statistics 1 binary 2 binary 3 i64 4 i64 5 binary 6 binary 7 bool 8 bool
PageEncoding 1 i32 2 i32 3 i32
SizeStatistics 1 i64 2 [i64 3 [i64
Geospatial 1 Box 2 [i32
Box 1 double 2 double 3 double 4 double 5 double 6 double 7 double 8 double
"""
_STRUCTS = {
    words[0]: dict(zip(map(int, words[1::2]), words[2::2], strict=True))
    for words in map(str.split, _DECLARED.strip().splitlines())
}

# A struct is a list of fields [id, kind, value]; a list is (kind of the items, values); numbers, bytes and bools.
Struct = list[list[Any]]


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte, at = data[at], at + 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _zigzag(number: int) -> bytes:
    return _varint(((number << 1) ^ (number >> 63)) & (1 << 64) - 1)


def _parsed(data: bytes, at: int) -> tuple[Struct, int]:
    """The struct that starts there, and where it ends."""
    fields: Struct = []
    last = 0
    while header := data[at]:
        at += 1
        kind = header & 15
        if header >> 4:
            last += header >> 4
        else:
            last, at = _unsigned(data, at)
            last = (last >> 1) ^ -(last & 1)
        value: Any = kind == BOOL
        if kind > FALSE:
            value, at = _value(data, at, kind)
        fields.append([last, BOOL if kind == FALSE else kind, value])
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == STRUCT:
        return _parsed(data, at)
    if kind in (BOOL, FALSE):
        return data[at] == BOOL, at + 1
    if kind == I8:
        return data[at], at + 1
    if kind == DOUBLE:
        return data[at : at + 8], at + 8
    if kind == BINARY:
        size, at = _unsigned(data, at)
        return data[at : at + size], at + size
    if kind == LIST:
        count, item = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _unsigned(data, at)
        items = []
        for _ in range(count):
            value, at = _value(data, at, item)
            items.append(value)
        return (item, items), at
    number, at = _unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at


def _encoded(fields: Struct) -> bytes:
    """The bytes of a struct."""
    out, last = [], 0
    for number, kind, value in fields:
        code = FALSE if kind == BOOL and not value else kind
        delta = number - last
        out.append(bytes([delta << 4 | code]) if 0 < delta < 16 else bytes([code]) + _zigzag(number))
        last = number
        if kind != BOOL:
            out.append(_encoded_value(kind, value))
    return b"".join([*out, b"\0"])


def _encoded_value(kind: int, value: Any) -> bytes:
    if kind == STRUCT:
        return _encoded(value)
    if kind in (BOOL, FALSE):
        return b"\1" if value else b"\2"
    if kind == I8:
        return bytes([value & 255])
    if kind == BINARY:
        return _varint(len(value)) + value
    if kind == LIST:
        item, items = value
        head = bytes([len(items) << 4 | item]) if len(items) < 15 else bytes([0xF0 | item]) + _varint(len(items))
        return head + b"".join(_encoded_value(item, each) for each in items)
    return value if kind == DOUBLE else _zigzag(value)


def _random(source: random.Random, declared: str, depth: int = 4) -> tuple[int, Any]:
    """A value of a declared type, and its kind."""
    if declared.startswith("["):
        kind, first = _random(source, declared[1:], depth)
        return LIST, (kind, [first, *(_random(source, declared[1:], depth)[1] for _ in range(source.randrange(4)))])
    kind = _KINDS.get(declared, STRUCT)
    if kind == STRUCT:
        known = list(_STRUCTS[declared].items()) if depth else []
        some = source.sample(known, source.randrange(len(known) + 1))
        return STRUCT, [[number, *_random(source, inner, depth - 1)] for number, inner in sorted(some)]
    if kind == BOOL:
        return kind, source.random() < 0.5
    if kind == DOUBLE:
        return kind, struct.pack("<d", source.choice([0.0, -1.5, float("nan"), float("inf"), -1e308]))
    if kind == BINARY:
        size = source.choice([0, 1, 3, 4, 7, 8, 12, 16, 200])
        return kind, source.choice([source.randbytes(size), b"a" * size, b"\xff" * size, b"\0" * size])
    return kind, _number(source, kind)


def _number(source: random.Random, kind: int) -> int:
    most = {I8: 127, I16: 2**15 - 1, I32: 2**31 - 1, I64: 2**63 - 1}[kind]
    return source.choice([source.randrange(-2, 25), 0, -1, most, -most - 1, 1000, source.randrange(most)])


def _places(fields: Struct, declared: str | None) -> list[tuple[Any, Any, str | None]]:
    """Every value below a struct: what holds it, its place there, and its declared type."""
    out: list[tuple[Any, Any, str | None]] = []
    known = _STRUCTS.get(declared or "", {})
    for field in fields:
        out.append((field, 2, known.get(field[0])))
        values = [field[2]]
        inner = known.get(field[0])
        if field[1] == LIST:  # of an earlier change, it may be where no list is declared
            values, inner = field[2][1], inner[1:] if inner and inner.startswith("[") else None
            out += [(values, number, inner) for number in range(len(values))]
        for value in values:
            if isinstance(value, list):
                out += _places(value, inner)
    return out


def changed_footer(source: random.Random, footer: bytes) -> bytes:
    """The bytes of a footer with some fields changed, added, doubled or taken out, at any depth."""
    root, _ = _parsed(footer, 0)
    for _ in range(source.randrange(1, 5)):
        holder, place, known = source.choice([([root], 0, "FileMetaData"), *_places(root, "FileMetaData")])
        value = holder[place]
        if isinstance(value, list):
            _change_struct(source, value, known)
        elif isinstance(value, tuple) and source.random() < 0.6:
            _change_items(source, value[1])
        elif known is not None and source.random() < 0.7:
            new = _random(source, known)[1]
            holder[place] = new if isinstance(new, type(value)) else value
        elif isinstance(value, bytes):
            holder[place] = value[: source.randrange(len(value) + 1)] + source.choice([b"", b"\xff", b"a" * 20])
        elif isinstance(value, int) and not isinstance(value, bool):
            holder[place] = value + source.choice([-1, 1, 2, -value, 100])
    return _encoded(root)


def _change_items(source: random.Random, items: list[Any]) -> None:
    at = source.randrange(len(items) + 1)
    if items and source.random() < 0.5:
        items.insert(at, source.choice(items))
    else:
        del items[at : at + source.choice([1, len(items)])]


def _change_struct(source: random.Random, fields: Struct, declared: str | None) -> None:
    known = _STRUCTS.get(declared or "", {})
    what = source.random()
    if what < 0.6 and known:
        number = source.choice(list(known))
        new = [number, *_random(source, known[number])]
        at = next((i for i, field in enumerate(fields) if field[0] == number), None)
        if at is None or what < 0.05:
            fields.append(new)
            fields.sort(key=lambda field: int(field[0]))
        else:
            fields[at] = new
    elif fields and what < 0.8:
        del fields[source.randrange(len(fields))]
    elif fields and what < 0.9:
        fields.insert(source.randrange(len(fields) + 1), source.choice(fields))
    elif fields:
        fields[source.randrange(len(fields))][0] = source.randrange(-1, 20)
