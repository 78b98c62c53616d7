"""Extraction of one path from a storage struct, shredded or not, complete or with selected columns only.

Owns which shredded columns a target type needs at the end of a path, and extraction as Variant, which keeps shredded
columns and copies bytes together with the metadata of their row. `shredded_walk` follows the path, `slot_casts` casts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import in_offsets
from parquet_variant.arrays.parts import patched, scatter
from parquet_variant.arrays.variant_array import VariantArray, remembered
from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.encoding.metadata import EMPTY_METADATA
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.layouts.path_steps import ArrowGroup, Step, walk_path
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.ops.columns.column_slots import slots_of_column
from parquet_variant.ops.columns.shredded_walk import Group, follow, lists_of
from parquet_variant.ops.columns.slot_casts import CastOptions, Lossless, array_of_slots, list_array
from parquet_variant.ops.columns.target_type import result_type
from parquet_variant.ops.columns.value_positions import ValuePositions
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import PrimitiveId
from parquet_variant.types.forms import in_target_form, plain_form
from parquet_variant.types.path import AnyPath, VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE, Target, target_of

# A column with more metadata than this is not remembered, nor the id of each key in them.
_MOST_REMEMBERED_METADATA = 1024
_DRAFT_GROUPS = ("paths", "untyped_value", "object", "array")


def extract_path(
    storage: pa.StructArray,
    path: AnyPath,
    target: pa.DataType,
    *,
    safe: bool = True,
    zone: str = "UTC",
    lossless: Lossless = False,
) -> pa.Array:
    """Return the values at a path of a storage struct as an Arrow array.

    Only the columns of `columns_of_path` are read; the struct may lack all others. A missing ``value`` column counts as
    null in every row, so omit it only if it is known to be null.

    `storage`: the storage struct of a Variant column, in any layout; of the final layout with or without ``metadata``.
    `path`: the path of the values. Every ``[*]`` makes a list.
    `target`: the Arrow type of the values (of the elements of the innermost list, if there are wildcards).
    `safe`: whether a value that cannot be cast is an error; otherwise it becomes null.
    `lossless`: whether only values count that have the type already (see `get_variant_element`); nothing is cast.
    Returns one entry per row: null where the row is null, the path is missing or the value is Variant null (unless the
    target is a Variant). Raises `CastError` if ``safe`` and a value cannot be cast, with its row and the path;
    `MalformedVariantError` if bytes that are read are malformed; `SchemaError` if the struct is not a Variant storage.

    >>> import parquet_variant as pv
    >>> array = pv.VariantArray.from_pylist([{"a": [1, 2]}, {"a": "x"}, None])
    >>> extract_path(array.storage, "$.a[1]", pa.int64()).to_pylist()
    [2, None, None]
    """
    parsed = VariantPath.parse(path)
    return extract_from(storage_group(storage), parsed, target, safe=safe, zone=zone, lossless=lossless)


def storage_group(storage: pa.StructArray) -> Group:
    """Return the top-level values of a storage struct in any layout, for `extract_from`.

    Raises `SchemaError` if the struct is not a Variant storage.
    """
    return Group.of_storage(in_final_layout(storage))


def array_group(array: VariantArray) -> Group:
    """Return the top-level values of an array, for `extract_from`.

    The array remembers them, so that a column on several paths is checked once.
    """
    storage = array.storage
    index = storage.type.get_field_index("metadata")
    is_encoded = index >= 0 and pa.types.is_dictionary(storage.type.field(index).type)
    if array.layout != "final" or not is_encoded or len(storage.field(index).dictionary) > _MOST_REMEMBERED_METADATA:
        return storage_group(storage)
    return remembered(array, "group", partial(Group.of_storage, is_checked=array.is_checked))


def extract_from(
    values: Group | ValuePositions,
    parsed: VariantPath,
    target: pa.DataType,
    *,
    safe: bool,
    zone: str,
    lossless: Lossless = False,
) -> pa.Array:
    """Return the values at a path, as `extract_path` does.

    Several paths can be extracted from the same `values`, so that their common work is done once.
    """
    target_of(target)  # an error names the type itself, not its plain form
    finish = _CastFinish(target_of(plain_form(target)), CastOptions(zone_of(zone), safe, str(parsed), lossless))
    return in_target_form(follow(values, parsed.segments, finish), result_type(target, parsed))


def in_final_layout(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage in the final layout, without views and run ends; the draft layouts are unshredded.

    Raises `SchemaError` if the struct is not a Variant storage.
    """
    names = {field.name for field in storage.type}
    if names.isdisjoint(_DRAFT_GROUPS) and names & {"value", "typed_value"}:
        return in_offsets(storage)
    return VariantArray(storage).to_unshredded().storage


def columns_of_path(storage: pa.StructType, path: AnyPath) -> list[tuple[str, ...]]:
    """Return the leaf columns of a storage struct that `extract_path` reads for a path, as names from the top.

    The names are Arrow's (a list's element by its field name). Metadata comes first, and only if a ``value`` column
    follows. The draft layouts need all columns.

    >>> typed = pa.struct({"a": pa.struct({"value": pa.binary(), "typed_value": pa.int64()})})
    >>> storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": typed})
    >>> columns_of_path(storage, "$.a")
    [('metadata',), ('typed_value', 'a', 'value'), ('typed_value', 'a', 'typed_value')]
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


@dataclass(frozen=True)
class _CastFinish:
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
        return _with_required_nulls(base, group) if self.target.family == "variant" and group.is_required else base

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


def _with_required_nulls(variants: pa.Array, group: Group) -> pa.Array:
    """Return Variants with Variant null where neither column is set, in a group that requires a value."""
    missing = variants.is_null() if group.present is None else pc.and_(variants.is_null(), from_numpy(group.present))
    if not missing.true_count:
        return variants
    null = pa.array([{"metadata": EMPTY_METADATA, "value": b"\x00"}], VARIANT_STORAGE)[0]
    return pc.if_else(missing, null, variants)


def extract_variant(storage: pa.StructArray, path: AnyPath) -> VariantArray:
    """Return the values at a path without wildcards, of any layout; SQL NULL where the path is missing.

    The metadata is that of the rows: it may have keys that the extracted values do not use. Raises
    `MalformedVariantError` if bytes that are read are malformed; `SchemaError` if the struct is not a Variant storage.

    >>> import parquet_variant as pv
    >>> extract_variant(pv.parse_json(['{"a": null}', '{"a": [1]}', '[]']).storage, "$.a")
    <VariantArray unshredded, 3 rows: [null, [1], NULL]>
    """
    parsed = VariantPath.parse(path)
    if not parsed.segments:
        return VariantArray(storage)
    return VariantArray(follow(storage_group(storage), parsed.segments, lambda values: values.storage()))
