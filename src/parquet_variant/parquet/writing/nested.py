"""Variants inside Arrow data: at the top, in structs, lists and maps.

Owns finding them by their tag or schema path, and rebuilding what encloses them around new storages. Leaves what is
done to a storage to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA, is_named
from parquet_variant.encoding.cast.forms import with_fields

# A Variant's place in a file: names of the schema path, list and map levels included.
Place = tuple[str, ...]
Convert = Callable[[pa.StructArray, Place], pa.StructArray]


def is_tagged(field: pa.Field) -> bool:
    """Whether an Arrow field says that it is a Variant: by metadata, or by an extension type that a process registered.

    That type must not stay: pyarrow's Parquet writer crashes on it.
    """
    return is_named(field)


def tagged(field: pa.Field, kind: pa.DataType) -> pa.Field:
    """The field with another type, marked as a Variant; what else its metadata says (a field id) stays."""
    return field.with_type(kind).with_metadata({**(field.metadata or {}), **EXTENSION_METADATA})


def map_variants(table: pa.Table, convert: Convert, named: Set[Place] = frozenset()) -> pa.Table:
    """The table with every Variant storage in it replaced by another one of the same length.

    `table`: any table. Variants are the structs whose fields carry the extension name.
    `convert`: gives the new storage for a storage and its place.
    `named`: places of structs that are Variants though their fields do not say so.
    """
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        if not _holds(field, (field.name,), named):
            fields.append(field)
            columns.append(column)
            continue
        chunks = column.chunks or [pa.nulls(0, column.type)]
        done = [_mapped(field, chunk, (field.name,), convert, named) for chunk in chunks]
        fields.append(done[0][0])
        columns.append(pa.chunked_array([array for _, array in done]))
    return pa.table(columns, schema=pa.schema(fields))


def _below(field: pa.Field, place: Place) -> list[tuple[pa.Field, Place]]:
    """What a struct, list or map holds, and where that stands in a file."""
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
        return is_tagged(field)  # even if it is no struct: that is an error, and a crash where it is passed on
    return bool(pa.types.is_struct(field.type)) and (is_tagged(field) or place in named)


def _holds(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    """Whether a field is a Variant or has one below: then, and only then, is it rebuilt."""
    return _is_variant(field, place, named) or any(_holds(*below, named) for below in _below(field, place))


def _mapped(
    field: pa.Field, array: pa.Array, place: Place, convert: Convert, named: Set[Place]
) -> tuple[pa.Field, pa.Array]:
    if _is_variant(field, place, named):
        array = convert(array.storage if isinstance(array.type, pa.BaseExtensionType) else array, place)
        return tagged(field, array.type), array
    below = _below(field, place)
    if not any(_holds(*each, named) for each in below):
        return field, array
    kind = array.type
    if pa.types.is_struct(kind):
        children = [array.field(number) for number in range(kind.num_fields)]
    else:
        children = [array.items if pa.types.is_map(kind) else array.values]
    done = [_mapped(child, part, at, convert, named) for (child, at), part in zip(below, children, strict=True)]
    if pa.types.is_struct(kind):
        mask = array.is_null() if array.null_count else None
        array = pa.StructArray.from_arrays([part for _, part in done], fields=[child for child, _ in done], mask=mask)
        return field.with_type(array.type), array
    child, part = done[0]
    if pa.types.is_map(kind):
        mapped_type = pa.map_(kind.key_field, child)
        part = pa.StructArray.from_arrays([array.keys, part], fields=[kind.key_field, child])
    else:
        mapped_type = with_fields(kind, lambda _: child)
    # The same offsets and validity over other elements.
    buffers = array.buffers()[: mapped_type.num_buffers]
    array = pa.Array.from_buffers(mapped_type, len(array), buffers, array.null_count, array.offset, [part])
    return field.with_type(mapped_type), array
