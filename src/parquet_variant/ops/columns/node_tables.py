"""Columns of values as node tables: canonical field order, and one numbering of names for several columns.

Owns calling `kernels.operations.canonical_nodes`. Edits, comparison and types of values work on the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts, metadata_parts, valid_bytes
from parquet_variant.kernels.arrow_buffers import (
    Int64s,
    Mask,
    filled_binary,
    from_bytes,
    offsets_of,
    row_chunks,
    to_numpy,
)
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.kernels.operations.canonical_nodes import canonical_nodes as kernel
from parquet_variant.kernels.values.name_tables import SORTED, UNUSABLE, NameTable, name_table
from parquet_variant.support import arrow_compute as pc

# Bytes of values in one kernel call: bounds the size of its node table.
CHUNK_BYTES = 64 << 20


def value_chunks(storage: pa.StructArray) -> list[tuple[int, int]]:
    """Split an unshredded storage into row ranges that are each small enough for one node table.

    Returns one empty range without rows.
    """
    return row_chunks(binary_parts(storage.field("value")).offsets, CHUNK_BYTES)


def present_rows(storage: pa.StructArray) -> Mask:
    """Return a mask of the rows that are not SQL NULL."""
    valid = valid_bytes(storage)
    return valid != 0 if len(valid) else np.ones(len(storage), np.bool_)


class ValueBatch(NamedTuple):
    """Values in the form that the kernel takes.

    Start (-1 for no value) and end addresses, the index of the dictionary of each value, and the dictionaries.
    """

    starts: Int64s
    stops: Int64s
    dictionary_of: npt.NDArray[np.int32]
    dictionary: pa.BinaryArray
    owner: Any

    @classmethod
    def of(cls, storage: pa.StructArray, present: Mask) -> ValueBatch:
        """Return the values of an unshredded storage, without the rows that are not present."""
        metadata, value = metadata_parts(storage.field("metadata")), binary_parts(storage.field("value"))
        starts = np.where(present, value.offsets[:-1] + value.address, -1)
        return cls(starts, value.offsets[1:] + value.address, metadata.indices, metadata.dictionary, value.owner)


class NameNumbers:
    """All names of several batches, and additional keys, numbered in byte order.

    `maps` has, for each batch, the index of the first name of each dictionary, and the number of each name.
    """

    def __init__(self, batches: Sequence[ValueBatch], keys: Sequence[str] = ()) -> None:
        tables = [name_table(batch.dictionary) for batch in batches]
        raw = from_bytes([key.encode() for key in keys], pa.large_binary())
        counts, parts = [], []
        for table in tables:
            # A malformed dictionary has no names here, so the kernel refuses the rows that use it.
            counts.append(np.where(table.state != UNUSABLE, np.diff(table.starts), 0))
            is_readable = np.repeat(counts[-1] > 0, np.diff(table.starts))
            address, length = table.address[is_readable], table.length[is_readable]
            parts.append(filled_binary(length, partial(copy_spans, address, length), arrow_type=pa.large_binary()))
        encoded = pa.concat_arrays([*parts, raw]).dictionary_encode()
        order = pc.sort_indices(encoded.dictionary)
        rank_of = np.empty(len(order), np.int64)
        rank_of[to_numpy(order)] = np.arange(len(order))
        ranks = rank_of[to_numpy(encoded.indices)]
        self.values = encoded.dictionary.take(order)
        self.rank = dict(zip(keys, ranks[len(ranks) - len(keys) :].tolist(), strict=True))
        self.maps: list[tuple[Int64s, Int64s]] = []
        first = 0
        for count in counts:
            starts = offsets_of(count)
            self.maps.append((starts, ranks[first : first + int(starts[-1])]))
            first += int(starts[-1])

    @property
    def table(self) -> NameTable:
        """The names as the name table of a single dictionary."""
        names, numbers = binary_parts(self.values), np.arange(len(self.values))
        starts, states = np.array([0, len(numbers)]), np.array([SORTED], np.uint8)
        address, length = names.offsets[:-1] + names.address, np.diff(names.offsets)
        return NameTable(starts, address, length, numbers, numbers, states, names.owner)


def canonical_nodes(
    batch: ValueBatch, map_of_names: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Return the nodes of a batch, the first node of each row, and a flag for each row that the kernel refused."""
    rows = len(batch.starts)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    exported = kernel(batch.starts, batch.stops, batch.dictionary_of, *map_of_names, row_start, refused)
    return adopt(*exported), row_start, refused
