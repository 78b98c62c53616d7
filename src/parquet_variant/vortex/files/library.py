"""The `vortex` library, loaded when it is needed, and its files.

Owns the error that says what to install, giving what the library raises or panics with as ours, without its backtrace,
and an open file: its rows, read in blocks that the library can give. Leaves checksums to `trailer`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa

from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.vortex.files.notes import ColumnNote, read_notes, text_column
from parquet_variant.vortex.files.trailer import CheckedSource

__all__ = ["BLOCK_ROWS", "OpenFile", "open_file", "vortex", "vortex_errors"]

# The rows of a block that the library's writer makes. Up to 0.93 it ends the process (a recursion without end) when it
# gives Arrow rows of its Variant type from more than one block at once.
BLOCK_ROWS = 8192


def vortex() -> ModuleType:
    """The library.

    Raises
    ------
    VariantError
        If it is not installed (``not-installed``).
    """
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


@dataclass(frozen=True)
class OpenFile:
    """An open Vortex file; see `open_file`."""

    path: str
    file: Any
    source: CheckedSource | None

    def __len__(self) -> int:
        return len(self.file)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of its rows, without the columns that stand beside others (`notes.text_column`)."""
        with vortex_errors(self.path, self.source):
            schema = self.file.to_arrow().schema
        beside = {text_column(name) for name, note in self.notes.items() if note.has_texts}
        return pa.schema([field for field in schema if field.name not in beside])

    @property
    def is_checked(self) -> bool:
        """Whether what is read is compared with checksums."""
        return self.source is not None and self.source.note is not None

    @cached_property
    def notes(self) -> dict[str, ColumnNote]:
        """What the writer noted of each Variant column; nothing in a file of another writer."""
        return read_notes(None if self.source is None else self.source.note)

    def batches(
        self, projection: Any = None, keep: Any = None, ranges: Sequence[tuple[int, int]] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, or what an expression makes of them.

        Parameters
        ----------
        projection
            An expression, or names of columns; None for all.
        keep
            An expression that is true for the rows wanted.
        ranges
            First row and the row after the last of what is read at all; None for the whole file.
        """
        options: dict[str, Any] = {"expr": keep}
        if "variant" in str(self.file.dtype):
            options["batch_size"] = BLOCK_ROWS
        with vortex_errors(self.path, self.source):
            if ranges is None:
                readers: Iterator[Any] = iter([self.file.to_arrow(projection, **options)])
            else:
                scan = self.file.to_repeated_scan(projection, **options)
                readers = (scan.execute(row_range=each).to_arrow() for each in ranges)
        while True:
            with vortex_errors(self.path, self.source):
                reader = next(readers, None)
            if reader is None:
                return
            while True:
                with vortex_errors(self.path, self.source):
                    batch = next(reader, None)
                if batch is None:
                    break
                yield batch

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of some columns."""
        names = self.schema.names if columns is None else list(columns)
        batches = list(self.batches(names))
        if not batches:
            return pa.schema([self.schema.field(name) for name in names]).empty_table()
        return pa.Table.from_batches(batches)


def open_file(path: Any) -> OpenFile:
    """An open Vortex file.

    Raises
    ------
    VariantFileError
        If there is none, or it is none (``no-such-file``, ``damaged-file``, ``vortex-failed``).
    """
    library = vortex()
    name = os.fspath(path)
    if "://" in name:
        with vortex_errors(name):
            return OpenFile(name, library.open(name), None)
    if not os.path.isfile(name):  # noqa: PTH113 - a name, perhaps of a remote file
        raise VariantFileError(f"there is no file {name}", file=name, reason="no-such-file")
    source = CheckedSource(name)
    with vortex_errors(name, source):
        return OpenFile(name, library.open_readable(source), source)
