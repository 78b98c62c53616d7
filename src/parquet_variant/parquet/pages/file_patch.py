"""A file anew, with some of its columns changed: column chunks that stay are copied as the bytes that they are.

Owns where copied chunks and their indexes come to lie, and the offsets that name these places. Leaves chunks that are
written to `file_writer`, and which columns change to `writing.patch`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.parquet.format.footer import schema_elements
from parquet_variant.parquet.format.thrift import (
    STRUCT,
    Field,
    find_field,
    list_items,
    read_value,
    struct_fields,
    zigzag,
)
from parquet_variant.parquet.pages.column_chunk import ColumnChunk
from parquet_variant.parquet.pages.file_metadata import CopiedChunk, PlacedGroup
from parquet_variant.parquet.pages.file_writer import PageFileWriter

__all__ = ["FilePatcher"]

# Fields of SchemaElement, FileMetaData, RowGroup, ColumnChunk, ColumnMetaData, OffsetIndex and PageLocation.
_PHYSICAL = 1
_ROW_GROUPS = 4
_COLUMNS, _ROWS = 1, 3
_METADATA, _OFFSET_INDEX, _OFFSET_INDEX_SIZE, _COLUMN_INDEX, _COLUMN_INDEX_SIZE = 3, 4, 5, 6, 7
_PATH, _PLAIN_SIZE, _SIZE, _DATA_AT, _DICTIONARY_AT, _BLOOM_AT, _BLOOM_SIZE = 3, 6, 7, 9, 11, 14, 15
_LOCATIONS, _PAGE_AT = 1, 1


class FilePatcher(PageFileWriter):
    """Write a file that has some columns of another one, and others in the place of the rest.

    Parameters
    ----------
    sink, schema, variants, **options
        As for `PageFileWriter`, of the columns that change: whole columns, or structs of which leaves are left out.
    source
        The other file, open.
    footer
        Its footer.
    """

    def __init__(
        self,
        sink: Any,
        schema: pa.Schema,
        variants: Collection[tuple[str, ...]] = (),
        *,
        source: pa.NativeFile,
        footer: bytes,
        **options: Any,
    ) -> None:
        self._source, self._footer = source, footer
        self._spans = _row_groups(footer)
        super().__init__(sink, schema, variants, bloom_filters=self._with_bloom(), **options)

    def _with_bloom(self) -> list[str]:
        """The leaf columns of the other file that have bloom filters."""
        chunks = [read_value(self._footer, span.start, STRUCT)[0] for span in (self._spans or [([], 0)])[0][0]]
        told = [chunk[_METADATA] for chunk in chunks]
        return [b".".join(each[_PATH]).decode() for each in told if _BLOOM_AT in each]

    def add_row_group(self, number: int, changed: pa.Table | None) -> None:
        """Add a row group of the other file; its rows of the columns that change, None if they are as they were."""
        chunks, rows = self._spans[number]
        written: dict[tuple[str, ...], ColumnChunk] = {}
        if changed is not None:
            self.write_batch(changed)
            self._each(ColumnChunk.finish, self._chunks)
            written = {chunk.leaf.path: chunk for chunk in self._chunks}
            self._chunks, self._rows = [], 0
        placed = []
        for span in chunks:
            old, _ = read_value(self._footer, span.start, STRUCT)
            path = tuple(name.decode() for name in old[_METADATA][_PATH])
            chunk = written.get(path)
            placed.append(self._copied(span.start, old) if chunk is None else self._placed(chunk))
        self._groups.append(PlacedGroup(rows, placed))

    def _copied(self, position: int, old: Mapping[int, Any]) -> CopiedChunk:
        told = old[_METADATA]
        start = min(at for at in (told[_DATA_AT], told.get(_DICTIONARY_AT)) if at is not None)
        moved = self._position - start
        self._write(self._bytes(start, told[_SIZE]))
        return CopiedChunk(position, old, self._position - told[_SIZE], told[_SIZE], told[_PLAIN_SIZE], moved)

    def _bytes(self, start: int, size: int) -> bytes:
        self._source.seek(start)
        data = self._source.read(size)
        if len(data) != size:
            raise OSError("the file ends inside of a column chunk")
        return bytes(data)

    def _put_indexes(self) -> None:
        super()._put_indexes()
        for chunk in (each for group in self._groups for each in group.chunks):
            if isinstance(chunk, CopiedChunk):
                self._put_copied(chunk)

    def _put_copied(self, chunk: CopiedChunk) -> None:
        """Put what belongs to a copied chunk behind the row groups, and name the new places in its struct."""
        old, told, footer = chunk.old, chunk.old[_METADATA], self._footer
        inside = {at: told[at] + chunk.moved for at in (_DATA_AT, _DICTIONARY_AT) if at in told}
        outside: dict[int, Any] = {}
        if _BLOOM_AT in told:
            inside[_BLOOM_AT], _ = self._put(self._bytes(told[_BLOOM_AT], told[_BLOOM_SIZE]))
        if _COLUMN_INDEX in old:
            outside[_COLUMN_INDEX], _ = self._put(self._bytes(old[_COLUMN_INDEX], old[_COLUMN_INDEX_SIZE]))
        if _OFFSET_INDEX in old:
            index = _moved_index(self._bytes(old[_OFFSET_INDEX], old[_OFFSET_INDEX_SIZE]), chunk.moved)
            outside[_OFFSET_INDEX], outside[_OFFSET_INDEX_SIZE] = self._put(index)
        at = find_field(footer, chunk.position, _METADATA)
        assert at is not None
        chunk.encoded = _with_numbers(footer, chunk.position, outside | {_METADATA: _with_numbers(footer, at, inside)})

    def _written_schema(self) -> tuple[list[bytes], int]:
        elements = list(schema_elements(self._footer))
        is_leaf = [_PHYSICAL in element for _, _, element in elements]
        return [self._footer[start:end] for start, end, _ in elements], sum(is_leaf)


def _row_groups(footer: bytes) -> list[tuple[list[Field], int]]:
    """Of each row group where the structs of its column chunks are, and how many rows it has."""
    at = find_field(footer, 0, _ROW_GROUPS)
    row_groups: list[tuple[list[Field], int]] = []
    count, _, position = list_items(footer, at) if at is not None else (0, 0, 0)
    for _ in range(count):
        fields = {field.id: field for field in struct_fields(footer, position)}
        chunks, _, start = list_items(footer, fields[_COLUMNS].start)
        spans = []
        for _ in range(chunks):
            _, end = read_value(footer, start, STRUCT)
            spans.append(Field(0, STRUCT, start, start, end))
            start = end
        rows, _ = read_value(footer, fields[_ROWS].start, fields[_ROWS].type)
        row_groups.append((spans, rows))
        _, position = read_value(footer, position, STRUCT)
    return row_groups


def _with_numbers(buffer: bytes, position: int, changes: Mapping[int, int | bytes]) -> bytes:
    """The bytes of a struct in which some fields, numbers or encoded structs, have other values."""
    out = bytearray()
    for field in struct_fields(buffer, position):
        out += buffer[field.header : field.start]
        new = changes.get(field.id) if field.type else None
        out += buffer[field.start : field.end] if new is None else zigzag(new) if isinstance(new, int) else new
    return bytes(out)


def _moved_index(index: bytes, moved: int) -> bytes:
    """An offset index whose pages lie elsewhere."""
    at = find_field(index, 0, _LOCATIONS)
    assert at is not None
    count, _, position = list_items(index, at)
    out = bytearray(index[:position])
    for _ in range(count):
        place, end = read_value(index, position, STRUCT)
        out += _with_numbers(index, position, {_PAGE_AT: place[_PAGE_AT] + moved})
        position = end
    return bytes(out + index[position:])
