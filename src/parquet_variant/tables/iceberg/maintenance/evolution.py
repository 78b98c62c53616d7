"""Changing the metadata of a table: columns, defaults, partitioning, sort order, properties, version, branches, tags.

Owns these operations (specification, "Schema Evolution"), columns at every depth, and rolling back the main branch.
Columns are known by field id, so no file is rewritten.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import IcebergError, check_count, check_mapping, strings_of
from parquet_variant.ops.columns.target_type import as_target
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata.partitioning import sort_order_of
from parquet_variant.tables.iceberg.metadata.schema import (
    INITIAL_DEFAULT,
    WRITE_DEFAULT,
    Schema,
    arrow_array,
    field_of_arrow,
    from_json,
    parse_type,
    raw_values,
    to_json,
    type_name,
    with_members,
)
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, NEWEST_VERSION, Reference, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import (
    TableChange,
    assert_ids,
    assert_ref,
    assert_schema,
    assert_uuid,
    change_of,
    next_spec,
    order_updates,
    schema_updates,
    set_reference,
    spec_updates,
)
from parquet_variant.tables.iceberg.metadata.updates import set_properties as properties_update
from parquet_variant.tables.iceberg.reading.snapshot import id_at
from parquet_variant.tables.iceberg.writing.commit import change_metadata
from parquet_variant.tables.iceberg.writing.manifest_changes import undone_batches
from parquet_variant.tables.iceberg.writing.properties import WriteProperties
from parquet_variant.tables.iceberg.writing.write import (
    CommitResult,
    Names,
    can_promote,
    checked_properties,
    checked_schema,
    reader_properties,
)
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
    unknown_column,
    with_fields_at,
)
from parquet_variant.types.targets import VARIANT_STORAGE


def branch(
    table: LoadedTable,
    name: str,
    *,
    snapshot_id: int | None = None,
    max_age_ms: int | None = None,
    min_snapshots_to_keep: int | None = None,
    max_snapshot_age_ms: int | None = None,
) -> CommitResult:
    """Make a branch, or move it to another snapshot; see `IcebergTable.branch`."""
    retention = (min_snapshots_to_keep, max_snapshot_age_ms, max_age_ms)
    return _refer(table, name, "branch", snapshot_id, retention)


def tag(
    table: LoadedTable,
    name: str,
    *,
    snapshot_id: int | None = None,
    max_age_ms: int | None = None,
) -> CommitResult:
    """Make a tag, or move it to another snapshot; see `IcebergTable.tag`."""
    return _refer(table, name, "tag", snapshot_id, (None, None, max_age_ms))


def drop_reference(table: LoadedTable, name: str) -> None:
    """Drop a branch or tag; its snapshots are kept until they expire; see `IcebergTable.drop_reference`."""

    def make_change(metadata: TableMetadata) -> TableChange:
        if name == MAIN:
            raise IcebergError("the main branch cannot be dropped", reason="bad-argument")
        if not isinstance(name, str) or name not in metadata.references:
            raise IcebergError(f"the table has no branch or tag {name!r}", reason="unknown-snapshot")
        return change_of({"action": "remove-snapshot-ref", "ref-name": name}, requires=assert_ref(metadata, name))

    change_metadata(table, make_change)


def rollback(
    table: LoadedTable,
    *,
    snapshot_id: int | None = None,
    timestamp: int | str | datetime | None = None,
) -> CommitResult:
    """Make an older snapshot the current one again; see `Table.restore`."""
    if (snapshot_id is None) == (timestamp is None):
        raise IcebergError("give either version= or at=", reason="bad-argument")

    def make_change(metadata: TableMetadata) -> TableChange | None:
        target = snapshot_id if timestamp is None else id_at(metadata, timestamp, table.name)
        assert target is not None
        metadata.snapshot(target)
        if target not in {info.id for info in metadata.ancestors(metadata.current_snapshot_id)}:
            raise IcebergError(
                f"snapshot {target} is not an ancestor of the current one: make a branch of it instead",
                reason="bad-argument",
            )
        if target == metadata.current_snapshot_id:
            return None
        moved = replace(metadata.references[MAIN], snapshot_id=target)
        undone = undone_batches(metadata, target)
        removed = [{"action": "remove-properties", "removals": undone}] if undone else []
        return change_of(set_reference(MAIN, moved), *removed, requires=assert_ref(metadata, MAIN))

    return CommitResult(change_metadata(table, make_change).metadata.current_snapshot_id)


def fast_forward(table: LoadedTable, name: str, to: str) -> CommitResult:
    """Move a branch forward to the newest snapshot of another one, which has the branch's as an ancestor.

    See `IcebergTable.fast_forward`.
    """

    def make_change(metadata: TableMetadata) -> TableChange | None:
        references = metadata.references
        for reference_name in (name, to):
            if reference_name not in references or references[reference_name].type != "branch":
                raise IcebergError(f"the table has no branch {reference_name!r}", reason="unknown-snapshot")
        target = references[to].snapshot_id
        if target == references[name].snapshot_id:
            return None
        if references[name].snapshot_id not in {info.id for info in metadata.ancestors(target)}:
            raise IcebergError(
                f"{name!r} has commits that {to!r} does not have: merge them first", reason="bad-argument"
            )
        requires = [*assert_ref(metadata, name), *assert_ref(metadata, to)[1:]]
        return change_of(set_reference(name, replace(references[name], snapshot_id=target)), requires=requires)

    return CommitResult(change_metadata(table, make_change).metadata.references[name].snapshot_id)


def _refer(
    table: LoadedTable,
    name: str,
    kind: Literal["branch", "tag"],
    snapshot_id: int | None,
    retention: tuple[int | None, int | None, int | None],
) -> CommitResult:
    def make_change(metadata: TableMetadata) -> TableChange | None:
        if not isinstance(name, str):
            raise IcebergError(f"{name!r} is not the name of a {kind}: give a string", reason="bad-argument")
        if snapshot_id is not None:
            check_count("snapshot_id", snapshot_id)
        former = metadata.references.get(name)
        if former is not None and former.type != kind:
            raise IcebergError(f"{name!r} is a {former.type} of the table already", reason="bad-argument")
        target = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
        if target is None:
            raise IcebergError("the table has no snapshot yet: write rows first", reason="unknown-snapshot")
        metadata.snapshot(target)
        reference = Reference(target, kind, *retention)
        if reference == former:
            return None
        return change_of(set_reference(name, reference), requires=assert_ref(metadata, name))

    return CommitResult(change_metadata(table, make_change).metadata.references[name].snapshot_id)


# Returns the fields that take the place of a field and those next to it.
_OnFields = Callable[[TableMetadata, Field, Sequence[Field]], Sequence[Field]]


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

    def dropped(metadata: TableMetadata, f: Field, fields: Sequence[Field]) -> Sequence[Field]:
        _refuse_used(metadata, f, name)
        return [g for g in fields if g.id != f.id]

    return _with_changed_field(table, name, dropped)


def rename_column(table: LoadedTable, old: str, new: str) -> CommitResult:
    """Rename a column, or a field of a struct by its dotted name; see `Table.rename_column`."""
    return _with_changed_field(table, old, lambda _, f, fields: _replaced(fields, replace(f, name=new)))


def move_column(table: LoadedTable, name: str, *, after: str | None = None) -> CommitResult:
    """Move a column, or a field inside of its struct; see `IcebergTable.move_column`."""

    def moved(_: TableMetadata, f: Field, fields: Sequence[Field]) -> Sequence[Field]:
        remaining = [g for g in fields if g.id != f.id]
        names = [g.name for g in remaining]
        if after is not None and after not in names:
            raise unknown_column(after, names)
        index = 0 if after is None else names.index(after) + 1
        return [*remaining[:index], f, *remaining[index:]]

    return _with_changed_field(table, name, moved)


def widen_column(table: LoadedTable, name: str, to: str) -> CommitResult:
    """Give a column, or a field of a struct, a wider type; no file is rewritten; see `Table.widen_column`."""
    spelled = to.strip().lower()
    if spelled in ("timestamp", "timestamp_ns"):  # Iceberg's names, which mean other types in SQL
        kind = parse_type(spelled)
    else:
        kind = field_of_arrow(_arrow_fields({"c": to})["c"], count(1)).type

    def widened(metadata: TableMetadata, f: Field, fields: Sequence[Field]) -> Sequence[Field]:
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
        return _replaced(fields, replace(f, type=kind))

    return _with_changed_field(table, name, widened)


def set_default(table: LoadedTable, name: str, value: Any) -> CommitResult:
    """Set the value that new rows without a column get; existing rows keep theirs; see `IcebergTable.set_default`."""
    return _with_changed_field(
        table,
        name,
        lambda _, f, fields: _replaced(fields, with_members(f, {WRITE_DEFAULT: default_json(f, value)})),
    )


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


def _with_changed_field(table: LoadedTable, name: str, change: _OnFields) -> CommitResult:
    """Commit a schema in which a field, and those next to it, are changed."""

    def changed(metadata: TableMetadata) -> Schema:
        place, f = metadata.schema.find(name)
        return _with_parts_at(metadata.schema, place, lambda fields: change(metadata, f, fields))

    return _evolved(table, changed)


def _replaced(fields: Sequence[Field], new: Field) -> Sequence[Field]:
    return [new if f.id == new.id else f for f in fields]


def _with_parts_at(schema: Schema, place: Place, change: Callable[[Sequence[Field]], Sequence[Field]]) -> Schema:
    """Return a schema in which the fields at a place are changed, which is not in the key of a map."""
    kind: TableType = schema.struct
    for step in place:
        if isinstance(kind, MapType) and step == "key":
            raise IcebergError(
                f"{'.'.join(place)!r} is in the key of a map, which cannot change: change the whole column",
                reason="bad-schema",
            )
        kind = next((f.type for f in parts(kind) if f.name == step), VOID)
    return replace(schema, struct=with_fields_at(schema.struct, place, change))


def _with_field(schema: Schema, name: str, arrow: pa.Field, ids: Iterator[int], default: Any) -> Schema:
    *parents, last = [name] if schema.get(name) is not None else name.split(".")
    f = replace(field_of_arrow(arrow, ids), name=last)
    json = None if default is None else default_json(f, default)
    f = with_members(f, {INITIAL_DEFAULT: json, WRITE_DEFAULT: json})
    if not f.nullable and json is None:
        raise IcebergError(
            f"column {name!r} is new and may not be null: give existing rows a value by defaults=", reason="bad-schema"
        )

    def added(fields: Sequence[Field]) -> Sequence[Field]:
        if any(g.name.lower() == last.lower() for g in fields):
            raise IcebergError(f"the table has a column {name!r} already", reason="bad-schema")
        return [*fields, f]

    place = schema.find(".".join(parents))[0] if parents else ()
    return _with_parts_at(schema, (*place, last), added)


def _arrow_fields(columns: Mapping[str, Any]) -> dict[str, pa.Field]:
    check_mapping("columns", columns, IcebergError)
    fields = {}
    for name, kind in columns.items():
        if isinstance(kind, str) and kind.strip().lower() == "variant":
            fields[name] = pa.field(name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        else:
            fields[name] = pa.field(name, kind if isinstance(kind, pa.DataType) else as_target(kind))
    return fields


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
        spec = next_spec(metadata, names, metadata.schema)
        if spec.same_fields(metadata.spec):
            return None
        return change_of(
            *spec_updates(spec),
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
        return change_of(*order_updates(order), requires=assert_ids(metadata, "default-sort-order-id"))

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
