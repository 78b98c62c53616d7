"""What this package writes into a Vortex file beside the columns: checksums, and a note for each Variant column.

Owns the trailer, the notes' form, and reading a file through its checksums. Leaves statistics to `range_statistics`.
vortex-data has neither: its readers take a damaged block for data (and may end the process over it), and its zone maps
are not given to Python.

The trailer lies between the last segment and the postscript. A Vortex reader finds the postscript from the end of the
file and everything else by its offset, so that it never looks there; who writes the file anew drops it::

    segments | checksums of blocks | note | tail | postscript | version, length of the postscript, "VTXF"

where the tail has the lengths of checksums and note, the CRC-32 of both and of what follows, and a magic number.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parquet_variant.errors import VariantFileError
from parquet_variant.fork_safety import cached_property
from parquet_variant.parquet.format.footer_cache import Fingerprint, state_of
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.vortex.logical.range_statistics import RangeStatistics

BLOCK_BYTES = 1 << 16
_END = struct.Struct("<HH4s")
_TAIL = struct.Struct("<QQIII8s")
_MAGIC, _VORTEX = b"PVVARV01", b"VTXF"


@dataclass(frozen=True, slots=True)
class _Trailer:
    """Where the segments end, the CRC-32 of each block of them, and the note."""

    end: int
    checksums: Any
    note: bytes


def append_trailer(path: str | os.PathLike[str], note: bytes) -> None:
    """Put a trailer into a Vortex file that has none."""
    with Path(path).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        _, length, magic = _END.unpack(file.read())
        if magic != _VORTEX:
            raise VariantFileError("this is no Vortex file", reason="damaged-file", file=os.fspath(path))
        end = size - _END.size - length
        file.seek(0)
        sums = [zlib.crc32(file.read(min(BLOCK_BYTES, end - at))) for at in range(0, end, BLOCK_BYTES)]
        postscript = file.read()
        checksums = np.array(sums, "<u4").tobytes()
        own = zlib.crc32(note, zlib.crc32(checksums))
        tail = _TAIL.pack(len(checksums), len(note), BLOCK_BYTES, own, zlib.crc32(postscript), _MAGIC)
        file.seek(end)
        file.write(checksums + note + tail + postscript)


class CheckedSource:
    """A local file for `vortex.open_readable`: what is read of it is compared with its checksums first.

    Raises `VariantFileError` if it is no Vortex file, or was cut or changed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.failed: VariantFileError | None = None
        self._state: Fingerprint | None = None
        self._trailer = self._read_trailer()
        # Blocks that were found to be whole.
        self._checked = bytearray(0 if self._trailer is None else len(self._trailer.checksums))

    @property
    def note(self) -> bytes | None:
        """What the writer noted; None if there is no trailer."""
        return None if self._trailer is None else self._trailer.note

    def size(self) -> int:
        """The file's length, as Vortex asks for it."""
        assert self._state is not None
        return self._state[2]

    def read_at(self, offset: int, length: int) -> Any:
        """A part of the file, as Vortex asks for it."""
        trailer = self._trailer
        if trailer is None or offset >= trailer.end:
            return self._bytes(offset, length)
        first, last = offset // BLOCK_BYTES, (min(offset + length, trailer.end) - 1) // BLOCK_BYTES
        start = first * BLOCK_BYTES
        data = memoryview(self._bytes(start, max((last + 1) * BLOCK_BYTES, offset + length) - start))
        for block in range(first, last + 1):
            if not self._checked[block]:
                at = block * BLOCK_BYTES
                if (
                    zlib.crc32(data[at - start : min(at + BLOCK_BYTES, trailer.end) - start])
                    != trailer.checksums[block]
                ):
                    self.failed = self._damaged("its checksum is another one", at)
                    raise self.failed
                self._checked[block] = 1
        return data[offset - start : offset - start + length]

    def _bytes(self, offset: int, length: int) -> bytes:
        # Opened each time: who keeps what is known of a file keeps neither a deleted one nor another's descriptor.
        file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            state = state_of(file)
            if self._state not in (None, state):
                self.failed = VariantFileError(
                    f"{self.path} changed while it was read: read it again", reason="files-changed", file=self.path
                )
                raise self.failed
            self._state = state
            os.lseek(file, offset, os.SEEK_SET)
            return os.read(file, length)
        finally:
            os.close(file)

    def _read_trailer(self) -> _Trailer | None:
        """The trailer; None in a file of another writer."""
        size = Path(self.path).stat().st_size
        ending = self._bytes(max(size - _END.size, 0), _END.size)
        if len(ending) < _END.size or ending[-4:] != _VORTEX:
            raise VariantFileError(
                "this is no Vortex file, or it was cut: it does not end as one does",
                reason="damaged-file",
                file=self.path,
            )
        _, length, _ = _END.unpack(ending)
        at = size - _END.size - length
        if at < 0:
            raise self._damaged("its postscript is longer than the file", size)
        tail = self._bytes(at - _TAIL.size, _TAIL.size) if at >= _TAIL.size else b""
        if tail[-8:] != _MAGIC:
            return None
        sums, note_length, block, own, postscript, _ = _TAIL.unpack(tail)
        end = at - _TAIL.size - sums - note_length
        if end < 0 or block != BLOCK_BYTES or sums != 4 * -(-end // block):
            raise self._damaged("the lengths of its parts cannot be", at)
        data = self._bytes(end, sums + note_length)
        if zlib.crc32(data) != own or zlib.crc32(self._bytes(at, size - at)) != postscript:
            raise self._damaged("its end was changed", at)
        return _Trailer(end, np.frombuffer(data[:sums], "<u4").tolist(), data[sums:])

    def _damaged(self, what: str, offset: int) -> VariantFileError:
        return VariantFileError(
            f"the Vortex file was cut or changed after it was written: {what}; write it anew from its source",
            reason="damaged-file",
            file=self.path,
            offset=offset,
        )


_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class ColumnNote:
    """A Variant column of a file."""

    schema: ShreddingSchema | None = None  # What is typed in it, where that does not show in the column's type.
    # Paths that were to be typed and are not, with the reason.
    in_bytes: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False  # Whether it was a column of JSON text.
    has_texts: bool = False  # Whether texts that are not what the values print lie in a column beside it.
    data: bytes = b""  # The statistics of its shredded children, as bytes; none if empty.

    @cached_property
    def statistics(self) -> RangeStatistics | None:
        """The statistics; None if there are none."""
        return RangeStatistics.from_bytes(self.data) if self.data else None


def text_column(name: str) -> str:
    """The name of the column with the texts of another."""
    return f"{name}$text"


def write_notes(notes: Mapping[str, ColumnNote]) -> bytes:
    """Put the notes of columns by name into bytes."""
    about = {
        name: {
            "schema": None if note.schema is None else note.schema.to_ddl(),
            "in_bytes": dict(note.in_bytes),
            "is_json": note.is_json,
            "has_texts": note.has_texts,
            "statistics": len(note.data),
        }
        for name, note in notes.items()
    }
    head = json.dumps(about).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *(note.data for note in notes.values())])


def read_notes(data: bytes | None) -> dict[str, ColumnNote]:
    """Read what `write_notes` made; nothing of a file of another writer.

    >>> read_notes(write_notes({"v": ColumnNote(is_json=True)}))["v"].is_json
    True
    """
    if data is None:
        return {}
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    notes = {}
    for name, about in json.loads(data[_LENGTH.size : at]).items():
        size, earlier = about.pop("statistics", 0), about.pop("bytes", 0)  # an earlier form, which is left alone
        ddl = about.pop("schema")
        schema = None if ddl is None else ShreddingSchema.from_ddl(ddl)
        notes[name] = ColumnNote(schema, **about, data=data[at : at + size])
        at += size + earlier
    return notes
