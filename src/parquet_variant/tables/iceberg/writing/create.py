"""New tables, and tables that replace others of their name: schemas, partition specs and sort orders of both.

Owns the definition of a table that a write makes. Rows are written by `write`, and committed in the same commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa

from parquet_variant.errors import IcebergError, check_mapping, strings_of
from parquet_variant.io.filesystems import path_text
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog, LoadedTable
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.iceberg.metadata.partitioning import sort_order_of, spec_of
from parquet_variant.tables.iceberg.metadata.schema import (
    MAX_FIELD_ID,
    METADATA_COLUMNS,
    Schema,
    schema_of_arrow,
    with_new_ids,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, new_metadata
from parquet_variant.tables.iceberg.metadata.types import (
    UNKNOWN,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    children,
)
from parquet_variant.tables.iceberg.metadata.updates import Update, apply_change, change_of, set_properties
from parquet_variant.tables.iceberg.writing.properties import WriteProperties

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
    is_narrower = can_promote(after, before)
    if isinstance(before, PrimitiveType) and isinstance(after, PrimitiveType):
        is_narrower = is_narrower or before.family == after.family
    if before == after or is_narrower or after == UNKNOWN:
        return before
    raise IcebergError(f"column {place!r} is {before}, but the data has {after}: cast the data", reason="type-mismatch")


Names = Sequence[str] | str
_VECTORIZATION = "read.parquet.vectorization.enabled"


@dataclass(frozen=True)
class TableDefinition:
    """The definition of a new table, apart from its columns."""

    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str = ""

    @classmethod
    def of(
        cls, partition_by: Names, sort_by: Names, properties: Mapping[str, str] | None, location: str | None
    ) -> TableDefinition:
        """Read the arguments of `write`. Raises `IcebergError`: reason ``"bad-option"`` or ``"bad-property"``."""
        names = (strings_of("partition_by", partition_by), strings_of("sort_by", sort_by))
        made = cls(
            *names,
            checked_properties({} if properties is None else properties),
            path_text(location) if location else "",
        )
        WriteProperties(made.properties).check()
        return made


def checked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties whose names and values are strings. Raises `IcebergError`: reason ``"bad-property"``."""
    check_mapping("properties", properties, IcebergError)
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise IcebergError(
                f"the property {name!r} is {value!r}: names and values of properties are strings",
                reason="bad-property",
            )
    return dict(properties)


def new_table(catalog: Catalog, identifier: tuple[str, ...], arrow: pa.Schema, asked: TableDefinition) -> LoadedTable:
    """Return a table for some columns that does not exist yet; its first commit creates it."""
    schema = checked_schema(schema_of_arrow(arrow))
    spec = spec_of(asked.partition_by, schema)
    order = sort_order_of(asked.sort_by, schema)
    # A catalog of names chooses the location unless the user did.
    location = absolute_location(asked.location) if asked.location else ""
    properties = {**reader_properties(schema, asked.properties), **asked.properties}
    metadata = new_metadata(location, schema, spec, order, properties)
    return catalog.stage(identifier, metadata)


def reader_properties(schema: Schema, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that readers of a table with Variants need and that are not set.

    The vectorized reader of Iceberg 1.12 for Spark fails on files with shredded Variants, also in queries of other
    columns.
    """
    is_needed = _VECTORIZATION not in properties and any(True for _ in schema.variant_places())
    return {_VECTORIZATION: "false"} if is_needed else {}


def checked_schema(schema: Schema) -> Schema:
    """Return a schema that tables may have. Raises `IcebergError`: reason ``"bad-schema"``."""
    if schema.highest_id > MAX_FIELD_ID:
        raise IcebergError(f"the schema has more than {MAX_FIELD_ID} fields", reason="bad-schema")
    _check_names(schema.struct, "")
    for f in schema.fields:
        if f.name in METADATA_COLUMNS:
            raise IcebergError(f"column {f.name!r} has the name of a metadata column: rename it", reason="bad-schema")
    return schema


def _check_names(kind: IcebergType, place: str) -> None:
    if isinstance(kind, StructType):
        seen: set[str] = set()
        for f in kind.fields:
            if not f.name or f.name.lower() in seen:
                raise IcebergError(
                    f"two columns are named {place}{f.name!r} (names are compared without case)", reason="bad-schema"
                )
            seen.add(f.name.lower())
    for f in children(kind):
        _check_names(f.type, f"{place}{f.name}.")


@dataclass(frozen=True)
class Replacement:
    """A table that takes the place of another of its name, and keeps its history."""

    metadata: TableMetadata  # With the new schema, spec, order and properties as the current ones.
    updates: tuple[Update, ...]


def replacement(former: TableMetadata, arrow: pa.Schema, asked: TableDefinition) -> Replacement:
    """Return the replacement of a table; unchanged columns keep their field ids."""
    ids = count(former.last_column_id + 1)
    drawn = schema_of_arrow(arrow)
    fields = tuple(_kept_or_new(f, former.schema, ids) for f in drawn.fields)
    number = max(former.schemas) + 1
    schema = checked_schema(Schema(number, StructType(fields)))
    spec = spec_of(
        asked.partition_by,
        schema,
        spec_id=max(former.specs) + 1,
        last_partition_id=former.last_partition_id,
        former=former.specs.values(),
    )
    order = sort_order_of(asked.sort_by, schema, order_id=max(former.sort_orders, default=0) + 1)
    updates: list[Update] = [
        {
            "action": "add-schema",
            "schema": schema.to_json(),
            "last-column-id": max(former.last_column_id, schema.highest_id),
        },
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": spec.to_json()},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order.to_json()},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    properties = {**reader_properties(schema, former.properties), **asked.properties}
    if properties:
        updates.append(set_properties(properties))
    return Replacement(apply_change(former, change_of(*updates), None), tuple(updates))


def _kept_or_new(f: NestedField, former: Schema, ids: Iterator[int]) -> NestedField:
    """Return a field with the id of the former field of its name and type, or with new ids."""
    former_field = former.struct.get(f.name)
    if former_field is not None and former_field.name == f.name and str(former_field.type) == str(f.type):
        return replace(former_field, required=f.required)
    number = next(ids)
    return replace(f, id=number, type=with_new_ids(f.type, ids))
