"""The way down a path through shredded columns, and into the bytes beside them where a value is not shredded.

Owns `Group`, the columns of one shredded value in each row, and the steps from group to group (spec: "Objects",
"Arrays"). By the specification a field or element that is shredded is never in the ``value`` column of its parent: a
step to it reads no bytes. Leaves the bytes to `value_positions` and what is done with the value found to its callers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import MetadataParts, metadata_parts, valid_bytes
from parquet_variant.compute.slot_casts import list_array
from parquet_variant.compute.value_positions import Dictionaries, Int64s, ValuePositions
from parquet_variant.encoding.cast.forms import in_form, list_elements, plain_form
from parquet_variant.errors import SchemaError
from parquet_variant.fork_safety import cached_property
from parquet_variant.kernels.arrow_buffers import from_numpy, offsets_of
from parquet_variant.path import Segment
from parquet_variant.schema.path_steps import ArrowGroup, Step, next_group

Bools = npt.NDArray[np.bool_]


class Finish(Protocol):
    """What is done with the values at the end of a path."""

    def of_group(self, group: Group) -> pa.Array:
        """The result for values that are shredded: one entry a row of the group."""

    def of_positions(self, value_positions: ValuePositions) -> pa.Array:
        """The result for values in bytes: one entry a position."""


class Metadata:
    """The metadata of a storage struct, taken apart when it is first needed."""

    def __init__(self, column: pa.Array | None, size: int) -> None:
        self._column = column
        self._size = size

    @cached_property
    def parts(self) -> MetadataParts:
        """The distinct metadata; none at all if the column was not read."""
        if self._column is None:
            return MetadataParts(np.full(self._size, -1, np.int32), pa.array([], pa.binary()))
        return metadata_parts(self._column)

    @cached_property
    def dictionaries(self) -> Dictionaries:
        """The distinct metadata with the ids of keys."""
        return Dictionaries(self.parts)


@dataclass(frozen=True, eq=False)
class Group:
    """The columns of one shredded value in each row."""

    # The columns; None where the storage does not have them.
    value: pa.Array | None
    typed: pa.Array | None
    present: Bools | None  # Rows in which the group is there; None for all.
    rows: Int64s | None  # The row of the storage struct that each entry belongs to; None if entry i belongs to row i.
    metadata: Metadata  # The metadata of the storage struct.
    # Whether an entry without a value is Variant null (a whole value, an element) and not missing (a field).
    is_required: bool
    size: int  # Number of entries.

    @classmethod
    def of_storage(cls, storage: pa.StructArray) -> Group:
        """The whole values of a storage struct of the final layout, shredded or not, with or without metadata."""
        metadata = Metadata(field_of(storage, "metadata"), len(storage))
        return cls(
            _takeable(field_of(storage, "value")),
            _takeable(field_of(storage, "typed_value")),
            _valid(storage),
            None,
            metadata,
            True,
            len(storage),
        )

    @property
    def columns(self) -> ArrowGroup:
        """The types of the columns."""
        columns = {"value": self.value, "typed_value": self.typed}
        return ArrowGroup(pa.struct({name: column.type for name, column in columns.items() if column is not None}))

    def typed_valid(self) -> Bools | None:
        """Entries whose typed column is set; None for all."""
        assert self.typed is not None
        return _both(self.present, _valid(self.typed))

    def child(self, struct: pa.StructArray) -> Group:
        """The group of a shredded field, for the same entries."""
        present = _both(self.typed_valid(), _valid(struct))
        return replace(
            self,
            value=field_of(struct, "value"),
            typed=field_of(struct, "typed_value"),
            present=present,
            is_required=False,
        )

    def elements(self, struct: pa.StructArray, parents: Int64s) -> Group:
        """The group of some elements, with the entry of this group that each belongs to."""
        return replace(
            self,
            value=field_of(struct, "value"),
            typed=field_of(struct, "typed_value"),
            present=_valid(struct),
            rows=parents if self.rows is None else self.rows[parents],
            is_required=True,
            size=len(struct),
        )

    def take(self, positions: Int64s) -> Group:
        """Some of the entries."""
        taken = from_numpy(positions)
        return replace(
            self,
            value=None if self.value is None else self.value.take(taken),
            typed=None if self.typed is None else self.typed.take(taken),
            present=None if self.present is None else self.present[positions],
            rows=positions if self.rows is None else self.rows[positions],
            size=len(positions),
        )

    def storage(self) -> pa.StructArray:
        """The group as a storage struct of its own: null where the value is missing."""
        rows = np.arange(self.size) if self.rows is None else self.rows
        parts = self.metadata.parts
        metadata = MetadataParts(parts.indices[rows], parts.dictionary).column
        columns = {"metadata": metadata, "value": self.value, "typed_value": self.typed}
        there = self.present
        if not self.is_required:
            either: Bools | None = np.zeros(self.size, np.bool_)
            for column in (self.value, self.typed):
                valid = None if column is None else _valid(column)
                if column is not None:
                    either = None if either is None or valid is None else either | valid
            there = _both(there, either)
        arrays = {name: column for name, column in columns.items() if column is not None}
        if "value" not in arrays and "typed_value" not in arrays:
            arrays["value"] = pa.nulls(self.size, pa.binary())
        mask = None if there is None else from_numpy(~there)
        return pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays), mask=mask)

    def in_bytes(self, *, beside_typed: bool = False) -> tuple[Int64s, ValuePositions]:
        """Entries that have a ``value`` (and, unless ``beside_typed``, nothing typed), and where it lies."""
        if self.value is None:
            return self._positions_of(np.empty(0, np.int64), pa.array([], pa.binary()))
        there = _both(self.present, _valid(self.value))
        if self.typed is not None and not beside_typed:
            typed = _valid(self.typed)
            there = _both(there, np.zeros(self.size, np.bool_) if typed is None else ~typed)
        if there is None or there.all():
            return self._positions_of(np.arange(self.size), self.value)
        positions = np.flatnonzero(there)
        return self._positions_of(positions, self.value.take(from_numpy(positions)))

    def _positions_of(self, positions: Int64s, values: pa.Array) -> tuple[Int64s, ValuePositions]:
        rows = positions if self.rows is None else self.rows[positions]
        parts = self.metadata.parts
        value_positions = ValuePositions.of_column(
            values, MetadataParts(parts.indices[rows], parts.dictionary), self.metadata.dictionaries
        )
        return positions, replace(value_positions, rows=rows)


def field_of(struct: pa.StructArray, name: str) -> pa.Array | None:
    """A child of a struct array by its name; None if it has none. Raises `SchemaError` if the array is no struct."""
    if not pa.types.is_struct(struct.type):
        raise SchemaError(f"expected a group, found {struct.type}", reason="not-a-group")
    indices = struct.type.get_all_field_indices(name)
    if not indices:
        return None
    child = struct.field(indices[0])
    return None if pa.types.is_null(child.type) else child  # a column that never has a value is as good as none


def _takeable(array: pa.Array | None) -> pa.Array | None:
    """The column without views and run ends, which pyarrow cannot take from and whose nulls it does not count."""
    if array is None or not _has_views(array.type):
        return array
    return in_form(array, plain_form(array.type))


@lru_cache(maxsize=256)
def _has_views(arrow: pa.DataType) -> bool:
    """Return whether a type nests views or run ends; without recursion, since files nest hundreds of levels."""
    types, remaining = pa.types, [arrow]
    while remaining:
        kind = remaining.pop()
        if types.is_struct(kind) or types.is_list(kind) or types.is_large_list(kind):
            remaining += [kind.field(index).type for index in range(kind.num_fields)]
        elif (
            types.is_list_view(kind) or types.is_large_list_view(kind)
            or types.is_string_view(kind) or types.is_binary_view(kind) or types.is_run_end_encoded(kind)
        ):  # fmt: skip
            return True
    return False


def _valid(array: pa.Array) -> Bools | None:
    if array.null_count == 0:
        return None
    return valid_bytes(array).astype(np.bool_)


def _both(left: Bools | None, right: Bools | None) -> Bools | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def scatter(array: pa.Array, positions: Int64s, size: int) -> pa.Array:
    """The entries of an array at some positions of a longer one, null elsewhere."""
    if len(positions) == size:
        return array
    places = np.full(size, -1, np.int64)
    places[positions] = np.arange(len(positions))
    return array.take(from_numpy(places, places < 0))


def follow(group: Group, segments: tuple[Segment, ...], finish: Finish) -> pa.Array:
    """The result at the end of a path, one entry a row of the group; a list for every wildcard on the way.

    Raises `MalformedVariantError` if bytes that are read are malformed.
    """
    if not segments:
        return finish.of_group(group)
    segment, rest = segments[0], segments[1:]
    typed = group.typed
    if next_group(group.columns, segment)[0] is Step.FOUND:
        assert typed is not None
        if isinstance(segment, str):
            return follow(group.child(typed.field(segment)), rest, finish)
        return (
            _element(group, segment, rest, finish) if isinstance(segment, int) else _all_elements(group, rest, finish)
        )
    # Not shredded: a field may be beside shredded ones, anything else only where nothing is typed.
    positions, value_positions = group.in_bytes(beside_typed=typed is not None and pa.types.is_struct(typed.type))
    if not len(positions):
        return follow_positions(value_positions, segments, finish).take(pa.nulls(group.size, pa.int64()))
    return scatter(follow_positions(value_positions, segments, finish), positions, group.size)


def follow_positions(value_positions: ValuePositions, segments: tuple[Segment, ...], finish: Finish) -> pa.Array:
    """`follow` in bytes."""
    for index, segment in enumerate(segments):
        if isinstance(segment, str):
            value_positions = value_positions.key(segment)
        elif isinstance(segment, int):
            value_positions = value_positions.index(segment)
        else:
            offsets, is_array, elements = value_positions.elements()
            answers = follow_positions(elements, segments[index + 1 :], finish)
            return list_array(offsets, answers, is_array, pa.list_(pa.field("element", answers.type)))
    return finish.of_positions(value_positions)


def _element(group: Group, index: int, rest: tuple[Segment, ...], finish: Finish) -> pa.Array:
    positions, offsets, elements = lists_of(group)
    there = np.flatnonzero(np.diff(offsets) > index)
    struct = elements.take(from_numpy(offsets[there] + index))
    answers = follow(group.elements(struct, positions[there]), rest, finish)
    return (
        scatter(answers, positions[there], group.size) if len(there) else answers.take(pa.nulls(group.size, pa.int64()))
    )


def _all_elements(group: Group, rest: tuple[Segment, ...], finish: Finish) -> pa.Array:
    positions, offsets, elements = lists_of(group)
    parents = np.repeat(positions, np.diff(offsets))
    answers = follow(group.elements(elements, parents), rest, finish)
    lists = list_array(offsets, answers, np.ones(len(positions), np.bool_), pa.list_(pa.field("element", answers.type)))
    return scatter(lists, positions, group.size) if len(positions) else pa.nulls(group.size, lists.type)


def lists_of(group: Group) -> tuple[Int64s, Int64s, pa.StructArray]:
    """Entries whose list is there, offsets of their elements, and the elements."""
    assert group.typed is not None
    valid = group.typed_valid()
    lists = group.typed
    positions = np.arange(group.size) if valid is None else np.flatnonzero(valid)
    if len(positions) < group.size:
        lists = lists.take(from_numpy(positions))
    return positions, offsets_of(pc.list_value_length(lists)), list_elements(lists)
