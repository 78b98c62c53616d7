"""Read the children of nullable struct columns from a Vortex file without reading their siblings.

Owns the changed footer that makes this possible. vortex-data 0.93 and older applies only the first step of a path below
a nullable struct to the layout, reads everything below that step, and applies the other steps to the result: a path
would read every shredded field. Below a struct that is not nullable, it reads the requested child alone. `write` stores
null in all children of an absent row, so that a child can be read without the nullability of the column.

A change clears the flag ``nullable`` of the column in the schema of the footer, and removes the first child of the
column's layout, which holds the nullability. Both are flatbuffers, changed in place in the bytes that the library gets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import NamedTuple

from parquet_variant.files.vortex.files.trailer import CheckedSource

_END = struct.Struct("<HH4s")
_STRUCT_TYPE = 7  # The number of Struct_ in the union of types.


class Change(NamedTuple):
    """Bytes that replace bytes of a file, at an offset."""

    offset: int
    data: bytes


class ChangedSource:
    """A file for `vortex.open_readable` with changed bytes."""

    def __init__(self, source: CheckedSource, changes: Collection[Change]) -> None:
        self._source = source
        self._changes = changes

    def size(self) -> int:
        """Return the size of the file (called by Vortex)."""
        return self._source.size()

    def read_at(self, offset: int, length: int) -> bytes | bytearray:
        """Return a part of the file (called by Vortex)."""
        data = self._source.read_at(offset, length)
        end = offset + length
        changes = [change for change in self._changes if change.offset < end and change.offset + 4 > offset]
        if not changes:
            return data
        changed = bytearray(data)
        for position, new in changes:
            for index, byte in enumerate(new, position - offset):
                if 0 <= index < length:
                    changed[index] = byte
        return changed


def changes_for_children(source: CheckedSource, names: Collection[str]) -> list[Change]:
    """Return the changes after which the named nullable struct columns are not nullable.

    The list is empty if the footer does not have the expected form.
    """
    try:
        return [change for name in names for change in _changes_of_column(source, name)]
    except (struct.error, IndexError, ValueError):
        return []


def _changes_of_column(source: CheckedSource, name: str) -> list[Change]:
    schema, layout = _footer_parts(source)
    root, top = _struct_type(schema.root), layout.root
    fields, columns = root.vector(1), top.vector(3)
    number = [field.string() for field in root.vector(0)].index(name)
    if len(columns) != len(fields) or root.byte(2):  # the rows of a file are never absent
        raise ValueError("unexpected layout of the file")
    column_type, column = _struct_type(fields[number]), columns[number]
    children = column.vector(3)
    if not column_type.byte(2) or len(children) != 1 + len(column_type.vector(1)) or column.field(0) is None:
        raise ValueError("unexpected layout of the column")
    reference = column.field(3)
    flag = column_type.field(2)
    assert reference is not None and flag is not None
    count = reference + layout.read("<I", reference)
    # The vector without its first element starts where the first element was; offsets are relative to their own place.
    return [
        Change(schema.offset + flag, b"\0"),
        Change(layout.offset + reference, struct.pack("<I", count + 4 - reference)),
        Change(layout.offset + count + 4, struct.pack("<I", len(children) - 1)),
    ]


class _Flatbuffer(NamedTuple):
    """A serialized flatbuffer at an offset of the file."""

    data: bytes
    offset: int

    def read(self, form: str, position: int) -> int:
        """Return the integer at a position."""
        number: int = struct.unpack_from(form, self.data, position)[0]
        return number

    @property
    def root(self) -> _Table:
        """The root table."""
        return _Table(self, self.read("<I", 0))


class _Table(NamedTuple):
    """A table (or string) at a position of a flatbuffer."""

    buffer: _Flatbuffer
    position: int

    def field(self, number: int) -> int | None:
        """Return the position of a field; None if it has the default value."""
        fields = self.position - self.buffer.read("<i", self.position)
        entry = 4 + 2 * number
        offset = self.buffer.read("<H", fields + entry) if entry < self.buffer.read("<H", fields) else 0
        return self.position + offset if offset else None

    def byte(self, number: int) -> int:
        """Return a field of one byte."""
        position = self.field(number)
        return 0 if position is None else self.buffer.data[position]

    def table(self, number: int) -> _Table:
        """Return a field that is a table."""
        return self._reference(self.field(number))

    def vector(self, number: int) -> list[_Table]:
        """Return a field that is a vector of tables or strings."""
        position = self.field(number)
        if position is None:
            return []
        start = self._reference(position).position
        count = self.buffer.read("<I", start)
        return [self._reference(start + 4 + 4 * index) for index in range(count)]

    def string(self) -> str:
        """Return the string at the position."""
        start = self.position + 4
        return self.buffer.data[start : start + self.buffer.read("<I", self.position)].decode()

    def _reference(self, position: int | None) -> _Table:
        if position is None:
            raise ValueError("missing field")
        return _Table(self.buffer, position + self.buffer.read("<I", position))


def _footer_parts(source: CheckedSource) -> tuple[_Flatbuffer, _Flatbuffer]:
    """Return the schema and the layout in the footer of a file."""
    size = source.size()
    read: Callable[[int, int], bytes] = lambda offset, length: bytes(source.read_at(offset, length))  # noqa: E731
    _, length, _ = _END.unpack(read(size - _END.size, _END.size))
    start = size - _END.size - length
    postscript = _Flatbuffer(read(start, length), start).root
    parts = []
    for number in (0, 1):
        segment = postscript.table(number)
        offset, byte_count = segment.field(0), segment.field(1)
        assert byte_count is not None
        position = 0 if offset is None else segment.buffer.read("<Q", offset)
        parts.append(_Flatbuffer(read(position, segment.buffer.read("<I", byte_count)), position))
    return parts[0], parts[1]


def _struct_type(table: _Table) -> _Table:
    """Return the struct type in a type."""
    if table.byte(0) != _STRUCT_TYPE:
        raise ValueError("not a struct")
    return table.table(1)
