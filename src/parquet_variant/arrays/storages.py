"""Conversions of storages between layouts, a batch at a time, and the columns of the drafts.

Owns the choice of the conversion by layout, and the conversion between the drafts and the final layout, whose kernels
do the work. Draft ``object`` has the same typed columns as the final layout under other names. Draft ``paths`` stores
in the one ``value`` at the top what the final layout stores in the ``value`` of every group, so that it is gathered
from the groups or distributed to them. The scalar reference converts columns that do not decide a value
(`NeedsReference`). Leaves the final layout to `final_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.final_columns import (
    NeedsReference,
    assembled_storage,
    decided_nodes,
    needs_reference_if,
    shredded_final,
    split_combined,
    unshredded_final,
    with_minimal_metadata,
)
from parquet_variant.arrays.parts import (
    MetadataParts,
    columns_of,
    metadata_of_all,
    metadata_parts,
    storage_of_variants,
    struct_of,
    valid_mask,
    variants_of,
)
from parquet_variant.arrays.value_positions import NameNumbers, ValuePositions
from parquet_variant.encoding.metadata import NULL_VALUE
from parquet_variant.kernels.arrow_buffers import Int64s, Mask, from_numpy, offsets_of, to_numpy
from parquet_variant.kernels.shredding.schema_table import schema_table
from parquet_variant.kernels.values.reading import NameTable, name_table
from parquet_variant.kernels.values.value_nodes import value_array
from parquet_variant.layouts.reference import rows as scalar
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import StorageNode, read_storage
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import Layout, OnConflict
from parquet_variant.types import MAX_OFFSET
from parquet_variant.types.forms import list_elements


def shredded_storage(storage: pa.StructArray, schema: ShreddingSchema, layout: Layout) -> pa.StructArray:
    """Return an unshredded storage shredded in any layout; ``"unshredded"`` returns the storage itself.

    Raises `MalformedVariantError` with the row.
    """
    if layout == "unshredded":
        return storage
    if layout == "final":
        return shredded_final(storage, schema)
    try:
        if layout == "draft-object" or schema.kind != "variant":
            return draft_of_final(shredded_final(storage, schema), schema, layout)
    except NeedsReference:
        pass
    return scalar.shredded_storage(variants_of(storage), schema, layout)


def unshredded_storage(storage: pa.StructArray, layout: Layout, on_conflict: OnConflict = "error") -> pa.StructArray:
    """Return a storage of any layout as an unshredded storage; the rows of a draft share one dictionary.

    Raises `ConflictError` or `MalformedVariantError` with row and path.
    """
    if layout == "unshredded":
        return storage
    if layout == "final":
        return unshredded_final(storage, on_conflict)
    try:
        final = final_of_draft(storage, layout)
        metadata = metadata_parts(final.field("metadata"))
        plain, refused = assembled_storage(final, schema_table(final.type), metadata)
        needs_reference_if(refused.any())
    except NeedsReference:
        return storage_of_variants(scalar.variants_of_storage(storage, on_conflict))
    return plain


def _list_parts(array: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the length of each list (0 for null), and the concatenated elements of all lists."""
    lengths = to_numpy(pc.list_value_length(array).fill_null(0)).astype(np.int64)
    return lengths, list_elements(array)


def _list_of(lengths: Int64s, elements: pa.Array, missing: pa.Array) -> pa.Array:
    """Return lists of elements, null where `missing` is true."""
    offsets = offsets_of(lengths)
    element = pa.field("element", elements.type)
    if len(elements) > MAX_OFFSET:
        return pa.LargeListArray.from_arrays(from_numpy(offsets), elements, type=pa.large_list(element), mask=missing)
    offsets = offsets.astype(np.int32)
    return pa.ListArray.from_arrays(from_numpy(offsets), elements, type=pa.list_(element), mask=missing)


def draft_of_final(storage: pa.StructArray, schema: ShreddingSchema, layout: Layout) -> pa.StructArray:
    """Return a storage of the final layout, without conflicts as `shred_variant` makes it, in a draft.

    For draft ``paths`` the schema must not be a single variant. Raises `NeedsReference` for values whose bytes only the
    scalar reference can rewrite.
    """
    columns = columns_of(storage)
    metadata = metadata_parts(columns["metadata"])
    names = name_table(metadata.dictionary)
    if layout == "draft-object":
        return _draft_group(columns, schema, metadata, names, layout, storage.is_null())
    residual, has_residual = _residual(columns, schema)
    has_residual &= valid_mask(storage)
    top = {name: pa.nulls(len(storage), pa.binary()) for name in ("value", "metadata")}
    if has_residual.any():
        group = struct_of({"metadata": columns["metadata"], **residual}, storage.is_null())
        plain, refused = assembled_storage(group, schema_table(_skeleton(schema)), metadata)
        needs_reference_if(refused.any())
        value = pc.if_else(from_numpy(has_residual), plain.field("value"), None)
        top["metadata"], top["value"] = with_minimal_metadata(ValuePositions.of_column(value, metadata), names)
    paths = _draft_group(columns, schema, metadata, names, layout, None)
    return struct_of({**top, "paths": paths}, storage.is_null())


def _draft_group(
    columns: dict[str, pa.Array],
    schema: ShreddingSchema,
    metadata: MetadataParts,
    names: NameTable,
    layout: Layout,
    missing: pa.Array | None,
) -> pa.Array:
    """Return a group of a draft, null where `missing` is true, or where a field has neither column."""
    typed: Any = columns.get("typed_value")
    nested = None
    if schema.element is not None:
        lengths, elements = _list_parts(typed)
        of_elements = metadata._replace(indices=np.repeat(metadata.indices, lengths))
        element = _draft_group(columns_of(elements), schema.element, of_elements, names, layout, None)
        nested = _list_of(lengths, element, typed.is_null())
    elif schema.kind == "object":
        groups, fields = columns_of(typed), {}
        for name, child in schema.fields:
            pair = columns_of(groups[name])
            is_empty = pc.and_(
                pair["value"].is_null(), pair["typed_value"].is_null() if "typed_value" in pair else True
            )
            fields[name] = _draft_group(pair, child, metadata, names, layout, is_empty)
        nested = struct_of(fields, typed.is_null())
    if nested is not None and layout == "draft-paths":
        return nested
    value = columns.get("value")
    if value is None or value.null_count == len(value):
        untyped = pa.nulls(len(metadata.indices), pa.binary())
    else:  # values with their own metadata
        untyped = pc.binary_join_element_wise(
            *with_minimal_metadata(ValuePositions.of_column(value, metadata), names), b""
        )
    draft = {"untyped_value": untyped}
    if nested is not None:
        draft["array" if schema.element is not None else "object"] = nested
    elif schema.type is not None:
        draft = {"typed_value": typed, **draft} if layout == "draft-paths" else {**draft, "typed_value": typed}
    return struct_of(draft, missing)


def _residual(columns: dict[str, pa.Array], schema: ShreddingSchema) -> tuple[dict[str, pa.Array], Mask]:
    """Return a group without the values of its leaves, and the mask of entries that have a residual."""
    if not schema.children():
        length = len(columns["value"])
        return {"value": pa.nulls(length, pa.binary())}, np.zeros(length, np.bool_)
    value, typed = columns["value"], columns["typed_value"]
    has_residual, is_typed = valid_mask(value), valid_mask(typed)
    if schema.element is not None:
        lengths, elements = _list_parts(typed)
        element, has_element = _residual(columns_of(elements), schema.element)
        ends = np.cumsum(lengths)
        residuals_before = np.concatenate([[0], np.cumsum(has_element)])
        in_elements = is_typed & (residuals_before[ends] > residuals_before[ends - lengths])
        lists = _list_of(lengths, struct_of(element), pa.array(~in_elements))
        return {"value": value, "typed_value": lists}, has_residual | in_elements
    fields = {}
    in_fields = np.zeros(len(has_residual), np.bool_)
    groups = columns_of(typed)
    for name, child in schema.fields:
        field, has_field = _residual(columns_of(groups[name]), child)
        fields[name] = struct_of(field)
        in_fields |= has_field
    has_residual |= in_fields & is_typed
    return {"value": value, "typed_value": struct_of(fields, pa.array(~(is_typed & has_residual)))}, has_residual


def _skeleton(node: ShreddingSchema | StorageNode) -> ShreddingSchema:
    """Return the schema with the same objects and arrays, and untyped leaves."""
    if node.element is not None:
        return ShreddingSchema.array(_skeleton(node.element))
    if node.fields:
        return ShreddingSchema.object({name: _skeleton(child) for name, child in dict(node.fields).items()})
    return ShreddingSchema.variant()


def final_of_draft(storage: pa.StructArray, layout: Layout) -> pa.StructArray:
    """Return a storage of a draft in the final layout, with one dictionary for all rows.

    Conflicts of draft ``object`` are left for `kernels.shredding.unshred` to find. Raises `NeedsReference` for groups
    of several shapes, without ``paths``, nested typed values, conflicts in ``paths``, and binaries that kernels refuse.
    """
    plan = read_storage(storage.type, layout)
    needs_reference_if(layout == "draft-paths" and storage.type.get_field_index("paths") < 0)
    # The binaries of the storage, in the order of the groups, to be rewritten with one dictionary; None without values.
    binaries: list[ValuePositions | None] = []
    names: set[str] = set()
    top = columns_of(storage) if layout == "draft-paths" else {}
    if "value" in top and top["value"].null_count < len(storage):
        parts = metadata_parts(top["metadata"])
        needs_reference_if(np.any((parts.indices < 0) & valid_mask(top["value"])))
        binaries.append(ValuePositions.of_column(top["value"], parts._replace(indices=np.maximum(parts.indices, 0))))
    has_residual, group = bool(binaries), top.get("paths", storage)
    _collect(group, plan, layout, binaries, names)
    spans = [binary for binary in binaries if binary is not None]
    table = NameNumbers(spans, sorted(names))
    metadata = metadata_of_all(table.values.cast(pa.large_string()).to_pylist(), len(storage))
    maps = iter(table.maps)
    values = (
        None if binary is None else value_array(*decided_nodes(binary, next(maps)), binary.valid) for binary in binaries
    )
    value = next(values) if has_residual else None
    columns = _final_group(group, plan, layout, values)
    if value is not None:
        residual = struct_of({"metadata": metadata, "value": value}, value.is_null())
        columns = _merged(columns, columns_of(shredded_final(residual, _skeleton(plan))), plan)
    return struct_of({"metadata": metadata, **columns}, storage.is_null())


def _parts(group: pa.Array, node: StorageNode, layout: Layout) -> tuple[dict[str, pa.Array], Any]:
    """Return the columns of a group, and the struct of its fields or the list of its elements."""
    if layout == "draft-paths" and not node.is_leaf:
        return {}, group
    columns = columns_of(group)
    return columns, columns.get("object", columns.get("array"))


def _collect(
    group: pa.Array, node: StorageNode, layout: Layout, binaries: list[ValuePositions | None], names: set[str]
) -> None:
    """Add the binaries of a group, and the names of its fields."""
    needs_reference_if((node.fields is not None) + (node.element is not None) + (node.typed is not None) > 1)
    needs_reference_if(node.typed is not None and pa.types.is_nested(node.typed))
    columns, nested = _parts(group, node, layout)
    if node.has_value:
        column = columns["untyped_value"]
        binaries.append(None if column.null_count == len(column) else split_combined(column))
    if node.fields is not None:
        names.update(node.fields)
        groups = columns_of(nested)
        for name, child in node.fields.items():
            _collect(groups[name], child, layout, binaries, names)
    elif node.element is not None:
        _collect(_list_parts(nested)[1], node.element, layout, binaries, names)


def _final_group(
    group: pa.Array, node: StorageNode, layout: Layout, values: Iterator[pa.Array | None]
) -> dict[str, pa.Array]:
    """Return the columns of a group in the final layout."""
    columns, nested = _parts(group, node, layout)
    value = next(values) if node.has_value else None
    final = {"value": pa.nulls(len(group), pa.binary()) if value is None else value}
    if node.fields is not None:
        groups = columns_of(nested)
        fields = {
            name: struct_of(_final_group(groups[name], child, layout, values)) for name, child in node.fields.items()
        }
        final["typed_value"] = struct_of(fields, nested.is_null())
    elif node.element is not None:
        lengths, elements = _list_parts(nested)
        element = struct_of(_final_group(elements, node.element, layout, values))
        final["typed_value"] = _list_of(lengths, element, nested.is_null())
    elif node.typed is not None:
        final["typed_value"] = columns["typed_value"]
    return final


def _merged(
    columns: dict[str, pa.Array], residual: dict[str, pa.Array], node: StorageNode, *, element: bool = False
) -> dict[str, pa.Array]:
    """Merge the residual at the top, shredded by the same schema, into the columns of ``paths``."""
    residual_value = residual["value"]
    has_value = valid_mask(residual_value)
    # The placeholder of an element that is stored completely in `paths`.
    is_placeholder = to_numpy(pc.equal(residual_value, NULL_VALUE).fill_null(False))
    if node.is_leaf:
        in_paths = valid_mask(columns["value"])
        if "typed_value" in columns:
            in_paths = in_paths | valid_mask(columns["typed_value"])
        needs_reference_if(np.any(in_paths & has_value & ~is_placeholder))
        return {**columns, "value": pc.if_else(from_numpy(in_paths), columns["value"], residual_value)}
    typed, residual_typed = columns["typed_value"], residual["typed_value"]
    in_paths, in_residual = valid_mask(typed), valid_mask(residual_typed)
    conflicts = in_paths & ~in_residual & has_value
    needs_reference_if(
        np.any(conflicts & ~is_placeholder) or (not element and node.fields is not None and np.any(conflicts))
    )
    value = pc.if_else(from_numpy(conflicts), None, residual_value)
    missing = from_numpy(~(in_paths | in_residual))
    if node.element is not None:
        lists = _merged_lists(typed, residual_typed, in_paths, in_residual, node.element)
        return {"value": value, "typed_value": lists}
    assert node.fields is not None
    groups, residual_groups = columns_of(typed), columns_of(residual_typed)
    fields = {
        name: struct_of(_merged(columns_of(groups[name]), columns_of(residual_groups[name]), child))
        for name, child in node.fields.items()
    }
    return {"value": value, "typed_value": struct_of(fields, missing)}


def _merged_lists(
    typed: pa.Array, residual: pa.Array, in_paths: Mask, in_residual: Mask, node: StorageNode
) -> pa.Array:
    lengths, elements = _list_parts(typed)
    residual_lengths, residual_elements = _list_parts(residual)
    needs_reference_if(np.any(in_paths & in_residual & (lengths != residual_lengths)))
    sizes = np.maximum(lengths, residual_lengths)
    merged = _merged(
        columns_of(_scatter_lists(elements, in_paths, lengths, sizes)),
        columns_of(_scatter_lists(residual_elements, in_residual, residual_lengths, sizes)),
        node,
        element=True,
    )
    return _list_of(sizes, struct_of(merged), from_numpy(~(in_paths | in_residual)))


def _scatter_lists(elements: pa.Array, is_list: Mask, lengths: Int64s, sizes: Int64s) -> pa.Array:
    """Return the elements, with nulls for the lists that exist only in the other column."""
    if np.array_equal(lengths, sizes):
        return elements
    starts = np.cumsum(lengths) - lengths
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    absent = np.repeat(~is_list, sizes)
    return elements.take(from_numpy(np.repeat(starts, sizes) + within, absent))
