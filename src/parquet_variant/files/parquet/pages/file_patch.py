"""Rewriting a file with changes to some columns or pages: everything else is copied byte for byte.

Owns the places of copied chunks and their indexes, and the offsets that refer to them. Leaves new chunks to
`file_writer`, and the choice of changed columns to `writing.patch`.

Owns copying such pages to another file, and the options for new pages next to them. Leaves new pages to `column_chunk`,
and the choice of pages that are copied to `operations.shrink`. Spec: ``parquet.thrift``, ``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format import thrift as numbers
from parquet_variant.files.parquet.format.footer import schema_elements
from parquet_variant.files.parquet.format.page_places import (
    LeafPages,
    PagePlace,
    chunk_start,
    page_header,
    read_at,
    row_groups,
)
from parquet_variant.files.parquet.format.thrift import (
    STRUCT,
    ThriftError,
    find_field,
    list_items,
    read_value,
    with_numbers,
)
from parquet_variant.files.parquet.pages.codecs import codec_name, compressor
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Page, Shared
from parquet_variant.files.parquet.pages.encodings import Encoding, is_encodable
from parquet_variant.files.parquet.pages.file_metadata import CopiedChunk, PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.file_schema import LeafColumn, Physical
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, loaded
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.kernels.pages.values import plain_strings
from parquet_variant.types import MAX_OFFSET

_LEVEL = 3


class StoredPages:
    """The pages of a column chunk of an open file.

    `source`: the open file.
    `old`: the places of the pages in the file.
    `leaf`: the leaf column of the new file.
    Raises `ValueError` if the indexes of the file lack statistics that the indexes of a new file need.
    """

    def __init__(self, source: pa.NativeFile, old: LeafPages, leaf: LeafColumn) -> None:
        self._source, self._old, self._leaf = source, old, leaf
        self._index: Mapping[int, Any] | None = None
        self.codec: int = old.metadata[numbers.CODEC]
        if numbers.STATISTICS in old.metadata:
            if numbers.COLUMN_INDEX not in old.struct:
                raise ThriftError("the column chunk has no column index: the bounds of a page are unknown")
            start, size = old.struct[numbers.COLUMN_INDEX], old.struct[numbers.COLUMN_INDEX_SIZE]
            self._index, _ = read_value(read_at(source, start, size), 0, STRUCT)
        is_text = leaf.type.physical == Physical.BYTE_ARRAY
        if is_text and any(place.text_bytes is None for place in old.pages):
            raise ThriftError("an offset index has no sizes of byte arrays")

    @property
    def bloom(self) -> tuple[int, int] | None:
        """The offset and size of the Bloom filter; the filter also holds for a subset of the values."""
        metadata = self._old.metadata
        return (metadata[numbers.BLOOM_AT], metadata[numbers.BLOOM_SIZE]) if numbers.BLOOM_AT in metadata else None

    def page(self, number: int) -> Page:
        """Return a stored page by number."""
        place, leaf, index = self._old.pages[number], self._leaf, self._index
        data = read_at(self._source, place.start, place.size)
        header = page_header(data)
        bounds, nulls = None, 0
        if index is not None:
            nulls = index[numbers.NULL_COUNTS][number]
            if not index[numbers.NULL_PAGES][number]:
                bounds = loaded((index[numbers.LOW_VALUES][number], index[numbers.HIGH_VALUES][number]), leaf.type)
        return Page(
            header=b"",
            body=data,
            plain_bytes=header.size + header.plain,
            encoding=Encoding(header.encoding),
            first_row=0,
            nulls=nulls,
            values=header.values,
            bounds=bounds,
            text_bytes=place.text_bytes or 0,
            definition_counts=self._counts(numbers.DEFINITION_COUNTS, number, leaf.definition),
            repetition_counts=self._counts(numbers.REPETITION_COUNTS, number, leaf.repetition),
            size=len(data),
        )

    def _counts(self, field_number: int, number: int, max_level: int) -> list[int]:
        """Return the count of each level in a page; empty if unknown."""
        counts = None if self._index is None else self._index.get(field_number)
        return [] if counts is None else counts[number * (max_level + 1) : (number + 1) * (max_level + 1)]

    def new_chunk(self, rewritten: Collection[PagePlace], shared: Shared) -> ColumnChunk:
        """Return an empty chunk with the same dictionary; rows of the `rewritten` pages keep their encoding."""
        counts = self._old.metadata[numbers.ENCODING_STATS]
        data_pages = [count for count in counts if count[numbers.PAGE_TYPE] != numbers.DICTIONARY_PAGE]
        encodings = [Encoding(count[numbers.PAGE_ENCODING]) for count in data_pages]
        encoding = next((encoding for encoding in encodings if encoding != Encoding.RLE_DICTIONARY), Encoding.PLAIN)
        has_dictionary = self._old.start < self._old.pages[0].start
        headers = [page_header(read_at(self._source, place.start, place.size)) for place in rewritten]
        is_indexed = has_dictionary and all(header.encoding == Encoding.RLE_DICTIONARY for header in headers)
        name = codec_name(self.codec)
        options = ColumnOptions(
            use_dictionary=is_indexed,
            encoding=encoding if is_encodable(encoding, self._leaf.type) else Encoding.PLAIN,
            compress=compressor(name, _LEVEL if name == "zstd" else None),
            dictionary_bytes=MAX_OFFSET,
            has_statistics=self._index is not None,
        )
        chunk = ColumnChunk(self._leaf, options, shared)
        if has_dictionary:
            page = read_at(self._source, self._old.start, self._old.pages[0].start - self._old.start)
            header, size = read_value(page, 0, STRUCT)
            entries = self._entries(page[size:], header[2], header[7][1], name) if is_indexed else None
            chunk.take_dictionary(page, size + header[2], entries)
        return chunk

    def _entries(self, stored: bytes, size: int, count: int, codec: str) -> LeafValues:
        plain = pa.py_buffer(stored)
        if codec != "none":
            plain = pa.Codec(codec).decompress(plain, size)
        width = self._leaf.type.width
        if width:
            return LeafValues(count, width, np.frombuffer(plain, np.uint8, count * width))
        offsets, data = np.empty(count + 1, np.int32), np.empty(max(plain.size - 4 * count, 0), np.uint8)
        is_sound, _ = plain_strings(
            buffer_address(plain), buffer_address(plain) + plain.size, offsets, address_of(data)
        )
        if not is_sound:
            raise ThriftError("values of a dictionary are damaged")
        return LeafValues(count, 0, data, np.diff(offsets))


class FilePatcher(PageFileWriter):
    """Write a copy of a file in which some columns are replaced.

    `sink`, `schema` and `**options`: as for `PageFileWriter`, for the columns that change: whole columns, or structs
      with only the leaves that change.
    `source`: the open source file.
    `footer`: the footer of the source file.
    """

    def __init__(
        self,
        sink: pa.NativeFile | BinaryIO,
        schema: pa.Schema,
        *,
        source: pa.NativeFile,
        footer: bytes,
        **options: Any,
    ) -> None:
        self._source, self._footer = source, footer
        self._spans = row_groups(footer)
        self._blooms: list[tuple[PlacedChunk, int, int]] = []
        super().__init__(sink, schema, bloom_filters=self._with_bloom(), **options)

    def _with_bloom(self) -> list[str]:
        """Return the leaf columns of the source file that have Bloom filters."""
        chunks = [read_value(self._footer, span.start, STRUCT)[0] for span in (self._spans or [([], 0)])[0][0]]
        metadata = [chunk[numbers.METADATA] for chunk in chunks]
        return [b".".join(column[numbers.PATH]).decode() for column in metadata if numbers.BLOOM_AT in column]

    def add_row_group(self, number: int, changed: pa.Table | None) -> None:
        """Add a row group of the source file with new columns; `changed` is None to copy all of it."""
        chunks, rows = self._spans[number]
        new_chunks: dict[tuple[str, ...], ColumnChunk] = {}
        if changed is not None:
            self.write_batch(changed)
            self._for_columns(ColumnChunk.finish, self._chunks)
            new_chunks = {chunk.leaf.path: chunk for chunk in self._chunks}
            self._chunks, self._rows = [], 0
        placed = []
        for span in chunks:
            old, _ = read_value(self._footer, span.start, STRUCT)
            path = tuple(name.decode() for name in old[numbers.METADATA][numbers.PATH])
            chunk = new_chunks.get(path)
            placed.append(self._copied_chunk(span.start, old) if chunk is None else self._placed(chunk))
        self._groups.append(PlacedGroup(rows, placed))

    def _copied_chunk(self, position: int, old: Mapping[int, Any]) -> CopiedChunk:
        metadata = old[numbers.METADATA]
        start = chunk_start(metadata)
        size, new_start = metadata[numbers.SIZE], self._position
        self._write(self._bytes(start, size))
        return CopiedChunk(position, old, new_start, size, metadata[numbers.PLAIN_SIZE], new_start - start)

    def _bytes(self, start: int, size: int) -> bytes:
        return read_at(self._source, start, size)

    def add_chunks(self, rows: int, chunks: Sequence[tuple[ColumnChunk, StoredPages]]) -> None:
        """Add the remaining rows of a row group of the source file, as column chunks with their stored pages."""
        placed = []
        for chunk, old in chunks:
            chunk.finish()
            placed.append(self._placed(chunk))
            placed[-1].codec = old.codec
            if old.bloom is not None:
                self._blooms.append((placed[-1], *old.bloom))
        self._groups.append(PlacedGroup(rows, placed))

    def _put_indexes(self) -> None:
        for placed, at, size in self._blooms:
            placed.bloom_at, placed.bloom_size = self._put(self._bytes(at, size))
        super()._put_indexes()
        for chunk in (chunk for group in self._groups for chunk in group.chunks):
            if isinstance(chunk, CopiedChunk):
                self._put_copied(chunk)

    def _put_copied(self, chunk: CopiedChunk) -> None:
        """Write the indexes and Bloom filter of a copied chunk, and update the offsets in its struct."""
        old, metadata, footer = chunk.old, chunk.old[numbers.METADATA], self._footer
        inside = {at: metadata[at] + chunk.moved for at in (numbers.DATA_AT, numbers.DICTIONARY_AT) if at in metadata}
        outside: dict[int, Any] = {}
        if numbers.BLOOM_AT in metadata:
            inside[numbers.BLOOM_AT], _ = self._put(
                self._bytes(metadata[numbers.BLOOM_AT], metadata[numbers.BLOOM_SIZE])
            )
        if numbers.COLUMN_INDEX in old:
            index = self._bytes(old[numbers.COLUMN_INDEX], old[numbers.COLUMN_INDEX_SIZE])
            outside[numbers.COLUMN_INDEX], _ = self._put(index)
        if numbers.OFFSET_INDEX in old:
            index = _moved_index(self._bytes(old[numbers.OFFSET_INDEX], old[numbers.OFFSET_INDEX_SIZE]), chunk.moved)
            outside[numbers.OFFSET_INDEX], outside[numbers.OFFSET_INDEX_SIZE] = self._put(index)
        at = find_field(footer, chunk.position, numbers.METADATA)
        assert at is not None
        outside[numbers.METADATA] = with_numbers(footer, at, inside)
        chunk.encoded = with_numbers(footer, chunk.position, outside)

    def _written_schema(self) -> tuple[list[bytes], int]:
        elements = list(schema_elements(self._footer))
        is_leaf = [numbers.PHYSICAL_TYPE in element for _, _, element in elements]
        return [self._footer[start:end] for start, end, _ in elements], sum(is_leaf)


def _moved_index(index: bytes, moved: int) -> bytes:
    at = find_field(index, 0, numbers.LOCATIONS)
    assert at is not None
    count, _, position = list_items(index, at)
    out = bytearray(index[:position])
    for _ in range(count):
        place, end = read_value(index, position, STRUCT)
        out += with_numbers(index, position, {numbers.PAGE_AT: place[numbers.PAGE_AT] + moved})
        position = end
    return bytes(out + index[position:])
