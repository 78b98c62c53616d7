"""`Split`: the part of a file or table that one task reads; how files are divided; and reading text in whole lines.

Text is read in place where possible, because copying it and clearing pages for it takes as long as parsing it. `chunks`
opens the files, numbers the lines and removes byte order marks; `table_sources` divides tables.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.formats.layout import DETECTED, TextLayout, detect
from parquet_variant.ingestion.sources.input_files import InputFile
from parquet_variant.kernels.buffer_pool import acquire, release
from parquet_variant.support.records import Record

# Bytes of text that are parsed at a time. Fewer bytes cost more calls per column, more bytes cost memory to clear.
CHUNK_BYTES = 12 << 20

# Fills the memory with the text that follows and returns the number of bytes; 0 at the end of the text.
Fill: TypeAlias = Callable[[memoryview], int]
Bytes: TypeAlias = npt.NDArray[np.uint8]

# Newlines are searched in pieces of this size.
_SEARCH_BYTES = 64 << 10
# Bytes that are read after a small range, so that its last line is usually complete.
_TAIL_BYTES = 4 << 10


def stream_text(head: bytes, stream: Any) -> Fill:
    """Return the text of a stream whose first bytes, ``head``, were read already."""
    unread_head = memoryview(head)

    def fill(room: memoryview) -> int:
        nonlocal unread_head
        size = min(len(unread_head), len(room))
        room[:size] = unread_head[:size]
        unread_head = unread_head[size:]
        return size + (int(stream.readinto(room[size:])) if size < len(room) else 0)

    return fill


def first_line_start(file: Any, start: int, end: int) -> int:
    """Return the offset of the first line that begins at or after ``start``; ``end`` if none begins before it."""
    if start == 0:
        return 0
    position = start - 1
    file.seek(position)
    while position < end and (block := file.read(min(_SEARCH_BYTES, end - position))):
        line_start = block.find(b"\n") + 1
        if line_start:
            return position + line_start
        position += len(block)
    return end


def range_text(file: Any, position: int, end: int) -> Fill:
    """Return the text of the lines that begin in ``position <= offset < end``; a line begins at ``position``."""
    file.seek(position)

    def fill(room: memoryview) -> int:
        nonlocal position
        size = int(file.readinto(room)) if position >= 0 else 0
        start = max(end - 1 - position, 0)
        while position >= 0 and start < size:
            newline = bytes(room[start : min(start + _SEARCH_BYTES, size)]).find(b"\n")
            if newline >= 0:
                position = -1
                return start + newline + 1
            start += _SEARCH_BYTES
        position = position + size if position >= 0 else -1
        return size

    return fill


def range_lines(file: Any, start: int, end: int) -> bytes:
    """Return the lines that begin in ``start <= offset < end``, a small range, in as few reads as possible."""
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


def line_chunks(fill: Fill, size: int, max_line: int) -> Iterator[Bytes]:
    """Yield pieces of about ``size`` bytes that end at a newline, except the last; the caller may release them.

    Raises `OverflowError` for a line of more than ``max_line`` bytes.
    """
    room, room_used = acquire(np.uint8, size), 0
    while got := fill(room[room_used:].data):
        piece_end = _last_newline(room, room_used, room_used + got) + 1
        room_used += got
        if piece_end:
            partial_line = room[piece_end:room_used]
            partial_size = len(partial_line)
            next_room = acquire(np.uint8, size if 2 * partial_size <= size else size + partial_size)
            next_room[:partial_size] = partial_line
            room_used = partial_size
            # The partial line is copied before the piece is yielded, because the caller may release its memory.
            piece, room = room[:piece_end], next_room
            yield piece
        elif room_used > max_line:
            raise OverflowError
        elif room_used == len(room):
            larger = acquire(np.uint8, 2 * room_used)
            larger[:room_used] = room
            release(room)
            room = larger
    if room_used:
        yield room[:room_used]
    else:
        release(room)


def _last_newline(text: Bytes, start: int, stop: int) -> int:
    """Return the position of the last newline in ``start <= position < stop``, or -1."""
    while stop > start:
        begin = max(start, stop - _SEARCH_BYTES)
        position = text[begin:stop].tobytes().rfind(b"\n")
        if position >= 0:
            return begin + position
        stop = begin
    return -1


class TablePart(Record):
    """The part of a table that one task reads: a file of a version of a Delta table, or rows in memory."""

    size: int
    number: int = 0
    version: int | None = None
    rows: Any = None


class Split(Record):
    """The lines of a file that begin in the bytes ``start`` to ``end`` (None: to the end of the file)."""

    file: InputFile
    start: int = 0
    end: int | None = None
    part: TablePart | None = None

    @property
    def byte_range(self) -> tuple[int, int] | None:
        """The byte range for `open_chunks`; None for a whole file."""
        return None if self.end is None else (self.start, self.end)

    @property
    def size(self) -> int:
        """The number of stored bytes in the split."""
        if self.part is not None:
            return self.part.size
        return self.file.size if self.end is None else self.end - self.start

    def check_file_length(self, length: int | None = None) -> None:
        """Raise `VariantFileError` if the file is shorter than it was, because rows may be missing then.

        `length`: number of stored bytes that were read; by default the current size of the file.
        """
        expected = self.file.known_size if self.end is None else self.end
        if expected is not None and (self.file.current_size() if length is None else length) < expected:
            name = self.file.name
            raise VariantFileError(
                f"{name} became shorter while it was read: run the operation again", reason="files-changed", file=name
            )


def is_splittable(file: InputFile, layout: TextLayout) -> bool:
    """Return whether byte ranges of a file can be read separately: it is uncompressed, with one value per line."""
    if layout.prefix is not None or file.codec is not None:
        return False
    with file.errors(), file.open_stored() as stream:
        return detect(stream, file.name, layout.format)[1] == "ndjson"


def plan_splits(
    files: Iterable[InputFile],
    split_bytes: int = 128 << 20,
    layout: TextLayout = DETECTED,
    can_split: Callable[[InputFile, TextLayout], bool] = is_splittable,
) -> list[Split]:
    """Divide files into splits of about `split_bytes`; a file that is not splittable becomes one split."""
    splits: list[Split] = []
    for file in files:
        is_divided = file.size > split_bytes and can_split(file, layout)
        parts = -(-file.size // split_bytes) if is_divided else 1
        bounds = [file.size * part // parts for part in range(parts + 1)]
        splits += [Split(file, *pair) for pair in itertools.pairwise(bounds)] if is_divided else [Split(file)]
    return splits
