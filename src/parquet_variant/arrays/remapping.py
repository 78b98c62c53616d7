"""Columns of values with the ids of other dictionaries.

Owns calling `kernels.operations.remap`: values with the ids of a common dictionary, values with their own metadata, and
the parts of ``metadata ‖ value`` binaries; and the exception for rows that only the scalar reference can decide. Leaves
the choice of the columns to `draft_columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import MalformedVariantError
from parquet_variant.kernels.arrow_buffers import Int64s, filled_binary, offsets_of, to_numpy
from parquet_variant.kernels.buffer_pool import adopt
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.kernels.operations.canonical_nodes import canonical_nodes
from parquet_variant.kernels.operations.remap import least_metadata, metadata_sizes
from parquet_variant.kernels.values.name_tables import NameTable
from parquet_variant.kernels.values.value_nodes import value_array


class Undecided(Exception):  # noqa: N818 - not an error: the scalar reference decides the rows
    """The columns do not decide the meaning of the rows; the scalar reference must."""


def undecided_if(condition: bool | np.bool_) -> None:
    """Raise `Undecided` if a condition holds."""
    if condition:
        raise Undecided


class Spans(NamedTuple):
    """The positions of encoded values."""

    # Addresses; the start is -1 for null.
    starts: Int64s
    stops: Int64s
    dictionary_of: Int64s  # The index of the dictionary of each value.
    owner: Any  # The object that keeps the memory alive.

    @property
    def valid(self) -> npt.NDArray[np.uint8] | None:
        """One byte per value, 0 for null; None without nulls."""
        valid = self.starts >= 0
        return None if valid.all() else valid.astype(np.uint8)


def spans_of(array: pa.Array, dictionary_of: Int64s) -> Spans:
    """Return the positions of the values of a binary column."""
    parts = binary_parts(array)
    starts, stops = parts.address + parts.offsets[:-1], parts.address + parts.offsets[1:]
    if len(parts.valid):
        starts = np.where(parts.valid != 0, starts, -1)
    return Spans(starts, stops, dictionary_of, parts.owner)


def split_combined(array: pa.Array) -> tuple[Spans, pa.BinaryArray]:
    """Return the values in ``metadata ‖ value`` binaries, and the distinct metadata that they refer to."""
    spans = spans_of(array, np.empty(0, np.int64))
    sizes = np.empty(len(array), np.int64)
    metadata_sizes(spans.starts, spans.stops, sizes)
    undecided_if(np.any(sizes < 0))
    metadata = filled_binary(sizes, partial(copy_spans, spans.starts, sizes), spans.valid)
    encoded = metadata.dictionary_encode()
    dictionary_of = to_numpy(encoded.indices.fill_null(0)).astype(np.int64)
    starts = np.where(spans.starts >= 0, spans.starts + sizes, -1)
    return Spans(starts, spans.stops, dictionary_of, spans.owner), encoded.dictionary.cast(pa.binary())


def dictionary_names(dictionary: pa.BinaryArray) -> list[list[str]]:
    """Return the names of each metadata. Raises `Undecided` if a metadata is malformed or has a name twice."""
    try:
        names = [decode_metadata(metadata) for metadata in dictionary.to_pylist()]
    except MalformedVariantError:
        raise Undecided from None
    undecided_if(any(len(set(entry)) < len(entry) for entry in names))
    return names


def remapped(spans: Spans, ids: Sequence[Sequence[int]]) -> pa.Array:
    """Return the values with other ids: id i of dictionary d becomes ``ids[d][i]``."""
    return value_array(*_mapped_nodes(spans, ids), spans.valid)


def with_minimal_metadata(spans: Spans, names: NameTable) -> tuple[pa.Array, pa.Array]:
    """Return the values with minimal metadata of only the names that each uses: the metadata, and the values."""
    bounds = names.starts.tolist()
    ids = [names.rank[first:last] for first, last in pairwise(bounds)]
    nodes, row_start = _mapped_nodes(spans, ids)
    metadata = least_metadata(nodes, row_start, spans.dictionary_of, names, spans.valid)
    return metadata, value_array(nodes, row_start, spans.valid)


def _mapped_nodes(spans: Spans, ids: Sequence[Any]) -> tuple[Int64s, Int64s]:
    rows = len(spans.starts)
    map_starts = offsets_of([len(numbers) for numbers in ids])
    id_map = np.concatenate([np.asarray(numbers, np.int64) for numbers in ids] or [np.empty(0, np.int64)])
    row_start, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    dictionary_of = spans.dictionary_of.astype(np.int32)
    exported = canonical_nodes(spans.starts, spans.stops, dictionary_of, map_starts, id_map, row_start, refused)
    nodes = adopt(*exported)
    undecided_if(refused.any())
    return nodes, row_start
