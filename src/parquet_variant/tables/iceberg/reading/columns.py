"""Columns of data files under the table's schema: found by field id, converted at every depth.

Owns `FileColumns` (specification, "Column Projection"): field ids, the name mapping of files without them, type
promotion, and defaults of fields that a file lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.pages.file_schema import FIELD_ID
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.columns import with_entries
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec
from parquet_variant.tables.iceberg.metadata.schema import NAME_MAPPING, NameMapping
from parquet_variant.tables.iceberg.metadata.types import (
    UNKNOWN,
    VARIANT,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    arrow_field,
    arrow_type,
    children,
    is_any_list,
)
from parquet_variant.tables.iceberg.metadata.values import arrow_array, from_json
from parquet_variant.types.forms import cast_values, in_form, struct_like

Fields: TypeAlias = "pa.Schema | pa.DataType"
_EMPTY = NameMapping({}, {})


@dataclass(frozen=True)
class FileColumns:
    """The columns of one data file.

    `arrow`: the file's schema.
    `mapping`: field ids by name where the file has none; None if it has ids.
    `partition`: values of columns that the file's partition knows, by field id.
    """

    arrow: pa.Schema
    mapping: NameMapping | None
    partition: Mapping[int, tuple[Any, PrimitiveType]]

    @classmethod
    def of(
        cls,
        arrow: pa.Schema,
        mapping: NameMapping | None,
        spec: PartitionSpec,
        values: tuple[Any, ...],
        types: tuple[PrimitiveType, ...],
        path: str,
    ) -> FileColumns:
        """Return the columns of a file.

        `mapping`: the table's name mapping.
        `spec`, `values`, `types`: the partition of the file.
        Raises `IcebergError`: reason ``"bad-data-file"`` if neither the file nor a name mapping has field ids.
        """
        has_ids = any(field_id(f) is not None for f in arrow)
        if not has_ids and mapping is None and len(arrow):
            raise IcebergError(
                f"the data file has no field ids, and the table has no {NAME_MAPPING}: set it to name the columns",
                reason="bad-data-file",
                file=path,
            )
        identities = {
            f.source_id: (value, kind)
            for f, value, kind in zip(spec.fields, values, types, strict=True)
            if f.transform.name == "identity"
        }
        return cls(arrow, None if has_ids else mapping, identities)

    def index(self, f: NestedField) -> int:
        """Return the index of the top-level column of a field; -1 if the file lacks it."""
        return find(self.arrow, f, self.mapping)

    def array(self, column: pa.Array, f: NestedField) -> pa.Array:
        """Return a column of the file, found by `index`, in the table's type, with Variants as the file shreds them."""
        parts = _EMPTY if self.mapping is None else self._parts(f)
        return _Conversion(self.mapping is not None).column(column, f, parts)

    def _parts(self, f: NestedField) -> NameMapping:
        assert self.mapping is not None
        return self.mapping.parts.get(self.arrow.field(self.index(f)).name, _EMPTY)

    def missing(self, f: NestedField, rows: int) -> pa.Array:
        """Return the values of a field that the file lacks: of the partition, or its initial default, else null."""
        if f.id in self.partition:
            raw, kind = self.partition[f.id]
            value = arrow_array([raw], kind)
            return repeated(value if value.type == arrow_type(f.type) else value.cast(arrow_type(f.type)), rows)
        return default_array(f, rows)


def field_id(f: pa.Field) -> int | None:
    """Return the Parquet field id of an Arrow field; None if it has none."""
    text = (f.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def find(fields: Fields, f: NestedField, mapping: NameMapping | None) -> int:
    """Return the index of a field among those of a schema or struct; -1 if it is missing.

    `mapping`: the ids of the fields by name, where they have none themselves.
    """
    count = len(fields) if isinstance(fields, pa.Schema) else fields.num_fields
    for index in range(count):
        arrow = fields.field(index)
        number = field_id(arrow) if mapping is None else mapping.ids.get(arrow.name)
        if number == f.id:
            return index
    return -1


def default_array(f: NestedField, rows: int) -> pa.Array:
    """Return the initial default of a field for some rows; null if it has none."""
    target = arrow_type(f.type)
    if f.initial_default is None:
        return pa.nulls(rows, target)
    if isinstance(f.type, PrimitiveType):
        return repeated(arrow_array([from_json(f.initial_default, f.type)], f.type), rows)
    if isinstance(f.type, StructType) and f.initial_default == {}:
        parts = [default_array(part, rows) for part in f.type.fields]
        return pa.StructArray.from_arrays(parts, fields=[arrow_field(part) for part in f.type.fields])
    raise IcebergError(
        f"column {f.name!r} has a default of type {f.type}, which is not supported", reason="unsupported-feature"
    )


def repeated(value: pa.Array, rows: int) -> pa.Array:
    """Return the only value of an array for some rows."""
    return value.take(pa.array(np.zeros(rows, dtype=np.int64)))


@dataclass(frozen=True)
class _Conversion:
    """Converts arrays of a file; `by_name` says that fields are found by the name mapping."""

    by_name: bool

    def column(self, array: pa.Array, f: NestedField, parts: NameMapping) -> pa.Array:
        kind = f.type
        if kind == VARIANT:
            if not pa.types.is_struct(array.type):
                raise _mismatch(f, array.type)
            return VariantArray.from_storage(array).storage
        if kind == UNKNOWN:
            return pa.nulls(len(array))
        if isinstance(kind, StructType) and pa.types.is_struct(array.type):
            return self.struct(array, kind, parts)
        if isinstance(kind, ListType) and is_any_list(array.type):
            return self.list(array, kind, parts)
        if isinstance(kind, MapType) and pa.types.is_map(array.type):
            return self.map(array, kind, parts)
        return self.primitive(array, f)

    def struct(self, array: pa.StructArray, kind: StructType, parts: NameMapping) -> pa.Array:
        arrays, fields = [], []
        for f in kind.fields:
            index = find(array.type, f, parts if self.by_name else None)
            if index < 0:
                arrays.append(default_array(f, len(array)))
            else:
                name = array.type.field(index).name
                child = pc.struct_field(array, [index])
                arrays.append(self.column(child, f, parts.parts.get(name, _EMPTY)))
            fields.append(arrow_field(f).with_type(arrays[-1].type))
        return struct_like(array, fields, arrays)

    def list(self, array: pa.Array, kind: ListType, parts: NameMapping) -> pa.Array:
        if not pa.types.is_list(array.type):
            array = in_form(array, pa.list_(array.type.value_field))
        (element,) = children(kind)
        values = self.column(array.values, element, parts.parts.get("element", _EMPTY))
        target = pa.list_(arrow_field(element).with_type(values.type))
        return with_entries(array, target, values)

    def map(self, array: pa.MapArray, kind: MapType, parts: NameMapping) -> pa.Array:
        arrays, fields = [], []
        for f, column in zip(children(kind), (array.keys, array.items), strict=True):
            arrays.append(self.column(column, f, parts.parts.get(f.name, _EMPTY)))
            fields.append(arrow_field(f).with_type(arrays[-1].type))
        return with_entries(array, pa.map_(*fields), pa.StructArray.from_arrays(arrays, fields=fields))

    def primitive(self, array: pa.Array, f: NestedField) -> pa.Array:
        target = arrow_type(f.type)
        if array.type == target:
            return array
        if not isinstance(f.type, PrimitiveType) or pa.types.is_nested(array.type):
            raise _mismatch(f, array.type)
        try:
            if pa.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            if target == pa.uuid():
                return array.cast(pa.binary(16)).cast(target)
            return cast_values(array, target)
        except pa.ArrowException as error:
            raise _mismatch(f, array.type, str(error)) from None


def _mismatch(f: NestedField, file_type: pa.DataType, problem: str = "") -> IcebergError:
    detail = f": {problem}" if problem else ""
    return IcebergError(
        f"column {f.name!r} is {f.type}, the data file has {file_type} for it{detail}", reason="bad-data-file"
    )
