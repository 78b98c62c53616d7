"""Iceberg tables as targets and as sources of a publication.

Owns the Iceberg metadata over the data files of another table: one commit that adds and removes what changed, with its
schema, name mapping and properties, and Puffin files of translated deletion vectors. They are in the directory
``metadata``, because the cleanup of other formats keeps that directory. As sources, Iceberg tables keep their manifests
as they are, and what other formats cannot express is refused.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.catalogs.catalog import DATA_PATH, Catalog, LoadedTable
from parquet_variant.tables.iceberg.locations import absolute_location, normal_location
from parquet_variant.tables.iceberg.metadata import updates as metadata_updates
from parquet_variant.tables.iceberg.metadata.manifests import DataFile, ManifestEntry
from parquet_variant.tables.iceberg.metadata.partitioning import SortOrder, spec_of
from parquet_variant.tables.iceberg.metadata.schema import INITIAL_DEFAULT, NAME_MAPPING, Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata, new_metadata
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import (
    DeleteIndex,
    Snapshot,
    TableFile,
    deleted_positions,
    newest_snapshot,
    write_vector,
)
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, commit_snapshot
from parquet_variant.tables.iceberg.writing.write import checked_schema
from parquet_variant.tables.opening import PUBLISHED_FROM
from parquet_variant.tables.publishing.source import (
    PUBLISHED_VERSION,
    Difference,
    ListedFile,
    PublishedFile,
    PublishResult,
    Rows,
    Source,
    SourceColumns,
    cannot_publish,
    difference_from,
)
from parquet_variant.tables.schema import Place, PrimitiveType, TableType, parts, walk_fields
from parquet_variant.tables.write_plan import refuse_files_in


class IcebergSource(Source):
    """A snapshot of an Iceberg table."""

    format = "iceberg"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.location = absolute_location(snapshot.metadata.location)
        self.version = "" if snapshot.snapshot_id is None else str(snapshot.snapshot_id)
        self.options = dict(snapshot.table.options)
        self._deletes: dict[str, TableFile] = {}  # Files with deleted rows, by location, once they are listed.

    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """See `Source.columns`: field ids are those of the table."""
        schema = self.snapshot.schema
        for place, f in walk_fields(schema.struct):
            if f.metadata.get(INITIAL_DEFAULT) is not None:
                raise cannot_publish(
                    f"column {'.'.join(place)} has an initial-default, which readers of other formats would return as "
                    "null for older files: rewrite these files with Table.optimize(…, rewrite_all=True) and drop "
                    "the default"
                )
        lacks_ids = NAME_MAPPING in self.snapshot.properties
        return SourceColumns(schema, files_lack_ids=lacks_ids, partition_by=self._partition_by())

    @property
    def renames(self) -> bool:
        """Whether files may hold a column under another name than it has now, or a dropped column under its name."""
        names: dict[int, set[Place]] = defaultdict(set)
        numbers: dict[Place, set[int]] = defaultdict(set)
        for schema in self.snapshot.metadata.schemas.values():
            for number, (place, _) in schema.by_id.items():
                names[number].add(place)
                numbers[place].add(number)
        current = self.snapshot.schema.by_id
        return any(len(names[number]) > 1 or len(numbers[place]) > 1 for number, (place, _) in current.items())

    @property
    def widened(self) -> Mapping[int, Sequence[str]]:
        """See `Source.widened`."""
        types: dict[int, list[str]] = {}
        for schema in sorted(self.snapshot.metadata.schemas.values(), key=lambda schema: schema.id):
            for number, (place, f) in schema.by_id.items():
                if not isinstance(f.type, PrimitiveType):
                    continue
                history = types.setdefault(number, [])
                if history[-1:] != [f.type.name]:
                    history.append(f.type.name)
                if len(history) > 1 and {"element", "key", "value"} & set(place):
                    raise cannot_publish(f"{'.'.join(place)} was widened inside of a list or map")
        current = self.snapshot.schema.by_id
        return {number: names for number, names in types.items() if len(names) > 1 and number in current}

    def _partition_by(self) -> tuple[str, ...]:
        metadata = self.snapshot.metadata
        ids = {manifest.spec_id for manifest in self.snapshot.manifests if not manifest.is_deletes}
        specs = [metadata.specs[spec_id] for spec_id in ids or {metadata.spec.id}]
        fields = [[f for f in spec.fields if f.transform.name != "void"] for spec in specs]
        for f in chain.from_iterable(fields):
            if f.transform.name != "identity":
                raise cannot_publish(
                    f"the table is partitioned by {f.transform} of a column (partition field {f.name}), and other "
                    "formats have partitions by the values of columns only: publish a table partitioned by columns"
                )
        sources = {tuple(f.source_id for f in members) for members in fields}
        if len(sources) > 1:
            raise cannot_publish(
                f"the files have {len(sources)} partition specs: rewrite the files of older specs with "
                "Table.optimize(…, rewrite_all=True)"
            )
        members = [self.snapshot.schema.by_id.get(number) for number in next(iter(sources), ())]
        names = tuple(member[0][0] for member in members if member is not None and len(member[0]) == 1)
        if len(names) < len(members):
            raise cannot_publish("the table is partitioned by a dropped column, or by a field of a struct")
        return names

    def listed(self) -> Iterator[ListedFile]:
        """See `Source.listed`."""
        for file in plan_files(self.snapshot).files:
            data, deletes = file.file, file.deletes
            self.snapshot.place(file)  # refuses other formats and encrypted files
            if deletes.equalities:
                raise cannot_publish(
                    f"{data.path} has equality deletes, which other formats lack: rewrite the file with Table.optimize"
                )
            key = "\n".join(sorted(entry.file.path for entry in deletes.positions)) or None
            if deletes.vector is not None:
                key = f"{deletes.vector.file.path}@{deletes.vector.file.content_offset}"
            if key is not None:
                self._deletes[data.path] = file
            yield ListedFile(data.path, data.size, key)

    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """See `Source.described`."""
        locations = {file.location for file in files}
        specs = self.snapshot.metadata.specs
        for _, entry in self.snapshot.live_entries(deletes=False):
            file = entry.file
            if file.path in locations:
                values = zip(specs[file.spec_id].fields, file.partition, strict=True)
                partition = tuple(value for f, value in values if f.transform.name != "void")
                yield replace(file, spec_id=0, partition=partition)

    def deleted_rows(self, file: ListedFile) -> Rows:
        """See `Source.deleted_rows`."""
        planned = self._deletes[file.location]
        return deleted_positions(self.snapshot.table.files, planned.file, planned.deletes)


# A data file, and its deletion vector.
_Entries: TypeAlias = tuple[ManifestEntry, ManifestEntry | None]


def publish_iceberg(source: Source, catalog: Catalog, identifier: tuple[str, ...]) -> PublishResult:
    """Publish a source as an Iceberg table of a catalog.

    Raises `IcebergError`: reason ``"table-exists"`` if the name belongs to another table; ``"conflict"``.
    """
    former = catalog.find(identifier)
    base, change = _creation(source, catalog, identifier) if former is None else _update(source, former)
    changes = (change.added, change.removed, change.vectors, change.updates, change.removed_deletes)
    if former is not None and not any(changes):
        return PublishResult("iceberg", base.table.name, str(base.snapshot_id or ""), committed=False)
    done = commit_snapshot(base, change)
    counts = (len(change.added), len(change.removed), len(change.vectors))
    return PublishResult("iceberg", base.table.name, str(done.snapshot_id), *counts)


def _check_unchanged(table: LoadedTable, source: Source) -> None:
    """Refuse to replace commits that publishing did not make."""
    metadata = table.metadata
    if metadata.properties.get(PUBLISHED_FROM) != source.format:
        problem = (
            f"{table.name} is an Iceberg table that was not published from {source.format}: choose another name or "
            "path with to= (--to)"
        )
        raise IcebergError(problem, reason="table-exists", file=table.name)
    for info in metadata.ancestors(metadata.current_snapshot_id):
        if PUBLISHED_VERSION in info.summary:
            return
        if info.operation != "replace":
            problem = (
                f"snapshot {info.id} ({info.operation}) changed the published table {table.name}, and publishing would "
                f"undo it: change the {source.format} table instead, and drop the Iceberg table or roll it back"
            )
            raise IcebergError(problem, reason="changed-copy", file=table.name)


def _creation(source: Source, catalog: Catalog, identifier: tuple[str, ...]) -> tuple[Snapshot, SnapshotChange]:
    columns = source.columns(None, 0)
    schema = checked_schema(columns.schema)
    metadata = new_metadata(
        source.location, schema, spec_of(columns.partition_fields, schema), SortOrder(), _properties(source, columns)
    )
    staged = catalog.stage(identifier, metadata)
    if staged.metadata.location != source.location:
        refuse_files_in(staged.files.root, "iceberg")
        # The files are elsewhere: the property makes their location a part of the table.
        document = dict(staged.metadata.document)
        document["properties"] = {**document["properties"], DATA_PATH: source.location}
        staged = replace(staged, metadata=TableMetadata.parse(document))
    base = newest_snapshot(staged)
    difference: Difference[_Entries] = Difference(added=list(source.listed()))
    return base, _change(source, columns, base, difference, ())


def _update(source: Source, former: LoadedTable) -> tuple[Snapshot, SnapshotChange]:
    _check_unchanged(former, source)
    metadata = former.metadata
    columns = source.columns(metadata.schema, metadata.last_column_id)
    updates: list[metadata_updates.Update] = []
    schema = Schema(max(metadata.schemas) + 1, checked_schema(columns.schema).struct)
    if schema.struct != metadata.schema.struct:
        updates += metadata_updates.definition_updates(metadata, schema)
    spec = metadata_updates.next_spec(metadata, columns.partition_fields, schema)
    updates += () if spec.same_fields(metadata.spec) else metadata_updates.definition_updates(metadata, spec=spec)
    properties = dict(_properties(source, columns).items() - metadata.properties.items())
    updates += metadata_updates.properties_updates(properties)
    change = metadata_updates.TableChange(updates)
    changed = metadata_updates.apply_change(metadata, change, None) if updates else metadata
    base = newest_snapshot(former)
    difference = _difference(source, base, everything=changed.spec.id != metadata.spec.id)
    return base, _change(source, columns, base, difference, updates, changed.spec.id)


def _properties(source: Source, columns: SourceColumns) -> dict[str, str]:
    made = {PUBLISHED_FROM: source.format, "gc.enabled": "false"}
    if columns.files_lack_ids:
        made[NAME_MAPPING] = json.dumps(_name_mapping(columns.schema.struct, columns))
    return made


def _name_mapping(kind: TableType, columns: SourceColumns) -> list[dict[str, Any]]:
    """Return the JSON form of the name mapping of a type, by names in data files."""
    mappings: list[dict[str, Any]] = []
    for f in parts(kind):
        fields = _name_mapping(f.type, columns)
        mapping = {"field-id": f.id, "names": [columns.stored_name(f)]}
        mappings.append(mapping | ({"fields": fields} if fields else {}))
    return mappings


def _difference(source: Source, base: Snapshot, *, everything: bool) -> Difference[_Entries]:
    """Return what changed since the last publication; `everything` adds all files again."""
    published = {}
    vectors = DeleteIndex.of(base).vectors
    for _, entry in base.live_entries(deletes=False, columns=frozenset()):  # without metrics
        info, vector = base.metadata.snapshots.get(entry.snapshot_id or -1), vectors.get(entry.file.path)
        time = None if info is None else info.timestamp_ms
        location = None if vector is None else vector.file.path
        published[normal_location(entry.file.path)] = PublishedFile((entry, vector), entry.file.size, time, location)
    return difference_from(published, source.listed(), partial(_vector_location, base.table), everything=everything)


def _change(
    source: Source,
    columns: SourceColumns,
    base: Snapshot,
    difference: Difference[_Entries],
    updates: Sequence[metadata_updates.Update],
    spec_id: int = 0,
) -> SnapshotChange:
    added = [replace(file, spec_id=spec_id) for file in source.described(columns, difference.added)]
    touched = [entry for (entry, _), _ in difference.vectors_changed]
    described = {file.path: file for file in (*added, *(entry.file for entry in touched))}
    listed = [*difference.added, *(file for _, file in difference.vectors_changed)]
    files, location_of = base.table.files, partial(_vector_location, base.table)
    vectors = [
        write_vector(files, location_of(file), described[file.location], source.deleted_rows(file))
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
        updates=tuple(updates),
        requirements=tuple(metadata_updates.requires(base.metadata, *metadata_updates.SCHEMA_IDS)) if updates else (),
    )


def _vector_location(table: LoadedTable, file: ListedFile) -> str:
    """Return the location of a Puffin file, whose name says which rows are deleted."""
    return f"{table.metadata_directory()}/{file.vector_id}-deletes.puffin"
