"""Column chunks of a file that Python serves, brought into memory before pyarrow reads them.

Owns which bytes are asked for, and in how many requests. A thread of pyarrow's that calls Python while the process ends
would abort it, so none may: what they read is memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.parquet.format.page_places import chunk_start_of
from parquet_variant.parquet.format.statistics import writer_of

# Chunks that lie this near to each other are one request, as pyarrow has it.
_HOLE = 8 << 10
# What pyarrow reads behind chunks of a writer that, before its version 1.2.9, counts their headers wrongly.
_MISCOUNTING, _PADDING = "parquet-mr version 1.", 100


def fetched_chunks(
    stream: pa.NativeFile, metadata: pq.FileMetaData, row_groups: Iterable[int], leaves: Iterable[int]
) -> pa.BufferReader:
    """Some column chunks of a file at their places; pages of memory that nothing is fetched into are never touched."""
    size = stream.size()
    whole = pa.allocate_buffer(size)
    places = np.frombuffer(whole, np.uint8)
    chunks = [metadata.row_group(group).column(leaf) for group in row_groups for leaf in leaves]
    padding = _PADDING if writer_of(metadata).startswith(_MISCOUNTING) else 0
    for start, stop in _joined(_range(chunk, size, padding) for chunk in chunks):
        data = np.frombuffer(stream.read_at(stop - start, start), np.uint8)
        places[start : start + len(data)] = data
    return pa.BufferReader(whole)


def _range(chunk: pq.ColumnChunkMetaData, size: int, padding: int) -> tuple[int, int]:
    start = min(max(chunk_start_of(chunk), 0), size)
    return start, min(start + max(chunk.total_compressed_size, 0) + padding, size)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that nearly touch as one.

    >>> _joined([(90_000, 90_010), (0, 10), (20, 40)])
    [(0, 40), (90000, 90010)]
    """
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start - joined[-1][1] <= _HOLE:
            joined[-1] = joined[-1][0], max(joined[-1][1], stop)
        else:
            joined.append((start, stop))
    return joined
