"""Walks down a path through shredded columns, and into residual bytes where a value is not shredded.

Owns `Group`, the columns of one shredded value in each row, and the steps from group to group (spec: "Objects",
"Arrays"). By the specification a shredded field or element is never in the ``value`` column of its parent, so a step to
it reads no bytes. `value_positions` reads the bytes; a `Finish` decides what to make of the values at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import MetadataParts, metadata_parts, valid_bytes
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy, offsets_of, scalar
from parquet_variant.layouts.path_steps import ArrowGroup, Step, next_group
from parquet_variant.ops.columns.column_slots import refuse_faulty_slots
from parquet_variant.ops.columns.slot_casts import list_array
from parquet_variant.ops.columns.value_positions import MetadataDictionaries, ValuePositions
from parquet_variant.support import arrow_compute as pc
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types.forms import in_form, list_elements, plain_form
from parquet_variant.types.path import Segment


class Finish(Protocol):
    """Makes the result from the values at the end of a path."""

    def of_group(self, group: Group) -> pa.Array:
        """Return the result for shredded values: one entry per row of the group."""

    def of_positions(self, value_positions: ValuePositions) -> pa.Array:
        """Return the result for values in bytes: one entry per position."""


class LazyMetadata:
    """The metadata of a storage struct, decoded on first use."""

    def __init__(self, column: pa.Array | None, size: int) -> None:
        self._column = column
        self._size = size

    @cached_property
    def parts(self) -> MetadataParts:
        """The distinct metadata; empty if the column was not read."""
        if self._column is None:
            return MetadataParts(np.full(self._size, -1, np.int32), pa.array([], pa.binary()))
        return metadata_parts(self._column)

    @cached_property
    def dictionaries(self) -> MetadataDictionaries:
        """The distinct metadata with the ids of keys."""
        return MetadataDictionaries(self.parts)


@dataclass(frozen=True, eq=False)
class Group:
    """The columns of one shredded value in each row."""

    # The columns; None where the storage lacks them.
    value: pa.Array | None
    typed: pa.Array | None
    present: Mask | None  # Rows in which the group is present; None for all.
    rows: Int64s | None  # The row of the storage struct that each entry belongs to; None if entry i belongs to row i.
    metadata: LazyMetadata  # The metadata of the storage struct.
    # An entry without a value is Variant null (a top-level value, an element) if true, else missing (a field).
    is_required: bool
    size: int  # Number of entries.
    is_checked: bool = False  # Whether the typed columns are known to hold only what their types allow.
    # The fields that paths have reached, by name.
    _fields: dict[str, Group] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of_storage(cls, storage: pa.StructArray, *, is_checked: bool = False) -> Group:
        """Return the top-level values of a storage struct of the final layout.

        The struct may be shredded or not, and may lack ``metadata``.
        """
        metadata = LazyMetadata(child_column(storage, "metadata"), len(storage))
        return cls(
            _group_column(storage, "value"),
            _group_column(storage, "typed_value"),
            _valid_mask(storage),
            None,
            metadata,
            True,
            len(storage),
            is_checked,
        )

    @property
    def columns(self) -> ArrowGroup:
        """The types of the columns."""
        columns = {"value": self.value, "typed_value": self.typed}
        return ArrowGroup(pa.struct({name: column.type for name, column in columns.items() if column is not None}))

    def typed_valid(self) -> Mask | None:
        """Return a mask of the entries whose typed column is set; None for all."""
        assert self.typed is not None
        return _combine_masks(self.present, _valid_mask(self.typed))

    @cached_property
    def present_column(self) -> pa.Array:
        """The typed column of a scalar, null where the group is not present: Arrow allows values under nulls."""
        assert self.typed is not None
        if self.present is None:
            return self.typed
        present = from_numpy(self.present)
        if not pc.and_not(self.typed.is_valid(), present).true_count:
            return self.typed
        return pc.if_else(present, self.typed, scalar(None, self.typed.type))

    @cached_property
    def checked_column(self) -> pa.Array:
        """The same column, checked.

        Raises `MalformedVariantError` for the first entry that its type does not allow.
        """
        if not self.is_checked:
            refuse_faulty_slots(self.present_column, self.rows)
        return self.present_column

    def child(self, name: str) -> Group | None:
        """Return the group of a field for the same entries; None if the field is not shredded."""
        if name not in self._fields:
            if self.typed is None or next_group(self.columns, name)[0] is not Step.FOUND:
                return None
            self._fields[name] = self._child_of(self.typed.field(name))
        return self._fields[name]

    def _child_of(self, struct: pa.StructArray) -> Group:
        present = _combine_masks(self.typed_valid(), _valid_mask(struct))
        value, typed = _group_column(struct, "value"), _group_column(struct, "typed_value")
        return Group(value, typed, present, self.rows, self.metadata, False, self.size, self.is_checked)

    def elements(self, struct: pa.StructArray, parents: Int64s) -> Group:
        """Return the group of list elements; `parents` has the entry of this group that each belongs to."""
        value, typed = _group_column(struct, "value"), _group_column(struct, "typed_value")
        rows = parents if self.rows is None else self.rows[parents]
        return Group(value, typed, _valid_mask(struct), rows, self.metadata, True, len(struct), self.is_checked)

    def take(self, positions: Int64s) -> Group:
        """Return the group with the entries at some positions."""
        taken = from_numpy(positions)
        return replace(
            self,
            value=None if self.value is None else self.value.take(taken),
            typed=None if self.typed is None else _without_views(self.typed).take(taken),
            present=None if self.present is None else self.present[positions],
            rows=positions if self.rows is None else self.rows[positions],
            size=len(positions),
        )

    def storage(self) -> pa.StructArray:
        """Return the group as a storage struct, null where the value is missing."""
        rows = np.arange(self.size) if self.rows is None else self.rows
        parts = self.metadata.parts
        metadata = MetadataParts(parts.indices[rows], parts.dictionary).column
        columns = {"metadata": metadata, "value": self.value, "typed_value": self.typed}
        present = self.present
        if not self.is_required:
            either: Mask | None = np.zeros(self.size, np.bool_)
            for column in (self.value, self.typed):
                valid = None if column is None else _valid_mask(column)
                if column is not None:
                    either = None if either is None or valid is None else either | valid
            present = _combine_masks(present, either)
        arrays = {name: column for name, column in columns.items() if column is not None}
        if "value" not in arrays and "typed_value" not in arrays:
            arrays["value"] = pa.nulls(self.size, pa.binary())
        mask = None if present is None else from_numpy(~present)
        return pa.StructArray.from_arrays(list(arrays.values()), names=list(arrays), mask=mask)

    def in_bytes(self, *, partly_typed: bool = False) -> tuple[Int64s, ValuePositions]:
        """Find the entries stored in the ``value`` column and return their positions and their byte spans.

        Entries that also have a typed value are included only with ``partly_typed``.
        """
        if self.value is None:
            return self._positions_of(np.empty(0, np.int64), pa.array([], pa.binary()))
        present = _combine_masks(self.present, _valid_mask(self.value))
        if self.typed is not None and not partly_typed:
            typed = _valid_mask(self.typed)
            present = _combine_masks(present, np.zeros(self.size, np.bool_) if typed is None else ~typed)
        if present is None or present.all():
            return self._positions_of(np.arange(self.size), self.value)
        positions = np.flatnonzero(present)
        return self._positions_of(positions, self.value.take(from_numpy(positions)))

    def _positions_of(self, positions: Int64s, values: pa.Array) -> tuple[Int64s, ValuePositions]:
        rows = positions if self.rows is None else self.rows[positions]
        parts = self.metadata.parts
        value_positions = ValuePositions.of_column(
            values, MetadataParts(parts.indices[rows], parts.dictionary), self.metadata.dictionaries
        )
        return positions, replace(value_positions, rows=rows)


def child_column(struct: pa.StructArray, name: str) -> pa.Array | None:
    """Return a child of a struct array by name; None if it does not exist or has only nulls of the null type.

    Raises `SchemaError` if the array is not a struct.
    """
    if not pa.types.is_struct(struct.type):
        raise SchemaError(f"expected a group, found {struct.type}", reason="not-a-group")
    indices = struct.type.get_all_field_indices(name)
    if not indices:
        return None
    child = struct.field(indices[0])
    return None if pa.types.is_null(child.type) else child  # a column without values


def _group_column(struct: pa.StructArray, name: str) -> pa.Array | None:
    """Return a column of a group, as `child_column` does, without views and run ends.

    The fields of a struct are converted when a path reaches them, because inspecting the type of a wide struct takes
    longer than a path to one of its fields.
    """
    column = child_column(struct, name)
    return column if column is None or pa.types.is_struct(column.type) else _without_views(column)


def _without_views(array: pa.Array) -> pa.Array:
    """Return the column without views and run ends.

    pyarrow cannot take rows from such columns and does not count their nulls.
    """
    return in_form(array, plain_form(array.type)) if _has_views(array.type) else array


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


def _valid_mask(array: pa.Array) -> Mask | None:
    if array.null_count == 0:
        return None
    return valid_bytes(array).astype(np.bool_)


def _combine_masks(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def scatter(array: pa.Array, positions: Int64s, size: int) -> pa.Array:
    """Return a longer array with the entries at some positions, null elsewhere."""
    if len(positions) == size:
        return array
    places = np.full(size, -1, np.int64)
    places[positions] = np.arange(len(positions))
    return array.take(from_numpy(places, places < 0))


def follow(group: Group, segments: tuple[Segment, ...], finish: Finish) -> pa.Array:
    """Return the result at the end of a path: one entry per row of the group, with one list level per wildcard.

    Raises `MalformedVariantError` if bytes that are read are malformed.
    """
    if not segments:
        return finish.of_group(group)
    segment, following = segments[0], segments[1:]
    typed = group.typed
    if isinstance(segment, str):
        child = group.child(segment)
        if child is not None:
            return follow(child, following, finish)
    elif next_group(group.columns, segment)[0] is Step.FOUND:
        return (
            _element(group, segment, following, finish)
            if isinstance(segment, int)
            else _all_elements(group, following, finish)
        )
    # Not shredded: a field may be in the residual of a partly shredded object, anything else only in an untyped value.
    positions, value_positions = group.in_bytes(partly_typed=typed is not None and pa.types.is_struct(typed.type))
    if not len(positions):
        return follow_positions(value_positions, segments, finish).take(pa.nulls(group.size, pa.int64()))
    return scatter(follow_positions(value_positions, segments, finish), positions, group.size)


def follow_positions(value_positions: ValuePositions, segments: tuple[Segment, ...], finish: Finish) -> pa.Array:
    """Return the result at the end of a path, as `follow` does, for values in bytes."""
    for index, segment in enumerate(segments):
        if isinstance(segment, str):
            value_positions = value_positions.key(segment)
        elif isinstance(segment, int):
            value_positions = value_positions.index(segment)
        else:
            offsets, is_array, elements = value_positions.elements()
            results = follow_positions(elements, segments[index + 1 :], finish)
            return list_array(offsets, results, is_array, pa.list_(pa.field("element", results.type)))
    return finish.of_positions(value_positions)


def _element(group: Group, index: int, following: tuple[Segment, ...], finish: Finish) -> pa.Array:
    positions, offsets, elements = lists_of(group)
    long_enough = np.flatnonzero(np.diff(offsets) > index)
    struct = elements.take(from_numpy(offsets[long_enough] + index))
    results = follow(group.elements(struct, positions[long_enough]), following, finish)
    return (
        scatter(results, positions[long_enough], group.size)
        if len(long_enough)
        else results.take(pa.nulls(group.size, pa.int64()))
    )


def _all_elements(group: Group, following: tuple[Segment, ...], finish: Finish) -> pa.Array:
    positions, offsets, elements = lists_of(group)
    parents = np.repeat(positions, np.diff(offsets))
    results = follow(group.elements(elements, parents), following, finish)
    lists = list_array(offsets, results, np.ones(len(positions), np.bool_), pa.list_(pa.field("element", results.type)))
    return scatter(lists, positions, group.size) if len(positions) else pa.nulls(group.size, lists.type)


def lists_of(group: Group) -> tuple[Int64s, Int64s, pa.StructArray]:
    """Return the positions of the entries that have a list, the offsets of their elements, and the elements."""
    assert group.typed is not None
    valid = group.typed_valid()
    lists = group.typed
    positions = np.arange(group.size) if valid is None else np.flatnonzero(valid)
    if len(positions) < group.size:
        lists = lists.take(from_numpy(positions))
    return positions, offsets_of(pc.list_value_length(lists)), list_elements(lists)
