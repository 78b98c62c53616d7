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
# The structs of a footer that are checked, and the field that leads to each from the struct that contains it.
# FileMetaData.row_groups and RowGroup.columns are lists.
_FILE, _GROUP, _CHUNK, _META, _STATISTICS, _SIZES, _OTHER = range(7)
_LEADS_TO = ((_FILE, 4, _GROUP), (_GROUP, 1, _CHUNK), (_CHUNK, 3, _META), (_META, 12, _STATISTICS), (_META, 16, _SIZES))
_SCHEMA = 2  # of FileMetaData
_ROWS = 3  # of FileMetaData and RowGroup
_CRYPTO_METADATA = 8  # of ColumnChunk
# Fields of ColumnMetaData and of SizeStatistics, and the pairs of bounds in Statistics, which pyarrow reads together.
_TYPE, _CODEC = 1, 4
_UNENCODED, _REPETITION, _DEFINITION = 1, 2, 3
_OLD_BOUNDS, _NEW_BOUNDS = 1 << 1 | 1 << 2, 1 << 5 | 1 << 6
# Columns of the stack of open structs and lists: the remaining items (-1 in a struct), their type, the last field of a
# struct, and which struct it is, or the items of a list are.
_LEFT, _ITEM, _LAST, _PLACE = range(4)
_DEEPEST = 40
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
def _inner_place(place: int, field: int, kind: int) -> int:
    """Return which struct a field of a struct is, or contains."""
    for outer, step, inner in _LEADS_TO:
        if place == outer and field == step and kind == (_LIST if outer < _CHUNK else _STRUCT):
            return inner
    return _OTHER


@helper
def _fits(place: int, field: int, kind: int, number: int, count: int, column: Int64s) -> bool:
    """Return whether a field of a chunk's metadata or size statistics fits its column."""
    physical, repetition, definition = column[0], column[1], column[2]
    if place == _META and field == _TYPE:
        return number == physical
    if place == _META and field == _CODEC:
        return 0 <= number <= _LAST_CODEC
    if place == _SIZES and field == _UNENCODED:
        return physical == _BYTE_ARRAY
    if place == _SIZES and (field == _REPETITION or field == _DEFINITION):
        return kind == _LIST and (count == 0 or count == (repetition if field == _REPETITION else definition) + 1)
    return True


@kernel
def _agree(data: ReadOnlyUInt8s, columns: Int64Table, stack: Int64Table) -> int:
    """Return whether every column chunk fits its column, or one is encrypted."""
    at = address_in(data)
    stop = at + len(data)
    stack[0, _LEFT], stack[0, _LAST], stack[0, _PLACE] = -1, 0, _FILE
    depth, leaf = 1, -1
    schemas = rows = claimed = bounds = short = 0
    while True:
        top = depth - 1
        place, field, inner = stack[top, _PLACE], 0, stack[top, _PLACE]
        is_field = stack[top, _LEFT] < 0
        if is_field:
            kind, field, at = _field(at, stop, stack[top, _LAST])
            if at < 0:
                return _DAMAGED
            stack[top, _LAST] = field
            if kind == 0:
                if place == _STATISTICS:
                    for pair in (_OLD_BOUNDS, _NEW_BOUNDS):
                        if short & pair and bounds & pair == pair:
                            return _DAMAGED
                    bounds = short = 0
                depth -= 1
                if depth == 0:
                    # parquet-rs 0.3 writes 0 rows for every file.
                    return _SOUND if claimed == 0 or claimed == rows else _DAMAGED
                continue
            inner = _inner_place(place, field, kind)
        elif stack[top, _LEFT] == 0:
            depth -= 1
            continue
        else:
            stack[top, _LEFT] -= 1
            kind = stack[top, _ITEM]
            leaf += place == _CHUNK
        number, size, count, item = -1, 0, -1, 0
        if kind == _TRUE or kind == _FALSE:
            at += 0 if is_field else 1
        elif kind == _I8:
            at += 1
        elif kind <= _I64:
            number, at = varint(at, stop)
            number = signed(number)
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = varint(at, stop)
            if at < 0 or size < 0 or size > stop - at:
                return _DAMAGED
            at += size
        elif kind == _LIST or kind == _SET:
            count, item, at = _items(at, stop)
        elif kind != _STRUCT:
            return _DAMAGED
        if at < 0 or at > stop:
            return _DAMAGED
        if is_field:
            if place == _CHUNK and field == _CRYPTO_METADATA:
                return _ENCRYPTED
            if place < _CHUNK and field == _ROWS and kind == _I64:
                if number < 0:
                    return _DAMAGED
                if place == _FILE:
                    claimed = number
                else:
                    rows += number
            schemas += place == _FILE and field == _SCHEMA
            if place == _STATISTICS and kind == _BINARY and 0 < field <= 6:
                bounds |= 1 << field
                short |= (1 << field) if size < columns[leaf, 3] else 0
            if schemas > 1:
                return _DAMAGED
            if _META <= place < _OTHER and not _fits(place, field, kind, number, count, columns[leaf]):
                return _DAMAGED
            if inner == _CHUNK:
                leaf = -1
                if count != len(columns):
                    return _DAMAGED
        if kind == _STRUCT or kind == _LIST or kind == _SET:
            if depth == _DEEPEST or (kind != _STRUCT and inner < _OTHER and count > 0 and item != _STRUCT):
                return _DAMAGED
            stack[depth, _LEFT], stack[depth, _ITEM], stack[depth, _LAST], stack[depth, _PLACE] = count, item, 0, inner
            depth += 1


def what_is_wrong(footer: bytes, columns: npt.NDArray[np.int64]) -> Literal["damaged", "encrypted"] | None:
    """Return None if every column chunk of a footer has the type of its column, fitting statistics and a known codec.

    A row of ``columns`` has the physical type of a column, its largest levels (repetition, definition), and the bytes
    of a value (0 if values differ in length, or have no bounds).
    """
    stack = np.zeros((_DEEPEST, 4), np.int64)
    state = _agree(np.frombuffer(footer, np.uint8), columns, stack)
    return None if state == _SOUND else "encrypted" if state == _ENCRYPTED else "damaged"
