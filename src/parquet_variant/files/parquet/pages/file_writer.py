"""Writing Arrow columns to a Parquet file, one row group after another.

Owns the order of pages, indexes and footer in the file. Leaves columns to `column_chunk`, the structs of the footer to
`file_metadata`, and file names and row group sizes to `writing.writer`. Memory holds the encoded pages of one row group
and the pending values of one page per column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa

from parquet_variant._version import __version__
from parquet_variant.files.parquet.format.facts import OWN_WRITER
from parquet_variant.files.parquet.format.footer import MAGIC
from parquet_variant.files.parquet.pages import file_metadata
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Shared, Slots
from parquet_variant.files.parquet.pages.encodings import Encoding, codec_number, compressor
from parquet_variant.files.parquet.pages.file_metadata import PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.file_schema import Physical, file_schema
from parquet_variant.files.parquet.pages.leaf_values import (
    Entries,
    LeafValues,
    NodeEntries,
    leaf_entries,
    stored_numbers,
)
from parquet_variant.io.parallel import ThreadPool
from parquet_variant.kernels.shredding.json_batch import ShreddedRows

Column = TypeVar("Column")
_CREATED_BY = f"{OWN_WRITER} {__version__}"
# Arrow bytes per batch: a page holds at least the bytes that a column has in a batch.
SLICE_BYTES, MOST_SLICE_BYTES = 16 << 20, 128 << 20
_WRITTEN_BYTES = 256 << 10


class PageFileWriter:
    """Write Arrow columns into a Parquet file.

    `sink`: the open output file.
    `schema`: the Arrow schema of the columns.
    `variants`: schema paths of the groups that get the VARIANT annotation.
    `compression` and `compression_level`: the codec and its level, one for all leaves or by dotted leaf path.
    `use_dictionary`: dotted paths of leaves that begin with a dictionary; True or False for all or none. Other byte
      arrays get a dictionary if the first rows show that it saves space.
    `column_encoding`: encodings of leaves without a dictionary, by dotted path; PLAIN by default.
    `bloom_filters`: dotted leaf paths that get a Bloom filter.
    `no_statistics`: dotted leaf paths without statistics.
    `dictionary_bytes` and `page_bytes`: the limit of a dictionary, and the bytes of values at which a page is full.
    `threads`: number of threads that encode columns.
    Raises `TypeError` for columns that only pyarrow writes (see `is_written`).
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
            has_dictionary: bool | None = use_dictionary if isinstance(use_dictionary, bool) else True
            if not isinstance(use_dictionary, bool) and dotted not in use_dictionary:
                # Strings may repeat at a distance beyond the sample that the caller inspected.
                has_dictionary = None if leaf.type.physical == Physical.BYTE_ARRAY else False
            self._options.append(
                ColumnOptions(
                    use_dictionary=has_dictionary,
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
        self._position = self._pending_bytes = 0
        self._pending: list[Any] = []
        self._pool = ThreadPool(threads - 1) if threads > 1 else None
        self._write(MAGIC)

    def _write(self, data: Any) -> None:
        """Append bytes; small pieces are joined, since every write is a system call."""
        self._position += len(data)
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._pending_bytes >= _WRITTEN_BYTES:
            self._flush_pending()

    def _flush_pending(self) -> None:
        small, self._pending, self._pending_bytes = self._pending, [], 0
        large = [small.pop()] if small and len(small[-1]) >= _WRITTEN_BYTES else []
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
        if half and table.nbytes > MOST_SLICE_BYTES:  # a few rows are much larger than the average
            self._write_slice(table.slice(0, half))
            self._write_slice(table.slice(half))
            return
        for batch in table.to_batches():
            columns = zip(self._schema, batch.columns, strict=True)
            leaves = [entries for field, array in columns for entries in leaf_entries(field, array)]
            self._append_leaves(leaves, len(batch))

    def write_rows(self, rows: ShreddedRows) -> bool:
        """Add rows of the only column of the file, a Variant; return whether a value is NaN.

        The pages are the same as those that `write_batch` makes of the storage.
        """
        levels, group, leaves = rows.leaves()
        entries, has_nan = NodeEntries(levels), False
        columns: list[tuple[Entries, Slots]] = [(entries.of(group), rows.metadata)]
        for leaf, column in zip(leaves, self._file_schema.leaves[1:], strict=True):
            leaf_level = entries.of(leaf.entries)
            values = LeafValues(leaf_level.present, leaf.width, leaf.data, leaf.lengths)
            if leaf.width:
                values = stored_numbers(values, column.type)
            has_nan |= column.type.order == "float" and bool(np.isnan(values.numbers(column.type)).any())
            columns.append((leaf_level, values))
        self._append_leaves(columns, len(rows))
        return has_nan

    def _append_leaves(self, leaves: Sequence[tuple[Entries, Slots]], rows: int) -> None:
        if not self._chunks:
            self._shared = Shared()
            pairs = zip(self._file_schema.leaves, self._options, strict=True)
            self._chunks = [ColumnChunk(leaf, options, self._shared) for leaf, options in pairs]
        self._for_columns(lambda column: column[0].append(*column[1], rows), zip(self._chunks, leaves, strict=True))
        self._rows += rows

    def _for_columns(self, work: Callable[[Column], None], columns: Iterable[Column]) -> None:
        """Call a function for every column, in the threads of the pool."""
        if self._pool is None:
            for column in columns:
                work(column)
        else:
            self._pool.run_all(work, columns)
        self._shared.release()  # many files may be open at the same time

    def end_row_group(self) -> None:
        """Write the rows added since the last row group as a row group, if there are any."""
        if not self._rows:
            return
        # The largest first, so that no thread waits for it at the end.
        self._for_columns(ColumnChunk.finish, sorted(self._chunks, key=ColumnChunk.pending_bytes, reverse=True))
        placed = [self._placed(chunk) for chunk in self._chunks]
        self._groups.append(PlacedGroup(self._rows, placed))
        # The decision on a dictionary in the first row group applies to the following ones.
        pairs = zip(self._options, self._chunks, strict=True)
        self._options = [
            replace(options, use_dictionary=chunk.has_dictionary)
            if options.use_dictionary is None and chunk.has_dictionary is not None
            else options
            for options, chunk in pairs
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
        chunk.pages = [page._replace(header=b"", body=b"") for page in chunk.pages]
        size = self._position - start
        return PlacedChunk(chunk.leaf, chunk, self._codec, start, dictionary_at, offsets, size, plain_size)

    def close(self, key_values: Mapping[str, str]) -> tuple[bytes, int]:
        """Write pending rows, indexes and the footer with key-value metadata; return the footer and the file size."""
        self.end_row_group()
        self._stop()
        self._put_indexes()
        elements, leaves = self._written_schema()
        footer = file_metadata.encoded_footer(elements, self._groups, key_values, _CREATED_BY, leaves)
        self._write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        self._flush_pending()
        return footer, self._position

    def _written_schema(self) -> tuple[list[bytes], int]:
        """Return the encoded elements of the schema, and the number of leaf columns."""
        return self._file_schema.elements, len(self._file_schema.leaves)

    def _put_indexes(self) -> None:
        """Write Bloom filters and page indexes after the row groups."""
        chunks = [chunk for group in self._groups for chunk in group.chunks if isinstance(chunk, PlacedChunk)]
        for placed in chunks:
            if placed.chunk.options.keeps_hashes:
                placed.bloom_at, placed.bloom_size = self._put(file_metadata.bloom_filter(placed.chunk.hashes))
                placed.chunk.hashes = []
        for placed in chunks:
            index = file_metadata.column_index(placed)
            placed.column_index = None if index is None else self._put(index)
        for placed in chunks:
            placed.offset_index = self._put(file_metadata.offset_index(placed))

    def abort(self) -> None:
        """Discard the pending rows and stop the threads."""
        self._chunks, self._rows = [], 0
        self._stop()

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def _put(self, data: bytes) -> tuple[int, int]:
        at = self._position
        self._write(data)
        return at, len(data)
