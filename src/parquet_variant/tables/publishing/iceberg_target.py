"""Iceberg metadata over the data files of another table: one commit that adds and removes what changed.

Owns the Iceberg table of a publication: its schema, name mapping and properties, and Puffin files of translated
deletion vectors. They are in the directory ``metadata``, because the cleanup of other formats keeps that directory.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.catalogs.catalog import DATA_PATH, Catalog, LoadedTable
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile, ManifestEntry
from parquet_variant.tables.iceberg.metadata.partitioning import SortOrder
from parquet_variant.tables.iceberg.metadata.puffin import write_vectors
from parquet_variant.tables.iceberg.metadata.schema import NAME_MAPPING, Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, new_metadata
from parquet_variant.tables.iceberg.metadata.types import IcebergType, children
from parquet_variant.tables.iceberg.metadata.updates import (
    Update,
    apply_change,
    assert_schema,
    change_of,
    set_properties,
)
from parquet_variant.tables.iceberg.reading.deletes import DeleteIndex
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import commit_snapshot
from parquet_variant.tables.iceberg.writing.create import checked_schema
from parquet_variant.tables.iceberg.writing.manifest_changes import ENGINE, SnapshotChange
from parquet_variant.tables.publishing.marks import PUBLISHED_FROM, PUBLISHED_VERSION
from parquet_variant.tables.publishing.source import (
    Difference,
    ListedFile,
    PublishedFile,
    PublishResult,
    Source,
    SourceColumns,
    difference_from,
)

# A data file, and its deletion vector.
_Entries: TypeAlias = tuple[ManifestEntry, ManifestEntry | None]


def publish_iceberg(source: Source, catalog: Catalog, identifier: tuple[str, ...]) -> PublishResult:
    """Publish a source as an Iceberg table of a catalog.

    Raises `IcebergError`: reason ``"table-exists"`` if the name belongs to another table; ``"conflict"``.
    """
    former = None
    try:
        former = catalog.load(identifier)
    except IcebergError as error:
        if error.reason != "no-such-table":
            raise
    if former is None:
        base, change = _creation(source, catalog, identifier)
    else:
        check_unchanged(former, source)
        base, change = _update(source, former)
    added_vectors = change.vectors
    is_needed = former is None or change.added or change.removed or added_vectors or change.updates
    if not is_needed and not change.removed_deletes:
        return PublishResult("iceberg", base.table.name, str(base.snapshot_id or ""), committed=False)
    done = commit_snapshot(base, change)
    return PublishResult(
        "iceberg",
        base.table.name,
        str(done.snapshot_id),
        len(change.added),
        len(change.removed),
        len(added_vectors),
    )


def check_unchanged(table: LoadedTable, source: Source) -> None:
    """Refuse to replace commits that publishing did not make.

    Raises `IcebergError`: reason ``"table-exists"`` or ``"changed-copy"``.
    """
    metadata = table.metadata
    if metadata.properties.get(PUBLISHED_FROM) != source.format:
        raise IcebergError(
            f"{table.name} is an Iceberg table that was not published from {source.format}: choose another name or "
            "path with to= (--to)",
            reason="table-exists",
            file=table.name,
        )
    for info in metadata.ancestors(metadata.current_snapshot_id):
        if PUBLISHED_VERSION in info.summary:
            return
        if info.operation != "replace":
            raise IcebergError(
                f"snapshot {info.id} ({info.operation}) changed the published table {table.name}, and publishing would "
                f"undo it: change the {source.format} table instead, and drop the Iceberg table or roll it back",
                reason="changed-copy",
                file=table.name,
            )


def _creation(source: Source, catalog: Catalog, identifier: tuple[str, ...]) -> tuple[Snapshot, SnapshotChange]:
    columns = source.columns(None, 0)
    schema = checked_schema(columns.schema)
    metadata = new_metadata(source.location, schema, columns.spec(), SortOrder(), _properties(source, columns))
    staged = catalog.stage(identifier, metadata)
    if staged.metadata.location != source.location:
        # The files are elsewhere: the property makes their location a part of the table.
        document = dict(staged.metadata.document)
        document["properties"] = {**document["properties"], DATA_PATH: source.location}
        staged = replace(staged, metadata=TableMetadata.parse(document))
    base = newest_snapshot(staged)
    difference: Difference[_Entries] = Difference(added=list(source.listed()))
    return base, _change(source, columns, base, difference, ())


def _update(source: Source, former: LoadedTable) -> tuple[Snapshot, SnapshotChange]:
    metadata = former.metadata
    columns = source.columns(metadata.schema, metadata.last_column_id)
    updates = _updates(source, columns, metadata)
    changed = apply_change(metadata, change_of(*updates), None) if updates else metadata
    base = newest_snapshot(former)
    difference = _difference(source, base, everything=changed.spec.id != metadata.spec.id)
    return base, _change(source, columns, base, difference, updates, changed.spec.id)


def _properties(source: Source, columns: SourceColumns) -> dict[str, str]:
    made = {PUBLISHED_FROM: source.format, "gc.enabled": "false"}
    if columns.files_lack_ids:
        made[NAME_MAPPING] = json.dumps(name_mapping(columns.schema.struct, columns))
    return made


def name_mapping(kind: IcebergType, columns: SourceColumns) -> list[dict[str, Any]]:
    """Return the JSON form of the name mapping of a type, by names in data files."""
    mappings: list[dict[str, Any]] = []
    for f in children(kind):
        mapping: dict[str, Any] = {"field-id": f.id, "names": [columns.stored_name(f)]}
        parts = name_mapping(f.type, columns)
        mappings.append(mapping | ({"fields": parts} if parts else {}))
    return mappings


def _updates(source: Source, columns: SourceColumns, metadata: TableMetadata) -> tuple[Update, ...]:
    """Return the updates that make schema, partition spec and properties those of the source."""
    updates: list[Update] = []
    schema = Schema(max(metadata.schemas) + 1, checked_schema(columns.schema).struct)
    if schema.struct != metadata.schema.struct:
        highest = max(metadata.last_column_id, schema.highest_id)
        updates += [
            {"action": "add-schema", "schema": schema.to_json(), "last-column-id": highest},
            {"action": "set-current-schema", "schema-id": -1},
        ]
    spec = columns.spec(max(metadata.specs) + 1, metadata.specs.values())
    if not spec.same_fields(metadata.spec):
        updates += [
            {"action": "add-spec", "spec": spec.to_json()},
            {"action": "set-default-spec", "spec-id": -1},
        ]
    properties = _properties(source, columns)
    changed = {name: value for name, value in properties.items() if metadata.properties.get(name) != value}
    return (*updates, set_properties(changed)) if changed else tuple(updates)


def _difference(source: Source, base: Snapshot, *, everything: bool) -> Difference[_Entries]:
    """Return what changed since the last publication; `everything` adds all files again."""
    published = {}
    vectors = DeleteIndex.of(base).vectors
    entries = [
        entry
        for manifest in base.manifests
        if not manifest.is_deletes and manifest.may_be_live
        for entry in base.entries(manifest, frozenset())  # without metrics
        if entry.is_live
    ]
    for entry in entries:
        info, vector = base.metadata.snapshots.get(entry.snapshot_id or -1), vectors.get(entry.file.path)
        time = None if info is None else info.timestamp_ms
        location = None if vector is None else vector.file.path
        published[normal_location(entry.file.path)] = PublishedFile((entry, vector), entry.file.size, time, location)
    vector_of = partial(_vector_location, base.table)
    return difference_from(published, source.listed(), vector_of, everything=everything)


def _change(
    source: Source,
    columns: SourceColumns,
    base: Snapshot,
    difference: Difference[_Entries],
    updates: tuple[Update, ...],
    spec_id: int = 0,
) -> SnapshotChange:
    added = [replace(file, spec_id=spec_id) for file in source.described(columns, difference.added)]
    touched = [entry for (entry, _), _ in difference.vectors_changed]
    described = {file.path: file for file in (*added, *(entry.file for entry in touched))}
    listed = [*difference.added, *(file for _, file in difference.vectors_changed)]
    vectors = [
        _written_vector(source, base.table, file, described[file.location])
        for file in listed
        if file.vector_key is not None
    ]
    without_vectors = [
        vector for (_, vector), file in difference.vectors_changed if file.vector_key is None and vector is not None
    ]
    removed = [entry for entry, _ in (*difference.removed, *difference.replaced)]
    only_adds = not (removed or vectors or without_vectors)
    return SnapshotChange(
        "append" if only_adds else "overwrite",
        added=tuple(added),
        removed=tuple(removed),
        vectors=tuple(vectors),
        removed_deletes=tuple(without_vectors),
        touched=tuple(touched),
        # Another publication at the same time adds the same files.
        reads_added=lambda _: True,
        summary={PUBLISHED_VERSION: source.version},
        updates=updates,
        requirements=tuple(assert_schema(base.metadata)) if updates else (),
    )


def _vector_location(table: LoadedTable, file: ListedFile) -> str:
    return f"{table.metadata_directory()}/{file.vector_id}-deletes.puffin"


def _written_vector(source: Source, table: LoadedTable, file: ListedFile, described: DataFile) -> DataFile:
    """Write the deleted rows of a file to a Puffin file, whose name says which rows they are."""
    data, (vector,) = write_vectors([(file.location, source.deleted_rows(file))], ENGINE)
    location = _vector_location(table, file)
    table.files.write(location, data)
    return DataFile(
        path=location,
        format="puffin",
        record_count=vector.cardinality,
        size=len(data),
        spec_id=described.spec_id,
        partition=described.partition,
        content=Content.POSITION_DELETES,
        referenced_data_file=file.location,
        content_offset=vector.offset,
        content_size=vector.length,
    )
