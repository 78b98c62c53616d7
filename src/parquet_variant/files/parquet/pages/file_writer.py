"""Writing Arrow columns to a Parquet file, one row group after another.

Owns the order of pages, indexes and footer in the file, and the structs of the footer, page indexes and Bloom filters
that describe column chunks and row groups. Leaves columns to `column_chunk`, the schema to `format.arrow_schema`, and
file names and row group sizes to `writing.writer`. Memory holds the encoded pages of one row group and the pending
values of one page per column. Spec: ``parquet.thrift``, ``PageIndex.md``, ``BloomFilter.md``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant._version import __version__
from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.arrow_schema import LeafColumn, Physical, file_schema
from parquet_variant.files.parquet.format.facts import OWN_WRITER
from parquet_variant.files.parquet.format.footer import MAGIC
from parquet_variant.files.parquet.format.thrift import BINARY, BOOL, I32, I64, LIST, STRUCT, encode_struct
from parquet_variant.files.parquet.pages import leaf_values
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, GroupCache, Slots
from parquet_variant.files.parquet.pages.encodings import Encoding, codec_number, compressor
from parquet_variant.files.parquet.pages.leaf_values import Entries
from parquet_variant.inference.statistics import upper_text
from parquet_variant.io.parallel import ThreadPool
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.values import set_blocks
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from parquet_variant.support.records import Record

# Longer bounds of a chunk are omitted, and longer bounds of a page are truncated.
_MAX_CHUNK_BOUND, _MAX_PAGE_BOUND = 4096, 64
# Bloom filters: bytes and words of a block, the size limit, and the rate of false positives.
_BLOCK, _WORDS, _MAX_BLOOM_BYTES, _FALSE_POSITIVES = 32, 8, 1 << 20, 0.01
# The order of a column, and the only algorithm, hash and compression of Bloom filters that the specification defines.
_FIRST_CHOICE = encode_struct((1, STRUCT, b"\x00"))


Place: TypeAlias = tuple[int | None, int | None]  # Offset and size of a part of the file.


class PlacedChunk(Record, frozen=False):
    """A column chunk written to the file: the places of its parts, and a chunk that is not copied from another file."""

    start: int
    size: int
    plain_size: int
    encoded: bytes = b""  # Its encoded struct in this file.
    chunk: ColumnChunk | None = None
    codec: int = 0
    dictionary_at: int | None = None
    page_offsets: Sequence[int] = ()
    bloom: Place = (None, None)


class PlacedGroup(NamedTuple):
    """A row group written to the file."""

    rows: int
    chunks: Sequence[PlacedChunk]


def _level_counts(counts: Iterable[list[int]]) -> tuple[int, list[int]] | None:
    """Return the sums of level counts of pages; None if the counts of a page are unknown."""
    pages = list(counts)
    return (I64, [sum(column) for column in zip(*pages, strict=True)]) if all(pages) else None


def _statistics(chunk: ColumnChunk) -> bytes | None:
    if not chunk.options.has_statistics:
        return None
    bounds: Iterable[bytes] = () if chunk.bounds is None else leaf_values.stored(chunk.bounds, chunk.leaf.type)
    low, high = [bound if len(bound) <= _MAX_CHUNK_BOUND else None for bound in bounds] or (None, None)
    is_exact = [None if bound is None else not chunk.has_cut_bounds for bound in (high, low)]
    nulls = (3, I64, sum(page.nulls for page in chunk.pages))
    return encode_struct(nulls, (5, BINARY, high), (6, BINARY, low), (7, BOOL, is_exact[0]), (8, BOOL, is_exact[1]))


def _column_chunk(placed: PlacedChunk, chunk: ColumnChunk, column: Place, offset: Place) -> bytes:
    """Return the encoded struct of a chunk, with the places of its column index and offset index."""
    leaf = chunk.leaf
    pages = Counter((thrift.DATA_PAGE, page.encoding) for page in chunk.pages)
    encodings = {encoding for _, encoding in pages} | {Encoding.RLE}
    if placed.dictionary_at is not None:
        pages[thrift.DICTIONARY_PAGE, Encoding.PLAIN] = 1
        encodings.add(Encoding.PLAIN)
    encoding_stats = [
        encode_struct((1, I32, kind), (2, I32, encoding), (3, I32, count)) for (kind, encoding), count in pages.items()
    ]
    text_bytes = sum(page.text_bytes for page in chunk.pages) if leaf.type.physical == Physical.BYTE_ARRAY else None
    # Counts of levels are omitted, as the specification allows, where they follow from counts of values and nulls.
    repetition = _level_counts(page.repetition_counts for page in chunk.pages) if leaf.repetition else None
    definition = _level_counts(page.definition_counts for page in chunk.pages) if leaf.definition > 1 else None
    metadata = encode_struct(
        (1, I32, leaf.type.physical),
        (2, LIST, (I32, sorted(encodings))),
        (3, LIST, (BINARY, [name.encode() for name in leaf.path])),
        (4, I32, placed.codec),
        (5, I64, sum(page.values for page in chunk.pages)),
        (6, I64, placed.plain_size),
        (7, I64, placed.size),
        (9, I64, placed.page_offsets[0]),
        (11, I64, placed.dictionary_at),
        (12, STRUCT, _statistics(chunk)),
        (13, LIST, (STRUCT, encoding_stats)),
        (14, I64, placed.bloom[0]),
        (15, I32, placed.bloom[1]),
        (16, STRUCT, encode_struct((1, I64, text_bytes), (2, LIST, repetition), (3, LIST, definition))),
    )
    places = ((4, I64, offset[0]), (5, I32, offset[1]), (6, I64, column[0]), (7, I32, column[1]))
    return encode_struct((2, I64, 0), (3, STRUCT, metadata), *places)


def encoded_footer(
    elements: Sequence[bytes],
    groups: Sequence[PlacedGroup],
    key_values: Mapping[str, str],
    created_by: str,
    leaves: int,
) -> bytes:
    """Return the Thrift bytes of a footer from the encoded schema elements and the row groups."""
    pairs = [encode_struct((1, BINARY, key.encode()), (2, BINARY, value.encode())) for key, value in key_values.items()]
    row_groups = [
        encode_struct(
            (1, LIST, (STRUCT, [chunk.encoded for chunk in group.chunks])),
            (2, I64, sum(chunk.plain_size for chunk in group.chunks)),
            (3, I64, group.rows),
            (5, I64, group.chunks[0].start),
            (6, I64, sum(chunk.size for chunk in group.chunks)),
        )
        for group in groups
    ]
    return encode_struct(
        (1, I32, 2),
        (2, LIST, (STRUCT, elements)),
        (3, I64, sum(group.rows for group in groups)),
        (4, LIST, (STRUCT, row_groups)),
        (5, LIST, (STRUCT, pairs)),
        (6, BINARY, created_by.encode()),
        (7, LIST, (STRUCT, [_FIRST_CHOICE] * leaves)),
    )


def offset_index(placed: PlacedChunk, chunk: ColumnChunk) -> bytes:
    """Return the encoded offset index of a chunk."""
    pages = chunk.pages
    locations = [
        encode_struct((1, I64, at), (2, I32, page.size), (3, I64, page.first_row))
        for at, page in zip(placed.page_offsets, pages, strict=True)
    ]
    is_text = chunk.leaf.type.physical == Physical.BYTE_ARRAY
    sizes = (I64, [page.text_bytes for page in pages]) if is_text else None
    return encode_struct((1, LIST, (STRUCT, locations)), (2, LIST, sizes))


def column_index(chunk: ColumnChunk) -> bytes | None:
    """Return the encoded column index of a chunk; None if the bounds of a page are unknown."""
    pages, leaf = chunk.pages, chunk.leaf
    if not chunk.options.has_statistics or any(page.bounds is None and page.nulls < page.values for page in pages):
        return None
    pairs = list(itertools.pairwise(page.bounds for page in pages if page.bounds is not None))
    rises = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairs)
    falls = all(a[0] >= b[0] and a[1] >= b[1] for a, b in pairs)
    bounds = [
        (b"", b"") if page.bounds is None else _truncated(*leaf_values.stored(page.bounds, leaf.type), leaf)
        for page in pages
    ]
    repetition = [count for page in pages for count in page.repetition_counts] if leaf.repetition else None
    definition = [count for page in pages for count in page.definition_counts] if leaf.definition > 1 else None
    return encode_struct(
        (1, LIST, (BOOL, [page.bounds is None for page in pages])),
        (2, LIST, (BINARY, [low for low, _ in bounds])),
        (3, LIST, (BINARY, [high for _, high in bounds])),
        (4, I32, 1 if rises else 2 if falls else 0),  # the order of bounds: never decreasing, or never increasing
        (5, LIST, (I64, [page.nulls for page in pages])),
        (6, LIST, None if repetition is None else (I64, repetition)),
        (7, LIST, None if definition is None else (I64, definition)),
    )


def _truncated(low: bytes, high: bytes, leaf: LeafColumn) -> tuple[bytes, bytes]:
    """Return the bounds of a page; long ones become a shorter lower bound and a shorter upper bound."""
    if leaf.type.physical != Physical.BYTE_ARRAY:
        return low, high
    is_text = leaf.type.logical is not None
    if len(low) > _MAX_PAGE_BOUND:
        low = low[: _boundary(low) if is_text else _MAX_PAGE_BOUND]
    if len(high) > _MAX_PAGE_BOUND:
        if is_text:
            # The next string after all with the prefix that fits; text that is not UTF-8 is kept.
            with suppress(UnicodeDecodeError):
                prefix = high[: _boundary(high)].decode()
                high = (upper_text(f"{prefix}\0", len(prefix)) or "").encode() or high
        elif stem := high[:_MAX_PAGE_BOUND].rstrip(b"\xff"):
            high = stem[:-1] + bytes([stem[-1] + 1])
    return low, high


def _boundary(text: bytes) -> int:
    """Return where the first character begins that does not fit."""
    at = _MAX_PAGE_BOUND
    while at > 0 and text[at] & 0xC0 == 0x80:
        at -= 1
    return at


def bloom_filter(hashes: Sequence[npt.NDArray[np.int64]]) -> bytes:
    """Return header and bits of a Bloom filter from hashes, which may repeat."""
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *hashes]))
    bits = -_WORDS * len(distinct) / math.log(1 - _FALSE_POSITIVES ** (1 / _WORDS))
    size = min(max(_BLOCK, 1 << math.ceil(math.log2(max(bits / 8, 1)))), _MAX_BLOOM_BYTES)
    bitset = np.zeros(size, np.uint8)
    set_blocks(distinct, size // _BLOCK, address_of(bitset))
    header = encode_struct(
        (1, I32, size), (2, STRUCT, _FIRST_CHOICE), (3, STRUCT, _FIRST_CHOICE), (4, STRUCT, _FIRST_CHOICE)
    )
    return header + bitset.tobytes()


Column = TypeVar("Column")
_CREATED_BY = f"{OWN_WRITER} {__version__}"
# Arrow bytes per batch: a page holds at least the bytes that a column has in a batch.
SLICE_BYTES, MOST_SLICE_BYTES = 16 << 20, 128 << 20
_WRITTEN_BYTES = 256 << 10


class PageFileWriter:
    """Write Arrow columns into a Parquet file.

    `variants`: schema paths of the groups that get the VARIANT annotation.
    `compression` and `compression_level`: the codec and its level, one for all leaves or by dotted leaf path.
    `use_dictionary`: dotted paths of leaves that begin with a dictionary; True or False for all or none. Other byte
      arrays get a dictionary if the first rows show that it saves space.
    `column_encoding`: encodings of leaves without a dictionary, by dotted path; PLAIN by default.
    `bloom_filters` and `no_statistics`: dotted paths of leaves with a Bloom filter, and without statistics.
    `dictionary_bytes` and `page_bytes`: the limit of a dictionary, and the bytes of values at which a page is full.
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
        # The elements of the schema, and the number of leaf columns.
        self._encoded_schema = self._file_schema.elements, len(self._file_schema.leaves)
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
        self._cache: GroupCache
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
            leaves = [entries for field, array in columns for entries in leaf_values.leaf_entries(field, array)]
            self._append_leaves(leaves, len(batch))

    def write_rows(self, rows: ShreddedRows) -> bool:
        """Add rows of the only column of the file, a Variant; return whether a value is NaN.

        The pages are the same as those that `write_batch` makes of the storage.
        """
        group, leaves = leaf_values.node_entries(rows)
        columns: list[tuple[Entries, Slots]] = [(group, rows.metadata)]
        has_nan = False
        for (entries, column), leaf in zip(leaves, self._file_schema.leaves[1:], strict=True):
            values = leaf_values.node_values(column, leaf.type)
            has_nan |= leaf.type.order == "float" and bool(np.isnan(values.numbers(leaf.type)).any())
            columns.append((entries, values))
        self._append_leaves(columns, len(rows))
        return has_nan

    def _append_leaves(self, leaves: Sequence[tuple[Entries, Slots]], rows: int) -> None:
        if not self._chunks:
            self._cache = GroupCache()
            pairs = zip(self._file_schema.leaves, self._options, strict=True)
            self._chunks = [ColumnChunk(leaf, options, self._cache) for leaf, options in pairs]
        self._for_columns(lambda column: column[0].append(*column[1], rows), zip(self._chunks, leaves, strict=True))
        self._rows += rows

    def _for_columns(self, work: Callable[[Column], None], columns: Iterable[Column]) -> None:
        """Call a function for every column, in the threads of the pool."""
        if self._pool is None:
            for column in columns:
                work(column)
        else:
            self._pool.run_all(work, columns)
        self._cache.release()  # many files may be open at the same time

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
        return PlacedChunk(
            start, self._position - start, plain_size,
            chunk=chunk, codec=self._codec, dictionary_at=dictionary_at, page_offsets=offsets,
        )  # fmt: skip

    def close(self, key_values: Mapping[str, str]) -> tuple[bytes, int]:
        """Write pending rows, indexes and the footer with key-value metadata; return the footer and the file size."""
        self.end_row_group()
        self._stop()
        self._put_indexes()
        elements, leaves = self._encoded_schema
        footer = encoded_footer(elements, self._groups, key_values, _CREATED_BY, leaves)
        self._write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        self._flush_pending()
        return footer, self._position

    def _put_indexes(self) -> None:
        """Write Bloom filters and page indexes after the row groups."""
        stored_chunks = [(p, p.chunk) for group in self._groups for p in group.chunks if p.chunk is not None]
        for placed, chunk in stored_chunks:
            if chunk.options.keeps_hashes:
                placed.bloom = self._put(bloom_filter(chunk.hashes))
                chunk.hashes = []
        indexes = [column_index(chunk) for _, chunk in stored_chunks]
        columns = [(None, None) if index is None else self._put(index) for index in indexes]
        offsets = [self._put(offset_index(placed, chunk)) for placed, chunk in stored_chunks]
        for (placed, chunk), column, offset in zip(stored_chunks, columns, offsets, strict=True):
            placed.encoded = _column_chunk(placed, chunk, column, offset)

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
