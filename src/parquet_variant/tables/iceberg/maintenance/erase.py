"""Erasing rows of Iceberg tables for good: with older snapshots, manifests and everything that names their values.

Owns the steps. Leaves rewriting files and the report to `tables.changes.erasing`, and removing files to `expiration`
and `orphans`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from parquet_variant.errors import IcebergError
from parquet_variant.io.filesystems import ICEBERG_METADATA
from parquet_variant.tables.changes.erasing import ErasableTable
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.maintenance.expiration import check_deletable, files_of, orphan_files
from parquet_variant.tables.iceberg.metadata.manifests import ManifestEntry
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange, assert_ref, change_of, removal_of
from parquet_variant.tables.iceberg.reading.deletes import DeleteIndex
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing.commit import change_metadata, commit_snapshot
from parquet_variant.tables.iceberg.writing.manifest_changes import SnapshotChange, file_key
from parquet_variant.tables.storage import TABLE_FILE_ENDINGS

# Engines add such entries to summaries if the table property `write.summary.partition-limit` is set.
_PARTITION_SUMMARY = "partitions."


class ErasableIcebergTable(ErasableTable):
    """The history of an Iceberg table, from which rows are erased."""

    def __init__(self, current: Snapshot) -> None:
        self.current, self.table = current, IcebergTable(current, "delete")

    def version_count(self) -> int:
        """See `ErasableTable.version_count`."""
        check_deletable(self.current.metadata)
        return len(self.current.metadata.snapshots)

    def recent_files(self, since: int) -> list[str]:
        """See `ErasableTable.recent_files`."""
        references = sorted(name for name in self.current.metadata.references if name != MAIN)
        if references:
            raise IcebergError(
                f"the branches and tags {', '.join(references)} keep older snapshots: drop them with "
                "IcebergTable.drop_reference, or pass force=True (--force)",
                reason="has-references",
                file=self.current.table.name,
            )
        orphans = orphan_files(self.current.table)
        return [path for path, modified in orphans if modified > since and path.endswith(".parquet")]

    def remove_history(self, rows: int) -> tuple[IcebergTable, int, int]:
        """See `ErasableTable.remove_history`."""
        rewritten = newest_snapshot(self.current.table.refreshed())
        # Entries of removed files have bounds, which are values.
        change = SnapshotChange("replace", removed_deletes=_unapplied_deletes(rewritten), rewrites_manifests=True)
        cleaned = commit_snapshot(rewritten, change)
        after = change_metadata(cleaned.table, lambda metadata: _without_history(metadata, cleaned))
        data_files, metadata_files = _remove_files(cleaned.table, after)
        return IcebergTable(newest_snapshot(after), "delete"), data_files, metadata_files


def _unapplied_deletes(current: Snapshot) -> tuple[ManifestEntry, ...]:
    """Return the delete files that apply to no data file any more; equality deletes name values."""
    delete_files = [entry for _, entry in current.live_entries(deletes=True)]
    if not delete_files:
        return ()
    index = DeleteIndex.of(current)
    data_files = [entry for _, entry in current.live_entries(deletes=False)]
    applied = {file_key(delete.file) for entry in data_files for delete in index.of_file(entry).entries()}
    return tuple(entry for entry in delete_files if file_key(entry.file) not in applied)


def _without_history(metadata: TableMetadata, cleaned: Snapshot) -> TableChange | None:
    """Return the change that removes all snapshots but one, and all branches and tags but main."""
    expired = [number for number in metadata.snapshots if number != cleaned.snapshot_id]
    updates = removal_of([name for name in metadata.references if name != MAIN], expired)
    reference = metadata.references.get(MAIN)
    if reference is None or reference.snapshot_id != cleaned.snapshot_id:
        raise IcebergError("another writer committed meanwhile: erase again", reason="conflict", file=metadata.location)
    return change_of(*updates, requires=assert_ref(metadata, MAIN)) if updates else None


def _remove_files(before: LoadedTable, after: LoadedTable) -> tuple[int, int]:
    """Remove all files that the only snapshot does not need; return how many held data, and how many metadata."""
    unneeded = files_of(before) - files_of(after)
    unneeded |= {path for path, _ in orphan_files(after) if path.endswith(TABLE_FILE_ENDINGS)}
    unneeded |= set(_metadata_with_values(after))
    after.files.delete(sorted(unneeded))
    after.files.remove_empty_directories()
    metadata = sum(path.endswith((".avro", *ICEBERG_METADATA)) for path in unneeded)
    return len(unneeded) - metadata, metadata


def _metadata_with_values(table: LoadedTable) -> Iterator[str]:
    """Yield the older metadata files whose snapshots have a summary by partition, which names values."""
    for entry in table.metadata.document.get("metadata-log") or []:
        location = str(entry["metadata-file"])
        with suppress(IcebergError):  # a file that was removed, or is not in the table
            snapshots = TableMetadata.load(table.files.read(location), location).snapshots
            if any(key.startswith(_PARTITION_SUMMARY) for info in snapshots.values() for key in info.summary):
                yield location
