"""The data pages of a column chunk of a file, as they are stored, with what the file's indexes tell of each.

Owns taking such a page over into another file, and how the pages beside it are to be made. Leaves making them to
`column_chunk`, and which pages are taken over to `operations.shrink`. Spec: ``parquet.thrift``, ``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.byte_arrays import plain_texts
from parquet_variant.parquet.format import field_numbers as numbers
from parquet_variant.parquet.format.page_places import LeafPages, PagePlace, page_header, read_at
from parquet_variant.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.parquet.pages.bounds import loaded
from parquet_variant.parquet.pages.codecs import codec_name, compressor
from parquet_variant.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, Page, Shared
from parquet_variant.parquet.pages.encodings import Encoding, is_encodable
from parquet_variant.parquet.pages.file_schema import LeafColumn
from parquet_variant.parquet.pages.leaf_types import Physical
from parquet_variant.parquet.pages.leaf_values import Values
from parquet_variant.types import MAX_OFFSET

_LEVEL = 3


class StoredPages:
    """The pages of a column chunk of a file that is open.

    `source`: the file.
    `old`: the chunk.
    `leaf`: the column as it is written now.
    Raises `ValueError` if the file's indexes do not tell of each page what the indexes of a new file have to.
    """

    def __init__(self, source: pa.NativeFile, old: LeafPages, leaf: LeafColumn) -> None:
        self._source, self._old, self._leaf = source, old, leaf
        self._index: Mapping[int, Any] | None = None
        self.codec: int = old.told[numbers.CODEC]
        if numbers.STATISTICS in old.told:
            if numbers.COLUMN_INDEX not in old.struct:
                raise ThriftError("bounds of pages are not told: one is of nothing but NaN")
            start, size = old.struct[numbers.COLUMN_INDEX], old.struct[numbers.COLUMN_INDEX_SIZE]
            self._index, _ = read_value(read_at(source, start, size), 0, STRUCT)
        is_text = leaf.type.physical == Physical.BYTE_ARRAY
        if is_text and any(place.text_bytes is None for place in old.pages):
            raise ThriftError("an offset index does not tell the bytes of texts")

    @property
    def bloom(self) -> tuple[int, int] | None:
        """Where the chunk's bloom filter is, and its size; also right for fewer values."""
        told = self._old.told
        return (told[numbers.BLOOM_AT], told[numbers.BLOOM_SIZE]) if numbers.BLOOM_AT in told else None

    def page(self, number: int) -> Page:
        """A page as it is."""
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

    def _counts(self, kind: int, number: int, most: int) -> list[int]:
        """How often each level occurs in a page; nothing where that is not told."""
        counts = None if self._index is None else self._index.get(kind)
        return [] if counts is None else counts[number * (most + 1) : (number + 1) * (most + 1)]

    def new_chunk(self, made: Collection[PagePlace], shared: Shared) -> ColumnChunk:
        """An empty chunk like this one, with its dictionary; what is left of the pages `made` is encoded as it was."""
        counted = self._old.told[numbers.ENCODING_STATS]
        data_pages = [each for each in counted if each[numbers.PAGE_TYPE] != numbers.DICTIONARY_PAGE]
        encodings = [Encoding(each[numbers.PAGE_ENCODING]) for each in data_pages]
        encoding = next((each for each in encodings if each != Encoding.RLE_DICTIONARY), Encoding.PLAIN)
        has_dictionary = self._old.start < self._old.pages[0].start
        headers = [page_header(read_at(self._source, place.start, place.size)) for place in made]
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

    def _entries(self, stored: bytes, size: int, count: int, codec: str) -> Values:
        plain = pa.py_buffer(stored)
        if codec != "none":
            plain = pa.Codec(codec).decompress(plain, size)
        width = self._leaf.type.width
        if width:
            return Values(count, width, np.frombuffer(plain, np.uint8, count * width))
        offsets, data = np.empty(count + 1, np.int32), np.empty(max(plain.size - 4 * count, 0), np.uint8)
        is_sound, _ = plain_texts(plain.address, plain.address + plain.size, offsets, address_of(data))
        if not is_sound:
            raise ThriftError("values of a dictionary are damaged")
        return Values(count, 0, data, np.diff(offsets))
