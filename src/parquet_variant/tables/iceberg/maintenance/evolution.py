"""Changing the metadata of a table: columns, defaults, partitioning, sort order, properties, version, branches, tags.

Owns these operations (specification, "Schema Evolution"), columns at every depth, and rolling back the main branch.
Columns are known by field id, so no file is rewritten.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from itertools import count
from typing import Any, Concatenate, Literal, ParamSpec

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import IcebergError, check_column_name, check_count, check_mapping, strings_of
from parquet_variant.layouts.type_grammar import as_target
from parquet_variant.tables import schema as shared
from parquet_variant.tables.commits import CommitResult
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata import schema as schemas
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.partitioning import sort_order_of
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, NEWEST_VERSION, Reference, TableMetadata
from parquet_variant.tables.iceberg.reading.snapshot import id_at
from parquet_variant.tables.iceberg.writing import write as writing
from parquet_variant.tables.iceberg.writing.commit import change_metadata, undone_updates
from parquet_variant.tables.iceberg.writing.write_plan import WriteProperties
from parquet_variant.types.targets import VARIANT_STORAGE

_P = ParamSpec("_P")
_MakeChange = Callable[Concatenate[TableMetadata, _P], updates.TableChange | None]
_Operation = Callable[Concatenate[LoadedTable, _P], CommitResult]


def _operation(
    *, any_version: bool = False, reference: int | None = None
) -> Callable[[_MakeChange[_P]], _Operation[_P]]:
    """Return the decorator of a function that returns the change of a table's newest metadata (or None), which is
    committed; `reference` is the argument that names the branch or tag whose snapshot is the result.
    """

    def operation(make: _MakeChange[_P]) -> _Operation[_P]:
        @wraps(make)
        def run(table: LoadedTable, /, *args: _P.args, **options: _P.kwargs) -> CommitResult:
            after = change_metadata(table, lambda metadata: make(metadata, *args, **options), any_version=any_version)
            moved = after.metadata.references.get(MAIN if reference is None else str(args[reference]))
            return CommitResult(None if moved is None else moved.snapshot_id)

        return run

    return operation


@_operation(reference=1)
def make_reference(
    metadata: TableMetadata,
    kind: Literal["branch", "tag"],
    name: str,
    *,
    version: int | None = None,
    max_age_ms: int | None = None,
    min_snapshots_to_keep: int | None = None,
    max_snapshot_age_ms: int | None = None,
) -> updates.TableChange | None:
    """Make a branch or tag, or move it to another snapshot; see `IcebergTable.branch` and `IcebergTable.tag`."""
    if not isinstance(name, str):
        raise IcebergError(f"{name!r} is not the name of a {kind}: give a string", reason="bad-argument")
    counts = {"version": version, "max_age_ms": max_age_ms, "max_snapshot_age_ms": max_snapshot_age_ms}
    for option, value in (counts | {"min_snapshots_to_keep": min_snapshots_to_keep}).items():
        if value is not None:
            check_count(option, value)
    former = metadata.references.get(name)
    if former is not None and former.type != kind:
        raise IcebergError(f"{name!r} is a {former.type} of the table already", reason="bad-argument")
    target = metadata.current_snapshot_id if version is None else version
    if target is None:
        raise IcebergError("the table has no snapshot yet: write rows first", reason="unknown-snapshot")
    metadata.snapshot(target)
    reference = Reference(target, kind, min_snapshots_to_keep, max_snapshot_age_ms, max_age_ms)
    if reference == former:
        return None
    return updates.TableChange([updates.set_reference(name, reference)], updates.requires(metadata, refs=[name]))


@_operation()
def drop_reference(metadata: TableMetadata, name: str) -> updates.TableChange:
    """Drop a branch or tag; its snapshots are kept until they expire; see `IcebergTable.drop_reference`."""
    if name == MAIN:
        raise IcebergError("the main branch cannot be dropped", reason="bad-argument")
    if not isinstance(name, str) or name not in metadata.references:
        raise IcebergError(f"the table has no branch or tag {name!r}", reason="unknown-snapshot")
    return updates.TableChange(updates.removal_of([name], ()), updates.requires(metadata, refs=[name]))


@_operation()
def rollback(
    metadata: TableMetadata, *, version: int | None = None, at: int | str | datetime | None = None
) -> updates.TableChange | None:
    """Make an older snapshot the current one again; see `Table.restore`."""
    if (version is None) == (at is None):
        raise IcebergError("give either version= or at=", reason="bad-argument")
    target = version if at is None else id_at(metadata, at, metadata.location)
    assert target is not None
    metadata.snapshot(target)
    if target not in {info.id for info in metadata.ancestors(metadata.current_snapshot_id)}:
        problem = f"snapshot {target} is not an ancestor of the current one: make a branch of it instead"
        raise IcebergError(problem, reason="bad-argument")
    if target == metadata.current_snapshot_id:
        return None
    moved = updates.set_reference(MAIN, replace(metadata.references[MAIN], snapshot_id=target))
    return updates.TableChange([moved, *undone_updates(metadata, target)], updates.requires(metadata, refs=[MAIN]))


@_operation(reference=0)
def fast_forward(metadata: TableMetadata, name: str, to: str) -> updates.TableChange | None:
    """Move a branch forward to the newest snapshot of another one, which has the branch's as an ancestor.

    See `IcebergTable.fast_forward`.
    """
    references = metadata.references
    for reference_name in (name, to):
        if reference_name not in references or references[reference_name].type != "branch":
            raise IcebergError(f"the table has no branch {reference_name!r}", reason="unknown-snapshot")
    target = references[to].snapshot_id
    if target == references[name].snapshot_id:
        return None
    if references[name].snapshot_id not in {info.id for info in metadata.ancestors(target)}:
        raise IcebergError(f"{name!r} has commits that {to!r} does not have: merge them first", reason="bad-argument")
    moved = updates.set_reference(name, replace(references[name], snapshot_id=target))
    return updates.TableChange([moved], updates.requires(metadata, refs=(name, to)))


@_operation()
def add_columns(
    metadata: TableMetadata, columns: pa.Schema | Mapping[str, Any] | str, *, defaults: Mapping[str, Any] | None = None
) -> updates.TableChange | None:
    """Add columns, or fields of structs; see `Table.add_columns`."""
    columns = shared.arrow_schema(shared.from_ddl(columns)) if isinstance(columns, str) else columns
    default_values = defaults or {}
    fields = {f.name: f for f in columns} if isinstance(columns, pa.Schema) else _arrow_fields(columns)
    unknown = sorted(set(default_values) - set(fields))
    if unknown:
        raise IcebergError(f"defaults= names {unknown[0]!r}, which is not a new column", reason="bad-argument")
    ids = count(metadata.last_column_id + 1)
    schema = metadata.schema
    for name, arrow in fields.items():
        schema = _with_field(schema, name, arrow, ids, default_values.get(name))
    return _schema_change(metadata, schema)


@_operation()
def drop_column(metadata: TableMetadata, name: str) -> updates.TableChange | None:
    """Drop a column, or a field of a struct by its dotted name; see `Table.drop_column`."""
    place, f = metadata.schema.find(name)
    _refuse_used(metadata, f, name)
    return _schema_change(metadata, _with_new(metadata.schema, place, None))


@_operation()
def rename_column(metadata: TableMetadata, old: str, new: str) -> updates.TableChange | None:
    """Rename a column, or a field of a struct by its dotted name; see `Table.rename_column`."""
    check_column_name(new)
    place, f = metadata.schema.find(old)
    return _schema_change(metadata, _with_new(metadata.schema, place, replace(f, name=new)))


@_operation()
def move_column(metadata: TableMetadata, name: str, *, after: str | None = None) -> updates.TableChange | None:
    """Move a column, or a field inside of its struct; see `IcebergTable.move_column`."""
    place, f = metadata.schema.find(name)

    def moved(fields: Sequence[shared.Field]) -> Sequence[shared.Field]:
        remaining = [g for g in fields if g.id != f.id]
        names = [g.name for g in remaining]
        if after is not None and after not in names:
            raise shared.unknown_column(after, names)
        index = 0 if after is None else names.index(after) + 1
        return [*remaining[:index], f, *remaining[index:]]

    return _schema_change(metadata, _with_parts_at(metadata.schema, place, moved))


@_operation()
def widen_column(metadata: TableMetadata, name: str, to: str) -> updates.TableChange | None:
    """Give a column, or a field of a struct, a wider type; no file is rewritten; see `Table.widen_column`."""
    spelled = str(to).strip().lower()
    if spelled in ("timestamp", "timestamp_ns"):  # Iceberg's names, which mean other types in SQL
        kind = schemas.parse_type(spelled)
    else:
        kind = schemas.field_of_arrow(
            _arrow_fields({"c": to if isinstance(to, pa.DataType) else str(to)})["c"], count(1)
        ).type
    place, f = metadata.schema.find(name)
    if not writing.can_promote(f.type, kind):
        raise IcebergError(
            f"column {name!r} is {schemas.type_name(f.type)} and cannot become {schemas.type_name(kind)}: Iceberg "
            "widens int to long, float to double, date to timestamp, and decimals to a higher precision",
            reason="type-mismatch",
        )
    if f.type == shared.PrimitiveType("date"):
        _refuse_used(metadata, f, name)
        former = [p.transform.name for spec in metadata.specs.values() for p in spec.fields if p.source_id == f.id]
        if {"identity", "bucket"} & set(former):
            raise IcebergError(
                f"column {name!r} partitioned the table by its date or a hash of it, which differ for timestamps: "
                "add a new column instead",
                reason="bad-schema",
            )
    return _schema_change(metadata, _with_new(metadata.schema, place, replace(f, type=kind)))


@_operation()
def set_default(metadata: TableMetadata, name: str, value: Any) -> updates.TableChange | None:
    """Set the value that new rows without a column get; existing rows keep theirs; see `IcebergTable.set_default`."""
    place, f = metadata.schema.find(name)
    changed = schemas.with_members(f, {schemas.WRITE_DEFAULT: default_json(f, value)})
    return _schema_change(metadata, _with_new(metadata.schema, place, changed))


def _schema_change(metadata: TableMetadata, schema: schemas.Schema) -> updates.TableChange | None:
    schema = writing.checked_schema(replace(schema, id=max(metadata.schemas) + 1))
    if not schema.fields:
        raise IcebergError("a table needs at least one column", reason="bad-schema")
    if schema.struct == metadata.schema.struct:
        return None
    properties = writing.reader_properties(schema, metadata.properties)
    steps = updates.definition_updates(metadata, schema, properties=properties)
    return updates.TableChange(steps, updates.requires(metadata, *updates.SCHEMA_IDS))


def _with_new(schema: schemas.Schema, place: shared.Place, new: shared.Field | None) -> schemas.Schema:
    """Return a schema with another field at a place, or without it."""
    return _with_parts_at(schema, place, lambda fields: shared.replaced_field(fields, place[-1], new))


def _with_parts_at(
    schema: schemas.Schema, place: shared.Place, change: Callable[[Sequence[shared.Field]], Sequence[shared.Field]]
) -> schemas.Schema:
    """Return a schema in which the fields at a place are changed, which is not in the key of a map."""
    owners = shared.fields_at(schema.struct, place[:-1])
    if any(isinstance(f.type, shared.MapType) and step == "key" for f, step in zip(owners, place[1:], strict=True)):
        problem = f"{'.'.join(place)!r} is in the key of a map, which cannot change: change the whole column"
        raise IcebergError(problem, reason="bad-schema")
    return replace(schema, struct=shared.with_fields_at(schema.struct, place, change))


def _with_field(schema: schemas.Schema, name: str, arrow: pa.Field, ids: Iterator[int], default: Any) -> schemas.Schema:
    *parents, last = [name] if schema.struct.get(name) is not None else name.split(".")
    f = replace(schemas.field_of_arrow(arrow, ids), name=last)
    json = None if default is None else default_json(f, default)
    f = schemas.with_members(f, {schemas.INITIAL_DEFAULT: json, schemas.WRITE_DEFAULT: json})
    if not f.nullable and json is None:
        problem = f"column {name!r} is new and may not be null: give existing rows a value by defaults="
        raise IcebergError(problem, reason="bad-schema")

    def added(fields: Sequence[shared.Field]) -> Sequence[shared.Field]:
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


def default_json(f: shared.Field, value: Any) -> Any:
    """Return a default in the JSON form of a field's type. Raises `IcebergError`: reason ``"type-mismatch"``."""
    if value is None:
        return None
    if isinstance(f.type, shared.StructType) and value == {}:
        return {}
    if not isinstance(f.type, shared.PrimitiveType) or f.type in (shared.VARIANT, shared.VOID):
        problem = f"column {f.name!r} is {schemas.type_name(f.type)}: its default can only be null"
        raise IcebergError(problem, reason="type-mismatch")
    try:
        (raw,) = schemas.raw_values(pa.array([value], shared.arrow_type(f.type)), f.type)
        json = schemas.to_json(raw, f.type)
        schemas.arrow_array([schemas.from_json(json, f.type)], f.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        problem = f"column {f.name!r} is {schemas.type_name(f.type)}, its default {value!r} is not ({error})"
        raise IcebergError(problem, reason="type-mismatch") from None
    return json


def _refuse_used(metadata: TableMetadata, f: shared.Field, name: str) -> None:
    """Refuse to drop or retype a column that partitions or sorts the table, or identifies rows."""
    inside = {f.id} | {
        g.id for place, g in metadata.schema.by_id.values() if place[: len(name.split("."))] == tuple(name.split("."))
    }
    if any(p.source_id in inside and p.transform.name != "void" for p in metadata.spec.fields):
        problem = f"column {name!r} partitions the table: change the partitioning first (set_partitioning)"
        raise IcebergError(problem, reason="bad-schema")
    if any(s.source_id in inside for s in metadata.sort_order.fields):
        problem = f"column {name!r} sorts the table: change the sort order first (set_sort_order)"
        raise IcebergError(problem, reason="bad-schema")
    if inside & set(metadata.schema.identifier_ids):
        raise IcebergError(f"column {name!r} identifies rows of the table", reason="bad-schema")


@_operation()
def set_partitioning(metadata: TableMetadata, partition_by: writing.Names) -> updates.TableChange | None:
    """Change the partition spec of new files; see `IcebergTable.set_partitioning`."""
    spec = updates.next_spec(metadata, strings_of("partition_by", partition_by), metadata.schema)
    if spec.same_fields(metadata.spec):
        return None
    requires = updates.requires(metadata, "default-spec-id", "last-assigned-partition-id", "current-schema-id")
    return updates.TableChange(updates.definition_updates(metadata, spec=spec), requires)


@_operation()
def set_sort_order(metadata: TableMetadata, sort_by: writing.Names) -> updates.TableChange | None:
    """Change the sort order of new files; see `IcebergTable.set_sort_order`."""
    number = max(metadata.sort_orders, default=0) + 1
    order = sort_order_of(strings_of("sort_by", sort_by), metadata.schema, order_id=number)
    if order.fields == metadata.sort_order.fields:
        return None
    requires = updates.requires(metadata, "default-sort-order-id")
    return updates.TableChange(updates.definition_updates(metadata, order=order), requires)


@_operation()
def set_properties(metadata: TableMetadata, properties: Mapping[str, str | None]) -> updates.TableChange | None:
    """Set properties of a table, or remove properties whose value is None; see `Table.set_properties`."""
    check_mapping("properties", properties, IcebergError)
    removed = [name for name, value in properties.items() if value is None]
    values = writing.checked_properties({name: value for name, value in properties.items() if value is not None})
    if values:
        WriteProperties({**metadata.properties, **values}).check()
    changes = updates.properties_updates(values, [name for name in removed if name in metadata.properties])
    return updates.TableChange(changes, updates.requires(metadata)) if changes else None


@_operation(any_version=True)
def upgrade(metadata: TableMetadata) -> updates.TableChange | None:
    """Upgrade a table of format version 1 or 2 to version 3, which this package writes; see `IcebergTable.upgrade`."""
    if metadata.version == NEWEST_VERSION:
        return None
    steps: list[updates.Update] = []
    if metadata.uuid is None:
        steps.append({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
    steps.append({"action": "upgrade-format-version", "format-version": NEWEST_VERSION})
    return updates.TableChange(steps, updates.requires(metadata))
