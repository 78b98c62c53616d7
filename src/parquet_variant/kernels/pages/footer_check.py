"""Whether the column chunks of a Parquet footer agree with its schema, before pyarrow looks at them.

pyarrow 26 ends the process, instead of raising, where a chunk has another type than its column, size statistics that
do not fit it, or a codec that Parquet does not have. Owns the walk over the footer's Thrift (compact protocol) that
finds those. Leaves reading footers to `parquet.format`, whose `thrift` is the readable form. Spec: ``parquet.thrift``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.compiling import Int64s, ReadOnlyUInt8s, helper, kernel

__all__ = ["chunks_agree"]

_TRUE, _FALSE, _I8, _I16, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 6, 7, 8, 9, 10, 12
_BYTE_ARRAY = 6
_LAST_CODEC = 7  # LZ4_RAW
# Field ids: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data, ColumnMetaData.type, .codec and
# .size_statistics, SizeStatistics.
_ROW_GROUPS, _COLUMNS, _META_DATA, _TYPE, _CODEC, _SIZES = 4, 1, 3, 1, 4, 16
_UNENCODED, _REPETITION, _DEFINITION = 1, 2, 3
_DEEPEST = 32


@helper
def _number(data, at):
    """An unsigned number of the compact protocol, and where it ends; -1 if it does not."""
    value, shift = 0, 0
    while at < len(data) and shift < 64:
        byte = int(data[at])
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@helper
def _field(data, at, last):
    """The next field of a struct: its type (0 at the end), its id, and where its value begins; -1 for none."""
    if at < 0 or at >= len(data):
        return 0, 0, -1
    byte = int(data[at])
    at += 1
    if byte == 0:
        return 0, 0, at
    if byte >> 4:
        return byte & 15, last + (byte >> 4), at
    number, at = _number(data, at)
    return byte & 15, (number >> 1) ^ -(number & 1), at


@helper
def _items(data, at):
    """Number and type of the items of a list, and where the first one begins; -1 if there is none."""
    if at < 0 or at >= len(data):
        return 0, 0, -1
    byte = int(data[at])
    at += 1
    count = byte >> 4
    if count == 15:
        count, at = _number(data, at)
    if count < 0 or count > len(data):
        return 0, 0, -1
    return count, byte & 15, at


@helper
def _skipped(data, at, kind, stack):
    """Where a value ends; -1 if it does not. The stack has what is open: items left (-1 in a struct) and their type."""
    if kind == _TRUE or kind == _FALSE:
        return at
    depth = 1
    stack[0], stack[1] = 1, kind
    while depth > 0:
        top = 2 * depth - 2
        kind = stack[top + 1]
        if stack[top] < 0:
            kind, _, at = _field(data, at, 0)
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
            _, at = _number(data, at)
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = _number(data, at)
            if at < 0 or size < 0 or size > len(data) - at:
                return -1
            at += size
        elif kind == _LIST or kind == _SET:
            count, item, at = _items(data, at)
        elif kind == _STRUCT:
            count = -1
        else:
            return -1
        if at < 0 or at > len(data):
            return -1
        if count > -2:
            if depth == _DEEPEST:
                return -1
            stack[2 * depth], stack[2 * depth + 1] = count, item
            depth += 1
    return at


@helper
def _sizes_fit(data, at, physical, repetition, definition, stack):
    """Whether size statistics fit a column of some type and levels; where they end, -1 if they do not fit."""
    last = 0
    while True:
        kind, last, at = _field(data, at, last)
        if at < 0 or kind == 0:
            return at
        if last == _UNENCODED and physical != _BYTE_ARRAY:
            return -1
        if last == _REPETITION or last == _DEFINITION:
            count, _, _ = _items(data, at)
            levels = repetition if last == _REPETITION else definition
            if kind != _LIST or (count != 0 and count != levels + 1):
                return -1
        at = _skipped(data, at, kind, stack)


@helper
def _chunk_fits(data, at, physical, repetition, definition, stack):
    """Whether the metadata of a column chunk fit its column; where they end, -1 if they do not."""
    last = 0
    while True:
        kind, last, at = _field(data, at, last)
        if at < 0 or kind == 0:
            return at
        if last == _TYPE or last == _CODEC:
            number, _ = _number(data, at)
            number = (number >> 1) ^ -(number & 1)
            if (last == _TYPE and number != physical) or (last == _CODEC and not 0 <= number <= _LAST_CODEC):
                return -1
        if last == _SIZES and kind == _STRUCT:
            at = _sizes_fit(data, at, physical, repetition, definition, stack)
        else:
            at = _skipped(data, at, kind, stack)


@helper
def _group_fits(data, at, physical, repetition, definition, stack):
    last = 0
    while True:
        kind, last, at = _field(data, at, last)
        if at < 0 or kind == 0:
            return at
        if last != _COLUMNS or kind != _LIST:
            at = _skipped(data, at, kind, stack)
            continue
        count, _, at = _items(data, at)
        if at < 0 or count != len(physical):
            return -1
        for leaf in range(count):
            inside = 0
            while True:
                kind, inside, at = _field(data, at, inside)
                if at < 0:
                    return -1
                if kind == 0:
                    break
                if inside == _META_DATA and kind == _STRUCT:
                    at = _chunk_fits(data, at, physical[leaf], repetition[leaf], definition[leaf], stack)
                else:
                    at = _skipped(data, at, kind, stack)


@kernel
def _agree(data: ReadOnlyUInt8s, physical: Int64s, repetition: Int64s, definition: Int64s, stack: Int64s) -> int:
    """1 if every column chunk fits its column, else 0."""
    at, last = 0, 0
    while True:
        kind, last, at = _field(data, at, last)
        if at < 0:
            return 0
        if kind == 0:
            return 1
        if last != _ROW_GROUPS or kind != _LIST:
            at = _skipped(data, at, kind, stack)
            continue
        count, _, at = _items(data, at)
        for _ in range(count):
            at = _group_fits(data, at, physical, repetition, definition, stack)
            if at < 0:
                return 0


def chunks_agree(
    footer: bytes, physical: npt.NDArray[np.int64], repetition: npt.NDArray[np.int64], definition: npt.NDArray[np.int64]
) -> bool:
    """Whether every column chunk of a footer has the type of its column, statistics that fit it, and a known codec.

    Parameters
    ----------
    footer
        The Thrift bytes of a FileMetaData.
    physical, repetition, definition
        For each leaf column: the number of its physical type, and its largest levels.
    """
    stack = np.zeros(2 * _DEEPEST + 2, np.int64)
    return bool(_agree(np.frombuffer(footer, np.uint8), physical, repetition, definition, stack))
