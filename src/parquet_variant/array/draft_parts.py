"""What the column-wise conversions of both drafts share.

Owns groups and lists as columns, the ``untyped_value`` binaries on their way to and from a common dictionary, and the
signal that only the scalar fallback can decide. Leaves each draft's shape to its own module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import metadata_of_all, metadata_parts
from parquet_variant.array.remapping import Spans, dictionary_names, least, remapped, spans_of, split_combined
from parquet_variant.encoding.cast.forms import list_elements
from parquet_variant.kernels.arrow_buffers import from_numpy, offsets_of
from parquet_variant.kernels.values.name_tables import NameTable
from parquet_variant.types import MAX_OFFSET

Int64s = npt.NDArray[np.int64]


class Undecided(Exception):  # noqa: N818 - no error: the scalar fallback goes on
    """The columns do not decide what the rows mean: the scalar fallback has to."""


def undecided_if(condition: bool | np.bool_) -> None:
    """Leave the storage to the scalar fallback if the condition holds."""
    if condition:
        raise Undecided


def struct_of(columns: dict[str, pa.Array], missing: pa.Array | None) -> pa.StructArray:
    """Make a group of optional columns, null where `missing` is true."""
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=missing)


def list_parts(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """Give the length of each list (0 for null), and the elements of all, one after the other."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths, list_elements(array)


def list_of(lengths: Int64s, elements: pa.Array, missing: pa.Array) -> pa.Array:
    """Make lists of elements, null where `missing` is true."""
    offsets = offsets_of(lengths)
    element = pa.field("element", elements.type)
    if len(elements) > MAX_OFFSET:
        return pa.LargeListArray.from_arrays(from_numpy(offsets), elements, type=pa.large_list(element), mask=missing)
    offsets = offsets.astype(np.int32)
    return pa.ListArray.from_arrays(from_numpy(offsets), elements, type=pa.list_(element), mask=missing)


def combined(value: pa.Array | None, rows: Int64s, names: NameTable) -> pa.Array:
    """Make ``untyped_value`` of ``value``: each with metadata of its own."""
    if value is None or value.null_count == len(value):
        return pa.nulls(len(rows), pa.binary())
    parts = least(spans_of(value, rows), names)
    if parts is None:
        raise Undecided
    return pc.binary_join_element_wise(*parts, b"")


class Binaries:
    """The binaries of a storage, in the order in which they are met, on their way to one dictionary."""

    def __init__(self) -> None:
        self._spans: list[tuple[Spans, list[list[str]]] | int] = []

    def add_combined(self, column: pa.Array) -> None:
        """Take an ``untyped_value`` column apart."""
        split = None
        if column.null_count < len(column):
            split = split_combined(column)
            undecided_if(split is None)
        self._add(len(column), split)

    def add_pair(self, metadata: pa.Array, value: pa.Array) -> None:
        """Take a ``value`` column beside its ``metadata``."""
        if value.null_count == len(value):
            self._add(len(value), None)
            return
        parts = metadata_parts(metadata)
        undecided_if(np.any((parts.indices < 0) & value.is_valid().to_numpy(zero_copy_only=False)))
        self._add(len(value), (spans_of(value, np.maximum(parts.indices, 0).astype(np.int64)), parts.dictionary))

    def _add(self, length: int, split: tuple[Spans, pa.BinaryArray] | None) -> None:
        if split is None:
            self._spans.append(length)
            return
        names = dictionary_names(split[1])
        if names is None:
            raise Undecided
        self._spans.append((split[0], names))

    def names(self) -> set[str]:
        """All names in all dictionaries."""
        return {name for spans in self._spans if not isinstance(spans, int) for names in spans[1] for name in names}

    def values(self, ids: dict[str, int]) -> Iterator[pa.Array]:
        """Give the columns again, as values under the common dictionary."""
        for spans in self._spans:
            if isinstance(spans, int):
                yield pa.nulls(spans, pa.binary())
                continue
            column = remapped(spans[0], [[ids[name] for name in names] for names in spans[1]])
            if column is None:
                raise Undecided
            yield column


def final_storage(
    missing: pa.Array,
    names: set[str],
    binaries: Binaries,
    build: Callable[[Iterator[pa.Array], pa.Array], dict[str, pa.Array]],
) -> pa.StructArray:
    """Make a storage of the final layout whose rows share one dictionary.

    `missing`: which rows are SQL NULL.
    `names`: the names of shredded fields.
    `binaries`: all binaries of the draft's storage.
    `build`: makes the columns beside ``metadata``, given the binaries as values and the metadata column.
    """
    every = sorted(names | binaries.names())
    metadata = metadata_of_all(every, len(missing))
    columns = build(binaries.values({name: number for number, name in enumerate(every)}), metadata)
    return struct_of({"metadata": metadata, **columns}, missing)
