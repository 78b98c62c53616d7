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
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Page, Shared
from parquet_variant.files.parquet.pages.encodings import Encoding, codec_name, compressor, is_encodable
from parquet_variant.files.parquet.pages.file_schema import LeafColumn, Physical
from parquet_variant.files.parquet.pages.file_writer import CopiedChunk, PageFileWriter, PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, loaded
from parquet_variant.files.parquet.pages.stored_chunks import (
    PagePlace,
    StoredChunk,
    StoredFile,
    chunk_start,
    read_at,
)
from parquet_variant.files.parquet.reading.column_values import plain_strings
from parquet_variant.types import MAX_OFFSET

_LEVEL = 3


class ReusedPages:
    """The pages of a stored column chunk, for a chunk of a new file with other pages next to them.

    Raises `ValueError` if the indexes of the file lack statistics that the indexes of a new file need.
    """

    def __init__(self, stored: StoredChunk, leaf: LeafColumn) -> None:
        self._stored, self._leaf = stored, leaf
        self._index: Mapping[int, Any] | None = None
        self.codec: int = stored.metadata[thrift.CODEC]
        if thrift.STATISTICS in stored.metadata:
            if thrift.COLUMN_INDEX not in stored.struct:
                raise thrift.ThriftError("the column chunk has no column index: the bounds of a page are unknown")
            start, size = stored.struct[thrift.COLUMN_INDEX], stored.struct[thrift.COLUMN_INDEX_SIZE]
            self._index, _ = thrift.read_value(read_at(stored.source, start, size), 0, thrift.STRUCT)
        is_text = leaf.type.physical == Physical.BYTE_ARRAY
        if is_text and any(place.text_bytes is None for place in stored.pages):
            raise thrift.ThriftError("an offset index has no sizes of byte arrays")

    @property
    def bloom(self) -> tuple[int, int] | None:
        """The offset and size of the Bloom filter; the filter also holds for a subset of the values."""
        metadata = self._stored.metadata
        return (metadata[thrift.BLOOM_AT], metadata[thrift.BLOOM_SIZE]) if thrift.BLOOM_AT in metadata else None

    def page(self, number: int) -> Page:
        """Return a stored page by number."""
        place, leaf, index = self._stored.pages[number], self._leaf, self._index or {}
        page = self._stored.page(place)
        bounds, nulls = None, 0
        if index:
            nulls = index[thrift.NULL_COUNTS][number]
            if not index[thrift.NULL_PAGES][number]:
                bounds = loaded((index[thrift.LOW_VALUES][number], index[thrift.HIGH_VALUES][number]), leaf.type)
        levels = ((thrift.DEFINITION_COUNTS, leaf.definition), (thrift.REPETITION_COUNTS, leaf.repetition))
        # The count of each level in the page; empty if unknown.
        definition, repetition = (
            (index.get(name) or [])[number * (max_level + 1) : (number + 1) * (max_level + 1)]
            for name, max_level in levels
        )
        return Page(
            header=b"",
            body=page.data,
            plain_bytes=page.plain,
            encoding=Encoding(page.encoding),
            first_row=0,
            nulls=nulls,
            values=page.values,
            bounds=bounds,
            text_bytes=place.text_bytes or 0,
            definition_counts=definition,
            repetition_counts=repetition,
            size=len(page.data),
        )

    def new_chunk(self, rewritten: Collection[PagePlace], shared: Shared) -> ColumnChunk:
        """Return an empty chunk with the same dictionary; rows of the `rewritten` pages keep their encoding."""
        stored = self._stored
        counts = stored.metadata[thrift.ENCODING_STATS]
        data_pages = [count for count in counts if count[thrift.PAGE_TYPE] != thrift.DICTIONARY_PAGE]
        encodings = [Encoding(count[thrift.PAGE_ENCODING]) for count in data_pages]
        encoding = next((encoding for encoding in encodings if encoding != Encoding.RLE_DICTIONARY), Encoding.PLAIN)
        page = stored.dictionary()
        is_indexed = bool(page) and all(stored.page(place).encoding == Encoding.RLE_DICTIONARY for place in rewritten)
        codec = codec_name(self.codec)
        options = ColumnOptions(
            use_dictionary=is_indexed,
            encoding=encoding if is_encodable(encoding, self._leaf.type) else Encoding.PLAIN,
            compress=compressor(codec, _LEVEL if codec == "zstd" else None),
            dictionary_bytes=MAX_OFFSET,
            has_statistics=self._index is not None,
        )
        chunk = ColumnChunk(self._leaf, options, shared)
        if page:
            header, size = thrift.read_value(page, 0, thrift.STRUCT)
            entries = None
            if is_indexed:
                plain, count, width = pa.py_buffer(page[size:]), header[7][1], self._leaf.type.width
                if codec != "none":
                    plain = pa.Codec(codec).decompress(plain, header[2])
                if width:
                    entries = LeafValues(count, width, np.frombuffer(plain, np.uint8, count * width))
                else:
                    strings = plain_strings(plain, count)
                    entries = LeafValues(count, 0, strings.data, np.diff(strings.offsets))
            chunk.take_dictionary(page, size + header[2], entries)
        return chunk


class FilePatcher(PageFileWriter):
    """Write a copy of a file in which some columns are replaced.

    `sink`, `schema` and `**options`: as for `PageFileWriter`, for the columns that change: whole columns, or structs
      with only the leaves that change.
    `file`: the source file.
    """

    def __init__(self, sink: pa.NativeFile | BinaryIO, schema: pa.Schema, *, file: StoredFile, **options: Any) -> None:
        self._file = file
        self._blooms: list[tuple[PlacedChunk, int, int]] = []
        # Copied chunks, the positions and fields of their structs in the source file, and the distance they moved.
        self._copied: list[tuple[CopiedChunk, int, Mapping[int, Any], int]] = []
        first = file.row_groups[0][0] if file.row_groups else []
        chunks = [thrift.read_value(file.footer, at, thrift.STRUCT)[0][thrift.METADATA] for at in first]
        with_bloom = [b".".join(chunk[thrift.PATH]).decode() for chunk in chunks if thrift.BLOOM_AT in chunk]
        super().__init__(sink, schema, bloom_filters=with_bloom, **options)

    def add_row_group(self, number: int, changed: pa.Table | None) -> None:
        """Add a row group of the source file with new columns; `changed` is None to copy all of it."""
        chunks, rows = self._file.row_groups[number]
        new_chunks: dict[tuple[str, ...], ColumnChunk] = {}
        if changed is not None:
            self.write_batch(changed)
            self._for_columns(ColumnChunk.finish, self._chunks)
            new_chunks = {chunk.leaf.path: chunk for chunk in self._chunks}
            self._chunks, self._rows = [], 0
        placed: list[PlacedChunk | CopiedChunk] = []
        for at in chunks:
            old, _ = thrift.read_value(self._file.footer, at, thrift.STRUCT)
            metadata = old[thrift.METADATA]
            path = tuple(name.decode() for name in metadata[thrift.PATH])
            if path in new_chunks:
                placed.append(self._placed(new_chunks[path]))
                continue
            start, size = chunk_start(metadata), metadata[thrift.SIZE]
            copied = CopiedChunk(self._position, size, metadata[thrift.PLAIN_SIZE])
            self._copied.append((copied, at, old, self._position - start))
            self._write(read_at(self._file.source, start, size))
            placed.append(copied)
        self._groups.append(PlacedGroup(rows, placed))

    def add_chunks(self, rows: int, chunks: Sequence[tuple[ColumnChunk, ReusedPages]]) -> None:
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
        source, footer = self._file.source, self._file.footer
        for placed, at, size in self._blooms:
            placed.bloom_at, placed.bloom_size = self._put(read_at(source, at, size))
        super()._put_indexes()
        for chunk, position, old, moved in self._copied:
            metadata, outside = old[thrift.METADATA], dict[int, Any]()
            inside = {at: metadata[at] + moved for at in (thrift.DATA_AT, thrift.DICTIONARY_AT) if at in metadata}
            if thrift.BLOOM_AT in metadata:
                bloom = read_at(source, metadata[thrift.BLOOM_AT], metadata[thrift.BLOOM_SIZE])
                inside[thrift.BLOOM_AT], _ = self._put(bloom)
            if thrift.COLUMN_INDEX in old:
                index = read_at(source, old[thrift.COLUMN_INDEX], old[thrift.COLUMN_INDEX_SIZE])
                outside[thrift.COLUMN_INDEX], _ = self._put(index)
            if thrift.OFFSET_INDEX in old:
                index = read_at(source, old[thrift.OFFSET_INDEX], old[thrift.OFFSET_INDEX_SIZE])
                outside[thrift.OFFSET_INDEX], outside[thrift.OFFSET_INDEX_SIZE] = self._put(_moved_index(index, moved))
            field = thrift.find_field(footer, position, thrift.METADATA)
            assert field is not None
            outside[thrift.METADATA] = thrift.with_fields(footer, field, inside)
            chunk.encoded = thrift.with_fields(footer, position, outside)

    def _written_schema(self) -> tuple[list[bytes], int]:
        return [element for _, element in self._file.elements], len(self._file.schema.leaves())


def _moved_index(index: bytes, moved: int) -> bytes:
    """Return an offset index whose pages moved by a distance."""
    out, done = bytearray(), 0
    for start, end in thrift.structs_of_list(index, thrift.find_field(index, 0, thrift.LOCATIONS)):
        place, _ = thrift.read_value(index, start, thrift.STRUCT)
        out += index[done:start] + thrift.with_fields(index, start, {thrift.PAGE_AT: place[thrift.PAGE_AT] + moved})
        done = end
    return bytes(out + index[done:])
