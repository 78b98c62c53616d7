"""The decompressed pages of one column chunk that is in no list.

Owns walking the headers, the sizes that they claim, compression, and the dictionary page. Leaves what lies in a data
page to `value_pages` and `leaf_values`. What is damaged, or not read here, is one of `PAGE_ERRORS`: then pyarrow reads
the chunk, and words the error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.kernels.buffer_pool import lend
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages import byte_arrays as pages
from parquet_variant.kernels.pages import deltas
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.format.thrift import STRUCT, ThriftError, read_value

__all__ = ["EVERY_ROW", "PAGE_ERRORS", "ChunkPages", "DataPage", "Int64s", "UInt8s", "is_readable"]

PAGE_ERRORS = (ThriftError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError)
_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}
# The bytes of a value; 0 where it tells its size, or is a bit.
_WIDTHS = {"BOOLEAN": 0, "BYTE_ARRAY": 0, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_OWN_ENCODINGS = {
    "BYTE_ARRAY": {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"},
    "INT32": {"DELTA_BINARY_PACKED"},
    "INT64": {"DELTA_BINARY_PACKED"},
}
_PLAIN, _RLE, _INDICES, _DELTA, _SIZED, _PREFIXED = 0, 3, (2, 8), 5, 6, 7
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_MOST_BYTES = 2**31 - 1
Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
EVERY_ROW: UInt8s = np.empty(0, np.uint8)


def is_readable(chunk: pq.ColumnChunkMetaData, rows: int) -> bool:
    """Whether a chunk has one value or null a row, by codecs and encodings that are read here."""
    known = _ENCODINGS.union(_OWN_ENCODINGS.get(chunk.physical_type, ()))
    return (
        chunk.physical_type in _WIDTHS
        and chunk.num_values == rows
        and (chunk.compression == "UNCOMPRESSED" or chunk.compression in _CODECS)
        and known.issuperset(chunk.encodings)
        and not chunk.file_path
    )


@dataclass(frozen=True, slots=True)
class DataPage:
    """One data page.

    Parameters
    ----------
    first, count
        Its rows.
    encoding
        How its values are stored: as indices into the dictionary, plain, or in deltas.
    levels, values
        The addresses at which its definition levels and its values start and stop; no levels if there are none.
    """

    first: int
    count: int
    encoding: int
    levels: tuple[int, int]
    values: tuple[int, int]

    @property
    def is_indices(self) -> bool:
        """Whether it holds indices into the dictionary."""
        return self.encoding in _INDICES

    def indices(self, entries: int, valid: UInt8s, count: int, out: npt.NDArray[np.int32]) -> None:
        """Fill the indices of a page of `count` values into a dictionary of so many entries."""
        if not pages.dictionary_indices(*self.values, entries, valid, count, out):
            raise ValueError("indices of a page are damaged")

    def spans(self, valid: UInt8s, count: int, starts: Int64s, sizes: Int64s) -> npt.NDArray[np.uint8] | None:
        """Fill where the `count` byte arrays of a page without indices lie; returns what they lie in, if not in it."""
        at, stop = self.values
        joined = None
        if self.encoding == _PLAIN:
            is_sound = pages.plain_spans(at, stop, valid, starts, sizes)
        else:
            prefixes = np.empty(count if self.encoding == _PREFIXED else 0, np.int64)
            if self.encoding == _PREFIXED:
                at = deltas.delta_values(at, stop, prefixes)
            lengths = np.empty(count, np.int64)
            at = -1 if at < 0 or self.encoding not in (_SIZED, _PREFIXED) else deltas.delta_values(at, stop, lengths)
            is_sound = at >= 0 and deltas.sized_spans(at, stop, lengths, valid, starts, sizes)
            if is_sound and len(prefixes):
                room = int(prefixes.sum() + lengths.sum())
                if not 0 <= room <= _MOST_BYTES:
                    raise ValueError("values of a page are damaged")
                joined = lend(np.uint8, room)
                is_sound = deltas.joined_prefixes(starts, sizes, prefixes, valid, address_of(joined), room)
        if not is_sound:
            raise ValueError("values of a page are damaged")
        return joined

    def booleans(self, count: int) -> UInt8s:
        """The `count` values of a page of booleans, a byte each."""
        at, stop = self.values
        if self.encoding == _PLAIN and stop - at >= (count + 7) // 8:
            packed = np.frombuffer(ctypes.string_at(at, (count + 7) // 8), np.uint8)
            return np.unpackbits(packed, count=count, bitorder="little")
        booleans = np.empty(count, np.uint8)
        # Behind four bytes that say how many follow.
        if self.encoding != _RLE or stop - at < 4 or pages.level_validity(at + 4, stop, 1, 1, booleans) < 0:
            raise ValueError("values of a page are damaged")
        return booleans

    def numbers(self, count: int, width: int) -> npt.NDArray[Any]:
        """The `count` values of a page without indices, of so many bytes each, as integers."""
        at, stop = self.values
        if self.encoding == _DELTA:
            numbers = np.empty(count, np.int64)
            if deltas.delta_values(at, stop, numbers) < 0:
                raise ValueError("values of a page are damaged")
            return numbers if width == 8 else numbers.astype(np.int32)
        if self.encoding != _PLAIN or stop - at != count * width:
            raise ValueError("values of a page are damaged")
        return _integers(at, count, width)


def _integers(address: int, count: int, width: int) -> npt.NDArray[Any]:
    """A copy of the integers at an address."""
    return np.frombuffer(ctypes.string_at(address, count * width), np.int64 if width == 8 else np.int32)


def _bytes_at(file: OpenFile, start: int, size: int) -> Any:
    """A view of bytes of a file, in memory that comes back."""
    if not 0 <= size <= file.source.size:
        raise ValueError("a column chunk is larger than its file")
    data = lend(np.uint8, size).data
    with file.stream.get_stream(start, size) as stream:
        if stream.readinto(data) != size:
            raise ValueError("a column chunk ends after its file")
    return data


class ChunkPages:
    """The pages of a column chunk.

    Parameters
    ----------
    file, row_group, leaf
        Which chunk; `is_readable`.
    has_levels
        Whether pages have definition levels.
    """

    def __init__(self, file: OpenFile, row_group: int, leaf: int, *, has_levels: bool) -> None:
        chunk = file.metadata.row_group(row_group).column(leaf)
        start = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset:
            start = min(start, chunk.dictionary_page_offset)
        self.data = _bytes_at(file, start, chunk.total_compressed_size)
        self.has_levels = has_levels
        self.codec = pa.Codec(_CODECS[chunk.compression]) if chunk.compression in _CODECS else None
        self.left = chunk.total_uncompressed_size
        self.is_boolean = chunk.physical_type == "BOOLEAN"
        self.width = _WIDTHS[chunk.physical_type]
        self.dictionary_numbers = np.empty(0, np.int64)
        self.dictionary_starts = self.dictionary_sizes = np.empty(0, np.int64)
        self.owner: list[Any] = []

    def read(self, rows: int, kept: npt.NDArray[np.bool_] | None = None) -> Iterator[DataPage]:
        """The data pages of so many rows; those without a row that is kept are left out, and not decompressed."""
        position = done = 0
        while done < rows:
            header, position = read_value(self.data, position, STRUCT)
            size = header[3]
            if size < 0 or position + size > len(self.data):
                raise ValueError("a page is larger than its column chunk")
            if header[1] == _DICTIONARY:
                self._dictionary(header[7][1], self._plain(position, size, header[2]))
            elif header[1] in (_DATA, _DATA_V2):
                count = header[5 if header[1] == _DATA else 8][1]
                if count < 0 or done + count > rows:
                    raise ValueError("a page has more values than its column chunk")
                if count and (kept is None or kept[done : done + count].any()):
                    yield self._page(header, position, done, count)
                done += count
            position += size

    def _dictionary(self, count: int, page: pa.Buffer) -> None:
        if count < 0 or (self.width or 4) * count > page.size:
            raise ValueError("a dictionary has more values than bytes")
        if self.width:
            self.dictionary_numbers = _integers(page.address, count, self.width)
            return
        self.dictionary_starts, self.dictionary_sizes = np.empty(count, np.int64), np.empty(count, np.int64)
        stop = page.address + page.size
        if not pages.plain_spans(page.address, stop, EVERY_ROW, self.dictionary_starts, self.dictionary_sizes):
            raise ValueError("values of a dictionary are damaged")

    def _page(self, header: dict[int, Any], position: int, first: int, count: int) -> DataPage:
        size, plain = header[3], header[2]
        if header[1] == _DATA:
            encoding = header[5][2]
            page = self._plain(position, size, plain)
            start, stop = page.address, page.address + page.size
            levels = start, start
            if self.has_levels:
                if header[5][3] != _RLE or page.size < 4:
                    raise ValueError("levels of a page are not as specified")
                levels = start + 4, start + 4 + int.from_bytes(page.slice(0, 4).to_pybytes(), "little")
        else:
            details = header[8]
            encoding = details[4]
            of_definition, of_repetition = details[5], details[6]
            before = of_definition + of_repetition  # levels stand before what is compressed
            if before > size or of_definition < 0 or of_repetition < 0:
                raise ValueError("levels of a page are larger than it is")
            stored = pa.py_buffer(self.data[position : position + before])
            self.owner.append(stored)
            page = self._plain(position + before, size - before, plain - before, details.get(7, True))
            levels = stored.address + of_repetition, stored.address + before
            start, stop = page.address, page.address + page.size
            return DataPage(first, count, encoding, levels, (start, stop))
        if levels[1] > stop:
            raise ValueError("levels of a page are larger than it is")
        return DataPage(first, count, encoding, levels, (levels[1], stop))

    def _plain(self, position: int, size: int, plain: int, is_compressed: bool = True) -> pa.Buffer:
        """The bytes of a page, without compression."""
        self.left -= plain
        if plain < 0 or self.left < 0:
            raise ValueError("a page is larger than its column chunk")
        stored = pa.py_buffer(self.data[position : position + size])
        page = self.codec.decompress(stored, plain) if self.codec is not None and is_compressed else stored
        if page.size != plain:
            raise ValueError("a page has another size than its header says")
        self.owner.append(page)
        return page
