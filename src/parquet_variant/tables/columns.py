"""Columns in the form of a table's schema: names, types, missing columns, and the Variants in them, at every depth.

Owns converting the columns of a data file, or of a user's data, to a table's schema and to the form that data files
have. Leaves reading and writing files to the formats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError
from parquet_variant.files.parquet.format.arrow_schema import FIELD_ID
from parquet_variant.files.parquet.writing.conform import conform
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import is_any_list
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables import schema as shared
from parquet_variant.types.forms import cast_values, entry_lists, in_form, list_elements, struct_like

# Return the index of the Arrow field that holds a field of the table; -1 if it is missing.
Matcher: TypeAlias = "Callable[[pa.DataType | pa.Schema, shared.Field], int]"
# Return the replacement of a Variant column, from its place (see `schema.variant_paths`) and its values.
OnVariant: TypeAlias = "Callable[[shared.Place, VariantArray], VariantArray]"
# Return the values of a field that the data lacks, for a number of rows.
OnMissing: TypeAlias = "Callable[[shared.Field, int], pa.Array]"


def nulls(_: shared.Field, rows: int) -> pa.Array:
    """Return nulls for a missing field."""
    return pa.nulls(rows)


def unchanged(_: shared.Place, array: VariantArray) -> VariantArray:
    """Return the Variants unchanged."""
    return array


def unshredded(_: shared.Place, array: VariantArray) -> VariantArray:
    """Return unshredded Variants in canonical storage: rows share their dictionaries of keys."""
    storage = array.to_unshredded().storage
    metadata = storage.field("metadata")
    if not pa.types.is_dictionary(metadata.type):
        mask = storage.is_null() if storage.null_count else None
        parts = [metadata.dictionary_encode(), storage.field("value")]
        storage = pa.StructArray.from_arrays(parts, ["metadata", "value"], mask=mask)
    return VariantArray(conform(storage, "unshredded"))


def by_name(fields: pa.DataType | pa.Schema, f: shared.Field) -> int:
    """Match fields by physical name."""
    return int(fields.get_field_index(f.physical_name))


def by_logical_name(fields: pa.DataType | pa.Schema, f: shared.Field) -> int:
    """Match fields by the table's names."""
    return int(fields.get_field_index(f.name))


def by_given_name(fields: pa.DataType | pa.Schema, f: shared.Field) -> int:
    """Match fields by the table's names in any case, as users write them."""
    matches = [index for index, field in enumerate(fields) if field.name.lower() == f.name.lower()]
    return matches[0] if len(matches) == 1 else -1


def by_field_id(fields: pa.DataType | pa.Schema, f: shared.Field) -> int:
    """Match fields by Parquet field id; a field without an id, such as the type of a change, by physical name."""
    if f.field_id is None:
        return by_name(fields, f)
    key = str(f.field_id).encode()
    for index in range(len(fields) if isinstance(fields, pa.Schema) else fields.num_fields):
        if (fields.field(index).metadata or {}).get(FIELD_ID) == key:
            return index
    return -1


def has_ids(schema: pa.Schema) -> bool:
    """Return whether a file has field ids."""
    return any(FIELD_ID in (f.metadata or {}) for f in schema)


def align_table(
    table: pa.Table,
    schema: shared.StructType,
    match: Matcher,
    on_variant: OnVariant = unchanged,
    on_missing: OnMissing = nulls,
    *,
    stored: bool = False,
    exact: bool = False,
) -> pa.Table:
    """Return data in the columns, order and types of a schema, under its logical names.

    `table`: the data; columns that are not in the schema are left out.
    `schema`: the result's columns.
    `match`: finds the data's field for a field of the schema.
    `on_variant`, `on_missing`: replace Variant columns and missing fields, at any depth.
    `stored`: use the names and field ids of data files, and leave out void and missing columns.
    `exact`: refuse timestamps that would lose nanoseconds or their time zone; without it they are cut. Refuse nulls in
      fields of structs, elements of lists and values of maps that must not be null.
    Raises `TableError`: reason ``"type-mismatch"`` if a column cannot be converted to its type; ``"null-value"``.
    """
    alignment = Alignment(match, on_variant, on_missing, stored, exact)
    fields, columns = [], []
    for f in schema.fields:
        index = match(table.schema, f)
        if stored and (index < 0 or f.type == shared.VOID):
            continue
        chunks = [on_missing(f, len(table))] if index < 0 else table.column(index).chunks
        aligned = [alignment.column(chunk, f.type, (f.name,)) for chunk in chunks or [pa.nulls(0)]]
        kind = max((part.type for part in aligned), key=str)  # One of the types of its chunks.
        fields.append(alignment._field(f, kind))
        columns.append(pa.chunked_array([part if part.type == kind else part.cast(kind) for part in aligned]))
    return pa.table(columns, schema=pa.schema(fields))


def with_other_columns(table: pa.Table, rows: pa.Table) -> pa.Table:
    """Return an aligned table with the columns of the rows that it lacks, such as row ids."""
    for column in rows.schema:
        if column.name not in table.column_names:
            table = table.append_column(column, rows[column.name])
    return table


def shredding_schemas(fields: pa.Schema, schema: shared.StructType) -> dict[str, ShreddingSchema]:
    """Return the shredding schemas of the Variants in the columns of a data file, by dotted name."""
    schemas: dict[str, ShreddingSchema] = {}

    def record(place: shared.Place, array: VariantArray) -> VariantArray:
        schemas[".".join(place)] = array.schema or ShreddingSchema.variant()
        return array

    align_table(empty_table(fields), schema, by_logical_name, record)
    return schemas


def check_known(
    present: pa.DataType | pa.Schema, kind: shared.TableType, match: Matcher, place: shared.Place = ()
) -> None:
    """Refuse data with fields that are not in the table's schema, at any depth: `align_table` leaves them out."""
    if isinstance(kind, shared.StructType) and (isinstance(present, pa.Schema) or pa.types.is_struct(present)):
        matches = [match(present, f) for f in kind.fields]
        for index, field in enumerate(present):
            if index not in matches:
                name, *names = (".".join((*place, f.name)) for f in (field, *kind.fields))
                raise shared.unknown_column(name, names, "; leave it out, or add it with schema_mode='merge'")
            f = kind.fields[matches.index(index)]
            check_known(field.type, f.type, match, (*place, f.name))
    elif isinstance(kind, shared.ArrayType) and is_any_list(present):
        check_known(present.value_type, kind.element, match, (*place, "element"))
    elif isinstance(kind, shared.MapType) and pa.types.is_map(present):
        for f, part in zip(shared.parts(kind), (present.key_type, present.item_type), strict=True):
            check_known(part, f.type, match, (*place, f.name))


class Alignment(Record):
    """The options of `align_table`."""

    match: Matcher
    on_variant: OnVariant = unchanged
    on_missing: OnMissing = nulls
    stored: bool = False
    exact: bool = False

    def column(self, array: pa.Array, kind: shared.TableType, place: shared.Place) -> pa.Array:
        """Return one column, or a part of one, converted to a type; see `align_table`."""
        if kind == shared.VARIANT:
            return self._variant(array, place)
        if kind == shared.VOID and not self.exact:
            return pa.nulls(len(array))
        if pa.types.is_null(array.type) and isinstance(kind, (shared.StructType, shared.ArrayType, shared.MapType)):
            array = pa.nulls(len(array), shared.arrow_type(kind))
        if isinstance(kind, shared.StructType) and pa.types.is_struct(array.type):
            return self._struct(array, kind, place)
        if isinstance(kind, shared.ArrayType) and is_any_list(array.type):
            return self._list(array, kind, place)
        if isinstance(kind, shared.MapType) and pa.types.is_map(array.type):
            return self._map(array, kind, place)
        return _primitive(array, kind, place, self.exact)

    def _field(self, f: shared.Field, kind: pa.DataType) -> pa.Field:
        return shared.arrow_field(f, kind, physical=self.stored, with_ids=self.stored)

    def _variant(self, array: pa.Array, place: shared.Place) -> pa.Array:
        if pa.types.is_null(array.type):
            array = pa.nulls(len(array), shared.arrow_type(shared.VARIANT))
        if not pa.types.is_struct(array.type):
            problem = f"column {'.'.join(place)} is {array.type}, not a Variant: use parse_json or cast_to_variant"
            raise TableError(problem, reason="type-mismatch")
        return self.on_variant(place, VariantArray(array)).storage

    def _struct(self, array: pa.StructArray, kind: shared.StructType, place: shared.Place) -> pa.Array:
        children, fields = [], []
        for f in kind.fields:
            index = self.match(array.type, f)
            if self.stored and (index < 0 or f.type == shared.VOID):
                continue
            child = self.on_missing(f, len(array)) if index < 0 else pc.struct_field(array, [index])
            children.append(self.column(child, f.type, (*place, f.name)))
            if self.exact and not f.nullable and children[-1].null_count > array.null_count:
                raise _null_value(f"column {'.'.join((*place, f.name))}")
            fields.append(self._field(f, children[-1].type))
        return struct_like(array, fields, children)

    def _list(self, array: pa.Array, kind: shared.ArrayType, place: shared.Place) -> pa.Array:
        if not pa.types.is_list(array.type):
            array = in_form(array, pa.list_(array.type.value_field))  # pyarrow 26 casts list views wrongly
        values = self.column(array.values, kind.element, (*place, "element"))
        aligned = _with_entries(array, pa.list_(self._field(shared.parts(kind)[0], values.type)), values)
        if self.exact and not kind.contains_null and list_elements(aligned).null_count:
            raise _null_value(f"the elements of column {'.'.join(place)}")
        return aligned

    def _map(self, array: pa.MapArray, kind: shared.MapType, place: shared.Place) -> pa.Array:
        columns, fields = [], []
        for f, part in zip(shared.parts(kind), (array.keys, array.items), strict=True):
            columns.append(self.column(part, f.type, (*place, f.name)))
            fields.append(self._field(f, columns[-1].type))
        aligned = _with_entries(array, pa.map_(*fields), pa.StructArray.from_arrays(columns, fields=fields))
        if self.exact and not kind.value_contains_null and list_elements(entry_lists(aligned)[1]).null_count:
            raise _null_value(f"the values of column {'.'.join(place)}")
        return aligned


def _with_entries(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], array.null_count, array.offset, [values])


def _primitive(array: pa.Array, kind: shared.TableType, place: shared.Place, exact: bool) -> pa.Array:
    target = shared.arrow_type(kind)
    if array.type == target:
        return array
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if target == pa.uuid():
            return array.cast(target.storage_type).cast(target)
        if pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        if pa.types.is_timestamp(target) and pa.types.is_timestamp(array.type):
            return _timestamps(array, target, place, exact)
        return cast_values(array, target)
    except pa.ArrowException as error:
        problem = f"column {'.'.join(place)} is {array.type} and cannot be converted to {target}: {error}"
        raise TableError(problem, reason="type-mismatch") from error


def _timestamps(array: pa.Array, target: pa.DataType, place: shared.Place, exact: bool) -> pa.Array:
    """Return timestamps in another type, nanoseconds rounded down; `exact`: refuse to lose these or a time zone."""
    name = ".".join(place)
    if exact and array.type.tz is not None and target.tz is None:
        raise TableError(
            f"column {name} is {array.type}, but the table's column has no time zone (timestamp_ntz): convert the "
            "values to local times first, for example with pyarrow.compute.local_timestamp",
            reason="type-mismatch",
        )
    if array.type.unit != "ns" or target.unit == "ns":
        return cast_values(array, target)
    nanos = pc.fill_null(array.cast(pa.int64()), 0).to_numpy()
    if exact and (nanos % 1000).any():
        row = int(np.flatnonzero(nanos % 1000)[0])
        problem = (
            f"column {name} holds nanoseconds ({array[row]}), but the table stores microseconds: round them first, "
            "for example with pyarrow.compute.floor_temporal"
        )
        raise TableError(problem, reason="type-mismatch", row=row)
    return pa.array(nanos // 1000, mask=np.asarray(array.is_null())).cast(target)


def _null_value(what: str) -> TableError:
    return TableError(f"{what} must not be null: replace the nulls in the data", reason="null-value")


def stored_schema(schema: shared.StructType) -> shared.StructType:
    """Return the schema under physical names, without void columns (Delta's PROTOCOL.md, "Void Type")."""
    return shared.with_fields(schema, lambda f: None if f.type == shared.VOID else replace(f, name=f.physical_name))


def check_storable(schema: shared.StructType) -> None:
    """Refuse columns that no data file can hold: void in lists or maps, and structs or tables of void columns only."""
    for place, kind in [((), schema), *((place, f.type) for place, f in shared.walk_fields(schema))]:
        voids = [f.type == shared.VOID for f in shared.parts(kind)]
        if any(voids) and (not isinstance(kind, shared.StructType) or all(voids)):
            problem = "has only void columns" if isinstance(kind, shared.StructType) else "holds void in a list or map"
            name = f"column {'.'.join(place)}" if place else "the table"
            message = f"{name} {problem}, which data files cannot hold: give the column another type before writing"
            raise TableError(message, reason="void-column")


def to_stored(table: pa.Table, schema: shared.StructType) -> pa.Table:
    """Return data in some columns of a table's schema under the names and field ids of data files."""
    return align_table(table, schema, by_logical_name, stored=True)
