"""The stored data pages of a column chunk, with the statistics that the indexes of the file have for each page.

Owns copying such pages to another file, and the options for new pages next to them. Leaves new pages to `column_chunk`,
and the choice of pages that are copied to `operations.shrink`. Spec: ``parquet.thrift``, ``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format import field_numbers as numbers
from parquet_variant.files.parquet.format.page_places import LeafPages, PagePlace, page_header, read_at
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.files.parquet.pages.bounds import loaded
from parquet_variant.files.parquet.pages.codecs import codec_name, compressor
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Page, Shared
from parquet_variant.files.parquet.pages.encodings import Encoding, is_encodable
from parquet_variant.files.parquet.pages.file_schema import LeafColumn
from parquet_variant.files.parquet.pages.leaf_types import Physical
from parquet_variant.files.parquet.pages.leaf_values import LeafValues
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
