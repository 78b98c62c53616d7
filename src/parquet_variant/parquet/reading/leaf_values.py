"""The values of a leaf column, out of its pages: texts in a dictionary stay so, only the rows that count are copied.

Owns levels, indices and spans of one column chunk as an Arrow array. Leaves pages to `chunk_pages`, and whatever is not
read here (other encodings and types, lists, files elsewhere, damage) to pyarrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.kernels.buffer_pool import acquire, lend, release
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages import byte_arrays as pages
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.reading.chunk_pages import (
    EVERY_ROW,
    PAGE_ERRORS,
    ChunkPages,
    DataPage,
    Int64s,
    UInt8s,
    is_readable,
)
from parquet_variant.types import MAX_OFFSET

__all__ = ["leaf_values", "without_dictionary"]

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def _strings(starts: Int64s, sizes: Int64s, nulls: pa.Buffer | None = None) -> pa.StringArray:
    """A copy of the texts at these places, which are released."""
    total = int(sizes.sum())
    if total > MAX_OFFSET:
        raise ValueError("more texts than an Arrow array of strings holds")
    offsets, data = lend(np.int32, len(starts) + 1), lend(np.uint8, total)
    pages.copy_texts(starts, sizes, offsets, address_of(data))
    release(starts, sizes)
    return pa.Array.from_buffers(pa.string(), len(starts), [nulls, pa.py_buffer(offsets), pa.py_buffer(data)])


def without_dictionary(column: pa.DictionaryArray) -> pa.StringArray:
    """The texts of a column of `leaf_values`, or of some of its rows, without its dictionary."""
    indices, texts = column.indices, column.dictionary
    if column.type != _DICTIONARY or indices.offset or texts.offset or not len(texts):
        return column.dictionary_decode()
    nulls, numbers = indices.buffers()
    valid = np.frombuffer(b"" if nulls is None else nulls, np.uint8)
    rows = np.frombuffer(numbers, np.int32, len(indices))
    _, stops, data = texts.buffers()
    starts = np.frombuffer(stops, np.int32, len(texts) + 1)
    offsets = lend(np.int32, len(rows) + 1)
    total = pages.entry_offsets(valid, rows, starts, offsets)
    if total < 0:
        return column.dictionary_decode()  # which says why not
    copied = lend(np.uint8, total)
    if total:
        pages.copy_entries(rows, starts, data.address, offsets, address_of(copied))
    return pa.Array.from_buffers(pa.string(), len(rows), [nulls, pa.py_buffer(offsets), pa.py_buffer(copied)])


def leaf_values(
    file: OpenFile, row_group: int, node: SchemaNode, kind: pa.DataType, kept: npt.NDArray[np.bool_] | None
) -> pa.Array | None:
    """The values of a leaf column; texts as a dictionary if all its pages have indices.

    None leaves it to pyarrow. Texts are not looked at: they may not be UTF-8.

    Parameters
    ----------
    file
        The open file.
    row_group
        Its number.
    node
        The leaf column.
    kind
        The Arrow type of its values: string, or one of 4 or 8 bytes.
    kept
        The rows that are wanted; None for all. Pages without one are not decompressed.
    """
    group = file.metadata.row_group(row_group)
    most = _most_definition(file.schema, node)
    if most is None or node.leaf is None or not is_readable(group.column(node.leaf), group.num_rows):
        return None
    try:
        chunk = ChunkPages(file, row_group, node.leaf, has_levels=most > 0)
        pages = list(chunk.read(group.num_rows, kept))
        return _Column(chunk, pages, group.num_rows, most).array(kind, kept)
    except PAGE_ERRORS:
        return None


def _most_definition(schema: SchemaNode, leaf: SchemaNode) -> int | None:
    """The definition level of a value that is there; None below a list."""
    node, most = schema, 0
    for name in leaf.path:
        child = node.child(name)
        if child is None or child.repetition == "repeated":
            return None
        node, most = child, most + (child.repetition == "optional")
    return most


class _Column:
    """Levels and values of the pages of a chunk."""

    def __init__(self, chunk: ChunkPages, pages: list[DataPage], rows: int, most: int) -> None:
        self.chunk, self.pages, self.rows = chunk, pages, rows
        self.valid = np.zeros(rows, np.uint8)
        self.present = [self._levels(page, most) for page in pages]

    def _levels(self, page: DataPage, most: int) -> int:
        """Fill which rows of a page have a value, and count them."""
        valid = self._valid(page)
        if not most:
            valid[:] = 1
            return page.count
        present = pages.level_validity(*page.levels, most.bit_length(), most, valid)
        if present < 0:
            raise ValueError("levels of a page are damaged")
        return int(present)

    def _valid(self, page: DataPage) -> UInt8s:
        return self.valid[page.first : page.first + page.count]

    def array(self, kind: pa.DataType, kept: npt.NDArray[np.bool_] | None) -> pa.Array:
        nulls = None
        if kept is not None or sum(self.present) < self.rows:
            nulls = bitmap(self.valid if kept is None else self.valid[kept])
        if self.chunk.is_boolean:
            bits = bitmap(self._booleans() if kept is None else self._booleans()[kept])
            return pa.Array.from_buffers(kind, self.rows if kept is None else int(kept.sum()), [nulls, bits])
        if self.chunk.width:
            numbers = self._numbers() if kept is None else self._numbers()[kept]
            return pa.Array.from_buffers(kind, len(numbers), [nulls, pa.py_buffer(numbers)])
        if self.pages and all(page.is_indices for page in self.pages):
            indices = self._all_indices()
            indices = indices if kept is None else indices[kept]
            column = pa.Array.from_buffers(pa.int32(), len(indices), [nulls, pa.py_buffer(indices)])
            texts = _strings(self.chunk.dictionary_starts, self.chunk.dictionary_sizes)
            return pa.DictionaryArray.from_arrays(column, texts, safe=False)
        starts, sizes = self._spans()
        return _strings(starts, sizes, nulls) if kept is None else _strings(starts[kept], sizes[kept], nulls)

    def _all_indices(self) -> npt.NDArray[np.int32]:
        indices = lend(np.int32, self.rows)
        for page, present in zip(self.pages, self.present, strict=True):
            self._indices(page, present, indices[page.first : page.first + page.count])
        return indices

    def _booleans(self) -> UInt8s:
        booleans = np.zeros(self.rows, np.uint8)
        for page, present in zip(self.pages, self.present, strict=True):
            booleans[page.first : page.first + page.count][self._valid(page) != 0] = page.booleans(present)
        return booleans

    def _numbers(self) -> npt.NDArray[Any]:
        width = self.chunk.width
        numbers = lend(np.int64 if width == 8 else np.int32, self.rows)
        if sum(self.present) < self.rows:
            numbers[:] = 0
        for page, present in zip(self.pages, self.present, strict=True):
            part = numbers[page.first : page.first + page.count]
            if page.is_indices:
                indices = np.empty(present, np.int32)
                if present:
                    page.indices(len(self.chunk.dictionary_numbers), EVERY_ROW, present, indices)
                found = self.chunk.dictionary_numbers[indices]
            else:
                found = page.numbers(present, width)
            part[slice(None) if present == page.count else self._valid(page) != 0] = found
        return numbers

    def _spans(self) -> tuple[Int64s, Int64s]:
        """Where the texts lie, and their sizes; 0 where there is none."""
        starts, sizes = acquire(np.int64, self.rows), acquire(np.int64, self.rows)
        for page, present in zip(self.pages, self.present, strict=True):
            part = slice(page.first, page.first + page.count)
            if page.is_indices:
                indices, there = np.zeros(page.count, np.int32), self._valid(page) != 0
                self._indices(page, present, indices)
                starts[part] = sizes[part] = 0
                starts[part][there] = self.chunk.dictionary_starts[indices[there]]
                sizes[part][there] = self.chunk.dictionary_sizes[indices[there]]
            else:
                valid = EVERY_ROW if present == page.count else self._valid(page)
                self.chunk.owner.append(page.spans(valid, present, starts[part], sizes[part]))
        return starts, sizes

    def _indices(self, page: DataPage, present: int, out: npt.NDArray[np.int32]) -> None:
        valid = EVERY_ROW if present == page.count else self._valid(page)
        if present:
            page.indices(len(self.chunk.dictionary_starts), valid, present, out)
