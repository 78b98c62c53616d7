"""Columns between a table's schema and its data files: names, types, missing columns, and the variants inside them.

Owns making data of a table's schema out of what a file holds or a user gives, at every depth, and applying something to
every variant of it. Leaves reading and writing files to `read` and `write`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.protocol.schema import (
    VARIANT,
    ArrayType,
    DeltaType,
    Field,
    MapType,
    StructType,
    arrow_type,
)
from parquet_variant.encoding.cast.forms import cast_values, in_form, struct_like
from parquet_variant.errors import DeltaError

# Given the fields of an Arrow struct and a Delta field, the index of the one that holds it; -1 if none does.
Matcher: TypeAlias = "Callable[[pa.DataType | pa.Schema, Field], int]"
OnVariant: TypeAlias = "Callable[[tuple[str, ...], VariantArray], VariantArray]"


def by_name(fields: pa.DataType | pa.Schema, f: Field) -> int:
    """Match by physical name."""
    return int(fields.get_field_index(f.physical_name))


def by_logical_name(fields: pa.DataType | pa.Schema, f: Field) -> int:
    """Match by the table's own name."""
    return int(fields.get_field_index(f.name))


def by_given_name(fields: pa.DataType | pa.Schema, f: Field) -> int:
    """Match by the table's own name as users write it: in any case."""
    named = [index for index, each in enumerate(fields) if each.name.lower() == f.name.lower()]
    return named[0] if len(named) == 1 else -1


def by_field_id(fields: pa.DataType | pa.Schema, f: Field) -> int:
    """Match by Parquet field id (column mapping mode ``id``); what has no id, as the kind of a change, by name."""
    if f.field_id is None:
        return by_name(fields, f)
    key = str(f.field_id).encode()
    for index in range(len(fields) if isinstance(fields, pa.Schema) else fields.num_fields):
        if (fields.field(index).metadata or {}).get(b"PARQUET:field_id") == key:
            return index
    return -1


def align_table(table: pa.Table, schema: StructType, match: Matcher, on_variant: OnVariant) -> pa.Table:
    """Data in the columns, order and types of a schema, under its logical names.

    `table`: what there is; columns that the schema does not know are left out.
    `schema`: what is wanted; columns that are not there become null.
    `match`: how a wanted field is found.
    `on_variant`: applied to every variant, with its place (see `schema.variant_paths`).
    Raises `DeltaError`: reason ``"type-mismatch"`` if a column cannot be given as its type.
    """
    fields, columns = [], []
    for f in schema.fields:
        index = match(table.schema, f)
        chunks = [pa.nulls(len(table))] if index < 0 else table.column(index).chunks
        done = [align_column(c, f.type, match, on_variant, (f.name,)) for c in chunks]
        if not done:
            done = [align_column(pa.nulls(0), f.type, match, on_variant, (f.name,))]
        done = _same_type(done)
        metadata = EXTENSION_METADATA if f.type == VARIANT else None
        fields.append(pa.field(f.name, done[0].type, f.nullable, metadata))
        columns.append(pa.chunked_array(done))
    return pa.table(columns, schema=pa.schema(fields))


def check_known(given: pa.DataType | pa.Schema, kind: DeltaType, match: Matcher, place: tuple[str, ...] = ()) -> None:
    """Refuse data with fields that a table has not, at any depth: `align_table` leaves them out.

    Raises `DeltaError`: reason ``"unknown-column"``.
    """
    if isinstance(kind, StructType) and (isinstance(given, pa.Schema) or pa.types.is_struct(given)):
        places = [match(given, f) for f in kind.fields]
        for index, each in enumerate(given):
            if index not in places:
                known = ", ".join(_dotted((*place, f.name)) for f in kind.fields)
                name = _dotted((*place, each.name))
                raise DeltaError(f"the table has no column {name!r}: its columns are {known}", reason="unknown-column")
            f = kind.fields[places.index(index)]
            check_known(each.type, f.type, match, (*place, f.name))
    elif isinstance(kind, ArrayType) and _is_list(given):
        check_known(given.value_type, kind.element, match, (*place, "element"))
    elif isinstance(kind, MapType) and pa.types.is_map(given):
        check_known(given.key_type, kind.key, match, (*place, "key"))
        check_known(given.item_type, kind.value, match, (*place, "value"))


def align_column(
    array: pa.Array, kind: DeltaType, match: Matcher, on_variant: OnVariant, place: tuple[str, ...]
) -> pa.Array:
    """One column, or a part of one, as a Delta type; see `align_table`."""
    if kind == VARIANT:
        return _variant(array, on_variant, place)
    if pa.types.is_null(array.type) and isinstance(kind, (StructType, ArrayType, MapType)):
        array = pa.nulls(len(array), arrow_type(kind))
    if isinstance(kind, StructType) and pa.types.is_struct(array.type):
        return _struct(array, kind, match, on_variant, place)
    if isinstance(kind, ArrayType) and _is_list(array.type):
        return _list(array, kind, match, on_variant, place)
    if isinstance(kind, MapType) and pa.types.is_map(array.type):
        return _map(array, kind, match, on_variant, place)
    return _primitive(array, kind, place)


def _variant(array: pa.Array, on_variant: OnVariant, place: tuple[str, ...]) -> pa.Array:
    if pa.types.is_null(array.type):
        array = pa.nulls(len(array), arrow_type(VARIANT))
    if not pa.types.is_struct(array.type):
        raise DeltaError(f"column {_dotted(place)} is {array.type}, not a Variant", reason="type-mismatch")
    return on_variant(place, VariantArray.from_storage(array)).storage


def _struct(
    array: pa.StructArray, kind: StructType, match: Matcher, on_variant: OnVariant, place: tuple[str, ...]
) -> pa.Array:
    children, fields = [], []
    for column in kind.fields:
        index = match(array.type, column)
        child = pa.nulls(len(array)) if index < 0 else pc.struct_field(array, [index])
        done = align_column(child, column.type, match, on_variant, (*place, column.name))
        metadata = EXTENSION_METADATA if column.type == VARIANT else None
        fields.append(pa.field(column.name, done.type, column.nullable, metadata))
        children.append(done)
    return struct_like(array, fields, children)


def _list(array: pa.Array, kind: ArrayType, match: Matcher, on_variant: OnVariant, place: tuple[str, ...]) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = in_form(array, pa.list_(array.type.value_field))  # pyarrow 26 casts list views wrongly
    values = array.values
    done = align_column(values, kind.element, match, on_variant, (*place, "element"))
    metadata = EXTENSION_METADATA if kind.element == VARIANT else None
    list_type = pa.list_(pa.field("element", done.type, kind.contains_null, metadata))
    return pa.Array.from_buffers(list_type, len(array), array.buffers()[:2], array.null_count, array.offset, [done])


def _map(array: pa.MapArray, kind: MapType, match: Matcher, on_variant: OnVariant, place: tuple[str, ...]) -> pa.Array:
    keys = align_column(array.keys, kind.key, match, on_variant, (*place, "key"))
    items = align_column(array.items, kind.value, match, on_variant, (*place, "value"))
    metadata = EXTENSION_METADATA if kind.value == VARIANT else None
    key_field = pa.field("key", keys.type, False)
    item_field = pa.field("value", items.type, kind.value_contains_null, metadata)
    entries = pa.StructArray.from_arrays([keys, items], fields=[key_field, item_field])
    map_type = pa.map_(key_field, item_field)
    return pa.Array.from_buffers(map_type, len(array), array.buffers()[:2], array.null_count, array.offset, [entries])


def _primitive(array: pa.Array, kind: DeltaType, place: tuple[str, ...]) -> pa.Array:
    target = arrow_type(kind)
    if array.type == target:
        return array
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type) and array.type.unit == "ns":
            return _whole_microseconds(array).cast(target)
        return cast_values(array, target)
    except pa.ArrowException as error:
        raise DeltaError(
            f"column {_dotted(place)} is {array.type}, which is not {target}: {error}", reason="type-mismatch"
        ) from error


def _whole_microseconds(array: pa.Array) -> pa.Array:
    """Nanoseconds (INT96 among them) without what Delta's microseconds do not have: the earlier one, as in casts."""
    nanos = array.cast(pa.int64())
    nearest_zero = pc.divide(nanos, 1000)
    return pc.subtract(nearest_zero, pc.greater(pc.multiply(nearest_zero, 1000), nanos).cast(pa.int64()))


def _is_list(kind: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_list_view(kind))


def _same_type(arrays: list[pa.Array]) -> list[pa.Array]:
    if all(a.type == arrays[0].type for a in arrays):
        return arrays
    kind = max((a.type for a in arrays), key=str)
    return [a.cast(kind) for a in arrays]


def _dotted(place: tuple[str, ...]) -> str:
    return ".".join(place)
