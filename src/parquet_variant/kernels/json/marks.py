"""The marks of JSON text that stand outside of strings: brackets, commas, colons and line ends.

Owns telling strings from what is between them, for text that comes in blocks. Leaves what the marks mean to
`ingest.formats`, and whether the text is JSON to the parser.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.memory import stops_of_32, trailing_zeros
from parquet_variant.kernels.native_vectors import address_in, export_vector, new_vector, reserve
from parquet_variant.machine_code.signatures import UInt8s

# Of an entry, those that hold the class of the mark; its place is above them.
KIND_BITS = 3
_QUOTE, _BACKSLASH, _NEWLINE, _RETURN, _VERTICAL_TAB = 0x22, 0x5C, 0x0A, 0x0D, 0x0B


@helper
def _plain_until(address, pos, size):
    """Where something stands that may end plain text, or so little is left that it must be looked at byte by byte."""
    while pos + 32 <= size:
        hits = stops_of_32(address + pos)
        if hits != 0:
            return pos + trailing_zeros(hits)
        pos += 32
    return pos


@kernel
def find_marks(data: UInt8s, classes: UInt8s, in_string: bool) -> tuple[tuple[int, int], bool]:
    """The marks outside of strings, for `adopt`, and whether the text ends in a string.

    ``classes`` has the class of each byte, 0 for what is no mark. Line ends inside strings are overwritten by a byte
    that JSON forbids as well. The text must not end in a backslash.
    """
    size, address = len(data), address_in(data)
    marks = new_vector(size // 8 + 64)
    count = pos = 0
    while pos < size:
        if in_string:
            pos = _plain_until(address, pos, size)
            if pos >= size:
                break
        byte = data[pos]
        if byte == _BACKSLASH:
            if pos + 1 < size and (data[pos + 1] == _QUOTE or data[pos + 1] == _BACKSLASH):
                pos += 1
        elif byte == _QUOTE:
            in_string = not in_string
        elif in_string:
            if byte == _NEWLINE or byte == _RETURN:
                data[pos] = _VERTICAL_TAB
        elif classes[byte] != 0:
            marks = reserve(marks, count + 1)
            marks[count] = pos << KIND_BITS | classes[byte]
            count += 1
        pos += 1
    return export_vector(marks, count), in_string
