"""The `vortex` library, loaded on first use, and its files.

Owns the error for a missing library, the conversion of its errors and panics to `VariantFileError` without its
backtrace, and open files, whose rows are read in blocks that the library can convert. `trailer` verifies checksums.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import is_storage, without_views
from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.files.parquet.format.footer_cache import FooterCache, fingerprint_of
from parquet_variant.files.vortex.dtype import StoredLayout, layout_of
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.files.vortex.trailer import CheckedSource, ColumnNote, read_notes, text_column
from parquet_variant.io.filesystems import path_text
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.forms import is_json_type

# Rows per block of the library's writer. vortex-data 0.93 and older crashes (by infinite recursion) when it converts
# rows of its Variant type from more than one block to Arrow.
BLOCK_ROWS = 8192
# Limits of a batch: a number of rows, and bytes, for rows that are large documents.
_MOST_ROWS, _BATCH_BYTES = 1 << 16, 16 << 20
# Cached for files that were opened: prepared scans per file, and bytes of segments for all files.
_MOST_SCANS, _SEGMENT_BYTES = 16, 32 << 20


def vortex() -> ModuleType:
    """Return the library; raise `VariantError` (``not-installed``) if it is not installed."""
    try:
        library = import_module("vortex")
        import_module("vortex.expr")
    except ImportError:
        raise VariantError(
            "Vortex files need vortex-data: pip install 'parquet-variant[vortex]'", reason="not-installed"
        ) from None
    return library


@contextmanager
def vortex_errors(file: Any, source: CheckedSource | None = None) -> Iterator[None]:
    """Raise errors and panics of the library as `VariantFileError` with the file."""
    try:
        yield
    except (VariantError, MemoryError):
        raise
    except BaseException as error:
        # A panic in Rust is raised as pyo3's PanicException: a BaseException whose class Python code cannot import.
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        if source is not None and source.failed is not None:
            raise source.failed from None
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise VariantFileError(
            f"vortex-data cannot process the file: {message}", file=str(file), reason="vortex-failed"
        ) from None


@dataclass(frozen=True, eq=False)
class OpenVortexFile:
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
                raise VariantFileError(
                    f"the file holds one array of the type {kind}, not columns: write a table with vortex.io.write",
                    file=self.path,
                    reason="no-columns",
                )
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
        others = [field for field in self.schema if field.name not in self.layouts]
        return {".".join(place): place for place in _variants_below(others)}

    @property
    def is_checked(self) -> bool:
        """True if the bytes that are read are compared with checksums."""
        return self.source is not None and self.source.note is not None

    @cached_property
    def notes(self) -> dict[str, ColumnNote]:
        """The writer's notes on each Variant column; empty for files of other writers."""
        return read_notes(None if self.source is None else self.source.note)

    def note(self, column: str | None) -> ColumnNote:
        """Return the writer's note on a Variant column; an empty note if there is none."""
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
                scan = self.file.to_repeated_scan(projection, expr=keep, batch_size=self._batch_rows)
                if len(self._scans) >= _MOST_SCANS:
                    self._scans.clear()
                self._scans[key] = scan
            for row_range in (None,) if ranges is None else ranges:
                yield from scan.execute(row_range=row_range).to_arrow()

    @cached_property
    def _batch_rows(self) -> int | None:
        if "variant" in str(self.file.dtype):  # A column has Vortex's own Variant type.
            return BLOCK_ROWS
        if self.source is None:
            return None
        # By default the library returns a batch per block of any column, some of them with a few hundred rows.
        return max(BLOCK_ROWS, min(_MOST_ROWS, len(self) * _BATCH_BYTES // max(self.source.size(), 1)))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of columns, by default of all columns."""
        names = self.schema.names if columns is None else list(columns)
        batches = list(self.batches(names))
        if not batches:
            return empty_table(pa.schema([self.schema.field(name) for name in names]))
        return pa.Table.from_batches(batches)


def _variants_below(fields: Iterable[pa.Field]) -> Iterator[tuple[str, ...]]:
    for child in fields:
        if is_storage(child.type):
            yield (child.name,)
        elif pa.types.is_struct(child.type):
            yield from ((child.name, *place) for place in _variants_below(child.type))


_FILES: FooterCache[OpenVortexFile] = FooterCache(16)


def open_file(path: Any) -> OpenVortexFile:
    """Open a Vortex file; a file that was open before, and has not changed, is taken from a bounded cache.

    Raises `VariantFileError` if the file does not exist or is not a Vortex file (``no-such-file``, ``damaged-file``,
    ``vortex-failed``).
    """
    library = vortex()
    name = path_text(path)
    if "://" in name:
        with vortex_errors(name):
            return OpenVortexFile(name, library.open(name), None)
    fingerprint = fingerprint_of(name)
    cached = None if fingerprint is None else _FILES.get(fingerprint)
    if cached is not None and cached.path == name and cached.source is not None and cached.source.failed is None:
        return cached
    if not os.path.isfile(name):  # noqa: PTH113 - a name, perhaps of a remote file
        is_directory = os.path.isdir(name)  # noqa: PTH112
        problem = f"no Vortex file found at {name}" if is_directory else f"file not found: {name}"
        raise VariantFileError(problem, file=name, reason="no-such-file")
    source = CheckedSource(name)
    cache = {} if fingerprint is None else {"segment_cache": _segments(), "cache_key": str(fingerprint)}
    with vortex_errors(name, source):
        file = OpenVortexFile(name, library.open_readable(source, **cache), source)
    if fingerprint is not None and fingerprint_of(name) == fingerprint:
        _FILES.add(fingerprint, file, len(source.note or b""))
    return file


def open_files(path: Any) -> list[OpenVortexFile]:
    """Open the files that a path names: a file, the matches of a glob, or the Vortex files of a directory."""
    return [open_file(file) for file in vortex_files(path) or [path]]


@cache
def _segments() -> Any:
    return vortex().SegmentCache(_SEGMENT_BYTES)
