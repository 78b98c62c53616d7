"""Where the bytes of an unshredded Variant column lie in its decompressed pages.

Owns reading one column chunk of byte arrays without making an Arrow array of it: pyarrow copies every value once or
twice, which costs as much as decompressing it. Takes only the plain case (no nulls, PLAIN or dictionary pages) and
leaves every other, and all errors, to pyarrow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.array.parts import metadata_parts
from parquet_variant.functions.value_positions import Dictionaries, ValuePositions
from parquet_variant.kernels import pages
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.format.thrift import STRUCT, ThriftError, read_value

__all__ = ["Spans", "value_spans"]

_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}
_ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_PLAIN, _RLE, _INDICES = (0,), 3, (2, 8)
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
Int64s = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """The absolute addresses at which values start and stop, and what keeps their memory alive."""

    starts: Int64s
    stops: Int64s
    owner: list[pa.Buffer]

    def value_positions(self, metadata: pa.Array) -> ValuePositions:
        """The values with the metadata column of the same rows."""
        parts = metadata_parts(metadata)
        return ValuePositions.at(self.starts, self.stops, parts, Dictionaries(parts), owner=self.owner)


def value_spans(file: OpenFile, row_group: int, column: VariantColumn) -> Spans | None:
    """Where the values of an unshredded column's row group lie; None if pyarrow must read it.

    Parameters
    ----------
    file
        The open file.
    row_group
        Its number.
    column
        The unshredded column, not inside of another.
    """
    value = column.node.child("value")
    if value is None or value.leaf is None or len(column.path) != 1 or value.physical != "BYTE_ARRAY":
        return None
    group = file.metadata.row_group(row_group)
    chunk = group.column(value.leaf)
    if not _is_plain_case(chunk, group.num_rows):
        return None
    has_levels = "optional" in (column.node.repetition, value.repetition)
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    try:
        data = file.stream.read_at(chunk.total_compressed_size, start)
        return _Chunk(data, chunk, has_levels).spans(group.num_rows)
    except (ThriftError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _is_plain_case(chunk: pq.ColumnChunkMetaData, rows: int) -> bool:
    statistics = chunk.statistics if chunk.physical_type == "BYTE_ARRAY" and chunk.is_stats_set else None
    return (
        statistics is not None
        and statistics.has_null_count
        and statistics.null_count == 0
        and chunk.num_values == rows
        and (chunk.compression == "UNCOMPRESSED" or chunk.compression in _CODECS)
        and _ENCODINGS.issuperset(chunk.encodings)
        and not chunk.file_path
    )


class _Chunk:
    """The bytes of a column chunk, page after page."""

    def __init__(self, data: bytes, chunk: pq.ColumnChunkMetaData, has_levels: bool) -> None:
        self.data = data
        self.has_levels = has_levels
        self.codec = pa.Codec(_CODECS[chunk.compression]) if chunk.compression in _CODECS else None
        self.left = chunk.total_uncompressed_size
        self.dictionary: tuple[Int64s, Int64s] | None = None
        self.owner: list[pa.Buffer] = []

    def spans(self, rows: int) -> Spans | None:
        starts, stops = np.empty(rows, np.int64), np.empty(rows, np.int64)
        position = done = 0
        while done < rows:
            header, position = read_value(self.data, position, STRUCT)
            size = header[3]
            if size < 0 or position + size > len(self.data):
                return None
            if header[1] == _DICTIONARY:
                count = header[7][1]
                self.dictionary = np.empty(count, np.int64), np.empty(count, np.int64)
                page = self._plain(position, size, header[2])
                if not pages.plain_spans(page.address, page.address + page.size, *self.dictionary):
                    return None
            elif header[1] in (_DATA, _DATA_V2):
                count = header[5 if header[1] == _DATA else 8][1]
                part = slice(done, done + count)
                if count < 0 or done + count > rows or not self._page(header, position, starts[part], stops[part]):
                    return None
                done += count
            position += size
        return Spans(starts, stops, self.owner)

    def _page(self, header: dict[int, Any], position: int, starts: Int64s, stops: Int64s) -> bool:
        size, plain = header[3], header[2]
        if header[1] == _DATA:
            encoding = header[5][2]
            page = self._plain(position, size, plain)
            levels = 0
            if self.has_levels:
                if header[5][3] != _RLE or page.size < 4:
                    return False
                levels = 4 + int.from_bytes(page.slice(0, 4).to_pybytes(), "little")
        else:
            details = header[8]
            encoding, levels = details[4], 0
            skipped = details[5] + details[6]  # levels stand before what is compressed
            if details[2] or skipped > size or details[5] < 0 or details[6] < 0:
                return False
            page = self._plain(position + skipped, size - skipped, plain - skipped, details.get(7, True))
        at, stop = page.address + levels, page.address + page.size
        if encoding in _PLAIN:
            return bool(pages.plain_spans(at, stop, starts, stops))
        if encoding not in _INDICES or self.dictionary is None or levels >= page.size:
            return False
        width = page.slice(levels, 1).to_pybytes()[0]
        return width <= 32 and bool(pages.dictionary_spans(at + 1, stop, width, *self.dictionary, starts, stops))

    def _plain(self, position: int, size: int, plain: int, is_compressed: bool = True) -> pa.Buffer:
        """The bytes of a page, without compression."""
        self.left -= plain
        if plain < 0 or self.left < 0:
            raise ValueError("a page is larger than its column chunk")
        stored = pa.py_buffer(memoryview(self.data)[position : position + size])
        page = self.codec.decompress(stored, plain) if self.codec is not None and is_compressed else stored
        if page.size != plain:
            raise ValueError("a page has another size than its header says")
        self.owner.append(page)
        return page
