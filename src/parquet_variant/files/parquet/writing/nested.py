"""Variants inside Arrow data: at the top level, and in structs, lists and maps.

Owns finding them by extension name or schema path, and rebuilding the enclosing columns around new storages. Leaves the
conversion of a storage to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.types.forms import with_fields

# The schema path of a Variant in a file, including list and map levels.
Place = tuple[str, ...]
Convert = Callable[[pa.StructArray, Place], pa.StructArray]


def tagged(field: pa.Field, kind: pa.DataType) -> pa.Field:
    """Return the field with another type and the extension name; other metadata, such as a field id, is kept."""
    return field.with_type(kind).with_metadata({**(field.metadata or {}), **EXTENSION_METADATA})


def map_variants(table: pa.Table, convert: Convert, named: Set[Place] = frozenset()) -> pa.Table:
    """Return the table with every Variant storage converted to another one of the same length.

    `table`: any table. Variants are structs whose fields have the extension name.
    `convert`: returns the new storage for a storage and its place.
    `named`: places of structs that are Variants although their fields have no extension name.
    """
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if not _contains_variant(field, (field.name,), named):
            fields.append(field)
            columns.append(column)
            continue
        chunks = column.chunks or [pa.nulls(0, column.type)]
        converted = [_convert_variants(field, chunk, (field.name,), convert, named) for chunk in chunks]
        fields.append(converted[0][0])
        columns.append(pa.chunked_array([array for _, array in converted]))
    return pa.table(columns, schema=pa.schema(fields))


def _children(field: pa.Field, place: Place) -> list[tuple[pa.Field, Place]]:
    """Return the fields of a struct, list or map, with their places in a file."""
    kind = field.type
    if pa.types.is_struct(kind):
        return [(child, (*place, child.name)) for child in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [(kind.value_field, (*place, "list", "element"))]
    if pa.types.is_map(kind):
        return [(kind.item_field, (*place, "key_value", "value"))]
    return []


def _is_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return is_variant_field(field)  # even if it is not a struct: that is an error, which pyarrow would crash on
    return bool(pa.types.is_struct(field.type)) and (is_variant_field(field) or place in named)


def _contains_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    """Return whether a field is or contains a Variant, so that it must be rebuilt."""
    return _is_variant(field, place, named) or any(
        _contains_variant(*child, named) for child in _children(field, place)
    )


def _convert_variants(
    field: pa.Field, array: pa.Array, place: Place, convert: Convert, named: Set[Place]
) -> tuple[pa.Field, pa.Array]:
    if _is_variant(field, place, named):
        array = convert(array.storage if isinstance(array.type, pa.BaseExtensionType) else array, place)
        return tagged(field, array.type), array
    places = _children(field, place)
    if not any(_contains_variant(*child, named) for child in places):
        return field, array
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(number) for number in range(kind.num_fields)]
    else:
        children = [array.items if pa.types.is_map(kind) else array.values]
    converted = [
        _convert_variants(child, part, at, convert, named) for (child, at), part in zip(places, children, strict=True)
    ]
    if pa.types.is_struct(kind):
        mask = array.is_null() if array.null_count else None
        array = pa.StructArray.from_arrays(
            [part for _, part in converted], fields=[child for child, _ in converted], mask=mask
        )
        return field.with_type(array.type), array
    child, part = converted[0]
    if pa.types.is_map(kind):
        mapped_type = pa.map_(kind.key_field, child)
        part = pa.StructArray.from_arrays([array.keys, part], fields=[kind.key_field, child])
    else:
        mapped_type = with_fields(kind, lambda _: child)
    # Keep offsets and validity, and replace the elements.
    buffers = array.buffers()[: mapped_type.num_buffers]
    array = pa.Array.from_buffers(mapped_type, len(array), buffers, array.null_count, array.offset, [part])
    return field.with_type(mapped_type), array
