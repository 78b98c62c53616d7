"""A snapshot of a table: its choice, its schema, and its manifests.

Owns `Snapshot` and time travel by snapshot id, time, branch and tag. Which files a query
needs is decided in `planning`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from parquet_variant.errors import IcebergError, check_count
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, load_table
from parquet_variant.tables.iceberg.metadata.manifests import (
    ManifestEntry,
    ManifestFile,
    read_manifest,
    read_manifest_list,
)
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, SnapshotInfo, TableMetadata
from parquet_variant.tables.storage import to_millis


@dataclass(frozen=True)
class Snapshot:
    """A table at one of its snapshots.

    `table`: the table as its catalog had it.
    `info`: the snapshot; None for a table without any.
    `schema`: the current columns, or those of the snapshot where an older one was asked for.
    `branch`: the branch to which changes of this snapshot are committed.
    """

    table: LoadedTable
    info: SnapshotInfo | None
    schema: Schema
    branch: str = MAIN

    def __repr__(self) -> str:
        number = "no snapshot" if self.info is None else f"snapshot {self.info.id}"
        return f"<Snapshot {self.table.name}: {number}, columns {', '.join(self.schema.names)}>"

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata."""
        return self.table.metadata

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot; None for a table without any."""
        return None if self.info is None else self.info.id

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @cached_property
    def manifests(self) -> tuple[ManifestFile, ...]:
        """The manifests of the snapshot."""
        if self.info is None:
            return ()
        if self.info.manifest_list is not None:
            data = self.table.files.read(self.info.manifest_list)
            return tuple(read_manifest_list(data, self.info.manifest_list))
        # Tables of version 1 may list manifests in the metadata; everything else is in the files themselves.
        spec_id = self.metadata.spec.id
        return tuple(ManifestFile(path, 0, spec_id, self.info.id) for path in self.info.manifests)

    def for_tasks(self) -> Snapshot:
        """Return the snapshot as tasks of other processes need it: small, without the history of the table."""
        return replace(self, table=replace(self.table, metadata=self.metadata.without_history()))

    def entries(self, manifest: ManifestFile, columns: frozenset[int] | None = None) -> Iterator[ManifestEntry]:
        """Yield the entries of a manifest, with the metrics of some columns (None for all)."""
        return read_manifest(self.table.files.read(manifest.path), manifest, self.metadata, columns=columns)

    def live_entries(self, *, deletes: bool) -> Iterator[tuple[ManifestFile, ManifestEntry]]:
        """Yield the entries of data files, or of delete files, that are in the snapshot, with their manifests."""
        for manifest in self.manifests:
            if manifest.is_deletes == deletes and manifest.may_be_live:
                for entry in self.entries(manifest):
                    if entry.is_live:
                        yield manifest, entry


# A table as operations take it: a path, a URL, a name in a catalog, or a snapshot of it.
TableLike: TypeAlias = str | os.PathLike[str] | Snapshot


def snapshot(
    table: TableLike | LoadedTable,
    *,
    catalog: CatalogOption = None,
    snapshot_id: int | None = None,
    timestamp: int | str | datetime | None = None,
    branch: str | None = None,
    tag: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Snapshot:
    """Load a table at its newest snapshot, or at another one; see `pv.open`."""
    if isinstance(table, Snapshot):
        return table
    loaded = load_table(table, catalog, storage_options, allow_outside=allow_outside)
    named = {"snapshot_id": snapshot_id, "timestamp": timestamp, "branch": branch, "tag": tag}
    options = [name for name, value in named.items() if value is not None]
    if len(options) > 1:
        raise IcebergError(f"{' and '.join(options)} name a snapshot each: give one of them", reason="bad-argument")
    metadata = loaded.metadata
    if tag is not None:
        snapshot_id = reference_id(metadata, tag, "tag")
    elif timestamp is not None:
        snapshot_id = id_at(metadata, timestamp, loaded.name)
    elif snapshot_id is not None:
        check_count("snapshot_id", snapshot_id)
    else:
        return newest_snapshot(loaded, MAIN if branch is None else branch)
    info, schema = metadata.snapshot(snapshot_id), metadata.schema
    if info.schema_id is not None:  # An older snapshot has the columns that it was written with.
        schema = metadata.schemas.get(info.schema_id, schema)
    return Snapshot(loaded, info, schema)


def newest_snapshot(table: LoadedTable, branch: str = MAIN) -> Snapshot:
    """Return the newest snapshot of a branch, under the table's current schema."""
    metadata = table.metadata
    if branch == MAIN:
        return Snapshot(table, metadata.current_snapshot, metadata.schema)
    info = metadata.snapshot(reference_id(metadata, branch, "branch"))
    return Snapshot(table, info, metadata.schema, branch)


def reference_id(metadata: TableMetadata, name: str, kind: str) -> int:
    """Return the snapshot id of a branch or tag. Raises `IcebergError`: reason ``"unknown-snapshot"``."""
    reference = metadata.references.get(name) if isinstance(name, str) else None
    if reference is None or reference.type != kind:
        names = ", ".join(n for n, r in metadata.references.items() if r.type == kind) or "none"
        raise IcebergError(
            f"unknown {kind} {name!r}: the table has {names}", reason="unknown-snapshot", file=metadata.location
        )
    return reference.snapshot_id


def id_at(metadata: TableMetadata, timestamp: int | str | datetime, name: str) -> int:
    """Return the id of the snapshot that was current at a time, by the snapshot log."""
    moment = to_millis(timestamp, IcebergError)
    snapshot_ids = [snapshot_id for when, snapshot_id in metadata.snapshot_log if when <= moment]
    if not snapshot_ids:
        raise IcebergError(
            f"the table's snapshot log has no snapshot at {timestamp}: it begins later, or its snapshots have expired",
            reason="unknown-snapshot",
            file=name,
        )
    return snapshot_ids[-1]


def history(current: Snapshot, *, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the snapshots of a table, newest first; see `Table.history`."""
    if limit is not None:
        check_count("limit", limit)
    metadata = current.metadata
    line = {info.id for info in metadata.ancestors(current.snapshot_id)}
    references: dict[int, list[str]] = {}
    for name, reference in metadata.references.items():
        references.setdefault(reference.snapshot_id, []).append(name)
    newest_first = sorted(metadata.snapshots.values(), key=lambda info: (info.sequence_number, info.timestamp_ms))[::-1]
    return [
        {
            "snapshot_id": info.id,
            "parent_id": info.parent_id,
            "sequence_number": info.sequence_number,
            "timestamp": info.timestamp_ms,
            "operation": info.operation,
            "summary": dict(info.summary),
            "schema_id": info.schema_id,
            "references": sorted(references.get(info.id, ())),
            "is_current": info.id in line,
        }
        for info in newest_first[:limit]
    ]
