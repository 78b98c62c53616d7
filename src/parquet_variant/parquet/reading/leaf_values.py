"""The values of a leaf column, out of its pages: texts may stay in their dictionary, only rows that count are copied.

Owns making an Arrow array of what `chunk_pages` reads of one column chunk; and where the bytes of unshredded Variants
lie, without an array, for which pyarrow would copy every value once or twice. Leaves whatever is not read there (other
encodings and types, lists, files elsewhere, damage) to pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.kernels.buffer_pool import acquire, acquire_result, release
from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.byte_arrays import copy_entries, copy_texts, entry_offsets
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS, ChunkPages, Int32s, Int64s, is_readable
from parquet_variant.types import MAX_OFFSET

if TYPE_CHECKING:
    from parquet_variant.compute.value_positions import ValuePositions

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_EVERY_BIT = np.empty(0, np.uint8)
_Mask = npt.NDArray[np.bool_]


def _strings(nulls: pa.Buffer | None, offsets: Int32s, data: npt.NDArray[np.uint8]) -> pa.StringArray:
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)


def _strings_at(nulls: pa.Buffer | None, starts: Int64s, sizes: Int64s, total: int) -> tuple[pa.StringArray, bool]:
    """A copy of the texts at these places, and whether all are ASCII."""
    if total > MAX_OFFSET:
        raise ValueError("more texts than an Arrow array of strings holds")
    offsets, data = acquire_result(np.int32, len(starts) + 1), acquire_result(np.uint8, total)
    is_ascii = copy_texts(starts, sizes, offsets, address_of(data))
    return _strings(nulls, offsets, data), is_ascii


def _strings_of_entries(nulls: pa.Buffer | None, indices: Int32s, starts: Int32s, data: int) -> pa.StringArray | None:
    """The entries that rows have of a dictionary at an address; None if they are not all in it, or too large."""
    offsets = acquire_result(np.int32, len(indices) + 1)
    valid = _EVERY_BIT if nulls is None else np.frombuffer(nulls, np.uint8)
    total = entry_offsets(valid, indices, starts, offsets)
    if total < 0:
        return None
    copied = acquire_result(np.uint8, total)
    if total:
        copy_entries(indices, starts, data, offsets, address_of(copied))
    return _strings(nulls, offsets, copied)


def without_dictionary(column: pa.DictionaryArray) -> pa.StringArray:
    """The texts of a column of `leaf_values`, or of some of its rows, without its dictionary."""
    indices, texts = column.indices, column.dictionary
    if column.type != _DICTIONARY or indices.offset or texts.offset or not len(texts):
        return column.dictionary_decode()
    nulls, numbers = indices.buffers()
    _, stops, data = texts.buffers()
    rows, starts = np.frombuffer(numbers, np.int32, len(indices)), np.frombuffer(stops, np.int32, len(texts) + 1)
    strings = _strings_of_entries(nulls, rows, starts, data.address)
    return column.dictionary_decode() if strings is None else strings  # which says why not


def leaf_values(
    file: OpenFile, row_group: int, node: SchemaNode, kind: pa.DataType, kept: _Mask | None
) -> pa.Array | None:
    """The values of a leaf column; None leaves it to pyarrow.

    `kind`: the Arrow type of its values: string, or one of 1 bit or 4 or 8 bytes. A dictionary of strings lets texts
    stay one if all pages have indices.
    `kept`: the rows that are wanted; None for all. Pages without one are not decompressed.
    Raises `MalformedVariantError` if a text is not UTF-8.
    """
    group = file.metadata.row_group(row_group)
    most = _most_definition(file.schema, node)
    if most is None or node.leaf is None or not is_readable(group.column(node.leaf), group.num_rows):
        return None
    try:
        column, is_sound = _array(ChunkPages(file, row_group, node.leaf, most, kept), kind, kept)
    except PAGE_ERRORS:
        return None
    if not is_sound:
        from parquet_variant.compute.value_positions import refuse_faulty_slots

        refuse_faulty_slots(column, None if kept is None else np.flatnonzero(kept))
    return column


def _most_definition(schema: SchemaNode, leaf: SchemaNode) -> int | None:
    """The definition level of a value that is there; None below a list."""
    node, most = schema, 0
    for name in leaf.path:
        child = node.child(name)
        if child is None or child.repetition == "repeated":
            return None
        node, most = child, most + (child.repetition == "optional")
    return most


def _array(chunk: ChunkPages, kind: pa.DataType, kept: _Mask | None) -> tuple[pa.Array, bool]:
    """The values of a chunk, and whether they are sound without a look at each."""
    if not (chunk.is_boolean or chunk.width):
        return _texts(chunk, pa.types.is_dictionary(kind), kept)
    numbers = chunk.booleans() if chunk.is_boolean else chunk.numbers()
    numbers = numbers if kept is None else numbers[kept]
    values = bitmap(numbers) if chunk.is_boolean else pa.py_buffer(numbers)
    return pa.Array.from_buffers(kind, len(numbers), [_nulls(chunk, kept), values]), True


def _nulls(chunk: ChunkPages, kept: _Mask | None) -> pa.Buffer | None:
    """Which rows have a value, as Arrow has it, when values were read."""
    if chunk.present == chunk.rows:
        return None
    return bitmap(chunk.valid if kept is None else chunk.valid[kept])


def _texts(chunk: ChunkPages, as_dictionary: bool, kept: _Mask | None) -> tuple[pa.Array, bool]:
    if not chunk.is_indexed:
        starts, sizes = acquire(np.int64, chunk.rows), acquire(np.int64, chunk.rows)
        total = chunk.spans(starts, sizes)
        nulls = _nulls(chunk, kept)
        if kept is None:
            texts = _strings_at(nulls, starts, sizes, total)
        else:
            texts = _strings_at(nulls, starts[kept], sizes[kept], int(sizes[kept].sum()))
        release(starts, sizes)
        return texts
    indices = chunk.indices()
    indices = indices if kept is None else indices[kept]
    nulls, entries = _nulls(chunk, kept), chunk.texts
    dictionary = _strings(None, entries.offsets, entries.data)
    is_sound = entries.is_ascii or _is_utf8(dictionary)
    if as_dictionary:
        numbers = pa.Array.from_buffers(pa.int32(), len(indices), [nulls, pa.py_buffer(indices)])
        return pa.DictionaryArray.from_arrays(numbers, dictionary, safe=False), is_sound
    strings = _strings_of_entries(nulls, indices, entries.offsets, address_of(entries.data))
    if strings is None:
        raise ValueError("more texts than an Arrow array of strings holds")
    return strings, is_sound


def _is_utf8(texts: pa.StringArray) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


class Spans(NamedTuple):
    """The absolute addresses at which values start and stop, and what keeps their memory alive."""

    starts: Int64s
    stops: Int64s
    owner: list[object]

    def value_positions(self, metadata: pa.Array) -> ValuePositions:
        """The values with the metadata column of the same rows."""
        from parquet_variant.array.parts import metadata_parts
        from parquet_variant.compute.value_positions import Dictionaries, ValuePositions

        parts = metadata_parts(metadata)
        return ValuePositions.at(self.starts, self.stops, parts, Dictionaries(parts), owner=self.owner)


def value_spans(file: OpenFile, row_group: int, column: VariantColumn) -> Spans | None:
    """Where the values of a row group of an unshredded top column lie; None if pyarrow must read it."""
    value = column.node.child("value")
    if value is None or value.leaf is None or len(column.path) != 1 or value.physical != "BYTE_ARRAY":
        return None
    group = file.metadata.row_group(row_group)
    chunk = group.column(value.leaf)
    statistics = chunk.statistics if chunk.is_stats_set else None
    has_no_nulls = statistics is not None and statistics.has_null_count and statistics.null_count == 0
    if not has_no_nulls or not is_readable(chunk, group.num_rows):
        return None
    most = [column.node.repetition, value.repetition].count("optional")
    try:
        pages = ChunkPages(file, row_group, value.leaf, most)
        starts, sizes = np.empty(pages.rows, np.int64), np.empty(pages.rows, np.int64)
        pages.spans(starts, sizes)
    except PAGE_ERRORS:
        return None
    if pages.present < pages.rows:  # The statistics lie.
        return None
    return Spans(starts, starts + sizes, [*pages.owner, pages.texts])
