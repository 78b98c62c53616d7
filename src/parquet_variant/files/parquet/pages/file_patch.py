"""Rewriting a file with changes to some columns or pages: everything else is copied byte for byte.

Owns the places of copied chunks, pages and their indexes, the offsets that refer to them, and the options for new pages
next to them. Leaves new chunks to `file_writer`, and the choice of what changes to `writing.patch`. Spec:
``parquet.thrift``, ``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.facts import (
    LeafPages,
    PagePlace,
    chunk_start,
    page_header,
    read_at,
    row_groups,
)
from parquet_variant.files.parquet.format.footer import schema_elements
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Page, Shared
from parquet_variant.files.parquet.pages.encodings import Encoding, codec_name, compressor, is_encodable
from parquet_variant.files.parquet.pages.file_metadata import CopiedChunk, PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.file_schema import LeafColumn, Physical
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, loaded
from parquet_variant.files.parquet.reading.chunk_pages import plain_strings
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
        self.codec: int = old.metadata[thrift.CODEC]
        if thrift.STATISTICS in old.metadata:
            if thrift.COLUMN_INDEX not in old.struct:
                raise thrift.ThriftError("the column chunk has no column index: the bounds of a page are unknown")
            start, size = old.struct[thrift.COLUMN_INDEX], old.struct[thrift.COLUMN_INDEX_SIZE]
            self._index, _ = thrift.read_value(read_at(source, start, size), 0, thrift.STRUCT)
        is_text = leaf.type.physical == Physical.BYTE_ARRAY
        if is_text and any(place.text_bytes is None for place in old.pages):
            raise thrift.ThriftError("an offset index has no sizes of byte arrays")

    @property
    def bloom(self) -> tuple[int, int] | None:
        """The offset and size of the Bloom filter; the filter also holds for a subset of the values."""
        metadata = self._old.metadata
        return (metadata[thrift.BLOOM_AT], metadata[thrift.BLOOM_SIZE]) if thrift.BLOOM_AT in metadata else None

    def page(self, number: int) -> Page:
        """Return a stored page by number."""
        place, leaf, index = self._old.pages[number], self._leaf, self._index
        data = read_at(self._source, place.start, place.size)
        header = page_header(data)
        bounds, nulls = None, 0
        if index is not None:
            nulls = index[thrift.NULL_COUNTS][number]
            if not index[thrift.NULL_PAGES][number]:
                bounds = loaded((index[thrift.LOW_VALUES][number], index[thrift.HIGH_VALUES][number]), leaf.type)
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
            definition_counts=self._counts(thrift.DEFINITION_COUNTS, number, leaf.definition),
            repetition_counts=self._counts(thrift.REPETITION_COUNTS, number, leaf.repetition),
            size=len(data),
        )

    def _counts(self, field_number: int, number: int, max_level: int) -> list[int]:
        """Return the count of each level in a page; empty if unknown."""
        counts = None if self._index is None else self._index.get(field_number)
        return [] if counts is None else counts[number * (max_level + 1) : (number + 1) * (max_level + 1)]

    def new_chunk(self, rewritten: Collection[PagePlace], shared: Shared) -> ColumnChunk:
        """Return an empty chunk with the same dictionary; rows of the `rewritten` pages keep their encoding."""
        counts = self._old.metadata[thrift.ENCODING_STATS]
        data_pages = [count for count in counts if count[thrift.PAGE_TYPE] != thrift.DICTIONARY_PAGE]
        encodings = [Encoding(count[thrift.PAGE_ENCODING]) for count in data_pages]
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
            header, size = thrift.read_value(page, 0, thrift.STRUCT)
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
        strings = plain_strings(plain, count)
        return LeafValues(count, 0, strings.data, np.diff(strings.offsets))


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
        self._row_groups = row_groups(footer)
        self._blooms: list[tuple[PlacedChunk, int, int]] = []
        first = self._row_groups[0][0] if self._row_groups else []
        chunks = [thrift.read_value(footer, at, thrift.STRUCT)[0][thrift.METADATA] for at in first]
        with_bloom = [b".".join(chunk[thrift.PATH]).decode() for chunk in chunks if thrift.BLOOM_AT in chunk]
        super().__init__(sink, schema, bloom_filters=with_bloom, **options)

    def add_row_group(self, number: int, changed: pa.Table | None) -> None:
        """Add a row group of the source file with new columns; `changed` is None to copy all of it."""
        chunks, rows = self._row_groups[number]
        new_chunks: dict[tuple[str, ...], ColumnChunk] = {}
        if changed is not None:
            self.write_batch(changed)
            self._for_columns(ColumnChunk.finish, self._chunks)
            new_chunks = {chunk.leaf.path: chunk for chunk in self._chunks}
            self._chunks, self._rows = [], 0
        placed: list[PlacedChunk | CopiedChunk] = []
        for at in chunks:
            old, _ = thrift.read_value(self._footer, at, thrift.STRUCT)
            metadata = old[thrift.METADATA]
            path = tuple(name.decode() for name in metadata[thrift.PATH])
            if path in new_chunks:
                placed.append(self._placed(new_chunks[path]))
                continue
            start, size, new_start = chunk_start(metadata), metadata[thrift.SIZE], self._position
            self._write(read_at(self._source, start, size))
            moved = new_start - start
            placed.append(CopiedChunk(at, old, new_start, size, metadata[thrift.PLAIN_SIZE], moved))
        self._groups.append(PlacedGroup(rows, placed))

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
            placed.bloom_at, placed.bloom_size = self._put(read_at(self._source, at, size))
        super()._put_indexes()
        for chunk in (chunk for group in self._groups for chunk in group.chunks):
            if isinstance(chunk, CopiedChunk):
                self._put_copied(chunk)

    def _put_copied(self, chunk: CopiedChunk) -> None:
        """Write the indexes and Bloom filter of a copied chunk, and update the offsets in its struct."""
        old, metadata, footer = chunk.old, chunk.old[thrift.METADATA], self._footer
        inside = {at: metadata[at] + chunk.moved for at in (thrift.DATA_AT, thrift.DICTIONARY_AT) if at in metadata}
        outside: dict[int, Any] = {}
        if thrift.BLOOM_AT in metadata:
            bloom = read_at(self._source, metadata[thrift.BLOOM_AT], metadata[thrift.BLOOM_SIZE])
            inside[thrift.BLOOM_AT], _ = self._put(bloom)
        if thrift.COLUMN_INDEX in old:
            index = read_at(self._source, old[thrift.COLUMN_INDEX], old[thrift.COLUMN_INDEX_SIZE])
            outside[thrift.COLUMN_INDEX], _ = self._put(index)
        if thrift.OFFSET_INDEX in old:
            index = read_at(self._source, old[thrift.OFFSET_INDEX], old[thrift.OFFSET_INDEX_SIZE])
            index = _moved_index(index, chunk.moved)
            outside[thrift.OFFSET_INDEX], outside[thrift.OFFSET_INDEX_SIZE] = self._put(index)
        at = thrift.find_field(footer, chunk.position, thrift.METADATA)
        assert at is not None
        outside[thrift.METADATA] = thrift.with_fields(footer, at, inside)
        chunk.encoded = thrift.with_fields(footer, chunk.position, outside)

    def _written_schema(self) -> tuple[list[bytes], int]:
        elements = list(schema_elements(self._footer))
        is_leaf = [thrift.PHYSICAL_TYPE in element for _, _, element in elements]
        return [self._footer[start:end] for start, end, _ in elements], sum(is_leaf)


def _moved_index(index: bytes, moved: int) -> bytes:
    """Return an offset index whose pages moved by a distance."""
    out, done = bytearray(), 0
    for start, end in thrift.structs_of_list(index, thrift.find_field(index, 0, thrift.LOCATIONS)):
        place, _ = thrift.read_value(index, start, thrift.STRUCT)
        moved_place = thrift.with_fields(index, start, {thrift.PAGE_AT: place[thrift.PAGE_AT] + moved})
        out += index[done:start] + moved_place
        done = end
    return bytes(out + index[done:])
