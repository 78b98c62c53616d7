"""The `vortex` library, loaded when it is needed, and its files.

Owns the error that says what to install, giving what the library raises or panics with as ours, without its backtrace,
and an open file: its rows, read in blocks that the library can give. Leaves checksums to `trailer`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa

from parquet_variant.array.capsules import without_views
from parquet_variant.array.parts import empty_table
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.fork_safety import cached_property
from parquet_variant.parquet.format.footer_cache import FooterCache, fingerprint_of
from parquet_variant.vortex.files.storing import StoredLayout, layout_of
from parquet_variant.vortex.files.trailer import CheckedSource, ColumnNote, read_notes, text_column

# The rows of a block that the library's writer makes. Up to 0.93 it ends the process (a recursion without end) when it
# gives Arrow rows of its Variant type from more than one block at once.
BLOCK_ROWS = 8192
# A batch has many rows, but not of documents of megabytes.
_MOST_ROWS, _BATCH_BYTES = 1 << 16, 16 << 20
# What is kept of files that were opened: prepared scans of each, and bytes of all.
_MOST_SCANS, _SEGMENT_BYTES = 16, 32 << 20


def vortex() -> ModuleType:
    """The library. Raises `VariantError` if it is not installed (``not-installed``)."""
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
    """Give what the library raises, its panics too, as a `VariantFileError` with the file."""
    try:
        yield
    except (VariantError, MemoryError):
        raise
    except BaseException as error:
        # A panic in Rust comes as pyo3's PanicException, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if source is not None and source.failed is not None:
            raise source.failed from None
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise VariantFileError(f"Vortex says: {message}", file=str(file), reason="vortex-failed") from None


@dataclass(frozen=True, eq=False)
class OpenFile:
    """An open Vortex file; see `open_file`. Threads may share it."""

    path: str
    file: Any
    source: CheckedSource | None
    _scans: dict[tuple[Any, ...], Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.file)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows, without views, and without columns that stand beside others (`text_column`)."""
        with vortex_errors(self.path, self.source):
            schema = self.file.to_arrow().schema
        beside = {text_column(name) for name, note in self.notes.items() if note.has_texts}
        fields = [field.with_type(without_views(field.type, large=False)) for field in schema]
        return pa.schema([field for field in fields if field.name not in beside])

    @cached_property
    def layouts(self) -> dict[str, StoredLayout]:
        """How its Variant columns lie in it: those that its writer noted, or, where it noted none, all that look so."""
        layouts = (
            (field.name, layout_of(field)) for field in self.schema if not self.notes or field.name in self.notes
        )
        return {name: layout for name, layout in layouts if layout is not None}

    @property
    def is_checked(self) -> bool:
        """Whether what is read is compared with checksums."""
        return self.source is not None and self.source.note is not None

    @cached_property
    def notes(self) -> dict[str, ColumnNote]:
        """What the writer noted of each Variant column; nothing in a file of another writer."""
        return read_notes(None if self.source is None else self.source.note)

    @cached_property
    def has_dtype(self) -> bool:
        """Whether a column is of Vortex's own Variant type."""
        return "variant" in str(self.file.dtype)

    def batches(
        self, projection: Any = None, keep: Any = None, ranges: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, or what an expression makes of them.

        `projection`: an expression, or names of columns; None for all.
        `keep`: an expression that is true for the rows wanted.
        `ranges`: first row and the row after the last of what is read at all; None for the whole file.
        """
        with vortex_errors(self.path, self.source):
            scan = self._scan(projection, keep)
            for each in (None,) if ranges is None else ranges:
                yield from scan.execute(row_range=each).to_arrow()

    def _scan(self, projection: Any, keep: Any) -> Any:
        """A prepared scan: what it costs to prepare one is more than to read a column."""
        key = tuple(each.serialize() if hasattr(each, "serialize") else repr(each) for each in (projection, keep))
        scan = self._scans.get(key)
        if scan is None:
            scan = self.file.to_repeated_scan(projection, expr=keep, batch_size=self._batch_rows)
            if len(self._scans) >= _MOST_SCANS:
                self._scans.clear()
            self._scans[key] = scan
        return scan

    @cached_property
    def _batch_rows(self) -> int | None:
        if self.has_dtype:
            return BLOCK_ROWS
        if self.source is None:
            return None
        # By itself the library gives a batch for every block of any column, some of them of a few hundred rows.
        return max(BLOCK_ROWS, min(_MOST_ROWS, len(self) * _BATCH_BYTES // max(self.source.size(), 1)))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns."""
        names = self.schema.names if columns is None else list(columns)
        batches = list(self.batches(names))
        if not batches:
            return empty_table(pa.schema([self.schema.field(name) for name in names]))
        return pa.Table.from_batches(batches)


_FILES: FooterCache[OpenFile] = FooterCache(16)


def open_file(path: Any) -> OpenFile:
    """An open Vortex file, with what is known of it if it was open before; its values are in a bounded cache.

    Raises `VariantFileError` if there is none, or it is none (``no-such-file``, ``damaged-file``, ``vortex-failed``).
    """
    library = vortex()
    name = os.fspath(path)
    if "://" in name:
        with vortex_errors(name):
            return OpenFile(name, library.open(name), None)
    fingerprint = fingerprint_of(name)
    known = None if fingerprint is None else _FILES.get(fingerprint)
    if known is not None and known.path == name and known.source is not None and known.source.failed is None:
        return known
    if not os.path.isfile(name):  # noqa: PTH113 - a name, perhaps of a remote file
        is_directory = os.path.isdir(name)  # noqa: PTH112
        wrong = f"{name} is a directory: use scan_files, or name a file" if is_directory else f"there is no file {name}"
        raise VariantFileError(wrong, file=name, reason="no-such-file")
    source = CheckedSource(name)
    cache = {} if fingerprint is None else {"segment_cache": _segments(), "cache_key": str(fingerprint)}
    with vortex_errors(name, source):
        file = OpenFile(name, library.open_readable(source, **cache), source)
    if fingerprint is not None and fingerprint_of(name) == fingerprint:
        _FILES.add(fingerprint, file, len(source.note or b""))
    return file


@cache
def _segments() -> Any:
    return vortex().SegmentCache(_SEGMENT_BYTES)
