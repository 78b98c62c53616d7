"""Extraction of one path from a storage struct, shredded or not, complete or with selected columns only.

Owns `Group`, the columns of one shredded value in each row; the steps of a path from group to group (spec: "Objects",
"Arrays"), and into residual bytes where a value is not shredded; which shredded columns a target type needs at the end
of a path; and extraction as Variant, which keeps shredded columns and copies bytes together with the metadata of their
row. By the specification a shredded field or element is never in the ``value`` column of its parent, so a step to it
reads no bytes. `value_positions` reads the bytes, `slot_casts` casts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import in_offsets
from parquet_variant.arrays.parts import MetadataParts, metadata_parts, patched, scatter, struct_of, valid_mask
from parquet_variant.arrays.value_positions import MetadataDictionaries, ValuePositions
from parquet_variant.arrays.variant_array import VariantArray, remembered, trusted_array
from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.errors import SchemaError
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy, offsets_of, scalar, to_numpy
from parquet_variant.layouts.layout import Step, walk_path
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.layouts.storages import ArrowGroup
from parquet_variant.layouts.type_grammar import result_type
from parquet_variant.ops.columns.slot_casts import (
    CastOptions,
    FailedCasts,
    Lossless,
    array_of_slots,
    list_array,
    refuse_faulty_slots,
    slots_of_column,
)
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import PrimitiveId
from parquet_variant.types.forms import in_target_form, list_elements, plain_form
from parquet_variant.types.path import AnyPath, Segment, VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE, Target, target_of

# Makes the result from the values at the end of a path: one entry per row of a group, or per position in bytes.
Finish: TypeAlias = "Callable[[Group | ValuePositions], pa.Array]"


class Group(Record, eq=False):
    """The columns of one shredded value in each row."""

    # The columns; None where the storage lacks them.
    value: pa.Array | None
    typed: pa.Array | None
    present: Mask | None  # Rows in which the group is present; None for all.
    rows: Int64s | None  # The row of the storage struct that each entry belongs to; None if entry i belongs to row i.
    metadata: MetadataDictionaries  # The metadata of the storage struct, decoded on first use.
    # An entry without a value is Variant null (a top-level value, an element) if true, else missing (a field).
    is_required: bool
    size: int  # Number of entries.
    is_checked: bool = False  # Whether the typed columns are known to hold only what their types allow.
    # The fields that paths have reached, by name.
    _fields: dict[str, Group] = field(init=False, default_factory=dict, repr=False)

    @classmethod
    def of_storage(cls, storage: pa.StructArray, *, is_checked: bool = False) -> Group:
        """Return the top-level values of a storage struct of the final layout, without views and run ends.

        The struct may be shredded or not, and may lack ``metadata``.
        """
        column = _child_column(storage, "metadata")
        if column is None:  # not read
            column = pa.nulls(len(storage), pa.dictionary(pa.int32(), pa.binary()))
        metadata = MetadataDictionaries(partial(metadata_parts, column))
        value, typed = _child_column(storage, "value"), _child_column(storage, "typed_value")
        return cls(value, typed, _valid_mask(storage), None, metadata, True, len(storage), is_checked)

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
        """The same column, checked. Raises `MalformedVariantError` for the first entry that its type does not allow."""
        if not self.is_checked:
            refuse_faulty_slots(self.present_column, self.rows)
        return self.present_column

    def child(self, name: str) -> Group | None:
        """Return the group of a field for the same entries; None if the field is not shredded."""
        if name not in self._fields:
            is_object = self.typed is not None and pa.types.is_struct(self.typed.type)
            struct = _child_column(self.typed, name) if is_object else None
            if struct is None:
                return None
            present = _combine_masks(self.typed_valid(), _valid_mask(struct))
            self._fields[name] = self._group(struct, present, self.rows, is_required=False)
        return self._fields[name]

    def elements(self, struct: pa.StructArray, parents: Int64s) -> Group:
        """Return the group of list elements; `parents` has the entry of this group that each belongs to."""
        rows = parents if self.rows is None else self.rows[parents]
        return self._group(struct, _valid_mask(struct), rows, is_required=True)

    def _group(self, struct: pa.StructArray, present: Mask | None, rows: Int64s | None, *, is_required: bool) -> Group:
        value, typed = _child_column(struct, "value"), _child_column(struct, "typed_value")
        return Group(value, typed, present, rows, self.metadata, is_required, len(struct), self.is_checked)

    def storage(self) -> pa.StructArray:
        """Return the group as a storage struct, null where the value is missing."""
        rows = np.arange(self.size) if self.rows is None else self.rows
        parts = self.metadata.metadata
        metadata = MetadataParts(parts.indices[rows], parts.dictionary).column
        columns = {"value": self.value, "typed_value": self.typed}
        arrays = {name: column for name, column in columns.items() if column is not None}
        arrays = arrays or {"value": pa.nulls(self.size, pa.binary())}
        present = self.present
        if not self.is_required:
            present = _combine_masks(present, np.logical_or.reduce([valid_mask(column) for column in arrays.values()]))
        return struct_of({"metadata": metadata, **arrays}, None if present is None else from_numpy(~present))

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
        metadata = self.metadata.metadata._replace(indices=self.metadata.metadata.indices[rows])
        return positions, ValuePositions.of_column(values, metadata, self.metadata, rows)


def _child_column(struct: pa.StructArray, name: str) -> pa.Array | None:
    """Return a child of a struct array; None if it is missing, or a ``value`` of the type null.

    Raises `SchemaError` for other arrays, and for typed columns of the type null.
    """
    if not pa.types.is_struct(struct.type):
        raise SchemaError(f"expected a group, found {struct.type}", reason="not-a-group")
    indices = struct.type.get_all_field_indices(name)
    is_untyped = bool(indices) and pa.types.is_null(struct.type.field(indices[0]).type)
    if is_untyped and name != "value":
        message = f"{name!r} has the type null, which is not the type of a part of a Variant"
        raise SchemaError(message, reason="unsupported-type")
    return struct.field(indices[0]) if indices and not is_untyped else None


def _valid_mask(array: pa.Array) -> Mask | None:
    return valid_mask(array) if array.null_count else None


def _combine_masks(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def follow(values: Group | ValuePositions, segments: tuple[Segment, ...], finish: Finish) -> pa.Array:
    """Return the result at the end of a path: one entry per row of the values, with one list level per wildcard.

    Raises `MalformedVariantError` if bytes that are read are malformed.
    """
    # A loop, because a path may have more keys than Python can recurse.
    while segments and isinstance(values, ValuePositions) and isinstance(segment := segments[0], str | int):
        values, segments = values.key(segment) if isinstance(segment, str) else values.index(segment), segments[1:]
    if not segments:
        return finish(values)
    segment, following = segments[0], segments[1:]
    if isinstance(values, ValuePositions):
        offsets, is_array, elements = values.elements()
        results = follow(elements, following, finish)
        return list_array(offsets, results, is_array, pa.list_(pa.field("element", results.type)))
    if isinstance(segment, str):
        if (child := values.child(segment)) is not None:
            return follow(child, following, finish)
    elif values.typed is not None and is_list(values.typed.type):
        positions, offsets, elements = lists_of(values)
        if isinstance(segment, int):
            long_enough = np.flatnonzero(np.diff(offsets) > segment)
            positions = positions[long_enough]
            struct = elements.take(from_numpy(offsets[long_enough] + segment))
            results = follow(values.elements(struct, positions), following, finish)
        else:
            inner = values.elements(elements, np.repeat(positions, np.diff(offsets)))
            results = follow(inner, following, finish)
            kind = pa.list_(pa.field("element", results.type))
            results = list_array(offsets, results, np.ones(len(positions), np.bool_), kind)
        return scatter(results, positions, values.size)
    # Not shredded: a field may be in the residual of a partly shredded object, anything else only in an untyped value.
    is_object = values.typed is not None and pa.types.is_struct(values.typed.type)
    positions, residuals = values.in_bytes(partly_typed=is_object)
    return scatter(follow(residuals, segments, finish), positions, values.size)


def lists_of(group: Group) -> tuple[Int64s, Int64s, pa.StructArray]:
    """Return the positions of the entries that have a list, the offsets of their elements, and the elements."""
    assert group.typed is not None
    valid = group.typed_valid()
    lists = group.typed
    positions = np.arange(group.size) if valid is None else np.flatnonzero(valid)
    if len(positions) < group.size:
        lists = lists.take(from_numpy(positions))
    return positions, offsets_of(to_numpy(pc.list_value_length(lists))), list_elements(lists)


# A column with more metadata than this is not remembered, nor the id of each key in them.
_MOST_REMEMBERED_METADATA = 1024
_DRAFTS, _DRAFT_GROUPS = ("draft-paths", "draft-object"), ("paths", "untyped_value", "object", "array")


def extract_path(
    values: pa.StructArray | Group | ValuePositions,
    path: AnyPath,
    target: pa.DataType,
    *,
    safe: bool = True,
    zone: str = "UTC",
    lossless: Lossless = False,
    failed: FailedCasts | None = None,
) -> pa.Array:
    """Return the values at a path as an Arrow array, with a list for each ``[*]``.

    `values`: the storage struct of a Variant column, of the final layout with or without ``metadata``; only the columns
      of `columns_of_path` are read, and a missing ``value`` counts as null. Or its `storage_group`, for several paths.
    `safe`: whether a value that cannot be cast is an error; otherwise it becomes null.
    `lossless`: whether only values count that have the type already (see `get_variant_element`); nothing is cast.
    `failed`: receives the number of values that cannot be cast and become null, with an example.
    Returns null where the row is null, the path is missing or the value is Variant null (unless the target is a
    Variant).
    Raises `CastError` with row and path, `MalformedVariantError`, or `SchemaError` for a struct that is not a storage.
    """
    parsed = VariantPath.parse(path)
    target_of(target)  # an error names the type itself, not its plain form
    options = CastOptions(zone_of(zone), safe, str(parsed), lossless, failed)
    finish = _CastFinish(target_of(plain_form(target)), options)
    group = storage_group(values) if isinstance(values, pa.Array) else values
    return in_target_form(follow(group, parsed.segments, finish), result_type(target, parsed))


def storage_group(storage: pa.StructArray) -> Group:
    """Return the top-level values of a storage struct in any layout, for `extract_path`; drafts are unshredded."""
    names = {field.name for field in storage.type}
    if names.isdisjoint(_DRAFT_GROUPS) and names & {"value", "typed_value"}:
        return Group.of_storage(in_offsets(storage))
    return Group.of_storage(VariantArray(storage).to_unshredded().storage)


def array_group(array: VariantArray) -> Group:
    """Return the top-level values of an array, which remembers them: a column on several paths is checked once."""
    storage = array.storage
    at = storage.type.get_field_index("metadata")
    is_encoded = at >= 0 and pa.types.is_dictionary(storage.type.field(at).type)
    if array.layout in _DRAFTS or not is_encoded or len(storage.field(at).dictionary) > _MOST_REMEMBERED_METADATA:
        return storage_group(storage)
    return remembered(array, "group", partial(Group.of_storage, is_checked=array.is_checked))


def columns_of_path(storage: pa.StructType, path: AnyPath) -> list[tuple[str, ...]]:
    """Return the leaf columns of a storage struct that `extract_path` reads for a path, as Arrow's names from the top.

    Metadata comes first, and only if a ``value`` column follows. The draft layouts need all columns.

    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.int64()})
    >>> columns_of_path(storage, "$.b")
    [('metadata',), ('value',)]
    """
    names = {field.name for field in storage}
    if not names.isdisjoint(_DRAFT_GROUPS):
        return ArrowGroup(storage).leaves()
    end = walk_path(ArrowGroup(storage), VariantPath.parse(path))
    parts = ("value",) if end.step is not Step.FOUND else ("value", "typed_value")
    columns = [leaf for part in parts if (child := end.group.child(part)) is not None for leaf in child.leaves()]
    reads_bytes = any(column[-1] == "value" for column in columns) and "metadata" in names
    return [("metadata",), *columns] if reads_bytes else columns


def assembled_values(group: Group) -> ValuePositions:
    """Return every value of a group as bytes, assembled from its columns."""
    storage = group.storage()
    plain = VariantArray(storage).to_unshredded().storage
    value_positions = ValuePositions.of_storage(plain)
    return value_positions if group.rows is None else replace(value_positions, rows=group.rows)


class _CastFinish(Record):
    """Ends a path with a cast."""

    target: Target
    options: CastOptions

    def __call__(self, group: Group | ValuePositions) -> pa.Array:
        if isinstance(group, ValuePositions):
            return array_of_slots(group.slots(), self.target, self.options)
        typed = group.typed
        if typed is None:
            base = pa.nulls(group.size, self.target.arrow)
        elif pa.types.is_struct(typed.type):
            if self.target.family != "struct" or not self.target.names:
                return self(assembled_values(group))
            base = self._struct(group)
        elif is_list(typed.type):
            if self.target.family != "list" or self.target.size >= 0:
                return self(assembled_values(group))
            base = self._list(group)
        else:
            base = (
                group.checked_column
                if typed.type == self.target.arrow
                else array_of_slots(slots_of_column(group.present_column, group.rows), self.target, self.options)
            )
        if group.value is not None and group.value.null_count < group.size:
            positions, value_positions = group.in_bytes()
            slots = value_positions.slots()
            if self.target.family == "variant" or (slots.kinds != PrimitiveId.NULL).any():
                base = patched(base, positions, array_of_slots(slots, self.target, self.options))
        if self.target.family == "variant" and group.is_required:
            missing = base.is_null() if group.present is None else pc.and_(base.is_null(), from_numpy(group.present))
            if missing.true_count:  # Variant null where neither column is set
                null = pa.array([{"metadata": EMPTY_METADATA, "value": b"\x00"}], VARIANT_STORAGE)[0]
                return pc.if_else(missing, null, base)
        return base

    def _struct(self, group: Group) -> pa.Array:
        """Return a struct of the target fields, each from its own columns or from the residual."""
        columns = [
            follow(group, (name,), _CastFinish(child, self.options))
            for name, child in zip(self.target.names, self.target.children, strict=True)
        ]
        fields = [self.target.arrow.field(index) for index in range(len(columns))]
        valid = group.typed_valid()
        mask = None if valid is None else from_numpy(~valid)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    def _list(self, group: Group) -> pa.Array:
        positions, offsets, elements = lists_of(group)
        inner = group.elements(elements, np.repeat(positions, np.diff(offsets)))
        elements = _CastFinish(self.target.children[0], self.options)(inner)
        lists = list_array(offsets, elements, np.ones(len(positions), np.bool_), self.target.arrow)
        return scatter(lists, positions, group.size)


def extract_variant(storage: pa.StructArray, path: AnyPath) -> VariantArray:
    """Return the values at a path without wildcards, of any layout; SQL NULL where the path is missing.

    The metadata is that of the rows: it may have keys that the extracted values do not use.
    """
    parsed = VariantPath.parse(path)
    if not parsed.segments:
        return VariantArray(storage)
    values = follow(storage_group(storage), parsed.segments, lambda values: values.storage())
    names, kind = values.type.names, values.type.field(1).type
    is_plain = names == ["metadata", "value"] and kind == pa.binary() and not values.field(1).null_count
    return trusted_array(values) if is_plain else VariantArray(values)
