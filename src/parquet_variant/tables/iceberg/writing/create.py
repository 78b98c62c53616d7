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
    type_name,
    with_new_ids,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, new_metadata
from parquet_variant.tables.iceberg.metadata.updates import (
    Update,
    schema_updates,
    set_properties,
)
from parquet_variant.tables.iceberg.writing.properties import WriteProperties
from parquet_variant.tables.schema import (
    VOID,
    Field,
    Place,
    PrimitiveType,
    StructType,
    TableType,
    parts,
    walk_fields,
    with_parts,
)

_PROMOTIONS = {
    "integer": {"long"},
    "float": {"double"},
    "date": {"timestamp_ntz", "timestamp_ns"},
}


def can_promote(old: TableType, new: TableType) -> bool:
    """Return whether a column of one type may become one of another without rewriting files.

    >>> can_promote(PrimitiveType("decimal(9,2)"), PrimitiveType("decimal(12,2)"))
    True
    """
    if old == VOID:
        return True
    if not isinstance(old, PrimitiveType) or not isinstance(new, PrimitiveType):
        return False
    if old.family == new.family == "decimal":
        return old.numbers[1] == new.numbers[1] and new.numbers[0] > old.numbers[0]
    return new.name in _PROMOTIONS.get(old.name, ())


def merged_schema(metadata: TableMetadata, arrow: pa.Schema) -> Schema | None:
    """Return the table's schema with what data have and it lacks; None if it lacks nothing.

    Raises `IcebergError`: reason ``"type-mismatch"``.
    """
    ids = count(metadata.last_column_id + 1)
    merged = _merged(metadata.schema.struct, schema_of_arrow(arrow).struct, ids, ())
    if merged == metadata.schema.struct:
        return None
    assert isinstance(merged, StructType)
    return replace(metadata.schema, id=max(metadata.schemas) + 1, struct=merged)


def _merged(old: TableType, new: TableType, ids: Iterator[int], place: Place) -> TableType:
    """Return a type with the fields and the wider types of another one."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        fields = list(old.fields)
        for f in new.fields:
            former = old.get(f.name)
            if former is None:
                number = next(ids)
                fields.append(replace(f, field_id=number, type=with_new_ids(f.type, ids), nullable=True))
            else:
                kind = _merged(former.type, f.type, ids, (*place, former.name))
                fields[fields.index(former)] = replace(former, type=kind)
        return StructType(tuple(fields))
    if type(old) is type(new) and not isinstance(old, PrimitiveType):
        *key, value = parts(old)
        kind = _merged(value.type, parts(new)[-1].type, ids, (*place, value.name))
        return with_parts(old, [*key, replace(value, type=kind)])
    if old == VOID:
        return with_new_ids(new, ids)
    if can_promote(old, new):
        return new
    is_same_family = isinstance(old, PrimitiveType) and isinstance(new, PrimitiveType) and old.family == new.family
    if is_same_family or new == VOID or can_promote(new, old):
        return old
    raise IcebergError(
        f"column {'.'.join(place)!r} is {type_name(old)}, but the data has {type_name(new)}: cast the data",
        reason="type-mismatch",
    )


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
    for place, f in [((), Field("", schema.struct)), *walk_fields(schema.struct)]:
        names = [part.name.lower() for part in f.type.fields] if isinstance(f.type, StructType) else []
        name = next((name for name in names if not name or names.count(name) > 1), None)
        if name is not None:
            raise IcebergError(
                f"two columns are named {'.'.join((*place, name))!r} (names are compared without case)",
                reason="bad-schema",
            )
    for f in schema.fields:
        if f.name in METADATA_COLUMNS:
            raise IcebergError(f"column {f.name!r} has the name of a metadata column: rename it", reason="bad-schema")
    return schema


def replacement(former: TableMetadata, arrow: pa.Schema, asked: TableDefinition) -> tuple[Update, ...]:
    """Return the updates that give a table another definition; unchanged columns keep their field ids."""
    ids = count(former.last_column_id + 1)
    fields = tuple(_kept_or_new(f, former.schema, ids) for f in schema_of_arrow(arrow).fields)
    schema = checked_schema(Schema(max(former.schemas) + 1, StructType(fields)))
    spec = spec_of(
        asked.partition_by,
        schema,
        spec_id=max(former.specs) + 1,
        last_partition_id=former.last_partition_id,
        former=former.specs.values(),
    )
    order = sort_order_of(asked.sort_by, schema, order_id=max(former.sort_orders, default=0) + 1)
    updates: list[Update] = [
        *schema_updates(former, schema),
        {"action": "add-spec", "spec": spec.to_json()},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": order.to_json()},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    properties = {**reader_properties(schema, former.properties), **asked.properties}
    if properties:
        updates.append(set_properties(properties))
    return tuple(updates)


def _kept_or_new(f: Field, former: Schema, ids: Iterator[int]) -> Field:
    """Return a field with the id of the former field of its name and type, or with new ids."""
    former_field = former.struct.get(f.name)
    if former_field is not None and former_field.name == f.name and type_name(former_field.type) == type_name(f.type):
        return replace(former_field, nullable=f.nullable)
    number = next(ids)
    return replace(f, field_id=number, type=with_new_ids(f.type, ids))
