"""Check that the column chunks of a Parquet footer agree with its schema, before pyarrow reads the footer.

pyarrow 26 aborts the process, instead of raising an error, in these cases: a chunk has another type than its column,
size statistics do not fit it, bounds are shorter than its values, the codec is unknown, or a column is encrypted. It
also allocates memory for the rows that a row group claims, so these must be the rows of the file. Of two schemas,
pyarrow takes the second and this library the first, so a second schema is refused. Owns the walk over the footer's
Thrift (compact protocol) that finds these cases. Leaves reading footers to `files.parquet.format`, whose `thrift` is
the readable form. Spec: ``parquet.thrift``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table, ReadOnlyUInt8s
from parquet_variant.kernels.memory import load_u8
from parquet_variant.kernels.native_vectors import address_in
from parquet_variant.kernels.pages.runs import signed, varint

_TRUE, _FALSE, _I8, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 6, 7, 8, 9, 10, 12
_BYTE_ARRAY = 6
_LAST_CODEC = 7  # LZ4_RAW
# The nested structs, and the field of each that leads to the next: FileMetaData.row_groups,
# RowGroup.columns, ColumnChunk.meta_data, ColumnMetaData.size_statistics.
_CHUNK, _META, _SIZE, _LEVELS = 2, 3, 4, 5
_INTO = (4, 1, 3, 16)
_SCHEMA = 2  # of FileMetaData
_ROWS = 3  # of FileMetaData and RowGroup
_CRYPTO_METADATA = 8  # of ColumnChunk
# Fields of ColumnMetaData, of Statistics (max, min, max_value, min_value), and of SizeStatistics.
_TYPE, _CODEC, _STATISTICS = 1, 4, 12
_BOUNDS = (1, 2, 5, 6)
_OLD_BOUNDS, _NEW_BOUNDS = 1 << 1 | 1 << 2, 1 << 5 | 1 << 6
_UNENCODED, _REPETITION, _DEFINITION = 1, 2, 3
_DEEPEST = 32
_DAMAGED, _SOUND, _ENCRYPTED = range(3)


@helper
def _field(at: int, stop: int, last: int) -> tuple[int, int, int]:
    """Return type (0 at the end), id and start of the value of a struct's next field; -1 if it is malformed."""
    if at < 0 or at >= stop:
        return 0, 0, -1
    byte = load_u8(at)
    at += 1
    if byte == 0:
        return 0, 0, at
    if byte >> 4:
        return byte & 15, last + (byte >> 4), at
    number, at = varint(at, stop)
    return byte & 15, signed(number), at


@helper
def _items(at: int, stop: int) -> tuple[int, int, int]:
    """Return number and type of the items of a list, and where the first one starts; -1 if malformed."""
    if at < 0 or at >= stop:
        return 0, 0, -1
    byte = load_u8(at)
    at += 1
    count = byte >> 4
    if count == 15:
        count, at = varint(at, stop)
    if count < 0 or count > stop - at:
        return 0, 0, -1
    return count, byte & 15, at


@helper
def _skipped(at: int, stop: int, kind: int, stack: Int64s) -> int:
    """Return where a value ends; -1 if it is malformed.

    The stack holds the open containers: remaining items (-1 in a struct) and their type.
    """
    if kind == _TRUE or kind == _FALSE:
        return at
    depth = 1
    stack[0], stack[1] = 1, kind
    while depth > 0:
        top = 2 * depth - 2
        kind = stack[top + 1]
        if stack[top] < 0:
            kind, _, at = _field(at, stop, 0)
            if at < 0:
                return -1
            if kind == 0:
                depth -= 1
                continue
            if kind == _TRUE or kind == _FALSE:
                continue
        elif stack[top] == 0:
            depth -= 1
            continue
        else:
            stack[top] -= 1
        count, item = -2, 0
        if kind <= _I8:
            at += 1
        elif kind <= _I64:
            _, at = varint(at, stop)
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = varint(at, stop)
            if at < 0 or size < 0 or size > stop - at:
                return -1
            at += size
        elif kind == _LIST or kind == _SET:
            count, item, at = _items(at, stop)
        elif kind == _STRUCT:
            count = -1
        else:
            return -1
        if at < 0 or at > stop:
            return -1
        if count > -2:
            if depth == _DEEPEST:
                return -1
            stack[2 * depth], stack[2 * depth + 1] = count, item
            depth += 1
    return at


@helper
def _bounds_fit(at: int, stop: int, width: int, stack: Int64s) -> bool:
    """Return whether the bounds of a chunk's statistics are as long as a value; a width of 0 accepts all lengths."""
    field = present = short = 0
    while True:
        kind, field, at = _field(at, stop, field)
        if at < 0 or kind == 0:
            # pyarrow reads bounds in pairs.
            old = short & _OLD_BOUNDS and present & _OLD_BOUNDS == _OLD_BOUNDS
            new = short & _NEW_BOUNDS and present & _NEW_BOUNDS == _NEW_BOUNDS
            return at >= 0 and not old and not new
        if kind == _BINARY and field in _BOUNDS:
            size, _ = varint(at, stop)
            present |= 1 << field
            if size < width:
                short |= 1 << field
        at = _skipped(at, stop, kind, stack)


@helper
def _fits(at: int, stop: int, level: int, field: int, kind: int, column: Int64s, stack: Int64s) -> bool:
    """Return whether a field of a chunk's metadata or size statistics fits its column."""
    physical, repetition, definition, width = column[0], column[1], column[2], column[3]
    if level == _META and field == _STATISTICS and kind == _STRUCT:
        return _bounds_fit(at, stop, width, stack)
    if level == _META and (field == _TYPE or field == _CODEC):
        number, _ = varint(at, stop)
        number = signed(number)
        return number == physical if field == _TYPE else 0 <= number <= _LAST_CODEC
    if level == _SIZE and field == _UNENCODED:
        return physical == _BYTE_ARRAY
    if level == _SIZE and (field == _REPETITION or field == _DEFINITION):
        count, _, _ = _items(at, stop)
        return kind == _LIST and (count == 0 or count == (repetition if field == _REPETITION else definition) + 1)
    return True


@kernel
def _agree(data: ReadOnlyUInt8s, columns: Int64Table, stack: Int64s) -> int:
    """Return whether every column chunk fits its column, or one is encrypted."""
    open_fields, remaining = stack[:_LEVELS], stack[_LEVELS : 2 * _LEVELS]
    open_fields[0] = remaining[0] = 0
    at = address_in(data)
    stop = at + len(data)
    level = leaf = schemas = rows = claimed = 0
    while True:
        kind, field, at = _field(at, stop, open_fields[level])
        if at < 0:
            return _DAMAGED
        open_fields[level] = field
        if kind == 0:  # the end of a struct: continue with the next item of its list, or with the parent
            open_fields[level] = 0
            if remaining[level] > 0:
                remaining[level] -= 1
                leaf = leaf + 1 if level == _CHUNK else 0
            elif level == 0:
                return (
                    _SOUND if claimed == 0 or claimed == rows else _DAMAGED
                )  # parquet-rs 0.3 writes 0 rows for every file.
            else:
                level -= 1
            continue
        if level == _CHUNK and field == _CRYPTO_METADATA:
            return _ENCRYPTED
        if level < _CHUNK and field == _ROWS and kind == _I64:
            count, _ = varint(at, stop)
            count = signed(count)
            if count < 0:
                return _DAMAGED
            if level == 0:
                claimed = count
            else:
                rows += count
        schemas += level == 0 and field == _SCHEMA
        if schemas > 1:
            return _DAMAGED
        if level >= _META and not _fits(at, stop, level, field, kind, columns[leaf], stack[2 * _LEVELS :]):
            return _DAMAGED
        if level == _SIZE or field != _INTO[level] or kind != (_LIST if level < _CHUNK else _STRUCT):
            at = _skipped(at, stop, kind, stack[2 * _LEVELS :])
            if at < 0:
                return _DAMAGED
            continue
        count = 1
        if kind == _LIST:
            count, _, at = _items(at, stop)
            if at < 0 or (level + 1 == _CHUNK and count != len(columns)):
                return _DAMAGED
            leaf = 0
        if count > 0:
            level += 1
            open_fields[level], remaining[level] = 0, count - 1


def what_is_wrong(footer: bytes, columns: npt.NDArray[np.int64]) -> Literal["damaged", "encrypted"] | None:
    """Return None if every column chunk of a footer has the type of its column, fitting statistics and a known codec.

    A row of ``columns`` has the physical type of a column, its largest levels (repetition, definition), and the bytes
    of a value (0 if values differ in length, or have no bounds).
    """
    stack = np.zeros(2 * _LEVELS + 2 * _DEEPEST + 2, np.int64)
    state = _agree(np.frombuffer(footer, np.uint8), columns, stack)
    return None if state == _SOUND else "encrypted" if state == _ENCRYPTED else "damaged"
