"""A stored file by its column chunks and pages: reading rows from the pages that contain them, and copying pages.

Owns the places of column chunks and their data pages, with the rows of each page (spec: ``PageIndex.md``), small
in-memory files with some pages, one per set of columns whose pages end at the same rows, joining structs and lists
whose fields come from several such files, which pyarrow reads, and the options for new pages next to copied ones.
Raises one of `PAGE_ERRORS` for damaged or unsupported pages: reading whole columns then reports any error. Leaves the
values of pages to `column_values`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.arrow_schema import LeafColumn, Physical, Place
from parquet_variant.files.parquet.format.facts import OWN_WRITER, PAGE_ERRORS, FileFacts, footer_metadata
from parquet_variant.files.parquet.format.footer import MAGIC, SchemaNode, footer_bytes, parse_schema, schema_elements
from parquet_variant.files.parquet.format.thrift import BINARY, I32, I64, LIST, STRUCT, ThriftError, encode_struct
from parquet_variant.files.parquet.pages.column_chunk import ColumnChunk, ColumnOptions, GroupCache, Page
from parquet_variant.files.parquet.pages.encodings import Encoding, codec_name, compressor, is_encodable
from parquet_variant.files.parquet.pages.file_writer import PlacedChunk, PlacedGroup, encoded_footer
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, loaded
from parquet_variant.files.parquet.reading.column_values import plain_strings
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import MAX_OFFSET

# The field of a page header that describes a data page of each type.
_DETAILS = {thrift.DATA_PAGE: 5, thrift.DATA_PAGE_V2: 8}
_CHILDREN = 5
# For a larger share of the bytes, pyarrow reads the whole file faster.
_MAX_SHARE = 0.5


class PagePlace(NamedTuple):
    """The place of a data page, header included, its rows, and the bytes of its byte arrays (None if unknown)."""

    start: int
    size: int
    first_row: int
    rows: int
    text_bytes: int | None


class StoredPage(NamedTuple):
    """A data page: its bytes, header included, their number without compression, its values and their encoding."""

    data: bytes
    plain: int
    values: int
    encoding: int


def read_at(source: pa.NativeFile, start: int, size: int) -> bytes:
    """Return bytes of a file. Raises OSError if the file ends early."""
    source.seek(start)
    data = source.read(size)
    if len(data) != size:
        raise OSError("the file ends inside a column chunk")
    return bytes(data)


def chunk_start(metadata: Mapping[int, Any]) -> int:
    """Return the offset of a column chunk, which begins with the dictionary if it has one."""
    return min(at for at in (metadata[thrift.DATA_AT], metadata.get(thrift.DICTIONARY_AT)) if at)


class StoredChunk(Record):
    """A column chunk of a stored file, and its data pages."""

    source: pa.NativeFile  # The open file.
    leaf: SchemaNode  # The leaf column.
    struct: Mapping[int, Any]  # The fields of its ``ColumnChunk``.
    start: int  # The offset of the chunk.
    pages: tuple[PagePlace, ...]  # The data pages.

    @property
    def metadata(self) -> Mapping[int, Any]:
        """The fields of its ``ColumnMetaData``."""
        metadata: Mapping[int, Any] = self.struct[thrift.METADATA]
        return metadata

    def holding(self, rows: Mask) -> tuple[PagePlace, ...]:
        """Return the pages that contain some rows of the row group."""
        return tuple(page for page in self.pages if rows[page.first_row : page.first_row + page.rows].any())

    def dictionary(self) -> bytes:
        """Return the dictionary page with its header; empty without a dictionary."""
        return read_at(self.source, self.start, self.pages[0].start - self.start)

    def page(self, place: PagePlace) -> StoredPage:
        """Read a data page. Raises ValueError for other pages and contradicting sizes."""
        data = read_at(self.source, place.start, place.size)
        header, size = thrift.read_value(data, 0, STRUCT)
        if header[1] not in _DETAILS or size + header[3] != len(data):
            raise ThriftError("a data page is not where an offset index has it")
        details = header[_DETAILS[header[1]]]
        encoding = details[2] if header[1] == thrift.DATA_PAGE else details[4]
        return StoredPage(data, size + header[2], details[1], encoding)


# A column chunk and some of its pages.
ChosenPages: TypeAlias = tuple[StoredChunk, tuple[PagePlace, ...]]


class StoredFile(FileFacts):
    """An open file whose pages are read or copied.

    Raises `VariantFileError` if it is not a Parquet file.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        footer = footer_bytes(source)
        super().__init__(footer_metadata(footer), footer, parse_schema(footer))
        self.source = source

    @cached_property
    def elements(self) -> list[tuple[SchemaNode, bytes]]:
        """The nodes of the schema, with their encoded elements."""
        spans = zip(self.schema.walk(), schema_elements(self.footer), strict=True)
        return [(node, self.footer[start:end]) for node, (start, end, _) in spans]

    @property
    def is_shredded(self) -> bool:
        """Whether the file has a shredded Variant column."""
        return any("typed_value" in leaf.path for leaf in self.schema.leaves())

    @property
    def key_values(self) -> dict[str, str]:
        """The key-value metadata of the footer."""
        return {key.decode(): value.decode() for key, value in (self.metadata.metadata or {}).items()}

    @property
    def annotated(self) -> tuple[Place, ...]:
        """The schema paths of annotated groups."""
        return tuple(node.path for node in self.schema.walk() if node.annotated)

    def is_ours(self, rows: int) -> bool:
        """Return whether this library wrote the file, and the file has this number of rows."""
        return self.writer.startswith(OWN_WRITER) and bool(self.metadata.num_rows == rows)

    def masks(self, mask: Mask) -> Iterator[tuple[int, Mask]]:
        """Yield the number of each row group, and the mask of its rows."""
        start = 0
        for number, (_, rows) in enumerate(self.row_groups):
            yield number, mask[start : start + rows]
            start += rows

    def chunks(self, group: int, leaves: Sequence[SchemaNode]) -> list[StoredChunk]:
        """Return the chunks of some leaf columns in a row group. Raises ValueError without valid offset indexes."""
        places, rows = self.row_groups[group]
        return [self._chunk(places[leaf.leaf or 0], leaf, rows) for leaf in leaves]

    def _chunk(self, at: int, leaf: SchemaNode, rows: int) -> StoredChunk:
        struct, _ = thrift.read_value(self.footer, at, STRUCT)
        metadata = struct[thrift.METADATA]
        if thrift.OFFSET_INDEX not in struct or struct.get(thrift.FILE_PATH):
            raise ThriftError("a column chunk has no offset index")
        data = read_at(self.source, struct[thrift.OFFSET_INDEX], struct[thrift.OFFSET_INDEX_SIZE])
        index, _ = thrift.read_value(data, 0, STRUCT)
        locations = index[thrift.LOCATIONS]
        sizes = index.get(thrift.TEXT_BYTES) or [None] * len(locations)
        first_rows = [place[thrift.FIRST_ROW] for place in locations]
        pages: list[PagePlace] = []
        after = start = chunk_start(metadata)
        for place, first, end, text_bytes in zip(locations, first_rows, [*first_rows[1:], rows], sizes, strict=True):
            page = PagePlace(place[thrift.PAGE_AT], place[thrift.PAGE_SIZE], first, end - first, text_bytes)
            if not 0 <= first < end <= rows or page.start < after or page.size <= 0:
                raise ThriftError("an offset index is damaged")
            after = page.start + page.size
            pages.append(page)
        if not pages or after != start + metadata[thrift.SIZE]:
            raise ThriftError("an offset index does not fit its column chunk")
        return StoredChunk(self.source, leaf, struct, start, tuple(pages))

    def read_pages(self, columns: Sequence[ChosenPages]) -> pa.Table:
        """Return all rows of some pages; the pages of every column have the same rows."""
        body = bytearray(MAGIC)
        rows, chunks = sum(place.rows for place in columns[0][1]), []
        for column, places in columns:
            start, dictionary = len(body), column.dictionary()
            values, plain = 0, len(dictionary)
            body += dictionary
            for place in places:
                page = column.page(place)
                values, plain = values + page.values, plain + page.plain
                body += page.data
            old, size = column.metadata, len(body) - start
            metadata = encode_struct(
                (1, I32, old[1]),
                (2, LIST, (I32, old[2])),
                (3, LIST, (BINARY, old[3])),
                (4, I32, old[4]),
                (5, I64, values),
                (6, I64, plain),
                (7, I64, size),
                (9, I64, start + len(dictionary)),
                (11, I64, start if dictionary else None),
            )
            chunks.append(PlacedChunk(start, size, plain, encode_struct((2, I64, 0), (3, STRUCT, metadata))))
        leaves = [column.leaf.path for column, _ in columns]
        ancestors = {path[:length] for path in leaves for length in range(len(path) + 1)}
        elements = []
        for node, element in self.elements:
            if node.path in ancestors:
                children = sum(child.path in ancestors for child in node.children)
                elements.append(element if node.is_leaf else thrift.with_fields(element, 0, {_CHILDREN: children}))
        footer = encoded_footer(elements, [PlacedGroup(rows, chunks)], {}, "", len(leaves))
        body += footer + len(footer).to_bytes(4, "little") + MAGIC
        with open_parquet(pa.BufferReader(body)) as file:
            # Without threads, because types registered in Python must not be destroyed in one.
            return file.read(use_threads=False)


_LEVEL = 3  # Of zstd.


class ReusedPages:
    """The pages of a stored column chunk, for a chunk of a new file with other pages next to them.

    Raises `ValueError` if the indexes of the file lack statistics that the indexes of a new file need.
    """

    def __init__(self, stored: StoredChunk, leaf: LeafColumn) -> None:
        self._stored, self._leaf = stored, leaf
        self._index: Mapping[int, Any] | None = None
        self.codec: int = stored.metadata[thrift.CODEC]
        # The place of the Bloom filter, which also holds for a subset of the values.
        at, size = stored.metadata.get(thrift.BLOOM_AT), stored.metadata.get(thrift.BLOOM_SIZE)
        self.bloom: tuple[int, int] | None = None if at is None or size is None else (at, size)
        if thrift.STATISTICS in stored.metadata:
            if thrift.COLUMN_INDEX not in stored.struct:
                raise thrift.ThriftError("the column chunk has no column index: the bounds of a page are unknown")
            start, size = stored.struct[thrift.COLUMN_INDEX], stored.struct[thrift.COLUMN_INDEX_SIZE]
            self._index, _ = thrift.read_value(read_at(stored.source, start, size), 0, thrift.STRUCT)
        is_text = leaf.type.physical == Physical.BYTE_ARRAY
        if is_text and any(place.text_bytes is None for place in stored.pages):
            raise thrift.ThriftError("an offset index has no sizes of byte arrays")

    def page(self, number: int) -> Page:
        """Return a stored page by number."""
        place, leaf, index = self._stored.pages[number], self._leaf, self._index or {}
        page = self._stored.page(place)
        bounds, nulls = None, 0
        if index:
            nulls = index[thrift.NULL_COUNTS][number]
            if not index[thrift.NULL_PAGES][number]:
                bounds = loaded((index[thrift.LOW_VALUES][number], index[thrift.HIGH_VALUES][number]), leaf.type)
        # The count of each level in the page; empty if unknown.
        definition, repetition = (
            (index.get(name) or [])[number * (max_level + 1) : (number + 1) * (max_level + 1)]
            for name, max_level in (
                (thrift.DEFINITION_COUNTS, leaf.definition),
                (thrift.REPETITION_COUNTS, leaf.repetition),
            )
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

    def new_chunk(self, rewritten: Collection[PagePlace], cache: GroupCache) -> ColumnChunk:
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
        chunk = ColumnChunk(self._leaf, options, cache)
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


def pages_by_rows(chunks: Sequence[StoredChunk], mask: Mask) -> list[list[ChosenPages]]:
    """Group the pages that contain some rows of a row group: columns whose pages have the same rows together."""
    by_rows: dict[tuple[tuple[int, int], ...], list[ChosenPages]] = {}
    for chunk in chunks:
        places = chunk.holding(mask)
        by_rows.setdefault(tuple((place.first_row, place.rows) for place in places), []).append((chunk, places))
    return list(by_rows.values())


def rows_of_pages(source: pa.NativeFile, columns: Collection[str], row_mask: Mask) -> pa.Table | None:
    """Return some rows of a file in order; None if the whole file must be read instead."""
    try:
        file = StoredFile(source)
        leaves = [leaf for node in file.schema.children if node.name in columns for leaf in node.leaves()]
        tables: list[pa.Table] = []
        for number, mask in file.masks(row_mask):
            if mask.any():
                chunks = file.chunks(number, leaves)
                size = sum(place.size for chunk in chunks for place in chunk.holding(mask))
                if size > _MAX_SHARE * sum(place.size for chunk in chunks for place in chunk.pages):
                    return None
                parts = []
                for group in pages_by_rows(chunks, mask):
                    masks = [mask[place.first_row : place.first_row + place.rows] for place in group[0][1]]
                    page_rows = file.read_pages(group).filter(from_numpy(np.concatenate(masks)))
                    parts.append(page_rows.combine_chunks())
                fields, columns_of_group = [], []
                for node in file.schema.children:
                    of_node = [part for part in parts if node.name in part.column_names]
                    if of_node:
                        column = _merged_column(node, [part[node.name].chunk(0) for part in of_node])
                        columns_of_group.append(column)
                        fields.append(of_node[0].schema.field(node.name).with_type(column.type))
                tables.append(pa.table(columns_of_group, schema=pa.schema(fields)))
        if sum(rows for _, rows in file.row_groups) != len(row_mask) or not tables:
            return None
        return pa.concat_tables(tables)
    except PAGE_ERRORS:
        return None


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
