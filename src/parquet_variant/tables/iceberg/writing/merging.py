"""Schemas that grow with the rows: columns and fields that are new, types that widen.

Owns ``schema_mode="merge"`` and the types that may become others (specification, "Schema Evolution").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.metadata.schema import Schema, schema_of_arrow, with_new_ids
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.types import (
    UNKNOWN,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
)

_PROMOTIONS = {
    "int": {"long"},
    "float": {"double"},
    "date": {"timestamp", "timestamp_ns"},
}


def can_promote(old: IcebergType, new: IcebergType) -> bool:
    """Return whether a column of one type may become one of another without rewriting files.

    >>> can_promote(PrimitiveType("decimal(9,2)"), PrimitiveType("decimal(12,2)"))
    True
    """
    if old == UNKNOWN:
        return True
    if not isinstance(old, PrimitiveType) or not isinstance(new, PrimitiveType):
        return False
    if old.family == new.family == "decimal":
        return old.scale == new.scale and new.precision > old.precision
    return new.name in _PROMOTIONS.get(old.name, ())


def merged_schema(metadata: TableMetadata, arrow: pa.Schema) -> Schema | None:
    """Return the table's schema with what data have and it lacks; None if it lacks nothing.

    Raises `IcebergError`: reason ``"type-mismatch"``.
    """
    ids = count(metadata.last_column_id + 1)
    merged = _merged_struct(metadata.schema.struct, schema_of_arrow(arrow).struct, ids, "")
    if merged == metadata.schema.struct:
        return None
    return replace(metadata.schema, id=max(metadata.schemas) + 1, struct=merged)


def _merged_struct(old: StructType, new: StructType, ids: Iterator[int], place: str) -> StructType:
    fields = list(old.fields)
    for f in new.fields:
        former = old.get(f.name)
        if former is None:
            number = next(ids)
            fields.append(replace(f, id=number, type=with_new_ids(f.type, ids), required=False))
        else:
            kind = _merged_type(former, f, ids, f"{place}{former.name}")
            fields[fields.index(former)] = replace(former, type=kind)
    return StructType(tuple(fields))


def _merged_type(old: NestedField, new: NestedField, ids: Iterator[int], place: str) -> IcebergType:
    before, after = old.type, new.type
    if isinstance(before, StructType) and isinstance(after, StructType):
        return _merged_struct(before, after, ids, f"{place}.")
    if isinstance(before, ListType) and isinstance(after, ListType):
        elements = [NestedField(0, "element", kind.element) for kind in (before, after)]
        return replace(before, element=_merged_type(elements[0], elements[1], ids, f"{place}.element"))
    if isinstance(before, MapType) and isinstance(after, MapType):
        values = [NestedField(0, "value", kind.value) for kind in (before, after)]
        return replace(before, value=_merged_type(values[0], values[1], ids, f"{place}.value"))
    if before == UNKNOWN:
        return with_new_ids(after, ids)
    if can_promote(before, after):
        return after
    if before == after or _is_narrower(after, before) or after == UNKNOWN:
        return before
    raise IcebergError(f"column {place!r} is {before}, but the data has {after}: cast the data", reason="type-mismatch")


def _is_narrower(new: IcebergType, old: IcebergType) -> bool:
    return can_promote(new, old) or (
        isinstance(new, PrimitiveType) and isinstance(old, PrimitiveType) and new.family == old.family
    )
