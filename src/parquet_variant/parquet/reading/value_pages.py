"""Where the bytes of an unshredded Variant column lie in its decompressed pages.

Owns the spans of one column chunk of values, without making an Arrow array of it: pyarrow copies every value once or
twice, which costs as much as decompressing it. Takes only columns without nulls, in encodings that `chunk_pages` reads,
and leaves every other, and all errors, to pyarrow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.array.parts import metadata_parts
from parquet_variant.functions.columns.value_positions import Dictionaries, ValuePositions
from parquet_variant.parquet.format.columns import VariantColumn
from parquet_variant.parquet.format.files import OpenFile
from parquet_variant.parquet.reading.chunk_pages import PAGE_ERRORS, ChunkPages, Int64s, is_readable


class Spans(NamedTuple):
    """The absolute addresses at which values start and stop, and what keeps their memory alive."""

    starts: Int64s
    stops: Int64s
    owner: list[object]

    def value_positions(self, metadata: pa.Array) -> ValuePositions:
        """The values with the metadata column of the same rows."""
        parts = metadata_parts(metadata)
        return ValuePositions.at(self.starts, self.stops, parts, Dictionaries(parts), owner=self.owner)


def value_spans(file: OpenFile, row_group: int, column: VariantColumn) -> Spans | None:
    """Where the values of a row group of an unshredded top column lie; None if pyarrow must read it."""
    value = column.node.child("value")
    if value is None or value.leaf is None or len(column.path) != 1 or value.physical != "BYTE_ARRAY":
        return None
    group = file.metadata.row_group(row_group)
    chunk = group.column(value.leaf)
    if not is_readable(chunk, group.num_rows) or not _has_no_nulls(chunk):
        return None
    most = [column.node.repetition, value.repetition].count("optional")
    try:
        return _spans(ChunkPages(file, row_group, value.leaf, most))
    except PAGE_ERRORS:
        return None


def _has_no_nulls(chunk: pq.ColumnChunkMetaData) -> bool:
    statistics = chunk.statistics if chunk.is_stats_set else None
    return statistics is not None and statistics.has_null_count and statistics.null_count == 0


def _spans(chunk: ChunkPages) -> Spans:
    starts, sizes = np.empty(chunk.rows, np.int64), np.empty(chunk.rows, np.int64)
    chunk.spans(starts, sizes)
    if chunk.present < chunk.rows:
        raise ValueError("statistics tell of no nulls, but there are some")
    return Spans(starts, starts + sizes, [*chunk.owner, chunk.texts])
