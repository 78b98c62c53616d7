"""Columns between a table's schema and its data files: names, types, missing columns, and the variants inside them.

Owns making data of a table's schema out of what a file holds or a user gives, at every depth, and applying something to
every variant of it; and the form that data files hold them in. Leaves reading and writing files to `read` and `write`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import cast_values, in_form, struct_like
from parquet_variant.errors import TableError
from parquet_variant.schema.storage_shape import is_list
from parquet_variant.tables.schema import (
    VARIANT,
    VOID,
    ArrayType,
    Field,
    MapType,
    StructType,
    TableType,
    all_fields,
    all_types,
    arrow_type,
    with_fields,
)

# Given the fields of an Arrow struct and a Delta field, the index of the one that holds it; -1 if none does.
Matcher: TypeAlias = "Callable[[pa.DataType | pa.Schema, Field], int]"
OnVariant: TypeAlias = "Callable[[tuple[str, ...], VariantArray], VariantArray]"


def unchanged(_: tuple[str, ...], array: VariantArray) -> VariantArray:
    """A variant as it is."""
    return array


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


def align_table(
    table: pa.Table, schema: StructType, match: Matcher, on_variant: OnVariant = unchanged, *, stored: bool = False
) -> pa.Table:
    """Data in the columns, order and types of a schema, under its logical names.

    `table`: what there is; columns that the schema does not know are left out.
    `schema`: what is wanted; columns that are not there become null.
    `match`: how a wanted field is found.
    `on_variant`: applied to every variant, with its place (see `schema.variant_paths`).
    `stored`: under the names and ids that data files have, without what is void or not there.
    Raises `TableError`: reason ``"type-mismatch"`` if a column cannot be given as its type.
    """
    align = _Alignment(match, on_variant, stored)
    fields, columns = [], []
    for f in schema.fields:
        index = match(table.schema, f)
        if stored and (index < 0 or f.type == VOID):
            continue
        chunks = [pa.nulls(len(table))] if index < 0 else table.column(index).chunks
        done = _same_type([align.column(chunk, f.type, (f.name,)) for chunk in chunks or [pa.nulls(0)]])
        fields.append(align.field(f, done[0].type))
        columns.append(pa.chunked_array(done))
    return pa.table(columns, schema=pa.schema(fields))


def check_known(present: pa.DataType | pa.Schema, kind: TableType, match: Matcher, place: tuple[str, ...] = ()) -> None:
    """Refuse data with fields that a table has not, at any depth: `align_table` leaves them out.

    Raises `TableError`: reason ``"unknown-column"``.
    """
    if isinstance(kind, StructType) and (isinstance(present, pa.Schema) or pa.types.is_struct(present)):
        places = [match(present, f) for f in kind.fields]
        for index, each in enumerate(present):
            if index not in places:
                known = ", ".join(_dotted((*place, f.name)) for f in kind.fields)
                name = _dotted((*place, each.name))
                raise TableError(f"the table has no column {name!r}: its columns are {known}", reason="unknown-column")
            f = kind.fields[places.index(index)]
            check_known(each.type, f.type, match, (*place, f.name))
    elif isinstance(kind, ArrayType) and _is_list(present):
        check_known(present.value_type, kind.element, match, (*place, "element"))
    elif isinstance(kind, MapType) and pa.types.is_map(present):
        check_known(present.key_type, kind.key, match, (*place, "key"))
        check_known(present.item_type, kind.value, match, (*place, "value"))


def align_column(
    array: pa.Array, kind: TableType, match: Matcher, on_variant: OnVariant, place: tuple[str, ...]
) -> pa.Array:
    """One column, or a part of one, as a Delta type; see `align_table`."""
    return _Alignment(match, on_variant, False).column(array, kind, place)


@dataclass(frozen=True)
class _Alignment:
    """How the parts of columns are found and named; see `align_table`."""

    match: Matcher
    on_variant: OnVariant
    stored: bool

    def column(self, array: pa.Array, kind: TableType, place: tuple[str, ...]) -> pa.Array:
        if kind == VARIANT:
            return self._variant(array, place)
        if pa.types.is_null(array.type) and isinstance(kind, (StructType, ArrayType, MapType)):
            array = pa.nulls(len(array), arrow_type(kind))
        if isinstance(kind, StructType) and pa.types.is_struct(array.type):
            return self._struct(array, kind, place)
        if isinstance(kind, ArrayType) and _is_list(array.type):
            return self._list(array, kind, place)
        if isinstance(kind, MapType) and pa.types.is_map(array.type):
            return self._map(array, kind, place)
        return _primitive(array, kind, place)

    def field(self, f: Field, kind: pa.DataType) -> pa.Field:
        metadata: dict[bytes | str, bytes | str] = {}
        if f.type == VARIANT:
            metadata.update(EXTENSION_METADATA)
        if self.stored and f.field_id is not None:
            metadata[b"PARQUET:field_id"] = str(f.field_id).encode()
        return pa.field(f.physical_name if self.stored else f.name, kind, f.nullable, metadata or None)

    def _variant(self, array: pa.Array, place: tuple[str, ...]) -> pa.Array:
        if pa.types.is_null(array.type):
            array = pa.nulls(len(array), arrow_type(VARIANT))
        if not pa.types.is_struct(array.type):
            raise TableError(f"column {_dotted(place)} is {array.type}, not a Variant", reason="type-mismatch")
        return self.on_variant(place, VariantArray.from_storage(array)).storage

    def _struct(self, array: pa.StructArray, kind: StructType, place: tuple[str, ...]) -> pa.Array:
        children, fields = [], []
        for f in kind.fields:
            index = self.match(array.type, f)
            if self.stored and (index < 0 or f.type == VOID):
                continue
            child = pa.nulls(len(array)) if index < 0 else pc.struct_field(array, [index])
            children.append(self.column(child, f.type, (*place, f.name)))
            fields.append(self.field(f, children[-1].type))
        return struct_like(array, fields, children)

    def _list(self, array: pa.Array, kind: ArrayType, place: tuple[str, ...]) -> pa.Array:
        if not pa.types.is_list(array.type):
            array = in_form(array, pa.list_(array.type.value_field))  # pyarrow 26 casts list views wrongly
        values = self.column(array.values, kind.element, (*place, "element"))
        element = self.field(Field("element", kind.element, kind.contains_null), values.type)
        return _with_buffers(array, pa.list_(element), values)

    def _map(self, array: pa.MapArray, kind: MapType, place: tuple[str, ...]) -> pa.Array:
        keys = self.column(array.keys, kind.key, (*place, "key"))
        items = self.column(array.items, kind.value, (*place, "value"))
        fields = [
            self.field(Field("key", kind.key, False), keys.type),
            self.field(Field("value", kind.value, kind.value_contains_null), items.type),
        ]
        entries = pa.StructArray.from_arrays([keys, items], fields=fields)
        return _with_buffers(array, pa.map_(*fields), entries)


def _with_buffers(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], array.null_count, array.offset, [values])


def _primitive(array: pa.Array, kind: TableType, place: tuple[str, ...]) -> pa.Array:
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
        raise TableError(
            f"column {_dotted(place)} is {array.type}, which is not {target}: {error}", reason="type-mismatch"
        ) from error


def _whole_microseconds(array: pa.Array) -> pa.Array:
    """Nanoseconds (INT96 among them) without what Delta's microseconds do not have: the earlier one, as in casts."""
    nanos = array.cast(pa.int64())
    nearest_zero = pc.divide(nanos, 1000)
    return pc.subtract(nearest_zero, pc.greater(pc.multiply(nearest_zero, 1000), nanos).cast(pa.int64()))


def _is_list(kind: pa.DataType) -> bool:
    return is_list(kind) or bool(pa.types.is_fixed_size_list(kind))


def _same_type(arrays: list[pa.Array]) -> list[pa.Array]:
    if all(a.type == arrays[0].type for a in arrays):
        return arrays
    kind = max((a.type for a in arrays), key=str)
    return [a.cast(kind) for a in arrays]


def _dotted(place: tuple[str, ...]) -> str:
    return ".".join(place)


def stored_schema(schema: StructType) -> StructType:
    """The schema under physical names, without void columns (PROTOCOL.md, "Void Type")."""
    return with_fields(schema, lambda f: None if f.type == VOID else replace(f, name=f.physical_name))


def check_storable(schema: StructType) -> None:
    """Refuse to write data files for columns that cannot be in any.

    Raises `TableError`: reason ``"void-column"`` for void in lists or maps, and for structs or tables of nothing but
    void.
    """
    if schema.fields and all(f.type == VOID for f in schema.fields):
        raise _void("the table has only void columns")
    for f in all_fields(schema):
        if isinstance(f.type, StructType) and f.type.fields and all(each.type == VOID for each in f.type.fields):
            raise _void(f"{f.name} has only void columns")
    for f in schema.fields:
        for kind in all_types(f.type):
            parts = {kind.element} if isinstance(kind, ArrayType) else set()
            parts = {kind.key, kind.value} if isinstance(kind, MapType) else parts
            if VOID in parts:
                raise _void(f"column {f.name} holds void in a list or map")


def to_stored(table: pa.Table, schema: StructType) -> pa.Table:
    """Data of a table's schema (see `columns.align_table`) under the names and ids that its files have.

    `table`: columns under the schema's names; those that are not there (partition columns) are left out.
    """
    return align_table(table, schema, by_logical_name, stored=True)


def _void(what: str) -> TableError:
    return TableError(f"{what}: no data file can be written before it has another type", reason="void-column")
