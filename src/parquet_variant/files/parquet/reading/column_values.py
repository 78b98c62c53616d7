"""Reading a leaf column from its pages: strings may stay dictionary-encoded, and only requested rows are copied.

Owns page headers and the checks of their sizes, decompression, the dictionary page, the conversion of one column chunk
to an Arrow array, the spans of unshredded Variants in decompressed pages, for which pyarrow would copy every value once
or twice, and the test whether a value may be in a chunk, by its Bloom filter (``BloomFilter.md``). Leaves decoding to
kernels, and other encodings and types, lists, remote files and damaged chunks to pyarrow, which reports any error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import metadata_parts
from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.facts import PAGE_ERRORS, chunk_start_of
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, bitmap
from parquet_variant.kernels.buffer_pool import acquire, acquire_result, release
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.kernels.pages import chunks, runs, values
from parquet_variant.kernels.pages.values import copy_entries, copy_strings, entry_offsets
from parquet_variant.types import MAX_OFFSET

if TYPE_CHECKING:
    from parquet_variant.arrays.value_positions import ValuePositions

_CODECS = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd"}
# Bytes per value; 0 for values of variable length and for bits.
_WIDTHS = {"BOOLEAN": 0, "BYTE_ARRAY": 0, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_ENCODINGS = frozenset({"PLAIN", "RLE", "RLE_DICTIONARY", "PLAIN_DICTIONARY"})
_ENCODINGS_OF_TYPE = {
    "BYTE_ARRAY": {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"},
    "INT32": {"DELTA_BINARY_PACKED"},
    "INT64": {"DELTA_BINARY_PACKED"},
}
_INDICES = (chunks.PLAIN_DICTIONARY, chunks.RLE_DICTIONARY)
_LENGTH = struct.Struct("<I")
_PAGE_ENTRIES = 8
_MAX_BYTES = _MAX_ROWS = 2**31 - 1
Int32s = npt.NDArray[np.int32]
UInt8s = npt.NDArray[np.uint8]


def is_readable(chunk: pq.ColumnChunkMetaData, rows: int) -> bool:
    """Return whether a chunk has one value or null per row, and only codecs and encodings that are supported here."""
    encodings = _ENCODINGS.union(_ENCODINGS_OF_TYPE.get(chunk.physical_type, ()))
    try:
        is_elsewhere = bool(chunk.file_path)
    except UnicodeDecodeError:
        return False
    return (
        chunk.physical_type in _WIDTHS
        and chunk.num_values == rows <= _MAX_ROWS
        and (chunk.compression == "UNCOMPRESSED" or chunk.compression in _CODECS)
        and encodings.issuperset(chunk.encodings)
        and not is_elsewhere
    )


class PackedStrings(NamedTuple):
    """Concatenated strings: offsets, bytes, and whether all are ASCII."""

    offsets: Int32s
    data: UInt8s
    is_ascii: bool


def plain_strings(page: pa.Buffer, count: int) -> PackedStrings:
    """Return the `count` strings of a PLAIN page. Raises ValueError if they do not fill it."""
    if not 0 <= 4 * count <= page.size:
        raise ValueError("a page has more strings than bytes")
    buffers = acquire_result(np.int32, count + 1), acquire_result(np.uint8, page.size - 4 * count)
    is_sound, is_ascii = values.plain_strings(
        buffer_address(page), buffer_address(page) + page.size, buffers[0], address_of(buffers[1])
    )
    _check(is_sound)
    return PackedStrings(*buffers, is_ascii)


def _check(is_sound: bool) -> None:
    if not is_sound:
        raise ValueError("levels or values of a page are damaged")


class ChunkPages:
    """The values of a column chunk outside lists.

    `file`, `row_group` and `leaf`: the chunk, for which `is_readable` is true.
    `max_definition`: the definition level of a value; 0 if pages have no levels.
    `mask`: the requested rows; None for all. Pages without a requested row are not decompressed: their rows are
      undefined.
    `valid`: one byte per row, whether it has a value; set when values are read.
    `has_indices` and `is_indexed`: whether any page, and whether every page, is dictionary-encoded.
    """

    def __init__(
        self, file: OpenFile, row_group: int, leaf: int, max_definition: int, mask: npt.NDArray[np.bool_] | None = None
    ) -> None:
        group = file.metadata.row_group(row_group)
        chunk = group.column(leaf)
        self.rows, self.max_definition = group.num_rows, max_definition
        size = chunk.total_compressed_size
        if not 0 <= size <= file.source.size:
            raise ValueError("a column chunk is larger than its file")
        self.data: Any = acquire_result(np.uint8, size).data
        with file.stream.get_stream(chunk_start_of(chunk), size) as stream:
            if stream.readinto(self.data) != size:
                raise ValueError("a column chunk ends after its file")
        self.codec = pa.Codec(_CODECS[chunk.compression]) if chunk.compression in _CODECS else None
        self.remaining_bytes = chunk.total_uncompressed_size
        self.is_boolean = chunk.physical_type == "BOOLEAN"
        self.width = _WIDTHS[chunk.physical_type]
        self.entries = self.numbers_at = 0
        self.strings = PackedStrings(np.zeros(1, np.int32), np.empty(0, np.uint8), True)
        self.owner: list[object] = []
        self.valid = np.empty(self.rows, np.uint8)
        self.pages = np.array(list(self._read(mask)), np.int64).reshape(-1, _PAGE_ENTRIES)
        indexed = [encoding in _INDICES for encoding in self.pages[:, chunks.ENCODING].tolist()]
        self.has_indices, self.is_indexed = any(indexed), bool(indexed) and all(indexed)

    @property
    def present(self) -> int:
        """Number of rows with a value, after values were read."""
        return int(self.pages[:, chunks.PRESENT].sum())

    def _read(self, mask: npt.NDArray[np.bool_] | None) -> Iterator[tuple[int, ...]]:
        """Yield the data pages that contain a requested row, as rows of the page table of `kernels.pages.chunks`."""
        position = first_row = 0
        while first_row < self.rows:
            header, position = thrift.read_value(self.data, position, thrift.STRUCT)
            size = header[3]
            if size < 0 or position + size > len(self.data):
                raise ValueError("a page is larger than its column chunk")
            if header[1] == thrift.DICTIONARY_PAGE:
                self._dictionary(header[7][1], self._decompressed(position, size, header[2]))
            elif header[1] in (thrift.DATA_PAGE, thrift.DATA_PAGE_V2):
                count = header[5 if header[1] == thrift.DATA_PAGE else 8][1]
                if count < 0 or first_row + count > self.rows:
                    raise ValueError("a page has more values than its column chunk")
                if count and (mask is None or mask[first_row : first_row + count].any()):
                    yield first_row, count, *self._page(header, position), 0
                first_row += count
            position += size

    def _dictionary(self, count: int, page: pa.Buffer) -> None:
        if count < 0 or (self.width or 4) * count > page.size:
            raise ValueError("a dictionary has more values than bytes")
        self.entries, self.numbers_at = count, buffer_address(page)
        if not self.width:
            self.strings = plain_strings(page, count)

    def _page(self, header: dict[int, Any], position: int) -> tuple[int, int, int, int, int]:
        """Return the encoding of a page, and where its levels and values start and end."""
        size, plain = header[3], header[2]
        if header[1] == thrift.DATA_PAGE:
            page = self._decompressed(position, size, plain)
            start, stop = buffer_address(page), buffer_address(page) + page.size
            first = last = start
            if self.max_definition:
                if header[5][3] != chunks.RLE or page.size < 4:
                    raise ValueError("levels of a page are not as specified")
                first, last = start + 4, start + 4 + _LENGTH.unpack_from(page)[0]
            if last > stop:
                raise ValueError("levels of a page are larger than it is")
            return header[5][2], first, last, last, stop
        details = header[8]
        definition_size, repetition_size = details[5], details[6]
        before = definition_size + repetition_size  # uncompressed levels come before the compressed values
        if before > size or definition_size < 0 or repetition_size < 0:
            raise ValueError("levels of a page are larger than it is")
        stored = pa.py_buffer(self.data[position : position + before])
        self.owner.append(stored)
        page = self._decompressed(position + before, size - before, plain - before, details.get(7, True))
        first, last = buffer_address(stored) + repetition_size, buffer_address(stored) + before
        return details[4], first, last, buffer_address(page), buffer_address(page) + page.size

    def _decompressed(self, position: int, size: int, plain: int, is_compressed: bool = True) -> pa.Buffer:
        """Return the decompressed bytes of a page."""
        self.remaining_bytes -= plain
        if plain < 0 or self.remaining_bytes < 0:
            raise ValueError("a page is larger than its column chunk")
        stored = pa.py_buffer(self.data[position : position + size])
        page = self.codec.decompress(stored, plain) if self.codec is not None and is_compressed else stored
        if page.size != plain:
            raise ValueError("a page has another size than its header says")
        self.owner.append(page)
        return page

    def numbers(self) -> npt.NDArray[Any]:
        """Return numbers as integers of their width, and booleans as bytes; 0 for a null row."""
        if self.is_boolean:
            booleans = np.empty(self.rows, np.uint8)
            _check(chunks.chunk_booleans(self.pages, self.max_definition, self.valid, booleans))
            return booleans
        numbers = acquire_result(np.int64 if self.width == 8 else np.int32, self.rows)
        place, target = (self.numbers_at, self.entries, self.width), address_of(numbers)
        _check(chunks.chunk_numbers(self.pages, self.max_definition, *place, self.valid, target))
        return numbers

    def nulls(self, mask: Mask | None) -> pa.Buffer | None:
        """Return the validity bitmap of the requested rows, after values were read; None without nulls."""
        if self.present == self.rows:
            return None
        return bitmap(self.valid if mask is None else self.valid[mask])

    def spans(self, starts: Int64s, sizes: Int64s) -> int:
        """Fill in the addresses and sizes of byte arrays (size 0 for a null row); return the sum of sizes."""
        packed = self.strings
        indices = np.empty(self.rows if self.has_indices else 0, np.int32)
        total = chunks.chunk_spans(
            self.pages, self.max_definition, address_of(packed.data), packed.offsets, indices, self.valid, starts, sizes
        )
        _check(total >= 0)
        for page in self.pages.tolist():
            if page[chunks.ENCODING] in (chunks.SIZED, chunks.PREFIXED):
                rows = slice(page[chunks.FIRST], page[chunks.FIRST] + page[chunks.COUNT])
                total += self._delta_spans(page, self.valid[rows], starts[rows], sizes[rows])
        return int(total)

    def _delta_spans(self, page: list[int], valid: UInt8s, starts: Int64s, sizes: Int64s) -> int:
        """Fill in addresses and sizes as `spans` does, for a page of a delta encoding."""
        at, stop, count = page[chunks.VALUES], page[chunks.STOP], page[chunks.PRESENT]
        prefixes = np.empty(count if page[chunks.ENCODING] == chunks.PREFIXED else 0, np.int64)
        if page[chunks.ENCODING] == chunks.PREFIXED:
            at = runs.read_deltas(at, stop, len(prefixes), address_of(prefixes), 8)
        lengths = np.empty(count, np.int64)
        at = -1 if at < 0 else runs.read_deltas(at, stop, len(lengths), address_of(lengths), 8)
        _check(at >= 0 and runs.sized_spans(at, stop, lengths, valid, starts, sizes))
        total = int(prefixes.sum() + lengths.sum())
        if len(prefixes):
            _check(0 <= total <= _MAX_BYTES)
            joined = acquire_result(np.uint8, total)
            self.owner.append(joined)
            _check(runs.joined_prefixes(starts, sizes, prefixes, valid, address_of(joined), total))
        return total


DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_NO_NULLS = np.empty(0, np.uint8)


def _strings(nulls: pa.Buffer | None, offsets: Int32s, data: npt.NDArray[np.uint8]) -> pa.StringArray:
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _strings_of_entries(nulls: pa.Buffer | None, indices: Int32s, starts: Int32s, data: int) -> pa.StringArray | None:
    """Return the strings of dictionary indices; None if an index is invalid or the strings are too large."""
    offsets = acquire_result(np.int32, len(indices) + 1)
    valid = _NO_NULLS if nulls is None else np.frombuffer(nulls, np.uint8)
    total = entry_offsets(valid, indices, starts, offsets)
    if total < 0:
        return None
    copied = acquire_result(np.uint8, total)
    if total:
        copy_entries(indices, starts, data, offsets, address_of(copied))
    return _strings(nulls, offsets, copied)


def without_dictionary(column: pa.DictionaryArray) -> pa.StringArray:
    """Return the strings of a column that `leaf_values` made, or of some of its rows, without the dictionary."""
    indices, dictionary = column.indices, column.dictionary
    if column.type != DICTIONARY or indices.offset or dictionary.offset or not len(dictionary):
        return column.dictionary_decode()
    nulls, numbers = indices.buffers()
    _, stops, data = dictionary.buffers()
    rows, starts = np.frombuffer(numbers, np.int32, len(indices)), np.frombuffer(stops, np.int32, len(dictionary) + 1)
    strings = _strings_of_entries(nulls, rows, starts, buffer_address(data))
    return column.dictionary_decode() if strings is None else strings  # which raises the error


def column_values(
    file: OpenFile, row_group: int, node: SchemaNode, kind: pa.DataType, mask: Mask | None
) -> pa.Array | None:
    """Return the values of a leaf column; None if pyarrow must read it.

    `kind`: the Arrow type of the values: string, or a type of 1 bit, 4 bytes or 8 bytes. With a dictionary of strings,
    a chunk stays dictionary-encoded if all of its pages are.
    `mask`: the requested rows; None for all. Pages without a requested row are not decompressed.
    Raises `MalformedVariantError` if a string is not UTF-8.
    """
    group = file.metadata.row_group(row_group)
    if node.max_repetition or node.leaf is None or not is_readable(group.column(node.leaf), group.num_rows):
        return None
    try:
        chunk = ChunkPages(file, row_group, node.leaf, node.max_definition, mask)
        if chunk.is_boolean or chunk.width:
            numbers = chunk.numbers() if mask is None else chunk.numbers()[mask]
            data = bitmap(numbers) if chunk.is_boolean else pa.py_buffer(numbers)
            return pa.Array.from_buffers(kind, len(numbers), [chunk.nulls(mask), data])
        column, is_sound = _chunk_strings(chunk, pa.types.is_dictionary(kind), mask)
    except PAGE_ERRORS:
        return None
    if not is_sound:
        from parquet_variant.ops.columns.slot_casts import refuse_faulty_slots

        refuse_faulty_slots(column, None if mask is None else np.flatnonzero(mask))
    return column


def _chunk_strings(chunk: ChunkPages, as_dictionary: bool, mask: Mask | None) -> tuple[pa.Array, bool]:
    """Return the strings of a chunk, and whether they are certainly valid."""
    if not chunk.is_indexed:
        starts, sizes = acquire(np.int64, chunk.rows), acquire(np.int64, chunk.rows)
        total = chunk.spans(starts, sizes)
        spans = (starts, sizes) if mask is None else (starts[mask], sizes[mask])
        total = total if mask is None else int(spans[1].sum())
        if total > MAX_OFFSET:
            raise ValueError("the strings exceed the size of an Arrow string array")
        offsets, data = acquire_result(np.int32, len(spans[0]) + 1), acquire_result(np.uint8, total)
        is_ascii = copy_strings(*spans, offsets, address_of(data))
        release(starts, sizes)
        return _strings(chunk.nulls(mask), offsets, data), is_ascii
    indices = acquire_result(np.int32, chunk.rows)
    _check(chunks.chunk_indices(chunk.pages, chunk.max_definition, chunk.entries, chunk.valid, indices))
    indices = indices if mask is None else indices[mask]
    nulls, entries = chunk.nulls(mask), chunk.strings
    dictionary = _strings(None, entries.offsets, entries.data)
    is_sound = entries.is_ascii
    if not is_sound:
        with suppress(pa.ArrowInvalid):
            dictionary.validate(full=True)
            is_sound = True
    if as_dictionary:
        numbers = pa.Array.from_buffers(pa.int32(), len(indices), [nulls, pa.py_buffer(indices)])
        return pa.DictionaryArray.from_arrays(numbers, dictionary, safe=False), is_sound
    strings = _strings_of_entries(nulls, indices, entries.offsets, address_of(entries.data))
    if strings is None:
        raise ValueError("the strings exceed the size of an Arrow string array")
    return strings, is_sound


# Returns the values of the rows of a column, from their metadata.
UnshreddedValues: TypeAlias = "Callable[[pa.Array], ValuePositions]"


def value_spans(file: OpenFile, row_group: int, column: VariantColumn) -> UnshreddedValues | None:
    """Return the values of an unshredded top-level column, in its pages; None if pyarrow must read it."""
    from parquet_variant.arrays.value_positions import ValuePositions

    value = column.node.child("value")
    if value is None or value.leaf is None or len(column.path) != 1 or value.physical != "BYTE_ARRAY":
        return None
    group = file.metadata.row_group(row_group)
    chunk = group.column(value.leaf)
    statistics = chunk.statistics if chunk.is_stats_set else None
    has_no_nulls = statistics is not None and statistics.has_null_count and statistics.null_count == 0
    if not has_no_nulls or not is_readable(chunk, group.num_rows):
        return None
    try:
        pages = ChunkPages(file, row_group, value.leaf, value.max_definition)
        starts, sizes = np.empty(pages.rows, np.int64), np.empty(pages.rows, np.int64)
        pages.spans(starts, sizes)
    except PAGE_ERRORS:
        return None
    if pages.present < pages.rows:  # The null count in the statistics is wrong.
        return None
    owner = [*pages.owner, pages.strings]
    return lambda metadata: ValuePositions.at(starts, starts + sizes, metadata_parts(metadata), owner)


# The bytes of a block of a Bloom filter, and the bytes of a filter that are read at most.
_BLOCK, _MAX_FILTER_BYTES = 32, 128 << 20


def xxh64(data: bytes) -> int:
    """Return the XXH64 hash with seed 0.

    >>> hex(xxh64(b"")), hex(xxh64(b"abc"))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    hashes = np.empty(1, np.int64)
    values.hash_values(address_of(np.frombuffer(data, np.uint8)), len(data), hashes)
    return int(hashes.view(np.uint64)[0])


def may_contain(bitset: bytes, value: int) -> bool:
    """Return whether a value with this hash may be in a split-block filter."""
    block = ((value >> 32) * (len(bitset) // _BLOCK)) >> 32
    words = struct.unpack_from("<8I", bitset, block * _BLOCK)
    key = value & 0xFFFFFFFF
    return all(word >> ((key * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, values.SALT, strict=True))


def _plain_encoded(scalar: pa.Scalar, leaf: SchemaNode) -> bytes | None:
    """Return a literal in the plain encoding of the column; None if the encoding is uncertain."""
    value = scalar.as_py()
    if leaf.spelled() in ("BYTE_ARRAY STRING", "BYTE_ARRAY"):
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    if isinstance(value, int) and not isinstance(value, bool) and (not leaf.logical or leaf.logical.startswith("INT(")):
        form = {"INT32": "<i", "INT64": "<q"}.get(leaf.physical or "")
        width = 32 if form == "<i" else 64
        return struct.pack(form, value) if form and -(2 ** (width - 1)) <= value < 2 ** (width - 1) else None
    return None


def absent_values(file: OpenFile, row_group: int, leaf: SchemaNode) -> Callable[[pa.Scalar], bool] | None:
    """Return a test for values that are certainly absent from a column chunk; None without a Bloom filter."""
    chunk: Any = file.facts.chunk(leaf, row_group)
    # pyarrow before 25 does not say where the filter is.
    if (offset := getattr(chunk, "bloom_filter_offset", None)) is None:
        return None

    @cache  # Read for the first literal, because ranges need no filter.
    def bitset() -> bytes | None:
        with file.source.filesystem.open_input_file(file.name) as stream:
            head = stream.read_at(min(chunk.bloom_filter_length or 256, _MAX_FILTER_BYTES), offset)
            try:
                header, start = thrift.read_value(head, 0, thrift.STRUCT)
                size = header[1]
                # The specification defines only the block algorithm, XXH64 and no compression.
                is_supported = all(list(header[part]) == [1] for part in (2, 3, 4))
            except (thrift.ThriftError, KeyError, TypeError):
                return None
            if not is_supported or size % _BLOCK or not 0 < size <= _MAX_FILTER_BYTES:
                return None
            data = bytes(head[start : start + size])
            if len(data) < size:
                data += stream.read_at(size - len(data), offset + start + len(data))
        return data if len(data) == size else None

    def is_absent(literal: pa.Scalar) -> bool:
        encoded, bits = _plain_encoded(literal, leaf), bitset()
        return encoded is not None and bits is not None and not may_contain(bits, xxh64(encoded))

    return is_absent
