"""Columns of values as node tables: canonical field order, and one numbering of names for several columns.

Owns calling `kernels.values.value_nodes`. Edits, comparison, types of values and drafts work on the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import MetadataParts, binary_parts, metadata_parts, valid_mask
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
from parquet_variant.kernels.values.reading import SORTED, UNUSABLE, NameTable, name_table
from parquet_variant.kernels.values.value_nodes import canonical_nodes as kernel
from parquet_variant.support import arrow_compute as pc

# Bytes of values in one kernel call: bounds the size of its node table.
CHUNK_BYTES = 64 << 20


def value_chunks(storage: pa.StructArray) -> list[tuple[int, int]]:
    """Split an unshredded storage into row ranges that are each small enough for one node table.

    Returns one empty range without rows.
    """
    return row_chunks(binary_parts(storage.field("value")).offsets, CHUNK_BYTES)


class Spans(NamedTuple):
    """The positions of encoded values, in the form that the kernel takes."""

    starts: Int64s  # Addresses; -1 for no value.
    stops: Int64s
    dictionary_of: npt.NDArray[np.int32]  # The index of the metadata of each value.
    dictionary: pa.BinaryArray  # The distinct metadata.
    owner: Any  # Keeps the memory alive.

    @classmethod
    def of(cls, values: pa.Array, metadata: MetadataParts, present: Mask | None = None) -> Spans:
        """Return the values of a binary column; by default, nulls are not present."""
        parts = binary_parts(values)
        starts, stops = parts.address + parts.offsets[:-1], parts.address + parts.offsets[1:]
        if present is not None or len(parts.valid):
            starts = np.where(parts.valid != 0 if present is None else present, starts, -1)
        return cls(starts, stops, metadata.indices, metadata.dictionary, parts.owner)

    @classmethod
    def of_storage(cls, storage: pa.StructArray, present: Mask | None = None) -> Spans:
        """Return the values of an unshredded storage, without the rows that are not present (default: SQL NULL)."""
        metadata = metadata_parts(storage.field("metadata"))
        return cls.of(storage.field("value"), metadata, valid_mask(storage) if present is None else present)

    @property
    def valid(self) -> npt.NDArray[np.uint8] | None:
        """One byte per value, 0 for no value; None if all values are present."""
        valid = self.starts >= 0
        return None if valid.all() else valid.astype(np.uint8)


class NameNumbers:
    """All names of several batches, and additional keys, numbered in byte order.

    `maps` has, for each batch, the index of the first name of each dictionary, and the number of each name.
    """

    def __init__(self, batches: Sequence[Spans], keys: Sequence[str] = ()) -> None:
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


def canonical_nodes(batch: Spans, map_of_names: tuple[Int64s, Int64s]) -> tuple[Int64s, Int64s, npt.NDArray[np.uint8]]:
    """Return the nodes of a batch, the first node of each row, and a flag for each row that the kernel refused."""
    rows = len(batch.starts)
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    exported = kernel(batch.starts, batch.stops, batch.dictionary_of, *map_of_names, row_start, refused)
    return adopt(*exported), row_start, refused
