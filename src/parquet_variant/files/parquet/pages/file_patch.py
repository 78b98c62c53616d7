"""Rewriting a file with changes to some columns: unchanged column chunks are copied byte for byte.

Owns the places of copied chunks and their indexes, and the offsets that refer to them. Leaves new chunks to
`file_writer`, and the choice of changed columns to `writing.patch`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from parquet_variant.files.parquet.format import field_numbers as numbers
from parquet_variant.files.parquet.format.footer import schema_elements
from parquet_variant.files.parquet.format.page_places import chunk_start, read_at, row_groups
from parquet_variant.files.parquet.format.thrift import STRUCT, find_field, list_items, read_value, with_numbers
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk
from parquet_variant.files.parquet.pages.file_metadata import CopiedChunk, PlacedChunk, PlacedGroup
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from parquet_variant.files.parquet.pages.stored_pages import StoredPages


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
