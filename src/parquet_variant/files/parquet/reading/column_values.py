"""Reading a leaf column from its pages: strings may stay dictionary-encoded, and only requested rows are copied.

Owns the conversion of one column chunk, read by `chunk_pages`, to an Arrow array, and the spans of unshredded Variants
in decompressed pages, for which pyarrow would copy every value once or twice. Leaves other encodings and types, lists,
remote files and damaged chunks to pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import metadata_parts
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.reading.chunk_pages import PAGE_ERRORS, ChunkPages, Int32s, is_readable
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, bitmap
from parquet_variant.kernels.buffer_pool import acquire, acquire_result, release
from parquet_variant.kernels.memory import address_of, buffer_address
from parquet_variant.kernels.pages.values import copy_entries, copy_strings, entry_offsets
from parquet_variant.types import MAX_OFFSET

if TYPE_CHECKING:
    from parquet_variant.ops.columns.value_positions import ValuePositions

DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_NO_NULLS = np.empty(0, np.uint8)


def _strings(nulls: pa.Buffer | None, offsets: Int32s, data: npt.NDArray[np.uint8]) -> pa.StringArray:
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _strings_at(nulls: pa.Buffer | None, starts: Int64s, sizes: Int64s, total: int) -> tuple[pa.StringArray, bool]:
    """Copy the strings at these addresses, and return whether all are ASCII."""
    if total > MAX_OFFSET:
        raise ValueError("the strings exceed the size of an Arrow string array")
    offsets, data = acquire_result(np.int32, len(starts) + 1), acquire_result(np.uint8, total)
    is_ascii = copy_strings(starts, sizes, offsets, address_of(data))
    return _strings(nulls, offsets, data), is_ascii


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
    indices, texts = column.indices, column.dictionary
    if column.type != DICTIONARY or indices.offset or texts.offset or not len(texts):
        return column.dictionary_decode()
    nulls, numbers = indices.buffers()
    _, stops, data = texts.buffers()
    rows, starts = np.frombuffer(numbers, np.int32, len(indices)), np.frombuffer(stops, np.int32, len(texts) + 1)
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
            numbers = chunk.booleans() if chunk.is_boolean else chunk.numbers()
            numbers = numbers if mask is None else numbers[mask]
            data = bitmap(numbers) if chunk.is_boolean else pa.py_buffer(numbers)
            return pa.Array.from_buffers(kind, len(numbers), [_nulls(chunk, mask), data])
        column, is_sound = _chunk_strings(chunk, pa.types.is_dictionary(kind), mask)
    except PAGE_ERRORS:
        return None
    if not is_sound:
        from parquet_variant.ops.columns.column_slots import refuse_faulty_slots

        refuse_faulty_slots(column, None if mask is None else np.flatnonzero(mask))
    return column


def _nulls(chunk: ChunkPages, mask: Mask | None) -> pa.Buffer | None:
    """Return the validity bitmap, after values were read; None without nulls."""
    if chunk.present == chunk.rows:
        return None
    return bitmap(chunk.valid if mask is None else chunk.valid[mask])


def _chunk_strings(chunk: ChunkPages, as_dictionary: bool, mask: Mask | None) -> tuple[pa.Array, bool]:
    """Return the strings of a chunk, and whether they are certainly valid."""
    if not chunk.is_indexed:
        starts, sizes = acquire(np.int64, chunk.rows), acquire(np.int64, chunk.rows)
        total = chunk.spans(starts, sizes)
        nulls = _nulls(chunk, mask)
        if mask is None:
            texts = _strings_at(nulls, starts, sizes, total)
        else:
            texts = _strings_at(nulls, starts[mask], sizes[mask], int(sizes[mask].sum()))
        release(starts, sizes)
        return texts
    indices = chunk.indices()
    indices = indices if mask is None else indices[mask]
    nulls, entries = _nulls(chunk, mask), chunk.strings
    dictionary = _strings(None, entries.offsets, entries.data)
    is_sound = entries.is_ascii or _is_utf8(dictionary)
    if as_dictionary:
        numbers = pa.Array.from_buffers(pa.int32(), len(indices), [nulls, pa.py_buffer(indices)])
        return pa.DictionaryArray.from_arrays(numbers, dictionary, safe=False), is_sound
    strings = _strings_of_entries(nulls, indices, entries.offsets, address_of(entries.data))
    if strings is None:
        raise ValueError("the strings exceed the size of an Arrow string array")
    return strings, is_sound


def _is_utf8(texts: pa.StringArray) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


class Spans(NamedTuple):
    """Absolute start and end addresses of values, and the objects that own their memory."""

    starts: Int64s
    stops: Int64s
    owner: list[object]

    def value_positions(self, metadata: pa.Array) -> ValuePositions:
        """Return the positions of the values, with the metadata column of the same rows."""
        from parquet_variant.ops.columns.value_positions import MetadataDictionaries, ValuePositions

        parts = metadata_parts(metadata)
        return ValuePositions.at(self.starts, self.stops, parts, MetadataDictionaries(parts), owner=self.owner)


def value_spans(file: OpenFile, row_group: int, column: VariantColumn) -> Spans | None:
    """Return the spans of values of an unshredded top-level column; None if pyarrow must read it."""
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
    return Spans(starts, starts + sizes, [*pages.owner, pages.strings])
