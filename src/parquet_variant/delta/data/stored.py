"""A table's columns as its data files hold them: physical names, field ids, no void columns.

Owns that form of schemas and of data. Leaves types and missing columns to `columns`.
"""

from __future__ import annotations

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.delta.protocol.schema import (
    VARIANT,
    ArrayType,
    DeltaType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
)
from parquet_variant.errors import DeltaError

VOID = PrimitiveType("void")


def stored_schema(schema: StructType) -> StructType:
    """The schema under physical names, without void columns (PROTOCOL.md, "Void Type")."""
    return StructType(
        tuple(
            Field(f.physical_name, _stored_type(f.type), f.nullable, f.metadata)
            for f in schema.fields
            if f.type != VOID
        )
    )


def check_storable(schema: StructType) -> None:
    """Refuse to write data files for columns that cannot be in any.

    Raises `DeltaError`: reason ``"void-column"`` for void in lists or maps, and for structs or tables of nothing but
    void.
    """
    stack: list[tuple[str, DeltaType]] = [("the table", schema)]
    while stack:
        name, kind = stack.pop()
        inside: list[tuple[str, DeltaType]] = []
        if isinstance(kind, StructType):
            inside = [(f.name, f.type) for f in kind.fields]
            if kind.fields and all(f.type == VOID for f in kind.fields):
                raise _void(f"{name} has only void columns")
        elif isinstance(kind, ArrayType):
            inside = [(name, kind.element)]
        elif isinstance(kind, MapType):
            inside = [(name, kind.key), (name, kind.value)]
        if not isinstance(kind, StructType) and any(child == VOID for _, child in inside):
            raise _void(f"column {name} holds void in a list or map")
        stack.extend(inside)


def to_stored(table: pa.Table, schema: StructType) -> pa.Table:
    """Data of a table's schema (see `columns.align_table`) under the names and ids that its files have.

    `table`: columns under the schema's names; those that are not there (partition columns) are left out.
    """
    fields, columns = [], []
    for f in schema.fields:
        if f.type == VOID or f.name not in table.column_names:
            continue
        chunks = [_array(chunk, f.type) for chunk in table[f.name].chunks]
        kind = chunks[0].type if chunks else _array(pa.nulls(0, table.schema.field(f.name).type), f.type).type
        fields.append(_field(f, kind, table.schema.field(f.name).nullable))
        columns.append(pa.chunked_array(chunks, kind))
    return pa.table(columns, schema=pa.schema(fields))


def _field(f: Field, kind: pa.DataType, nullable: bool) -> pa.Field:
    metadata: dict[bytes | str, bytes | str] = {}
    if f.type == VARIANT:
        metadata.update(EXTENSION_METADATA)
    if f.field_id is not None:
        metadata[b"PARQUET:field_id"] = str(f.field_id).encode()
    return pa.field(f.physical_name, kind, nullable, metadata or None)


def _array(array: pa.Array, kind: DeltaType) -> pa.Array:
    if isinstance(kind, StructType):
        children, fields = [], []
        for f in kind.fields:
            at = array.type.get_field_index(f.name)
            if f.type == VOID or at < 0:
                continue
            child = _array(array.field(at), f.type)
            children.append(child)
            fields.append(_field(f, child.type, array.type.field(at).nullable))
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if isinstance(kind, ArrayType):
        values = _array(array.values, kind.element)
        element = array.type.value_field.with_type(values.type)
        return pa.Array.from_buffers(
            pa.list_(element), len(array), array.buffers()[:2], array.null_count, array.offset, [values]
        )
    if isinstance(kind, MapType):
        keys, items = _array(array.keys, kind.key), _array(array.items, kind.value)
        key, item = array.type.key_field.with_type(keys.type), array.type.item_field.with_type(items.type)
        entries = pa.StructArray.from_arrays([keys, items], fields=[key, item])
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(pa.map_(key, item), len(array), buffers, array.null_count, array.offset, [entries])
    return array


def _stored_type(kind: DeltaType) -> DeltaType:
    if isinstance(kind, StructType):
        return stored_schema(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(kind.element), kind.contains_null)
    if isinstance(kind, MapType):
        return MapType(_stored_type(kind.key), _stored_type(kind.value), kind.value_contains_null)
    return kind


def _void(what: str) -> DeltaError:
    return DeltaError(f"{what}: no data file can be written before it has another type", reason="void-column")
