"""The places of column chunks and their data pages in a file, with the rows of each page.

Owns the offsets in the footer and the offset indexes. Leaves the content of pages to `pages` and `reading`. Spec:
``PageIndex.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.footer import SchemaNode

_DETAILS = {thrift.DATA_PAGE: 5, thrift.DATA_PAGE_V2: 8}


class PagePlace(NamedTuple):
    """The place of a data page, header included, its rows, and the bytes of its byte arrays (None if unknown)."""

    start: int
    size: int
    first_row: int
    rows: int
    text_bytes: int | None


class PageHeader(NamedTuple):
    """The header of a data page; `size` is the size of the header, `plain` of the uncompressed page."""

    size: int
    plain: int
    values: int
    encoding: int


@dataclass(frozen=True, slots=True)
class LeafPages:
    """A column chunk in the footer, and its data pages."""

    leaf: SchemaNode  # The leaf column.
    struct: Mapping[int, Any]  # The fields of its ``ColumnChunk``.
    start: int  # The offset of the chunk, which begins with the dictionary if it has one.
    pages: tuple[PagePlace, ...]  # The data pages.

    @property
    def metadata(self) -> Mapping[int, Any]:
        """The fields of its ``ColumnMetaData``."""
        metadata: Mapping[int, Any] = self.struct[thrift.METADATA]
        return metadata

    def holding(self, rows: npt.NDArray[np.bool_]) -> tuple[PagePlace, ...]:
        """Return the pages that contain some rows of the row group."""
        return tuple(page for page in self.pages if rows[page.first_row : page.first_row + page.rows].any())


def row_groups(footer: bytes) -> list[tuple[list[int], int]]:
    """Return the offsets of the column chunk structs in the footer, and the number of rows, of each row group."""
    groups = []
    for start, _ in thrift.structs_of_list(footer, thrift.find_field(footer, 0, thrift.ROW_GROUPS)):
        fields = {field.id: field for field in thrift.struct_fields(footer, start)}
        rows, _ = thrift.read_value(footer, fields[thrift.NUM_ROWS].start, fields[thrift.NUM_ROWS].type)
        groups.append(([at for at, _ in thrift.structs_of_list(footer, fields[thrift.COLUMNS].start)], rows))
    return groups


def chunk_start(metadata: Mapping[int, Any]) -> int:
    """Return the offset of a column chunk, which begins with the dictionary if it has one."""
    return min(at for at in (metadata[thrift.DATA_AT], metadata.get(thrift.DICTIONARY_AT)) if at)


def chunk_start_of(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the offset of a column chunk from pyarrow's metadata."""
    start: int = chunk.data_page_offset
    return min(start, chunk.dictionary_page_offset or start) if chunk.has_dictionary_page else start


def read_at(source: pa.NativeFile, start: int, size: int) -> bytes:
    """Return bytes of a file. Raises OSError if the file ends early."""
    source.seek(start)
    data = source.read(size)
    if len(data) != size:
        raise OSError("the file ends inside a column chunk")
    return bytes(data)


def leaf_pages(source: pa.NativeFile, footer: bytes, chunk: int, leaf: SchemaNode, rows: int) -> LeafPages:
    """Return the places of the pages of a column chunk, whose struct is at an offset in the footer.

    Raises ValueError without a valid offset index.
    """
    struct, _ = thrift.read_value(footer, chunk, thrift.STRUCT)
    metadata = struct[thrift.METADATA]
    if thrift.OFFSET_INDEX not in struct or struct.get(thrift.FILE_PATH):
        raise thrift.ThriftError("a column chunk has no offset index")
    index, _ = thrift.read_value(
        read_at(source, struct[thrift.OFFSET_INDEX], struct[thrift.OFFSET_INDEX_SIZE]), 0, thrift.STRUCT
    )
    start = chunk_start(metadata)
    pages = tuple(_places(index, rows))
    if not pages or pages[0].start < start or pages[-1].start + pages[-1].size != start + metadata[thrift.SIZE]:
        raise thrift.ThriftError("an offset index does not fit its column chunk")
    return LeafPages(leaf, struct, start, pages)


def _places(index: Mapping[int, Any], rows: int) -> Iterator[PagePlace]:
    locations = index[thrift.LOCATIONS]
    texts = index.get(thrift.TEXT_BYTES) or [None] * len(locations)
    first_rows = [place[thrift.FIRST_ROW] for place in locations]
    after = 0
    for place, first, end, text_bytes in zip(locations, first_rows, [*first_rows[1:], rows], texts, strict=True):
        start, size = place[thrift.PAGE_AT], place[thrift.PAGE_SIZE]
        if not 0 <= first < end <= rows or start < after or size <= 0:
            raise thrift.ThriftError("an offset index is damaged")
        after = start + size
        yield PagePlace(start, size, first, end - first, text_bytes)


def page_header(page: bytes) -> PageHeader:
    """Return the header of a data page. Raises ValueError for other pages and contradicting sizes."""
    header, size = thrift.read_value(page, 0, thrift.STRUCT)
    if header[1] not in _DETAILS or size + header[3] != len(page):
        raise thrift.ThriftError("a data page is not where an offset index has it")
    details = header[_DETAILS[header[1]]]
    encoding = details[2] if header[1] == thrift.DATA_PAGE else details[4]
    return PageHeader(size, header[2], details[1], encoding)
