"""A Parquet file of Arrow columns, row group by row group.

Owns the order of things in the file. Leaves columns to `column_chunk`, the structs of the footer to `file_metadata`,
and files, names and row groups' sizes to `writing.writer`. Encoded pages of one row group are held, and of each column
values of a page; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from parquet_variant._version import __version__
from parquet_variant.kernels.shredding.json_batch import ShreddedRows
from parquet_variant.parquet.format.footer import MAGIC
from parquet_variant.parquet.pages.codecs import codec_number, compressor
from parquet_variant.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Shared, Slots
from parquet_variant.parquet.pages.encodings import Encoding
from parquet_variant.parquet.pages.file_metadata import (
    PlacedChunk,
    PlacedGroup,
    bloom_filter,
    column_index,
    encoded_footer,
    offset_index,
)
from parquet_variant.parquet.pages.file_schema import LeafColumn, file_schema
from parquet_variant.parquet.pages.leaf_types import Physical
from parquet_variant.parquet.pages.leaf_values import Values, stored_numbers
from parquet_variant.parquet.pages.levels import Entries, NodeEntries, leaf_entries

_CREATED_BY = f"parquet-variant version {__version__}"
# Arrow bytes that are encoded at a time: what a page holds is no less than a column's share of it.
SLICE_BYTES, MOST_SLICE_BYTES = 16 << 20, 128 << 20
_WRITTEN_BYTES = 256 << 10


class PageFileWriter:
    """Write Arrow columns into a Parquet file.

    `sink`: what the bytes are written to.
    `schema`: the columns.
    `variants`: schema paths of the groups that get the VARIANT annotation.
    `compression` and `compression_level`: the codec, and its level; a level by dotted leaf path, or one for all.
    `use_dictionary`: the dotted paths of leaves that begin with a dictionary; True or False for all or none. Texts that
      are not among them get one all the same where the first rows show that it is worth it.
    `column_encoding`: encodings of leaves that have no dictionary, by dotted path; PLAIN where there is none.
    `bloom_filters`: dotted leaf paths that get a bloom filter.
    `no_statistics`: dotted leaf paths without statistics.
    `dictionary_bytes` and `page_bytes`: how large a dictionary may grow, and from how many bytes of values on a page is
      full.
    `threads`: how many threads encode columns.
    Raises `TypeError` for columns that are not written here (`is_written`).
    """

    def __init__(
        self,
        sink: pa.NativeFile | BinaryIO,
        schema: pa.Schema,
        variants: Collection[tuple[str, ...]] = (),
        *,
        compression: str = "zstd",
        compression_level: Mapping[str, int] | int | None = None,
        use_dictionary: Collection[str] | bool = True,
        column_encoding: Mapping[str, str] | None = None,
        bloom_filters: Collection[str] = (),
        no_statistics: Collection[str] = (),
        dictionary_bytes: int = 8 << 20,
        page_bytes: int = 2 << 20,
        threads: int = 1,
    ) -> None:
        self._sink, self._schema = sink, schema
        self._file_schema = file_schema(schema, variants)
        self._codec = codec_number(compression)
        self._options: list[ColumnOptions] = []
        for leaf in self._file_schema.leaves:
            dotted = ".".join(leaf.path)
            level = compression_level.get(dotted) if isinstance(compression_level, Mapping) else compression_level
            encoding = (column_encoding or {}).get(dotted)
            self._options.append(
                ColumnOptions(
                    use_dictionary=self._uses_dictionary(use_dictionary, leaf, dotted),
                    encoding=Encoding[encoding] if encoding else Encoding.PLAIN,
                    compress=compressor(compression, level),
                    dictionary_bytes=dictionary_bytes,
                    page_bytes=page_bytes,
                    has_statistics=dotted not in no_statistics,
                    keeps_hashes=dotted in bloom_filters,
                )
            )
        self._chunks: list[ColumnChunk] = []
        self._shared: Shared
        self._rows = 0
        self._groups: list[PlacedGroup] = []
        self._position = self._waiting_bytes = 0
        self._waiting: list[Any] = []
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._write(MAGIC)

    @staticmethod
    def _uses_dictionary(asked: Collection[str] | bool, leaf: LeafColumn, dotted: str) -> bool | None:
        if isinstance(asked, bool):
            return asked
        # Texts may repeat farther apart than whoever asked has looked.
        return True if dotted in asked else None if leaf.type.physical == Physical.BYTE_ARRAY else False

    def _write(self, data: Any) -> None:
        """Write bytes behind those before; small pieces together, since each write is a call of the system."""
        self._position += len(data)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _WRITTEN_BYTES:
            self._write_waiting()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        small, self._waiting, self._waiting_bytes = self._waiting, [], 0
        large = [small.pop()] if len(small[-1]) >= _WRITTEN_BYTES else []
        for data in (b"".join(small), *large):
            self._sink.write(data)

    def write_batch(self, table: pa.Table) -> None:
        """Add rows to the row group."""
        if not len(table):
            return
        rows = max(1, min(len(table), int(len(table) * SLICE_BYTES / max(table.nbytes, 1))))
        for start in range(0, len(table), rows):
            self._write_slice(table.slice(start, rows))

    def _write_slice(self, table: pa.Table) -> None:
        half = len(table) // 2
        if half and table.nbytes > MOST_SLICE_BYTES:  # a few rows are much larger than the others
            self._write_slice(table.slice(0, half))
            self._write_slice(table.slice(half))
            return
        for batch in table.to_batches():
            self._append(batch)

    def _append(self, batch: pa.RecordBatch) -> None:
        leaves = [
            entries
            for field, array in zip(self._schema, batch.columns, strict=True)
            for entries in leaf_entries(field, array)
        ]
        self._append_leaves(leaves, len(batch))

    def write_rows(self, rows: ShreddedRows) -> bool:
        """Add rows of the one column of the file, a Variant, as `write_batch` adds their storage.

        Tells whether a NaN is among them.
        """
        levels, group, leaves = rows.leaves()
        entries, has_nan = NodeEntries(levels), False
        columns: list[tuple[Entries, Slots]] = [(entries.of(group), rows.metadata)]
        for leaf, column in zip(leaves, self._file_schema.leaves[1:], strict=True):
            own = entries.of(leaf.entries)
            values = Values(own.present, leaf.width, leaf.data, leaf.lengths)
            if leaf.width:
                values = stored_numbers(values, column.type)
            has_nan |= column.type.order == "float" and bool(np.isnan(values.numbers(column.type)).any())
            columns.append((own, values))
        self._append_leaves(columns, len(rows))
        return has_nan

    def _append_leaves(self, leaves: Sequence[tuple[Entries, Slots]], rows: int) -> None:
        if not self._chunks:
            self._shared = Shared()
            pairs = zip(self._file_schema.leaves, self._options, strict=True)
            self._chunks = [ColumnChunk(leaf, options, self._shared) for leaf, options in pairs]
        self._each(lambda chunk, leaf: chunk.append(*leaf, rows), self._chunks, leaves)
        self._rows += rows

    def _each(self, work: Callable[..., None], *columns: Iterable[Any]) -> None:
        """Do something for every column, in as many threads as there are."""
        for _ in (map if self._pool is None else self._pool.map)(work, *columns):
            pass
        self._shared.release()  # many files may be open at the same time

    def end_row_group(self) -> None:
        """Write what was added since the last one; nothing if there was nothing."""
        if not self._rows:
            return
        self._each(ColumnChunk.finish, self._chunks)
        placed = [self._placed(chunk) for chunk in self._chunks]
        self._groups.append(PlacedGroup(self._rows, placed))
        # What the first row group told of a column holds for the others.
        told = zip(self._options, self._chunks, strict=True)
        self._options = [
            replace(options, use_dictionary=chunk.has_dictionary)
            if options.use_dictionary is None and chunk.has_dictionary is not None
            else options
            for options, chunk in told
        ]
        self._chunks, self._rows = [], 0

    def _placed(self, chunk: ColumnChunk) -> PlacedChunk:
        start, plain_size, dictionary_at = self._position, 0, None
        if chunk.dictionary_page is not None:
            header, body, plain = chunk.dictionary_page
            dictionary_at = start
            self._write(header)
            self._write(body)
            plain_size += len(header) + plain
            chunk.dictionary_page = None
        offsets = []
        for page in chunk.pages:
            offsets.append(self._position)
            self._write(page.header)
            self._write(page.body)
            plain_size += len(page.header) + page.plain_bytes
        chunk.forget_bytes()
        size = self._position - start
        return PlacedChunk(chunk.leaf, chunk, self._codec, start, dictionary_at, offsets, size, plain_size)

    def close(self, key_values: Mapping[str, str]) -> tuple[bytes, int]:
        """Write the rest, and the footer with some key-value metadata; returns the footer's bytes and the size."""
        self.end_row_group()
        self._stop()
        self._put_indexes()
        elements, leaves = self._written_schema()
        footer = encoded_footer(elements, self._groups, key_values, _CREATED_BY, leaves)
        self._write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        self._write_waiting()
        return footer, self._position

    def _written_schema(self) -> tuple[list[bytes], int]:
        """The encoded elements of the schema, and how many leaf columns it has."""
        return self._file_schema.elements, len(self._file_schema.leaves)

    def _put_indexes(self) -> None:
        """Write what helps to find rows, behind the row groups."""
        chunks = [chunk for group in self._groups for chunk in group.chunks if isinstance(chunk, PlacedChunk)]
        for placed in chunks:
            if placed.chunk.options.keeps_hashes:
                placed.bloom_at, placed.bloom_size = self._put(bloom_filter(placed.chunk.hashes))
                placed.chunk.hashes = []
        for placed in chunks:
            index = column_index(placed)
            placed.column_index = None if index is None else self._put(index)
        for placed in chunks:
            placed.offset_index = self._put(offset_index(placed))

    def abort(self) -> None:
        """Write nothing any more."""
        self._chunks, self._rows = [], 0
        self._stop()

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _put(self, data: bytes) -> tuple[int, int]:
        at = self._position
        self._write(data)
        return at, len(data)
