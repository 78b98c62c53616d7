"""The pages of a column chunk, and reading some rows from the pages that contain them.

Owns page headers and the checks of their sizes, decompression, and the dictionary page. Leaves decoding to kernels, and
arrays to `column_values`. Raises one of `PAGE_ERRORS` for damaged or unsupported pages: pyarrow then reads the chunk,
and reports any error. Owns also small in-memory files with some pages, one per set of columns whose pages end at the
same rows, and joining structs and lists whose fields come from several such files, which pyarrow reads.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.facts import (
    LeafPages,
    PagePlace,
    chunk_start_of,
    leaf_pages,
    page_header,
    read_at,
    row_groups,
)
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer import MAGIC, SchemaNode, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.thrift import BINARY, I32, I64, LIST, STRUCT, ThriftError, encode_struct
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy
from parquet_variant.kernels.buffer_pool import acquire_result
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.kernels.pages import chunks, runs, values
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support import arrow_compute as pc

PAGE_ERRORS = (
    ThriftError, pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError,
)  # fmt: skip
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
    return (
        chunk.physical_type in _WIDTHS
        and chunk.num_values == rows <= _MAX_ROWS
        and (chunk.compression == "UNCOMPRESSED" or chunk.compression in _CODECS)
        and encodings.issuperset(chunk.encodings)
        and not _is_in_another_file(chunk)
    )


def _is_in_another_file(chunk: pq.ColumnChunkMetaData) -> bool:
    try:
        return bool(chunk.file_path)
    except UnicodeDecodeError:
        return True


class PackedStrings(NamedTuple):
    """Concatenated strings: offsets, bytes, and whether all are ASCII."""

    offsets: Int32s
    data: UInt8s
    is_ascii: bool


def plain_strings(page: pa.Buffer, count: int) -> PackedStrings:
    """Return the `count` strings of a PLAIN page. Raises ValueError if they do not fill it."""
    if not 0 <= 4 * count <= page.size:
        raise ValueError("a page has more strings than bytes")
    texts = acquire_result(np.int32, count + 1), acquire_result(np.uint8, page.size - 4 * count)
    is_sound, is_ascii = values.plain_strings(
        buffer_address(page), buffer_address(page) + page.size, texts[0], address_of(texts[1])
    )
    _check(is_sound)
    return PackedStrings(*texts, is_ascii)


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
            header, position = thrift.read_value(self.data, position, STRUCT)
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

    def indices(self) -> Int32s:
        """Return dictionary indices, if every page has them; 0 for a null row."""
        indices = acquire_result(np.int32, self.rows)
        _check(chunks.chunk_indices(self.pages, self.max_definition, self.entries, self.valid, indices))
        return indices

    def numbers(self) -> npt.NDArray[Any]:
        """Return numbers as integers of their width; 0 for a null row."""
        numbers = acquire_result(np.int64 if self.width == 8 else np.int32, self.rows)
        target = address_of(numbers)
        _check(
            chunks.chunk_numbers(
                self.pages, self.max_definition, self.numbers_at, self.entries, self.width, self.valid, target
            )
        )
        return numbers

    def booleans(self) -> UInt8s:
        """Return booleans as bytes; 0 for a null row."""
        booleans = np.empty(self.rows, np.uint8)
        _check(chunks.chunk_booleans(self.pages, self.max_definition, self.valid, booleans))
        return booleans

    def spans(self, starts: Int64s, sizes: Int64s) -> int:
        """Fill in the addresses and sizes of byte arrays (size 0 for a null row); return the sum of sizes."""
        texts = self.strings
        indices = np.empty(self.rows if self.has_indices else 0, np.int32)
        total = chunks.chunk_spans(
            self.pages, self.max_definition, address_of(texts.data), texts.offsets, indices, self.valid, starts, sizes
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
            at = runs.delta_values(at, stop, prefixes)
        lengths = np.empty(count, np.int64)
        at = -1 if at < 0 else runs.delta_values(at, stop, lengths)
        _check(at >= 0 and runs.sized_spans(at, stop, lengths, valid, starts, sizes))
        total = int(prefixes.sum() + lengths.sum())
        if len(prefixes):
            _check(0 <= total <= _MAX_BYTES)
            joined = acquire_result(np.uint8, total)
            self.owner.append(joined)
            _check(runs.joined_prefixes(starts, sizes, prefixes, valid, address_of(joined), total))
        return total


# A column chunk and some of its pages.
ChosenPages: TypeAlias = tuple[LeafPages, tuple[PagePlace, ...]]
# For a larger share of the bytes, pyarrow reads the whole file faster.
_MAX_SHARE = 0.5
_CHILDREN = 5


def rows_of_pages(source: pa.NativeFile, columns: Collection[str], row_mask: Mask) -> pa.Table | None:
    """Return some rows of a file in order; None if the whole file must be read instead."""
    try:
        footer = footer_bytes(source)
        root = parse_schema(footer)
        nodes = [node for node in root.children if node.name in columns]
        leaves = [leaf for node in nodes for leaf in node.leaves()]
        tables: list[pa.Table] = []
        start = 0
        for chunks_at, rows in row_groups(footer):
            mask, start = row_mask[start : start + rows], start + rows
            if mask.any():
                columns_pages = [leaf_pages(source, footer, chunks_at[leaf.leaf or 0], leaf, rows) for leaf in leaves]
                size = sum(place.size for pages in columns_pages for place in pages.holding(mask))
                if size > _MAX_SHARE * sum(place.size for pages in columns_pages for place in pages.pages):
                    return None
                tables.append(_rows_of_group(source, footer, root, columns_pages, mask))
        if start != len(row_mask) or not tables:
            return None
        return pa.concat_tables(tables)
    except PAGE_ERRORS:
        return None  # Reading the whole columns reports the error.


def _rows_of_group(
    source: pa.NativeFile, footer: bytes, root: SchemaNode, leaves: Sequence[LeafPages], mask: Mask
) -> pa.Table:
    tables = []
    for group in pages_by_rows(leaves, mask):
        page_mask = np.concatenate([mask[place.first_row : place.first_row + place.rows] for place in group[0][1]])
        tables.append(read_pages(source, footer, root, group).filter(from_numpy(page_mask)).combine_chunks())
    fields, columns = [], []
    for node in root.children:
        parts = [table for table in tables if node.name in table.column_names]
        if parts:
            columns.append(_merged_column(node, [table[node.name].chunk(0) for table in parts]))
            fields.append(parts[0].schema.field(node.name).with_type(columns[-1].type))
    return pa.table(columns, schema=pa.schema(fields))


def pages_by_rows(leaves: Sequence[LeafPages], mask: Mask) -> list[list[ChosenPages]]:
    """Group the pages that contain some rows of a row group: columns whose pages have the same rows together."""
    by_rows: dict[tuple[tuple[int, int], ...], list[ChosenPages]] = {}
    for pages in leaves:
        places = pages.holding(mask)
        by_rows.setdefault(tuple((place.first_row, place.rows) for place in places), []).append((pages, places))
    return list(by_rows.values())


def _merged_column(node: SchemaNode, parts: Sequence[pa.Array]) -> pa.Array:
    """Merge the parts of a column, each of which has some of its leaves."""
    first = parts[0]
    if len(parts) == 1:
        return first
    mask = first.is_null() if first.null_count else None
    if pa.types.is_struct(first.type):
        children, fields = [], []
        for child in node.children:
            child_parts = [part for part in parts if part.type.get_field_index(child.name) >= 0]
            if child_parts:
                children.append(_merged_column(child, [part.field(child.name) for part in child_parts]))
                fields.append(child_parts[0].type.field(child.name).with_type(children[-1].type))
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if not pa.types.is_list(first.type):
        raise TypeError(f"cannot merge parts of {first.type}")
    values = _merged_column(node.element, [part.flatten() for part in parts])
    lengths = pc.fill_null(first.value_lengths(), 0).to_numpy()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    kind = pa.list_(first.type.value_field.with_type(values.type))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def read_pages(source: pa.NativeFile, footer: bytes, root: SchemaNode, columns: Sequence[ChosenPages]) -> pa.Table:
    """Return all rows of some pages; the pages of every column have the same rows."""
    body = bytearray(MAGIC)
    chunks = []
    for column, places in columns:
        start = len(body)
        values = plain = 0
        dictionary = read_at(source, column.start, column.pages[0].start - column.start)
        body += dictionary
        for place in places:
            page = read_at(source, place.start, place.size)
            header = page_header(page)
            values, plain = values + header.values, plain + header.size + header.plain
            body += page
        old = column.metadata
        metadata = encode_struct(
            (1, I32, old[1]),
            (2, LIST, (I32, old[2])),
            (3, LIST, (BINARY, old[3])),
            (4, I32, old[4]),
            (5, I64, values),
            (6, I64, plain + len(dictionary)),
            (7, I64, len(body) - start),
            (9, I64, start + len(dictionary)),
            (11, I64, start if dictionary else None),
        )
        chunks.append(encode_struct((2, I64, 0), (3, STRUCT, metadata)))
    rows = sum(place.rows for place in columns[0][1])
    new_footer = _footer(footer, root, {column.leaf.path for column, _ in columns}, rows, chunks)
    body += new_footer + len(new_footer).to_bytes(4, "little") + MAGIC
    # INT96 as in `Reader`; without threads, because types registered in Python must not be destroyed in one.
    with open_parquet(pa.BufferReader(body), coerce_int96_timestamp_unit="us") as file:
        return file.read(use_threads=False)


def _footer(
    footer: bytes, root: SchemaNode, leaves: Collection[tuple[str, ...]], rows: int, chunks: Sequence[bytes]
) -> bytes:
    """Return the footer of a file that has some leaves of another file."""
    ancestors = {path[:length] for path in leaves for length in range(len(path) + 1)}
    elements = []
    for node, (start, end, _) in zip(root.walk(), schema_elements(footer), strict=True):
        if node.path in ancestors:
            children = sum(child.path in ancestors for child in node.children)
            elements.append(
                footer[start:end] if node.is_leaf else thrift.with_fields(footer, start, {_CHILDREN: children})
            )
    group = encode_struct((1, LIST, (STRUCT, list(chunks))), (2, I64, 0), (3, I64, rows))
    return encode_struct(
        (1, I32, 2),
        (2, LIST, (STRUCT, elements)),
        (3, I64, rows),
        (4, LIST, (STRUCT, [group])),
    )
