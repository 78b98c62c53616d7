"""Variants inside Arrow data, and the leaf columns of Arrow data that is written.

Owns finding Variants by extension name or schema path, rebuilding the enclosing columns around new storages, the paths
of leaves, the Arrow types that a reader recovers without an Arrow schema, and the search for NaN. Leaves the conversion
of a storage to the caller, and writing to `writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA, is_variant_field
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import list_elements, with_fields

# The key of a field id in the metadata of an Arrow field.
FIELD_ID = b"PARQUET:field_id"
_RECOVERED = (
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.date32(),
    pa.time64("us"),
    pa.uuid(),
    pa.dictionary(pa.int32(), pa.binary()),
)


# The schema path of a Variant or leaf in a file, including list and map levels.
Place = tuple[str, ...]
Convert = Callable[[pa.StructArray, Place], pa.StructArray]


def _parts(field: pa.Field, place: Place) -> list[tuple[pa.Field, Place]]:
    """Return the fields of a struct, list or map, with their places in a file; nothing for a leaf."""
    kind = field.type
    if pa.types.is_struct(kind):
        return [(child, (*place, child.name)) for child in kind]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [(kind.value_field, (*place, "list", "element"))]
    if pa.types.is_map(kind):
        return [(kind.key_field, (*place, "key_value", "key")), (kind.item_field, (*place, "key_value", "value"))]
    return []


def leaf_paths(field: pa.Field, path: Place) -> list[Place]:
    """Return the schema paths of the leaf columns of a field."""
    parts = _parts(field, path)
    return [leaf for part in parts for leaf in leaf_paths(*part)] if parts else [path]


def is_recovered(kind: pa.DataType) -> bool:
    """Return whether the Arrow type follows from the Parquet type, so that the file needs no Arrow schema."""
    if pa.types.is_struct(kind):
        return all(is_recovered(child.type) for child in kind)
    if pa.types.is_list(kind):
        return is_recovered(kind.value_type)
    if pa.types.is_timestamp(kind):
        return kind.unit in ("us", "ns") and kind.tz in (None, "UTC")
    number = pa.types.is_integer(kind) or pa.types.is_decimal128(kind) or kind in (pa.float32(), pa.float64())
    return bool(number) or kind in _RECOVERED


def stored_field(field: pa.Field) -> pa.Field:
    """Return a field of the Arrow schema to store in a file, without dictionaries, which other readers do not expect.

    Field ids are kept, because readers of Rust take them from this schema: without them, Sail reads null.
    """
    kind = field.type
    if pa.types.is_dictionary(kind) and pa.types.is_binary(kind.value_type):
        kind = kind.value_type
    ids = {name: value for name, value in (field.metadata or {}).items() if name == FIELD_ID}
    return pa.field(field.name, with_fields(kind, stored_field), field.nullable, ids or None)


def null_rows(table: pa.Table, place: tuple[str, ...]) -> int | None:
    """Return the number of rows where the struct at a place or an ancestor is null; None inside a list or map."""
    column = table.column(place[0])
    for name in place[1:]:
        if not pa.types.is_struct(column.type):
            return None
        column = pc.struct_field(column, [name])
    return int(column.null_count)


def leaf_arrays(array: pa.Array, path: str = "") -> Iterator[tuple[str, pa.Array]]:
    """Yield the leaf columns of an array with their dotted paths."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from leaf_arrays(array.storage, path)
    elif pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            yield from leaf_arrays(array.field(index), f"{path}.{kind.field(index).name}")
    elif pa.types.is_map(kind):
        yield from leaf_arrays(array.keys, f"{path}.key_value.key")
        yield from leaf_arrays(array.items, f"{path}.key_value.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from leaf_arrays(list_elements(array), f"{path}.list.element")
    else:
        yield path, array


def only_leaf(array: pa.Array) -> pa.Array:
    """Return the only leaf that was read of a nested column; lists are flattened, and missing parents are null."""
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            array = array.flatten()[0]
        elif pa.types.is_map(array.type):
            array = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        else:
            array = list_elements(array)
    return array


def may_have_nan(kind: pa.DataType) -> bool:
    """Return whether a type is, or contains, a floating-point type."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return pa.types.is_floating(kind) or any(may_have_nan(kind.field(at).type) for at in range(kind.num_fields))


def has_nan(array: pa.Array) -> bool:
    """Return whether a column contains, or may contain, a NaN: unusual lists and encodings are not searched."""
    for _, leaf in leaf_arrays(array):
        values = leaf.dictionary if pa.types.is_dictionary(leaf.type) else leaf
        is_float = pa.types.is_floating(values.type)
        if pc.any(pc.is_nan(values)).as_py() if is_float else may_have_nan(values.type):
            return True
    return False


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


def _is_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    if isinstance(field.type, pa.BaseExtensionType):
        return is_variant_field(field)  # even if it is not a struct: that is an error, which pyarrow would crash on
    return bool(pa.types.is_struct(field.type)) and (is_variant_field(field) or place in named)


def _contains_variant(field: pa.Field, place: Place, named: Set[Place]) -> bool:
    """Return whether a field is or contains a Variant, so that it must be rebuilt."""
    return _is_variant(field, place, named) or any(_contains_variant(*part, named) for part in _parts(field, place))


def _convert_variants(
    field: pa.Field, array: pa.Array, place: Place, convert: Convert, named: Set[Place]
) -> tuple[pa.Field, pa.Array]:
    if _is_variant(field, place, named):
        array = convert(array.storage if isinstance(array.type, pa.BaseExtensionType) else array, place)
        return tagged(field, array.type), array
    parts = _parts(field, place)
    if not any(_contains_variant(*part, named) for part in parts):
        return field, array
    kind = array.type
    if pa.types.is_struct(kind):
        children = array.flatten()  # a value inside a null struct is null
    else:
        children = [array.keys, array.items] if pa.types.is_map(kind) else [array.values]
    converted = [
        _convert_variants(part, child, at, convert, named) for (part, at), child in zip(parts, children, strict=True)
    ]
    fields, children = [part for part, _ in converted], [child for _, child in converted]
    if pa.types.is_struct(kind):
        array = pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
        return field.with_type(array.type), array
    if pa.types.is_map(kind):
        kind, child = pa.map_(*fields), pa.StructArray.from_arrays(children, fields=fields)
    else:
        kind, child = with_fields(kind, lambda _: fields[0]), children[0]
    # Keep offsets and validity, and replace the elements.
    buffers = array.buffers()[: kind.num_buffers]
    array = pa.Array.from_buffers(kind, len(array), buffers, array.null_count, array.offset, [child])
    return field.with_type(kind), array
