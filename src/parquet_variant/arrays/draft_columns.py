"""Conversions between the drafts and the final layout, column by column.

Draft ``object`` has the same typed columns as the final layout under other names. Draft ``paths`` stores in the one
``value`` at the top what the final layout stores in the ``value`` of every group, so that it is gathered from the
groups or distributed to them. Leaves rows that the columns do not decide to the scalar reference (`NeedsReference`),
and calling the kernels that rewrite values to `final_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.final_columns import (
    NeedsReference,
    Spans,
    assembled_storage,
    dictionary_names,
    needs_reference_if,
    remapped,
    shredded_final,
    spans_of,
    split_combined,
    with_minimal_metadata,
)
from parquet_variant.arrays.parts import columns_of, metadata_of_all, metadata_parts
from parquet_variant.encoding.metadata import NULL_VALUE
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy, offsets_of
from parquet_variant.kernels.shredding.schema_table import schema_table
from parquet_variant.kernels.values.name_tables import NameTable, name_table
from parquet_variant.layouts.draft_storages import ObjectNode, PathsNode, object_plan, paths_plan
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import list_elements


def struct_of(columns: dict[str, pa.Array], missing: pa.Array | None) -> pa.StructArray:
    """Return a group of optional columns, null where `missing` is true."""
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=missing)


def list_parts(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the length of each list (0 for null), and the concatenated elements of all lists."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths, list_elements(array)


def list_of(lengths: Int64s, elements: pa.Array, missing: pa.Array) -> pa.Array:
    """Return lists of elements, null where `missing` is true."""
    offsets = offsets_of(lengths)
    element = pa.field("element", elements.type)
    if len(elements) > MAX_OFFSET:
        return pa.LargeListArray.from_arrays(from_numpy(offsets), elements, type=pa.large_list(element), mask=missing)
    offsets = offsets.astype(np.int32)
    return pa.ListArray.from_arrays(from_numpy(offsets), elements, type=pa.list_(element), mask=missing)


def combined(value: pa.Array | None, rows: Int64s, names: NameTable) -> pa.Array:
    """Return the ``untyped_value`` of a ``value`` column: values with their own metadata."""
    if value is None or value.null_count == len(value):
        return pa.nulls(len(rows), pa.binary())
    return pc.binary_join_element_wise(*with_minimal_metadata(spans_of(value, rows), names), b"")


class Binaries:
    """The binaries of a storage, in the order in which they are added, to be rewritten with one dictionary."""

    def __init__(self) -> None:
        self._spans: list[tuple[Spans, list[list[str]]] | int] = []

    def add_combined(self, column: pa.Array) -> None:
        """Add an ``untyped_value`` column."""
        self._append(len(column), None if column.null_count == len(column) else split_combined(column))

    def add_pair(self, metadata: pa.Array, value: pa.Array) -> None:
        """Add a ``value`` column with its ``metadata``."""
        if value.null_count == len(value):
            self._append(len(value), None)
            return
        parts = metadata_parts(metadata)
        needs_reference_if(np.any((parts.indices < 0) & value.is_valid().to_numpy(zero_copy_only=False)))
        self._append(len(value), (spans_of(value, np.maximum(parts.indices, 0).astype(np.int64)), parts.dictionary))

    def _append(self, length: int, split: tuple[Spans, pa.BinaryArray] | None) -> None:
        self._spans.append(length if split is None else (split[0], dictionary_names(split[1])))

    def names(self) -> set[str]:
        """Return all names in all dictionaries."""
        return {name for spans in self._spans if not isinstance(spans, int) for names in spans[1] for name in names}

    def values(self, ids: dict[str, int]) -> Iterator[pa.Array]:
        """Yield the columns as values with the ids of the common dictionary."""
        for spans in self._spans:
            if isinstance(spans, int):
                yield pa.nulls(spans, pa.binary())
            else:
                yield remapped(spans[0], [[ids[name] for name in names] for names in spans[1]])


def final_storage(
    missing: pa.Array,
    names: set[str],
    binaries: Binaries,
    build: Callable[[Iterator[pa.Array], pa.Array], dict[str, pa.Array]],
) -> pa.StructArray:
    """Return a storage of the final layout whose rows share one dictionary.

    `missing`: the mask of SQL NULL rows.
    `names`: the names of shredded fields.
    `binaries`: all binaries of the draft's storage.
    `build`: makes the columns other than ``metadata`` from the binaries as values and the metadata column.
    """
    all_names = sorted(names | binaries.names())
    metadata = metadata_of_all(all_names, len(missing))
    columns = build(binaries.values({name: number for number, name in enumerate(all_names)}), metadata)
    return struct_of({"metadata": metadata, **columns}, missing)


def draft_object_of_final(storage: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return a storage of the final layout, without conflicts as `shred_variant` makes it, in draft ``object``.

    Raises `NeedsReference` for values whose bytes only the scalar reference can rewrite.
    """
    columns = columns_of(storage)
    metadata = metadata_parts(columns["metadata"])
    group = _object_groups(columns, schema, metadata.indices.astype(np.int64), name_table(metadata.dictionary))
    return struct_of(group, storage.is_null())


def _object_groups(
    columns: dict[str, pa.Array], schema: ShreddingSchema, rows: Int64s, names: NameTable
) -> dict[str, pa.Array]:
    draft = {"untyped_value": combined(columns.get("value"), rows, names)}
    if schema.kind == "variant":
        return draft
    typed = columns["typed_value"]
    if schema.kind == "object":
        groups = columns_of(typed)
        fields = {}
        for name, child in schema.fields:
            pair = columns_of(groups[name])
            missing = pc.and_(pair["value"].is_null(), pair["typed_value"].is_null() if "typed_value" in pair else True)
            fields[name] = struct_of(_object_groups(pair, child, rows, names), missing)
        draft["object"] = struct_of(fields, typed.is_null())
    elif schema.element is not None:
        lengths, elements = list_parts(typed)
        element = _object_groups(columns_of(elements), schema.element, np.repeat(rows, lengths), names)
        draft["array"] = list_of(lengths, struct_of(element, None), typed.is_null())
    else:
        draft["typed_value"] = typed
    return draft


def final_of_draft_object(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage of draft ``object`` in the final layout, with one dictionary for all rows.

    Conflicts are preserved for `kernels.shredding.unshred` to find. Raises `NeedsReference` for groups of several
    shapes, and for binaries that only the scalar reference can read.
    """
    plan = object_plan(storage.type)
    binaries, names = Binaries(), set[str]()
    _collect_object(storage, plan, binaries, names)
    return final_storage(storage.is_null(), names, binaries, lambda values, _: _object_final(storage, plan, values))


def _collect_object(group: pa.StructArray, node: ObjectNode, binaries: Binaries, names: set[str]) -> None:
    needs_reference_if((node.fields is not None) + (node.element is not None) + (node.typed is not None) > 1)
    columns = columns_of(group)
    if node.has_untyped:
        binaries.add_combined(columns["untyped_value"])
    if node.fields is not None:
        names.update(node.fields)
        groups = columns_of(columns["object"])
        for name, child in node.fields.items():
            _collect_object(groups[name], child, binaries, names)
    elif node.element is not None:
        _collect_object(list_parts(columns["array"])[1], node.element, binaries, names)


def _object_final(group: pa.StructArray, node: ObjectNode, values: Iterator[pa.Array]) -> dict[str, pa.Array]:
    columns = columns_of(group)
    final = {"value": next(values)} if node.has_untyped else {}
    if node.fields is not None:
        groups = columns_of(columns["object"])
        fields = {
            name: struct_of(_object_final(groups[name], child, values), None) for name, child in node.fields.items()
        }
        final["typed_value"] = struct_of(fields, columns["object"].is_null())
    elif node.element is not None:
        lengths, elements = list_parts(columns["array"])
        element = struct_of(_object_final(elements, node.element, values), None)
        final["typed_value"] = list_of(lengths, element, columns["array"].is_null())
    elif node.typed is not None:
        final["typed_value"] = columns["typed_value"]
    return final


# Bytes, because making a pyarrow scalar imports pandas if it is installed.


def _valid_mask(column: pa.Array) -> Mask:
    return column.is_valid().to_numpy(zero_copy_only=False)


# ---- final to draft paths


def draft_paths_of_final(storage: pa.StructArray, schema: ShreddingSchema) -> pa.StructArray:
    """Return a storage of the final layout, without conflicts as `shred_variant` makes it, in draft ``paths``.

    The schema must not be a single variant. Raises `NeedsReference` for values whose bytes only the scalar reference
    can rewrite.
    """
    columns = columns_of(storage)
    metadata = metadata_parts(columns["metadata"])
    names = name_table(metadata.dictionary)
    rows = metadata.indices.astype(np.int64)
    top = _top_residual(columns, storage.is_null(), schema, rows, names)
    return struct_of({**top, "paths": _paths(columns, schema, rows, names)}, storage.is_null())


def _paths(
    columns: dict[str, pa.Array], schema: ShreddingSchema, rows: Int64s, names: NameTable, *, field: bool = False
) -> pa.Array:
    if schema.kind == "object":
        typed = columns["typed_value"]
        groups = columns_of(typed)
        fields = {
            name: _paths(columns_of(groups[name]), child, rows, names, field=True) for name, child in schema.fields
        }
        return struct_of(fields, typed.is_null())
    if schema.element is not None:
        typed = columns["typed_value"]
        lengths, elements = list_parts(typed)
        element = _paths(columns_of(elements), schema.element, np.repeat(rows, lengths), names)
        return list_of(lengths, element, typed.is_null())
    leaf = {} if schema.type is None else {"typed_value": columns["typed_value"]}
    leaf["untyped_value"] = combined(columns.get("value"), rows, names)
    missing = pc.and_(columns["value"].is_null(), leaf["typed_value"].is_null() if schema.type is not None else True)
    return struct_of(leaf, missing if field else None)


def _top_residual(
    columns: dict[str, pa.Array], missing: pa.Array, schema: ShreddingSchema, rows: Int64s, names: NameTable
) -> dict[str, pa.Array]:
    """Return the top-level ``value`` and ``metadata``: the residuals of all groups."""
    group, has_residual = _residual(columns, schema)
    has_residual &= ~missing.to_numpy(zero_copy_only=False)
    if not has_residual.any():
        return {name: pa.nulls(len(has_residual), pa.binary()) for name in ("value", "metadata")}
    storage = struct_of({"metadata": columns["metadata"], **group}, missing)
    plain, refused = assembled_storage(storage, schema_table(_skeleton(schema)), metadata_parts(columns["metadata"]))
    needs_reference_if(refused.any())
    value = pc.if_else(pa.array(has_residual), plain.field("value"), None)
    minimal_metadata, value = with_minimal_metadata(spans_of(value, rows), names)
    return {"value": value, "metadata": minimal_metadata}


def _residual(columns: dict[str, pa.Array], schema: ShreddingSchema) -> tuple[dict[str, pa.Array], Mask]:
    """Return a group without the values of its leaves, and the mask of entries that have a residual."""
    if not schema.children():
        length = len(columns["value"])
        return {"value": pa.nulls(length, pa.binary())}, np.zeros(length, np.bool_)
    value, typed = columns["value"], columns["typed_value"]
    has_residual, is_typed = _valid_mask(value), _valid_mask(typed)
    if schema.element is not None:
        lengths, elements = list_parts(typed)
        element, has_element = _residual(columns_of(elements), schema.element)
        ends = np.cumsum(lengths)
        residuals_before = np.concatenate([[0], np.cumsum(has_element)])
        in_elements = is_typed & (residuals_before[ends] > residuals_before[ends - lengths])
        lists = list_of(lengths, struct_of(element, None), pa.array(~in_elements))
        return {"value": value, "typed_value": lists}, has_residual | in_elements
    fields = {}
    in_fields = np.zeros(len(has_residual), np.bool_)
    groups = columns_of(typed)
    for name, child in schema.fields:
        field, has_field = _residual(columns_of(groups[name]), child)
        fields[name] = struct_of(field, None)
        in_fields |= has_field
    has_residual |= in_fields & is_typed
    return {"value": value, "typed_value": struct_of(fields, pa.array(~(is_typed & has_residual)))}, has_residual


def _skeleton(node: ShreddingSchema | PathsNode) -> ShreddingSchema:
    """Return the schema with the same objects and arrays, and untyped leaves."""
    if node.element is not None:
        return ShreddingSchema.array(_skeleton(node.element))
    if node.kind == "object":
        return ShreddingSchema.object({name: _skeleton(child) for name, child in dict(node.fields).items()})
    return ShreddingSchema.variant()


# ---- draft paths to final


def final_of_draft_paths(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage of draft ``paths`` in the final layout, with one dictionary for all rows.

    Raises `NeedsReference` for storages without ``paths`` or with nested typed values, for columns that conflict, and
    for binaries that only the scalar reference can read.
    """
    plan = paths_plan(storage.type)
    if plan is None:
        raise NeedsReference
    top = columns_of(storage)
    binaries, names = Binaries(), set[str]()
    if "value" in top:
        binaries.add_pair(top["metadata"], top["value"])
    _collect_paths(top["paths"], plan, binaries, names)

    def build(values: Iterator[pa.Array], metadata: pa.Array) -> dict[str, pa.Array]:
        value = next(values) if "value" in top else pa.nulls(len(storage), pa.binary())
        final = _paths_final(top["paths"], plan, values)
        if value.null_count == len(value):
            return final
        residual = struct_of({"metadata": metadata, "value": value}, value.is_null())
        return _merged(final, columns_of(shredded_final(residual, _skeleton(plan))), plan)

    return final_storage(storage.is_null(), names, binaries, build)


def _collect_paths(group: pa.Array, node: PathsNode, binaries: Binaries, names: set[str]) -> None:
    if node.element is not None:
        _collect_paths(list_parts(group)[1], node.element, binaries, names)
        return
    columns = columns_of(group)
    if node.kind == "object":
        names.update(node.fields)
        for name, child in node.fields.items():
            _collect_paths(columns[name], child, binaries, names)
        return
    needs_reference_if(node.typed is not None and pa.types.is_nested(node.typed))
    if node.has_untyped:
        binaries.add_combined(columns["untyped_value"])


def _paths_final(group: pa.Array, node: PathsNode, values: Iterator[pa.Array]) -> dict[str, pa.Array]:
    none = pa.nulls(len(group), pa.binary())
    if node.element is not None:
        lengths, elements = list_parts(group)
        element = struct_of(_paths_final(elements, node.element, values), None)
        return {"value": none, "typed_value": list_of(lengths, element, group.is_null())}
    columns = columns_of(group)
    if node.kind == "object":
        fields = {
            name: struct_of(_paths_final(columns[name], child, values), None) for name, child in node.fields.items()
        }
        return {"value": none, "typed_value": struct_of(fields, group.is_null())}
    final = {"value": next(values) if node.has_untyped else none}
    return final if node.typed is None else {**final, "typed_value": columns["typed_value"]}


def _merged(
    columns: dict[str, pa.Array], residual: dict[str, pa.Array], node: PathsNode, *, element: bool = False
) -> dict[str, pa.Array]:
    """Merge the residual at the top, shredded by the same schema, into the columns of ``paths``."""
    residual_value = residual["value"]
    has_value = _valid_mask(residual_value)
    # The placeholder of an element that is stored completely in `paths`.
    is_placeholder = pc.equal(residual_value, NULL_VALUE).fill_null(False).to_numpy(zero_copy_only=False)
    if node.kind == "leaf":
        in_paths = _valid_mask(columns["value"])
        if "typed_value" in columns:
            in_paths = in_paths | _valid_mask(columns["typed_value"])
        needs_reference_if(np.any(in_paths & has_value & ~is_placeholder))
        return {**columns, "value": pc.if_else(pa.array(in_paths), columns["value"], residual_value)}
    typed, residual_typed = columns["typed_value"], residual["typed_value"]
    in_paths, in_residual = _valid_mask(typed), _valid_mask(residual_typed)
    conflicts = in_paths & ~in_residual & has_value
    needs_reference_if(
        np.any(conflicts & ~is_placeholder) or (not element and node.kind == "object" and np.any(conflicts))
    )
    value = pc.if_else(pa.array(conflicts), None, residual_value)
    missing = pa.array(~(in_paths | in_residual))
    if node.element is not None:
        lists = _merged_lists(typed, residual_typed, in_paths, in_residual, node.element)
        return {"value": value, "typed_value": lists}
    groups, residual_groups = columns_of(typed), columns_of(residual_typed)
    fields = {
        name: struct_of(_merged(columns_of(groups[name]), columns_of(residual_groups[name]), child), None)
        for name, child in node.fields.items()
    }
    return {"value": value, "typed_value": struct_of(fields, missing)}


def _merged_lists(typed: pa.Array, residual: pa.Array, in_paths: Mask, in_residual: Mask, node: PathsNode) -> pa.Array:
    lengths, elements = list_parts(typed)
    residual_lengths, residual_elements = list_parts(residual)
    needs_reference_if(np.any(in_paths & in_residual & (lengths != residual_lengths)))
    sizes = np.maximum(lengths, residual_lengths)
    merged = _merged(
        columns_of(_scatter_lists(elements, in_paths, lengths, sizes)),
        columns_of(_scatter_lists(residual_elements, in_residual, residual_lengths, sizes)),
        node,
        element=True,
    )
    return list_of(sizes, struct_of(merged, None), pa.array(~(in_paths | in_residual)))


def _scatter_lists(elements: pa.Array, is_list: Mask, lengths: Int64s, sizes: Int64s) -> pa.Array:
    """Return the elements, with nulls for the lists that exist only in the other column."""
    if np.array_equal(lengths, sizes):
        return elements
    starts = np.cumsum(lengths) - lengths
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    absent = np.repeat(~is_list, sizes)
    return elements.take(pa.array(np.repeat(starts, sizes) + within, mask=absent))
