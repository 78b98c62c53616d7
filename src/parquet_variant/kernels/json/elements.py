"""Turn a JSON array into lines with one element each, in place.

Owns which commas separate elements. Leaves blocks of text, and errors, to `ingestion.formats.layout`.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.kernels.json.scan import (
    BACKSLASH,
    NEWLINE,
    QUOTE,
    RETURN,
    VERTICAL_TAB,
    last_of_escape,
    plain_until,
)
from parquet_variant.kernels.machine_code.functions import kernel
from parquet_variant.kernels.machine_code.signatures import UInt8s
from parquet_variant.kernels.native_vectors import address_in

_SPACE, _TAB, _COMMA = 0x20, 0x09, 0x2C


class ArrayPlace(NamedTuple):
    """Where in an array a block of text ends."""

    depth: int  # The number of open brackets; 0 before the array, and after it.
    in_string: bool  # Whether a string is open.
    has_text: bool  # Whether the current element has begun.


@kernel
def split_elements(data: UInt8s, place: ArrayPlace) -> tuple[tuple[int, bool, bool], int, int, int, int]:
    """Put a line end after each element, and spaces for line ends inside elements.

    A line end inside a string is overwritten by another byte that JSON forbids. The text must not end in a backslash.
    Returns ``(place, start, stop, ended, empty)``: the fields of the place at the end of the text; where the elements
    begin and where the last one that ended stops; the number that ended; and the number of these without text.
    """
    size, address = len(data), address_in(data)
    depth, in_string, has_text = place
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
