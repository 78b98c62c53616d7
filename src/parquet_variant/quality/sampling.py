"""Bounded samples of rows: which rows of a data set are read if it is too large to be read as a whole.

Owns the choice of row groups and columns of Parquet files within a limit on bytes, and samples of other formats. Leaves
figures to `value_figures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.footer_cache import with_wide_decimals, without_views
from parquet_variant.files.parquet.format.page_places import chunk_start_of
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.path import VariantPath, outer_paths
from parquet_variant.quality.footers import CountedHandle, FileFacts, Residual
from parquet_variant.quality.sources import DataSet, RowBatch

Item = TypeVar("Item")
# Rows that are sampled at most, and the row groups that they come from.
_ROWS = 20_000
_ROW_GROUPS = 8
# Bytes that are read of a page header, and the field of the size that follows it.
_HEADER_BYTES, _COMPRESSED_SIZE = 512, 3
_BATCH_ROWS = 1024
# Granularity of reads inside a column chunk.
_BUFFER = 8 << 10


@dataclass(slots=True)
class RowSample:
    """Some rows of a data set.

    `batches`: the rows.
    `bytes_read`: bytes that were read for the sample.
    `omitted`: paths whose columns were not read, because they are large and the footers describe them.
    `is_complete`: whether the sample has all rows.
    """

    batches: list[RowBatch] = field(default_factory=list)
    bytes_read: int = 0
    omitted: frozenset[VariantPath] = frozenset()
    is_complete: bool = False

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(batch.values) for batch in self.batches)


def first_batches(data: DataSet, size: int) -> RowSample:
    """Return the first rows of a data set, up to a number of bytes in memory."""
    sample = RowSample()
    for batch in data.batches():
        sample.batches.append(batch)
        sample.bytes_read += batch.values.storage.nbytes
        if sample.bytes_read >= size or sample.rows >= _ROWS:
            return sample
    sample.is_complete = True
    return sample


def sampled_rows(files: Sequence[FileFacts], size: int) -> RowSample:
    """Read rows from the beginning of some row groups.

    `files`: the files, with what their footers prove.
    `size`: the number of bytes to read at most, except that some rows are always read.
    """
    places = [(facts, number) for facts in files for number in range(facts.footer.metadata.num_row_groups)]
    places = [place for place in places if place[0].footer.metadata.row_group(place[1]).num_rows]
    if not places:
        return RowSample()
    row_groups = evenly(places, _ROW_GROUPS)
    costs = [_costs(facts, number) for facts, number in row_groups]
    while len(row_groups) > 1 and sum(sum(leaves.values()) for leaves in costs) > size:
        row_groups, costs = evenly(row_groups, len(row_groups) - 1), evenly(costs, len(costs) - 1)
    sample = RowSample()
    omitted: set[VariantPath] = set()
    for (facts, number), leaf_costs in zip(row_groups, costs, strict=True):
        leaves, dropped = _within(facts, leaf_costs, size // len(row_groups))
        omitted |= dropped
        sample.bytes_read += _read(facts, number, leaves, _ROWS // len(row_groups), sample.batches)
    sample.omitted = frozenset(omitted)
    return sample


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Return that many items at most, evenly distributed.

    >>> evenly([1, 2, 3, 4, 5], 2)
    [1, 3]
    """
    if len(items) <= count:
        return list(items)
    return [items[at * len(items) // count] for at in range(count)]


def _costs(facts: FileFacts, number: int) -> dict[int, int]:
    """Return the bytes of the dictionary and of the first data page of each column chunk of a row group."""
    group = facts.footer.metadata.row_group(number)
    source = facts.footer.source
    with _data_errors(source.path), source.filesystem.open_input_file(source.path) as stream:
        leaves = [leaf.leaf for leaf in facts.column.node.leaves() if leaf.leaf is not None]
        return {leaf: _first_page_end(group.column(leaf), stream) for leaf in leaves}


def _first_page_end(chunk: pq.ColumnChunkMetaData, stream: pa.NativeFile) -> int:
    """Return the number of bytes of a column chunk up to the end of its first data page."""
    size: int = chunk.total_compressed_size
    before = min(max(chunk.data_page_offset - chunk_start_of(chunk), 0), size)
    try:
        header, header_size = read_value(bytes(stream.read_at(_HEADER_BYTES, chunk.data_page_offset)), 0, STRUCT)
        return min(before + header_size + int(header[_COMPRESSED_SIZE]), size)
    except (ThriftError, KeyError):
        return size


def _within(facts: FileFacts, costs: dict[int, int], size: int) -> tuple[list[int], set[VariantPath]]:
    """Return the columns to read within a limit, and the paths that are left out.

    `costs`: the bytes of each column; those that are left out are removed.

    Only columns that the footer describes may be left out, the largest first. Every object and array keeps a column,
    because it would seem to be missing otherwise.
    """
    candidates = []
    remaining: Counter[VariantPath] = Counter()
    for path, group in facts.groups.items():
        if group.is_leaf or group.residual is Residual.OPEN:
            remaining.update(outer_paths(path))
        if group.is_leaf and group.residual is not Residual.OPEN:
            nodes = (group.group.typed, group.group.residual)
            leaves = [node.leaf for node in nodes if node is not None and node.leaf is not None]
            candidates.append((sum(costs[leaf] for leaf in leaves), path, leaves))
    dropped: set[VariantPath] = set()
    for _, path, leaves in sorted(candidates, key=lambda candidate: -candidate[0]):
        if sum(costs.values()) <= size:
            break
        if all(remaining[ancestor] > 1 for ancestor in outer_paths(path)):
            remaining.subtract(outer_paths(path))
            dropped.add(path)
            for leaf in leaves:
                del costs[leaf]
    return sorted(costs), dropped


def _read(facts: FileFacts, number: int, leaves: Sequence[int], rows: int, batches: list[RowBatch]) -> int:
    """Add the first rows of a row group to a sample, and return the bytes that were read."""
    source, metadata, every = facts.footer.source, facts.footer.metadata, facts.footer.schema.leaves()
    first_row = sum(metadata.row_group(before).num_rows for before in range(number))
    with _data_errors(source.path), source.filesystem.open_input_file(source.path) as stream:
        handle = CountedHandle(stream)
        file = open_parquet(
            handle, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False, coerce_int96_timestamp_unit="us"
        )
        for batch in file.reader.iter_batches(_BATCH_ROWS, [number], column_indices=list(leaves), use_threads=False):
            nodes = [every[leaf] for leaf in leaves]
            table = with_wide_decimals(without_views(pa.table(batch), metadata), nodes, source.path)
            values = VariantArray(nested_array(table, facts.column.path))[:rows]
            batches.append(RowBatch(values, source.path, first_row))
            first_row, rows = first_row + len(values), rows - len(values)
            if rows <= 0:
                break
        return handle.bytes_read


@contextmanager
def _data_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise VariantFileError(
            f"cannot read the data of {path}: {error}; write the file again", reason="bad-data", file=path
        ) from None
