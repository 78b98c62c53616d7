"""Creating, moving and dropping branches and tags, and rolling back the main branch."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from parquet_variant.errors import IcebergError, check_count
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, Reference, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, assert_ref, change_of, set_reference
from parquet_variant.tables.iceberg.reading.snapshot import id_at
from parquet_variant.tables.iceberg.writing.commit import change_metadata
from parquet_variant.tables.iceberg.writing.manifest_changes import undone_batches
from parquet_variant.tables.iceberg.writing.write import CommitResult


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

    after = change_metadata(table, make_change)
    return CommitResult(after.metadata.current_snapshot_id)


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

    after = change_metadata(table, make_change)
    return CommitResult(after.metadata.references[name].snapshot_id)


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

    after = change_metadata(table, make_change)
    return CommitResult(after.metadata.references[name].snapshot_id)
