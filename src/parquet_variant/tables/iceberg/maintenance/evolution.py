"""Changing the metadata of a table: columns, defaults, partitioning, sort order, properties and format version.

Owns these operations (specification, "Schema Evolution"), columns at every depth. Columns are known by field id, so no
file is rewritten.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import IcebergError, check_mapping, strings_of
from parquet_variant.ops.columns.target_type import as_target
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata.partitioning import sort_order_of, spec_of
from parquet_variant.tables.iceberg.metadata.schema import (
    INITIAL_DEFAULT,
    WRITE_DEFAULT,
    Schema,
    field_of_arrow,
    parse_type,
    type_name,
    unknown_column,
    with_members,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import (
    LAST_ADDED,
    TableChange,
    assert_ids,
    assert_schema,
    assert_uuid,
    change_of,
    schema_updates,
)
from parquet_variant.tables.iceberg.metadata.updates import set_properties as properties_update
from parquet_variant.tables.iceberg.metadata.values import arrow_array, from_json, raw_values, to_json
from parquet_variant.tables.iceberg.writing.commit import change_metadata
from parquet_variant.tables.iceberg.writing.create import (
    Names,
    can_promote,
    checked_properties,
    checked_schema,
    reader_properties,
)
from parquet_variant.tables.iceberg.writing.properties import WriteProperties
from parquet_variant.tables.iceberg.writing.write import CommitResult
from parquet_variant.tables.schema import (
    VARIANT,
    VOID,
    Field,
    MapType,
    Place,
    PrimitiveType,
    StructType,
    TableType,
    arrow_schema,
    arrow_type,
    from_ddl,
    parts,
    with_parts,
)
from parquet_variant.types.targets import VARIANT_STORAGE

# Returns the fields that take the place of a struct's fields, by the name of the one that is changed.
_OnFields = Callable[[tuple[Field, ...], str], tuple[Field, ...]]


def add_columns(
    table: LoadedTable,
    columns: pa.Schema | Mapping[str, Any] | str,
    *,
    defaults: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Add columns, or fields of structs; see `Table.add_columns`."""
    columns = arrow_schema(from_ddl(columns)) if isinstance(columns, str) else columns
    default_values = defaults or {}
    fields = {f.name: f for f in columns} if isinstance(columns, pa.Schema) else _arrow_fields(columns)
    unknown = sorted(set(default_values) - set(fields))
    if unknown:
        raise IcebergError(f"defaults= names {unknown[0]!r}, which is not a new column", reason="bad-argument")

    def changed(metadata: TableMetadata) -> Schema:
        ids = count(metadata.last_column_id + 1)
        schema = metadata.schema
        for name, arrow in fields.items():
            schema = _with_field(schema, name, arrow, ids, default_values.get(name))
        return schema

    return _evolved(table, changed)


def drop_column(table: LoadedTable, name: str) -> CommitResult:
    """Drop a column, or a field of a struct by its dotted name; see `Table.drop_column`."""

    def changed(metadata: TableMetadata) -> Schema:
        place, f = metadata.schema.find(name)
        _refuse_used(metadata, f, name)
        return _change_fields(metadata.schema, place, lambda fields, last: tuple(g for g in fields if g.name != last))

    return _evolved(table, changed)


def rename_column(table: LoadedTable, old: str, new: str) -> CommitResult:
    """Rename a column, or a field of a struct by its dotted name; see `Table.rename_column`."""

    def changed(metadata: TableMetadata) -> Schema:
        place, _ = metadata.schema.find(old)

        def renamed(fields: tuple[Field, ...], last: str) -> tuple[Field, ...]:
            return tuple(replace(f, name=new) if f.name == last else f for f in fields)

        return _change_fields(metadata.schema, place, renamed)

    return _evolved(table, changed)


def move_column(table: LoadedTable, name: str, *, after: str | None = None) -> CommitResult:
    """Move a column, or a field inside of its struct; see `IcebergTable.move_column`."""

    def changed(metadata: TableMetadata) -> Schema:
        place, f = metadata.schema.find(name)

        def moved(fields: tuple[Field, ...], last: str) -> tuple[Field, ...]:
            remaining = [g for g in fields if g.name != last]
            names = [g.name for g in remaining]
            if after is not None and after not in names:
                raise unknown_column(after, names)
            index = 0 if after is None else names.index(after) + 1
            return (*remaining[:index], f, *remaining[index:])

        return _change_fields(metadata.schema, place, moved)

    return _evolved(table, changed)


def widen_column(table: LoadedTable, name: str, to: str) -> CommitResult:
    """Give a column, or a field of a struct, a wider type; no file is rewritten; see `Table.widen_column`."""

    def changed(metadata: TableMetadata) -> Schema:
        place, f = metadata.schema.find(name)
        kind = _named_type(to)
        if not can_promote(f.type, kind):
            raise IcebergError(
                f"column {name!r} is {type_name(f.type)} and cannot become {type_name(kind)}: Iceberg widens int to "
                "long, float to double, date to timestamp, and decimals to a higher precision",
                reason="type-mismatch",
            )
        if f.type == PrimitiveType("date"):
            _refuse_used(metadata, f, name)
            former = [p.transform.name for spec in metadata.specs.values() for p in spec.fields if p.source_id == f.id]
            if {"identity", "bucket"} & set(former):
                raise IcebergError(
                    f"column {name!r} partitioned the table by its date or a hash of it, which differ for timestamps: "
                    "add a new column instead",
                    reason="bad-schema",
                )
        return _replace_field(metadata.schema, place, replace(f, type=kind))

    return _evolved(table, changed)


def set_default(table: LoadedTable, name: str, value: Any) -> CommitResult:
    """Set the value that new rows without a column get; existing rows keep theirs; see `IcebergTable.set_default`."""

    def changed(metadata: TableMetadata) -> Schema:
        place, f = metadata.schema.find(name)
        return _replace_field(metadata.schema, place, with_members(f, {WRITE_DEFAULT: default_json(f, value)}))

    return _evolved(table, changed)


# ---- schemas


def _evolved(table: LoadedTable, change: Callable[[TableMetadata], Schema]) -> CommitResult:
    def make_change(metadata: TableMetadata) -> TableChange | None:
        schema = checked_schema(replace(change(metadata), id=max(metadata.schemas) + 1))
        if not schema.fields:
            raise IcebergError("a table needs at least one column", reason="bad-schema")
        if schema.struct == metadata.schema.struct:
            return None
        properties = reader_properties(schema, metadata.properties)
        return change_of(
            *schema_updates(metadata, schema),
            *([properties_update(properties)] if properties else []),
            requires=assert_schema(metadata),
        )

    return CommitResult(change_metadata(table, make_change).metadata.current_snapshot_id)


def _change_fields(schema: Schema, place: Place, change: _OnFields) -> Schema:
    """Return a schema in which the fields around a place are changed."""
    *owner, last = place

    def changed(kind: TableType, steps: Sequence[str]) -> TableType:
        if steps and not (isinstance(kind, MapType) and steps[0] == "key"):
            fields = [replace(f, type=changed(f.type, steps[1:])) if f.name == steps[0] else f for f in parts(kind)]
            return with_parts(kind, fields)
        if not isinstance(kind, StructType):
            raise IcebergError(
                f"{'.'.join(place)!r} is not a field of a struct: change the whole column", reason="bad-schema"
            )
        return StructType(change(kind.fields, last))

    struct = changed(schema.struct, owner)
    assert isinstance(struct, StructType)
    return replace(schema, struct=struct)


def _replace_field(schema: Schema, place: Place, new: Field) -> Schema:
    """Return a schema with another field at a place, which may be the element of a list or the value of a map."""
    owner = next((f for of_field, f in schema.by_id.values() if of_field == place[:-1]), None)
    if owner is not None and not isinstance(owner.type, StructType) and place[-1] != "key":
        *key, _ = parts(owner.type)
        return _replace_field(schema, place[:-1], replace(owner, type=with_parts(owner.type, [*key, new])))
    return _change_fields(schema, place, lambda fields, last: tuple(new if f.name == last else f for f in fields))


def _with_field(schema: Schema, name: str, arrow: pa.Field, ids: Iterator[int], default: Any) -> Schema:
    *parents, last = [name] if schema.get(name) is not None else name.split(".")
    f = replace(field_of_arrow(arrow, ids), name=last)
    json = None if default is None else default_json(f, default)
    f = with_members(f, {INITIAL_DEFAULT: json, WRITE_DEFAULT: json})
    if not f.nullable and json is None:
        raise IcebergError(
            f"column {name!r} is new and may not be null: give existing rows a value by defaults=", reason="bad-schema"
        )

    def added(fields: tuple[Field, ...], _: str) -> tuple[Field, ...]:
        if any(g.name.lower() == last.lower() for g in fields):
            raise IcebergError(f"the table has a column {name!r} already", reason="bad-schema")
        return (*fields, f)

    place = schema.find(".".join(parents))[0] if parents else ()
    return _change_fields(schema, (*place, last), added)


def _arrow_fields(columns: Mapping[str, Any]) -> dict[str, pa.Field]:
    check_mapping("columns", columns, IcebergError)
    fields = {}
    for name, kind in columns.items():
        if isinstance(kind, str) and kind.strip().lower() == "variant":
            fields[name] = pa.field(name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        else:
            fields[name] = pa.field(name, kind if isinstance(kind, pa.DataType) else as_target(kind))
    return fields


def _named_type(text: str) -> TableType:
    if text.strip().lower() in ("timestamp", "timestamp_ns"):  # Iceberg's names, which mean other types in SQL
        return parse_type(text.strip().lower())
    return field_of_arrow(_arrow_fields({"c": text})["c"], count(1)).type


def default_json(f: Field, value: Any) -> Any:
    """Return a default in the JSON form of a field's type. Raises `IcebergError`: reason ``"type-mismatch"``."""
    if value is None:
        return None
    if isinstance(f.type, StructType) and value == {}:
        return {}
    if not isinstance(f.type, PrimitiveType) or f.type in (VARIANT, VOID):
        raise IcebergError(
            f"column {f.name!r} is {type_name(f.type)}: its default can only be null", reason="type-mismatch"
        )
    try:
        (raw,) = raw_values(pa.array([value], arrow_type(f.type)), f.type)
        json = to_json(raw, f.type)
        arrow_array([from_json(json, f.type)], f.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise IcebergError(
            f"column {f.name!r} is {type_name(f.type)}, its default {value!r} is not ({error})", reason="type-mismatch"
        ) from None
    return json


def _refuse_used(metadata: TableMetadata, f: Field, name: str) -> None:
    """Refuse to drop or retype a column that partitions or sorts the table, or identifies rows."""
    inside = {f.id} | {
        g.id for place, g in metadata.schema.by_id.values() if place[: len(name.split("."))] == tuple(name.split("."))
    }
    if any(p.source_id in inside and p.transform.name != "void" for p in metadata.spec.fields):
        raise IcebergError(
            f"column {name!r} partitions the table: change the partitioning first (set_partitioning)",
            reason="bad-schema",
        )
    if any(s.source_id in inside for s in metadata.sort_order.fields):
        raise IcebergError(
            f"column {name!r} sorts the table: change the sort order first (set_sort_order)", reason="bad-schema"
        )
    if inside & set(metadata.schema.identifier_ids):
        raise IcebergError(f"column {name!r} identifies rows of the table", reason="bad-schema")


def set_partitioning(table: LoadedTable, partition_by: Names) -> CommitResult:
    """Change the partition spec of new files; see `IcebergTable.set_partitioning`."""
    names = strings_of("partition_by", partition_by)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        spec = spec_of(
            names,
            metadata.schema,
            spec_id=max(metadata.specs) + 1,
            last_partition_id=metadata.last_partition_id,
            former=metadata.specs.values(),
        )
        if spec.same_fields(metadata.spec):
            return None
        # A spec that the table has already becomes current again.
        return change_of(
            {"action": "add-spec", "spec": spec.to_json()},
            {"action": "set-default-spec", "spec-id": LAST_ADDED},
            requires=assert_ids(metadata, "default-spec-id", "last-assigned-partition-id", "current-schema-id"),
        )

    return CommitResult(change_metadata(table, make_change).metadata.current_snapshot_id)


def set_sort_order(table: LoadedTable, sort_by: Names) -> CommitResult:
    """Change the sort order of new files; see `IcebergTable.set_sort_order`."""
    names = strings_of("sort_by", sort_by)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        order = sort_order_of(names, metadata.schema, order_id=max(metadata.sort_orders, default=0) + 1)
        if order.fields == metadata.sort_order.fields:
            return None
        return change_of(
            {"action": "add-sort-order", "sort-order": order.to_json()},
            {"action": "set-default-sort-order", "sort-order-id": LAST_ADDED},
            requires=assert_ids(metadata, "default-sort-order-id"),
        )

    return CommitResult(change_metadata(table, make_change).metadata.current_snapshot_id)


def set_properties(table: LoadedTable, properties: Mapping[str, str]) -> None:
    """Set properties of a table; see `Table.set_properties`."""
    checked = checked_properties(properties)

    def make_change(metadata: TableMetadata) -> TableChange | None:
        WriteProperties({**metadata.properties, **checked}).check()
        return change_of(properties_update(checked), requires=assert_uuid(metadata)) if checked else None

    change_metadata(table, make_change)


def remove_properties(table: LoadedTable, names: Iterable[str] | str) -> None:
    """Remove properties of a table; names that it does not have are left out; see `Table.set_properties`."""
    removed = list(strings_of("names", names))

    def make_change(metadata: TableMetadata) -> TableChange | None:
        present = [name for name in removed if name in metadata.properties]
        if not present:
            return None
        return change_of({"action": "remove-properties", "removals": present}, requires=assert_uuid(metadata))

    change_metadata(table, make_change)


def upgrade(table: LoadedTable) -> None:
    """Upgrade a table of format version 1 or 2 to version 3, which this package writes; see `IcebergTable.upgrade`."""

    def make_change(metadata: TableMetadata) -> TableChange | None:
        if metadata.version == NEWEST_VERSION:
            return None
        updates: list[dict[str, Any]] = []
        if metadata.uuid is None:
            updates.append({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
        updates.append({"action": "upgrade-format-version", "format-version": NEWEST_VERSION})
        return change_of(*updates, requires=assert_uuid(metadata))

    change_metadata(table, make_change, any_version=True)
