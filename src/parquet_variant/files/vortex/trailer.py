"""The trailer that this package adds to a Vortex file: checksums, and a note on each Variant column.

This is the only private part of a file, for what vortex-data 0.93 lacks: its readers take damaged blocks for data (and
may crash), it has no statistics inside its Variant type (which the RFC asks for), does not expose its zone maps to
Python, and cannot return the fields that are typed in the type. Files are read without a trailer as well.

Owns the trailer, the form of the notes, and reading a file through its checksums. `range_statistics` owns the
statistics in the notes.

The trailer is between the last segment and the postscript. A Vortex reader finds the postscript from the end of the
file and everything else by offset, so it ignores the trailer; a program that rewrites the file drops it::

    segments | checksums of blocks | note | tail | postscript | version, length of the postscript, "VTXF"

where the tail has the lengths of the checksums and the note, the CRC-32 of both and of the bytes after the tail, and a
magic number.
"""

from __future__ import annotations

import hashlib
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
from parquet_variant.files.parquet.format.footer_cache import Fingerprint, state_of
from parquet_variant.files.vortex.range_statistics import RangeStatistics
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.path import VariantPath

BLOCK_BYTES = 1 << 16
_END = struct.Struct("<HH4s")
_TAIL = struct.Struct("<QQIII8s")
_MAGIC, _VORTEX = b"PVVARV03", b"VTXF"


@dataclass(frozen=True, slots=True)
class _Trailer:
    """The offset at which the segments end, the CRC-32 of each of their blocks, and the note."""

    end: int
    checksums: Any
    note: bytes


def append_trailer(path: str | os.PathLike[str], note: bytes) -> None:
    """Insert a trailer into a Vortex file without one."""
    with Path(path).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        _, length, magic = _END.unpack(file.read())
        if magic != _VORTEX:
            raise VariantFileError("not a Vortex file", reason="damaged-file", file=os.fspath(path))
        end = size - _END.size - length
        file.seek(0)
        sums = [zlib.crc32(file.read(min(BLOCK_BYTES, end - offset))) for offset in range(0, end, BLOCK_BYTES)]
        postscript = file.read()
        checksums = np.array(sums, "<u4").tobytes()
        trailer_sum = zlib.crc32(note, zlib.crc32(checksums))
        tail = _TAIL.pack(len(checksums), len(note), BLOCK_BYTES, trailer_sum, zlib.crc32(postscript), _MAGIC)
        file.seek(end)
        file.write(checksums + note + tail + postscript)


class CheckedSource:
    """A local file for `vortex.open_readable`, whose bytes are compared with their checksums when they are read.

    Raises `VariantFileError` if the file is not a Vortex file, or was truncated or changed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.failed: VariantFileError | None = None
        self._state: Fingerprint | None = None
        self._trailer = self._read_trailer()
        # 1 for each block whose checksum was verified.
        self._checked = bytearray(0 if self._trailer is None else len(self._trailer.checksums))

    @property
    def note(self) -> bytes | None:
        """The writer's note; None without a trailer."""
        return None if self._trailer is None else self._trailer.note

    @property
    def version(self) -> str:
        """Text that differs for another content: of the checksums, or else of the size and the time of the change."""
        assert self._state is not None
        if self._trailer is None:
            return f"{self._state[2]} {self._state[3]}"
        return hashlib.sha256(json.dumps(self._trailer.checksums).encode() + self._trailer.note).hexdigest()

    def size(self) -> int:
        """Return the size of the file (called by Vortex)."""
        assert self._state is not None
        return self._state[2]

    def read_at(self, offset: int, length: int) -> Any:
        """Return a part of the file (called by Vortex)."""
        trailer = self._trailer
        if trailer is None or offset >= trailer.end:
            return self._bytes(offset, length)
        first, last = offset // BLOCK_BYTES, (min(offset + length, trailer.end) - 1) // BLOCK_BYTES
        start = first * BLOCK_BYTES
        data = memoryview(self._bytes(start, max((last + 1) * BLOCK_BYTES, offset + length) - start))
        for block in range(first, last + 1):
            if not self._checked[block]:
                block_start = block * BLOCK_BYTES
                block_end = min(block_start + BLOCK_BYTES, trailer.end)
                if zlib.crc32(data[block_start - start : block_end - start]) != trailer.checksums[block]:
                    self.failed = self._damaged("the checksum of a block is wrong", block_start)
                    raise self.failed
                self._checked[block] = 1
        return data[offset - start : offset - start + length]

    def _bytes(self, offset: int, length: int) -> bytes:
        # Opened for each read, so that a cached file keeps neither a deleted file nor a file descriptor open.
        try:
            file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            self.failed = VariantFileError(f"file not found: {self.path}", reason="no-such-file", file=self.path)
            raise self.failed from None
        try:
            state = state_of(file)
            if self._state not in (None, state):
                self.failed = VariantFileError(
                    f"{self.path} changed while it was read: read the file again",
                    reason="files-changed",
                    file=self.path,
                )
                raise self.failed
            self._state = state
            os.lseek(file, offset, os.SEEK_SET)
            return os.read(file, length)
        finally:
            os.close(file)

    def _read_trailer(self) -> _Trailer | None:
        """Return the trailer; None for files of other writers."""
        self._state = state_of(self.path)
        size = 0 if self._state is None else self._state[2]
        ending = self._bytes(max(size - _END.size, 0), _END.size)
        if len(ending) < _END.size or ending[-4:] != _VORTEX:
            raise VariantFileError(
                "not a Vortex file, or a truncated one: the end of the file is not that of a Vortex file",
                reason="damaged-file",
                file=self.path,
            )
        _, length, _ = _END.unpack(ending)
        postscript = size - _END.size - length
        if postscript < 0:
            raise self._damaged("the postscript is longer than the file", size)
        tail = self._bytes(postscript - _TAIL.size, _TAIL.size) if postscript >= _TAIL.size else b""
        if tail[-8:] != _MAGIC:
            return None
        sums, note_length, block, trailer_sum, postscript_sum, _ = _TAIL.unpack(tail)
        end = postscript - _TAIL.size - sums - note_length
        if end < 0 or block != BLOCK_BYTES or sums != 4 * -(-end // block):
            raise self._damaged("the lengths in the trailer are inconsistent", postscript)
        data = self._bytes(end, sums + note_length)
        if zlib.crc32(data) != trailer_sum or zlib.crc32(self._bytes(postscript, size - postscript)) != postscript_sum:
            raise self._damaged("the trailer or the postscript was changed", postscript)
        return _Trailer(end, np.frombuffer(data[:sums], "<u4").tolist(), data[sums:])

    def _damaged(self, problem: str, offset: int) -> VariantFileError:
        return VariantFileError(
            f"the Vortex file was truncated or changed after it was written ({problem}): write it again from its "
            "source",
            reason="damaged-file",
            file=self.path,
            offset=offset,
        )


@dataclass(frozen=True)
class ColumnNote:
    """The note on a Variant column of a file."""

    schema: ShreddingSchema | None = None  # The shredding schema, if the type of the column does not show it.
    # Paths of the schema that are not typed, with the reason.
    in_bytes: Mapping[str, str] = field(default_factory=dict)
    is_json: bool = False  # True if the column was written from JSON text.
    has_texts: bool = False  # True if another column holds the original texts that differ from canonical JSON.
    data: bytes = b""  # The serialized statistics of the shredded children; empty without statistics.

    @cached_property
    def statistics(self) -> RangeStatistics | None:
        """The statistics; None if the writer stored none."""
        return RangeStatistics.from_bytes(self.data) if self.data else None

    @cached_property
    def typed_schema(self) -> ShreddingSchema | None:
        """The part of the schema that is typed inside Vortex's Variant type; None if no field is."""
        fields = () if self.schema is None else self.schema.fields
        typed = {name: node for name, node in fields if str(VariantPath() / name) not in self.in_bytes}
        return ShreddingSchema.object(typed) if typed else None


def text_column(name: str) -> str:
    """Return the name of the column that holds the original texts of a column."""
    return f"{name}$text"


def write_notes(notes: Mapping[str, ColumnNote]) -> bytes:
    """Serialize the notes of columns by name."""
    by_name = {
        name: {
            "schema": None if note.schema is None else note.schema.to_ddl(),
            "in_bytes": dict(note.in_bytes),
            "is_json": note.is_json,
            "has_texts": note.has_texts,
            "data": note.data.hex(),
        }
        for name, note in notes.items()
    }
    return zlib.compress(json.dumps(by_name).encode())


def read_notes(data: bytes | None) -> dict[str, ColumnNote]:
    """Read notes that `write_notes` wrote; empty for files of other writers.

    >>> read_notes(write_notes({"v": ColumnNote(is_json=True)}))["v"].is_json
    True
    """
    notes = {}
    for name, note in json.loads(zlib.decompress(data)).items() if data is not None else ():
        schema = None if note["schema"] is None else ShreddingSchema.from_ddl(note["schema"])
        notes[name] = ColumnNote(**note | {"schema": schema, "data": bytes.fromhex(note["data"])})
    return notes
