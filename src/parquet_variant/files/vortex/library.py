"""The `vortex` library, loaded on first use, and its files, with the trailer that this package adds to them.

Owns the error for a missing library, the conversion of its errors and panics to `VariantFileError` without its
backtrace; open files, whose rows are read in blocks that the library can convert; and the trailer: checksums, and a
note on each Variant column. `range_statistics` owns the statistics in the notes.

The trailer is the only private part of a file, for what vortex-data 0.93 lacks: its readers take damaged blocks for
data (and may crash), it has no statistics inside its Variant type (which the RFC asks for), does not expose its zone
maps to Python, and cannot return the fields that are typed in the type. Files are read without a trailer as well.

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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import is_storage, variant_places, without_views
from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantError, VariantFileError, first_line
from parquet_variant.files.parquet.format.footer_cache import Fingerprint, FooterCache, fingerprint_of, state_of
from parquet_variant.files.vortex.dtype import StoredLayout, layout_of
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.files.vortex.range_statistics import RangeStatistics
from parquet_variant.io.directories import VORTEX_MAGIC
from parquet_variant.io.filesystems import path_text, read_errors
from parquet_variant.io.object_stores import is_panic
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types.forms import is_json_type
from parquet_variant.types.path import VariantPath

BLOCK_BYTES = 1 << 16
_END = struct.Struct("<HH4s")
_TAIL = struct.Struct("<QQIII8s")
_MAGIC = b"PVVARV03"


class _Trailer(NamedTuple):
    """The offset at which the segments end, the CRC-32 of each of their blocks, and the note."""

    end: int
    checksums: list[int]
    note: bytes


def append_trailer(path: str | os.PathLike[str], note: bytes) -> None:
    """Insert a trailer into a Vortex file without one."""
    with Path(path).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        _, length, magic = _END.unpack(file.read())
        if magic != VORTEX_MAGIC:
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
            with read_errors(self.path), open(self.path, "rb", buffering=0) as file:  # noqa: PTH123 - no path object
                state = state_of(file.fileno())
                if self._state not in (None, state):
                    problem = f"{self.path} changed while it was read: read the file again"
                    raise VariantFileError(problem, reason="files-changed", file=self.path)
                self._state = state
                file.seek(offset)
                return file.read(length)
        except VariantFileError as error:
            self.failed = error
            if not os.path.exists(self.path):  # noqa: PTH110 - no path object
                self.failed = VariantFileError(f"file not found: {self.path}", reason="not-found", file=self.path)
            raise self.failed from None

    def _read_trailer(self) -> _Trailer | None:
        """Return the trailer; None for files of other writers."""
        self._state = state_of(self.path)
        size = 0 if self._state is None else self._state[2]
        ending = self._bytes(max(size - _END.size, 0), _END.size)
        if len(ending) < _END.size or ending[-4:] != VORTEX_MAGIC:
            problem = "not a Vortex file, or a truncated one: the end of the file is not that of a Vortex file"
            raise VariantFileError(problem, reason="damaged-file", file=self.path)
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


class ColumnNote(Record):
    """The note on a Variant column of a file."""

    schema: ShreddingSchema | None = None  # The shredding schema, if the type of the column does not show it.
    # Paths of the schema that are not typed, with the reason.
    in_bytes: dict[str, str] = field(default_factory=dict)
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
        name: asdict(replace(note, schema=None))
        | {"schema": None if note.schema is None else note.schema.to_ddl(), "data": note.data.hex()}
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


# Rows per block of the library's writer. vortex-data 0.93 and older crashes (by infinite recursion) when it converts
# rows of its Variant type from more than one block to Arrow.
BLOCK_ROWS = 8192
# Limits of a batch: a number of rows, and bytes, for rows that are large documents.
_MOST_ROWS, _BATCH_BYTES = 1 << 16, 16 << 20
# Cached for files that were opened: prepared scans per file, and bytes of segments for all files.
_MOST_SCANS, _SEGMENT_BYTES = 16, 32 << 20


def vortex() -> ModuleType:
    """Return the library. Raises `VariantError`: reason ``"missing-extra"`` if it is not installed."""
    with optional_libraries("a Vortex file"):
        library = import_module("vortex")
        import_module("vortex.expr")
    return library


@contextmanager
def vortex_errors(file: Any, source: CheckedSource | None = None) -> Iterator[None]:
    """Raise errors and panics of the library as `VariantFileError` with the file."""
    try:
        yield
    except (VariantError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        if source is not None and source.failed is not None:
            raise source.failed from None
        problem = f"vortex-data cannot process the file: {first_line(error)}"
        raise VariantFileError(problem, file=str(file), reason="vortex-failed") from None


class OpenVortexFile(Record, eq=False):
    """An open Vortex file; see `open_file`. Threads may share it."""

    path: str
    file: Any
    source: CheckedSource | None
    _scans: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.file)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows, without view types and columns of original texts (`text_column`)."""
        with vortex_errors(self.path, self.source):
            kind = str(self.file.dtype)
            if not kind.startswith("{"):
                problem = (
                    f"the file holds one array of the type {kind}, not columns: write a table with vortex.io.write"
                )
                raise VariantFileError(problem, file=self.path, reason="no-columns")
            schema = self.file.to_arrow().schema
        text_columns = {text_column(name) for name, note in self.notes.items() if note.has_texts}
        fields = [field.with_type(without_views(field.type, large=False)) for field in schema]
        return pa.schema([field for field in fields if field.name not in text_columns])

    @cached_property
    def layouts(self) -> dict[str, StoredLayout]:
        """Layout of each Variant column: those in the notes or, without notes, all that look like Variants."""
        layouts = (
            (field.name, layout_of(field)) for field in self.schema if not self.notes or field.name in self.notes
        )
        return {name: layout for name, layout in layouts if layout is not None}

    def shredding_schema(self, column: str) -> ShreddingSchema:
        """Return the schema of a Variant column, ``variant`` if it is unshredded."""
        note = self.note(column)
        if note.schema is not None:
            return note.schema
        kind = self.schema.field(column).type
        is_shredded = kind.get_field_index("typed_value") >= 0
        return ShreddingSchema.from_storage(kind) if is_shredded else ShreddingSchema.variant()

    @cached_property
    def json_columns(self) -> list[str]:
        """Names of the columns of JSON text: those of the type ``vortex.json``, which is ``arrow.json`` in Arrow."""
        return [field.name for field in self.schema if is_json_type(field.type)]

    @cached_property
    def nested_variants(self) -> dict[str, tuple[str, ...]]:
        """Names of the struct and its fields, for each Variant inside of structs by its dotted name."""
        plain_fields = (field for field in self.schema if field.name not in self.layouts)
        places = variant_places(plain_fields, lambda field: is_storage(field.type))
        return {".".join(place): place for place in places}

    @cached_property
    def notes(self) -> dict[str, ColumnNote]:
        """The writer's notes on each Variant column; empty for files of other writers."""
        return read_notes(None if self.source is None else self.source.note)

    def note(self, column: str | None) -> ColumnNote:
        """Return the writer's note on a Variant column, or an empty note."""
        return self.notes.get(column or "") or ColumnNote()

    @property
    def size(self) -> int:
        """Number of bytes of a local file; 0 for others."""
        return 0 if self.source is None else self.source.size()

    def batches(
        self, projection: Any = None, keep: Any = None, ranges: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or the results of an expression over them.

        `projection`: an expression, or names of columns; None for all columns.
        `keep`: an expression that is true for the rows to return.
        `ranges`: first row and the row after the last of each range to read; None for the whole file.
        """
        key = tuple(part.serialize() if hasattr(part, "serialize") else repr(part) for part in (projection, keep))
        with vortex_errors(self.path, self.source):
            scan = self._scans.get(key)
            if scan is None:  # Preparing a scan costs more than reading a column.
                rows: int | None = None
                if "variant" in str(self.file.dtype):  # A column has Vortex's own Variant type.
                    rows = BLOCK_ROWS
                elif self.source is not None:
                    # By default the library returns a batch per block of any column, some with a few hundred rows.
                    rows = max(BLOCK_ROWS, min(_MOST_ROWS, len(self) * _BATCH_BYTES // max(self.source.size(), 1)))
                scan = self.file.to_repeated_scan(projection, expr=keep, batch_size=rows)
                if len(self._scans) >= _MOST_SCANS:
                    self._scans.clear()
                self._scans[key] = scan
            for row_range in (None,) if ranges is None else ranges:
                yield from scan.execute(row_range=row_range).to_arrow()

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of columns, by default of all columns."""
        names = self.schema.names if columns is None else list(columns)
        batches = list(self.batches(names))
        if not batches:
            return empty_table(pa.schema([self.schema.field(name) for name in names]))
        return pa.Table.from_batches(batches)


_FILES: FooterCache[OpenVortexFile] = FooterCache(16)


def open_file(path: Any) -> OpenVortexFile:
    """Open a Vortex file; a file that was open before, and has not changed, is taken from a bounded cache.

    Raises `VariantFileError` if the file does not exist or is not a Vortex file (``not-found``, ``damaged-file``,
    ``vortex-failed``).
    """
    library = vortex()
    name = path_text(path)
    if "://" in name:
        with vortex_errors(name):
            return OpenVortexFile(name, library.open(name), None)
    fingerprint = fingerprint_of(name)
    cached = _FILES.get(name, fingerprint)
    if cached is not None and cached.path == name and cached.source is not None and cached.source.failed is None:
        return cached
    if not os.path.isfile(name):  # noqa: PTH113 - a name, perhaps of a remote file
        raise VariantFileError(f"no Vortex file found at {name}", file=name, reason="not-found")
    source = CheckedSource(name)
    cache = {} if fingerprint is None else {"segment_cache": _segments(), "cache_key": str(fingerprint)}
    with vortex_errors(name, source):
        file = OpenVortexFile(name, library.open_readable(source, **cache), source)
    _FILES.add(name, fingerprint, file, len(source.note or b""))
    return file


def open_files(path: Any) -> list[OpenVortexFile]:
    """Open the files that a path names: a file, the matches of a glob, or the Vortex files of a directory."""
    return [open_file(file) for file in vortex_files(path) or [path]]


@cache
def _segments() -> Any:
    return vortex().SegmentCache(_SEGMENT_BYTES)
