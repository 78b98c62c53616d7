"""Bounded samples of the rows of a data set.

Owns the choice of row groups, and of columns within a limit on bytes. Leaves what footers prove to `footers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer_cache import Handle
from parquet_variant.files.parquet.format.page_places import chunk_start_of
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.quality.footers import Residual, VariantFacts
from parquet_variant.quality.sources import DataSet, RowBatch
from parquet_variant.types.path import VariantPath, outer_paths

Item = TypeVar("Item")
# Rows that are sampled at most, and the row groups that they come from.
SAMPLE_ROWS = 20_000
SAMPLE_ROW_GROUPS = 8
# Bytes that are read of a page header, and the field of the size that follows it.
_HEADER_BYTES, _COMPRESSED_SIZE = 512, 3
_BATCH_ROWS = 1024
# Granularity of reads inside a column chunk.
_BUFFER = 8 << 10


@dataclass(slots=True)
class RowSample:
    """Some rows of a data set."""

    batches: list[RowBatch] = field(default_factory=list)
    bytes_read: int = 0
    # Paths whose columns were not read, because they are large and the footers describe them.
    omitted: frozenset[VariantPath] = frozenset()
    is_complete: bool = False  # Whether the sample has all rows.

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(len(batch.values) for batch in self.batches)


def evenly(items: Sequence[Item], count: int) -> list[Item]:
    """Return that many items at most, evenly distributed.

    >>> evenly([1, 2, 3, 4, 5], 2)
    [1, 3]
    """
    if len(items) <= count:
        return list(items)
    return [items[at * len(items) // count] for at in range(count)]


def first_batches(data: DataSet, size: int) -> RowSample:
    """Return the first rows of a data set, up to a number of bytes in memory."""
    sample = RowSample()
    for batch in data.batches():
        sample.batches.append(batch)
        sample.bytes_read += batch.values.storage.nbytes
        if sample.bytes_read >= size or sample.rows >= SAMPLE_ROWS:
            return sample
    sample.is_complete = True
    return sample


def sampled_rows(files: Sequence[VariantFacts], size: int) -> RowSample:
    """Read rows from the beginning of some row groups: at most `size` bytes, except that some rows are always read."""
    places = [(facts, group) for facts in files for group in facts.columns.groups if facts.columns.rows([group])]
    sample, omitted = RowSample(), set[VariantPath]()
    with ExitStack() as stack:
        opened: dict[str, OpenFile] = {}
        for facts, _ in (places := evenly(places, SAMPLE_ROW_GROUPS)):
            if facts.file.name not in opened:
                opened[facts.file.name] = stack.enter_context(facts.file.reopened())
        chosen = [(opened[facts.file.name], facts, group) for facts, group in places]
        costs = [_costs(*place) for place in chosen]
        while len(chosen) > 1 and sum(sum(of_group.values()) for of_group in costs) > size:
            chosen, costs = evenly(chosen, len(chosen) - 1), evenly(costs, len(costs) - 1)
        for (file, facts, group), leaves in zip(chosen, costs, strict=True):
            omitted |= _drop_large(facts, leaves, size // len(chosen))
            first_row, handle = facts.columns.rows(range(group)), _CountedHandle(file.stream)
            with _data_errors(file.name):
                for values in first_rows(file, facts.column, group, SAMPLE_ROWS // len(chosen), leaves, handle):
                    sample.batches.append(RowBatch(values, file.name, first_row))
                    first_row += len(values)
            sample.bytes_read += handle.bytes_read
    sample.omitted = frozenset(omitted)
    return sample


class _CountedHandle(Handle):
    """A file for pyarrow that counts the bytes that are read."""

    bytes_read = 0

    def read(self, size: int) -> bytes:
        data = super().read(size)
        self.bytes_read += len(data)
        return data


def first_rows(
    file: OpenFile, column: VariantColumn, group: int, rows: int, leaves: Collection[int], stream: Any = None
) -> Iterator[VariantArray]:
    """Yield the first rows of a row group from the first pages of some leaf columns, in small batches."""
    metadata = [node.leaf for node in column.node.leaves() if node.name == "metadata" and node.leaf in leaves]
    # The metadata of a row has the keys of many rows: as a dictionary it is not repeated.
    names = [file.metadata.schema.column(leaf).path for leaf in metadata]
    opened = open_parquet(
        stream or file.stream, metadata=file.metadata, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=names,
        coerce_int96_timestamp_unit="us",
    )  # fmt: skip
    reader: Any = opened.reader
    chosen = sorted(leaves)
    for batch in reader.iter_batches(min(rows, _BATCH_ROWS), [group], column_indices=chosen, use_threads=False):
        table = file.in_file_types(pa.table(batch), chosen)
        values = VariantArray(nested_array(table, column.path))[:rows]
        yield values
        rows -= len(values)
        if rows <= 0:
            return


def _costs(file: OpenFile, facts: VariantFacts, group: int) -> dict[int, int]:
    """Return the bytes of the dictionary and of the first data page of each column chunk of a row group."""
    leaves = [leaf.leaf for leaf in facts.column.node.leaves() if leaf.leaf is not None]
    with _data_errors(file.name):
        return {leaf: _first_page_end(facts.columns.chunk(leaf, group), file.stream) for leaf in leaves}


def _first_page_end(chunk: pq.ColumnChunkMetaData, stream: pa.NativeFile) -> int:
    """Return the number of bytes of a column chunk up to the end of its first data page."""
    size: int = chunk.total_compressed_size
    before = min(max(chunk.data_page_offset - chunk_start_of(chunk), 0), size)
    try:
        header, header_size = read_value(bytes(stream.read_at(_HEADER_BYTES, chunk.data_page_offset)), 0, STRUCT)
        return min(before + header_size + int(header[_COMPRESSED_SIZE]), size)
    except (ThriftError, KeyError):
        return size


def _drop_large(facts: VariantFacts, costs: dict[int, int], size: int) -> set[VariantPath]:
    """Remove columns from `costs` until their bytes are within a limit, and return their paths.

    Only columns that the footer describes are removed, the largest first. Every object and array keeps a column,
    because it would seem to be missing otherwise.
    """
    candidates = []
    remaining: Counter[VariantPath] = Counter()
    for path, of_path in facts.paths.items():
        if of_path.is_leaf or of_path.residual is Residual.OPEN:
            remaining.update(outer_paths(path))
        if of_path.is_leaf and of_path.residual is not Residual.OPEN:
            nodes = (of_path.group.typed, of_path.group.residual)
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
    return dropped


@contextmanager
def _data_errors(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise VariantFileError(
            f"cannot read the data of {path}: {error}; write the file again", reason="bad-data", file=path
        ) from None
