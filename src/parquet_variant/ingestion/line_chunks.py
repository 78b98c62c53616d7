"""Text read into memory of the buffer pool, in pieces that end at a line.

Owns where a piece is cut and the memory it lies in: as much is read in place as can be, since copying text and clearing
pages for it would take as long as parsing it. Leaves files, line numbers and byte order marks to `sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.buffer_pool import acquire, release

# Fills some memory with the text that comes next, as far as it goes; how many bytes that are, 0 at the end.
Fill: TypeAlias = Callable[[memoryview], int]
Bytes: TypeAlias = npt.NDArray[np.uint8]

# Newlines are looked for in stretches of this size.
_SEARCH_BYTES = 64 << 10
# What is read behind a small range, so that its last line is mostly read with it.
_TAIL_BYTES = 4 << 10


def stream_text(head: bytes, stream: Any) -> Fill:
    """The text of a stream of which ``head`` was read already."""
    ahead = memoryview(head)

    def fill(room: memoryview) -> int:
        nonlocal ahead
        size = min(len(ahead), len(room))
        room[:size] = ahead[:size]
        ahead = ahead[size:]
        return size + (int(stream.readinto(room[size:])) if size < len(room) else 0)

    return fill


def first_line_start(file: Any, start: int, end: int) -> int:
    """Where the first line begins at or after ``start``; no less than ``end`` if there is none before."""
    if start == 0:
        return 0
    position = start - 1
    file.seek(position)
    while position < end and (block := file.read(min(_SEARCH_BYTES, end - position))):
        cut = block.find(b"\n") + 1
        if cut:
            return position + cut
        position += len(block)
    return end


def range_text(file: Any, position: int, end: int) -> Fill:
    """The text of the lines that begin in ``position <= offset < end``; a line begins at ``position``."""
    file.seek(position)

    def fill(room: memoryview) -> int:
        nonlocal position
        size = int(file.readinto(room)) if position >= 0 else 0
        last = _next_newline(room[:size], max(end - 1 - position, 0))
        position = -1 if last >= 0 else position + size
        return last + 1 if last >= 0 else size

    return fill


def range_lines(file: Any, start: int, end: int) -> bytes:
    """The lines that begin in ``start <= offset < end``, of a range that is small, in as few reads as can be."""
    begin = max(start - 1, 0)
    file.seek(begin)
    text = file.read(end - begin + _TAIL_BYTES)
    first = text.find(b"\n") + 1 if start else 0
    if begin + first >= end or (start and not first):
        return b""
    stop = text.find(b"\n", end - 1 - begin) + 1
    parts = [text[first : stop or None]]
    while not stop and (text := file.read(_SEARCH_BYTES)):
        stop = text.find(b"\n") + 1
        parts.append(text[: stop or None])
    return b"".join(parts)


def line_chunks(fill: Fill, size: int, most: int) -> Iterator[Bytes]:
    """Pieces of about ``size`` bytes; the last line of the last piece may lack its newline.

    A piece can be released (`buffer_pool.release`) when nothing uses its text any more. Raises `OverflowError` for a
    line of more than ``most`` bytes.
    """
    room, used = acquire(np.uint8, size), 0
    while got := fill(room[used:].data):
        cut = _last_newline(room, used, used + got) + 1
        used += got
        if cut:
            rest = room[cut:used]
            following = acquire(np.uint8, size if 2 * len(rest) <= size else size + len(rest))
            following[: len(rest)] = rest
            used = len(rest)
            # Before the piece is given away: its memory may be someone else's afterwards.
            piece, room = room[:cut], following
            yield piece
        elif used > most:
            raise OverflowError
        elif used == len(room):
            larger = acquire(np.uint8, 2 * used)
            larger[:used] = room
            release(room)
            room = larger
    if used:
        yield room[:used]
    else:
        release(room)


def _last_newline(text: Bytes, start: int, stop: int) -> int:
    """Where the last newline is at or after ``start`` and before ``stop``; -1 if there is none."""
    while stop > start:
        begin = max(start, stop - _SEARCH_BYTES)
        at = text[begin:stop].tobytes().rfind(b"\n")
        if at >= 0:
            return begin + at
        stop = begin
    return -1


def _next_newline(text: memoryview, start: int) -> int:
    """Where the first newline is at or after ``start``; -1 if there is none."""
    while start < len(text):
        at = bytes(text[start : start + _SEARCH_BYTES]).find(b"\n")
        if at >= 0:
            return start + at
        start += _SEARCH_BYTES
    return -1
