"""Removing snapshots that the retention policy no longer keeps, and files that no snapshot needs.

Owns the retention policy (specification, "Snapshot Retention Policy"), what is an orphan, and the erasure of rows with
all snapshots, manifests and metadata that name their values. The commit comes first: a process that is killed while it
deletes files leaves orphans, never a snapshot without its files.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.io.directories import ICEBERG_METADATA, is_inside, table_directories
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.support.records import Record
from parquet_variant.tables.changes.operations import ErasableTable
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, Reference, SnapshotInfo, TableMetadata
from parquet_variant.tables.iceberg.reading.snapshot import DeleteIndex, Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing import commit as commits
from parquet_variant.tables.iceberg.writing.write_plan import WriteProperties
from parquet_variant.tables.storage import TABLE_FILE_ENDINGS, now_millis, to_millis

_MAX_AGE, _DEFAULT_MAX_AGE = "history.expire.max-snapshot-age-ms", 432_000_000
_MIN_KEPT, _DEFAULT_MIN_KEPT = "history.expire.min-snapshots-to-keep", 1
_MAX_REF_AGE, _FOREVER = "history.expire.max-ref-age-ms", 2**63 - 1
_ENABLED = "gc.enabled"


class ExpireResult(Record):
    """The result of expiring snapshots.

    Parameters
    ----------
    snapshots
        Ids of the snapshots that were removed.
    files_deleted
        Number of files that were deleted: data, delete files, manifests and manifest lists.
    files
        Their locations.
    """

    snapshots: tuple[int, ...]
    files_deleted: int
    files: tuple[str, ...] = ()


def expire_snapshots(
    table: LoadedTable,
    *,
    older_than: int | str | datetime | None = None,
    retain_last: int | None = None,
    delete_files: bool = True,
    dry_run: bool = False,
) -> ExpireResult:
    """Remove snapshots that the table's retention policy no longer keeps, and the files that only they need.

    See `IcebergTable.expire_snapshots`.
    """
    cutoff = None if older_than is None else to_millis(older_than, IcebergError)
    before: list[TableMetadata] = []

    def make_change(metadata: TableMetadata) -> updates.TableChange | None:
        commits.check_writable(metadata)
        check_deletable(metadata)
        before[:] = [metadata]
        references, retained = _retained(metadata, cutoff, retain_last)
        expired = [number for number in metadata.snapshots if number not in retained]
        dropped = [name for name in metadata.references if name not in references]
        # A branch or tag that moves meanwhile may refer to a snapshot that is to expire.
        requires = updates.requires(metadata, refs=metadata.references)
        return updates.TableChange(updates.removal_of(dropped, expired), requires) if expired or dropped else None

    if dry_run:
        change = make_change(table.metadata)
        metadata = table.metadata if change is None else updates.apply_change(table.metadata, change, None)
        after = replace(table, metadata=metadata)
    else:
        after = commits.change_metadata(table, make_change)
    expired = tuple(number for number in before[0].snapshots if number not in after.metadata.snapshots)
    if not expired or not delete_files:
        return ExpireResult(expired, 0)
    gone = [before[0].snapshots[number] for number in expired]
    try:
        unneeded = files_of(replace(after, metadata=before[0]), gone) - files_of(after)
        if not dry_run:
            after.files.delete(sorted(unneeded))
    except VariantError as error:
        if dry_run:
            raise
        problem = (
            f"{len(expired)} snapshots are expired, but their files cannot be deleted: {error.message}; "
            "remove_orphan_files deletes them"
        )
        raise IcebergError(problem, reason=error.reason, file=error.file) from error
    return ExpireResult(expired, len(unneeded), tuple(sorted(unneeded)))


def check_deletable(metadata: TableMetadata) -> None:
    """Refuse to delete files of a table that shares them. Raises `IcebergError`: reason ``"bad-property"``."""
    if metadata.properties.get(_ENABLED, "true").lower() == "false":
        remedy = "delete files with the table that it was published from"
        problem = f"the table property {_ENABLED} is false, since other tables may have its files: {remedy}"
        raise IcebergError(problem, reason="bad-property")


def _retained(
    metadata: TableMetadata, cutoff: int | None, retain_last: int | None
) -> tuple[dict[str, Reference], set[int]]:
    """Return the references and the snapshots that the retention policy keeps."""
    properties, now = WriteProperties(metadata.properties), now_millis()
    longest = properties.number(_MAX_AGE, _DEFAULT_MAX_AGE)
    fewest = properties.number(_MIN_KEPT, _DEFAULT_MIN_KEPT) if retain_last is None else retain_last
    ref_age = properties.number(_MAX_REF_AGE, _FOREVER)
    references: dict[str, Reference] = {}
    retained: set[int] = set()
    for name, reference in metadata.references.items():
        info = metadata.snapshots.get(reference.snapshot_id)
        limit = ref_age if reference.max_ref_age_ms is None else reference.max_ref_age_ms
        if name != MAIN and (info is None or now - info.timestamp_ms > limit):
            continue
        references[name] = reference
        retained.add(reference.snapshot_id)
        if reference.type == "branch":
            least = fewest if reference.min_snapshots_to_keep is None else reference.min_snapshots_to_keep
            age = longest if reference.max_snapshot_age_ms is None else reference.max_snapshot_age_ms
            oldest = now - age if cutoff is None else cutoff
            for position, ancestor in enumerate(metadata.ancestors(reference.snapshot_id)):
                if ancestor.timestamp_ms < oldest and position >= max(least, 1):
                    break
                retained.add(ancestor.id)
    # Snapshots that no reference reaches, such as those of a rollback, go by age alone.
    reached = {info.id for r in references.values() for info in metadata.ancestors(r.snapshot_id)}
    oldest = now - longest if cutoff is None else cutoff
    retained |= {
        number for number, info in metadata.snapshots.items() if number not in reached and info.timestamp_ms >= oldest
    }
    return references, retained


def files_of(table: LoadedTable, snapshots: Iterable[SnapshotInfo] | None = None) -> set[str]:
    """Return the locations of all files that snapshots (default: all) need, manifests and their lists among them."""
    needed: set[str] = set()
    read: set[str] = set()
    metadata = table.metadata
    snapshots = list(metadata.snapshots.values() if snapshots is None else snapshots)
    for info in snapshots:
        current = Snapshot(table, info, metadata.schema)
        if info.manifest_list is not None:
            needed.add(info.manifest_list)
        for manifest in current.manifests:
            needed.add(manifest.path)
            if manifest.path in read:
                continue
            read.add(manifest.path)
            needed |= {entry.file.path for entry in current.entries(manifest, frozenset())}
    ids = {info.id for info in snapshots}
    for name in ("statistics", "partition-statistics"):
        listed = metadata.document.get(name) or []
        needed |= {str(s["statistics-path"]) for s in listed if s.get("snapshot-id") in ids}
    return needed


_DEFAULT_AGE_MS = 3 * 24 * 3_600_000
_KEPT_NAMES = ("version-hint.text", *ICEBERG_METADATA)


def remove_orphan_files(
    table: LoadedTable, *, older_than: int | str | datetime | None = None, dry_run: bool = False
) -> list[str]:
    """Delete files below the table's location that no snapshot needs, such as those of writes that were killed.

    See `IcebergTable.remove_orphan_files`.
    """
    cutoff = now_millis() - _DEFAULT_AGE_MS if older_than is None else to_millis(older_than, IcebergError)
    check_deletable(table.metadata)
    orphans = [location for location, modified in orphan_files(table) if modified < cutoff]
    if not dry_run:
        table.files.delete(orphans)
    return orphans


def orphan_files(loaded: LoadedTable) -> list[tuple[str, int]]:
    """Return the files below a table's location that no snapshot needs, with the times of their last change.

    Raises `IcebergError`: reason ``"conflict"`` if the table was upgraded meanwhile.
    """
    metadata = loaded.metadata
    listed: dict[str, int] = {}
    root = normal_location(metadata.location).rstrip("/")
    roots = (normal_location(other).rstrip("/") for other in loaded.files.other_roots)
    # Other tables may have files in the same directory elsewhere.
    directories = {f"{root}/data", f"{root}/metadata", *(other for other in roots if other.startswith(f"{root}/"))}
    for directory in directories:
        storage, path = loaded.files.root, directory.removeprefix(f"{root}/")
        files = list(storage.list(path))
        tables = table_directories([file.path for file in files])
        # Temporary files of writers that were killed are orphans from then on.
        dead = {f"{path}/{name}" for name in dead_temporaries(*storage.filesystem(path))} if files else set()
        listed |= {
            f"{root}/{file.path}": 0 if file.path in dead else file.modified
            for file in files
            if not is_inside(file.path, tables)
        }
    # What is needed is found after the listing: a file that a commit adds in between is not listed.
    newest = loaded.refreshed()
    if newest.metadata.version != metadata.version:
        raise IcebergError("the table was upgraded meanwhile: try again", reason="conflict")
    needed = {normal_location(location) for location in files_of(newest)}
    return sorted(
        (location, modified)
        for location, modified in listed.items()
        if location not in needed and not location.endswith(_KEPT_NAMES)
    )


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
            problem = (
                f"the branches and tags {', '.join(references)} keep older snapshots: drop them with "
                "IcebergTable.drop_reference, or pass force=True"
            )
            raise IcebergError(problem, reason="has-references", file=self.current.table.name)
        orphans = orphan_files(self.current.table)
        return [path for path, modified in orphans if modified > since and path.endswith(".parquet")]

    def remove_history(self, rows: int) -> tuple[IcebergTable, int, int]:
        """See `ErasableTable.remove_history`."""
        rewritten = newest_snapshot(self.current.table.refreshed())
        unapplied = [entry for _, entry in rewritten.live_entries(deletes=True)]
        if unapplied:  # Equality deletes name values.
            index = DeleteIndex.of(rewritten)
            data_files = [entry for _, entry in rewritten.live_entries(deletes=False)]
            applied = {
                commits.file_key(delete.file) for entry in data_files for delete in index.of_file(entry).entries()
            }
            unapplied = [entry for entry in unapplied if commits.file_key(entry.file) not in applied]
        # Entries of removed files have bounds, which are values.
        change = commits.SnapshotChange("replace", removed_deletes=tuple(unapplied), rewrites_manifests=True)
        cleaned = commits.commit_snapshot(rewritten, change)

        def make_change(metadata: TableMetadata) -> updates.TableChange | None:
            expired = [number for number in metadata.snapshots if number != cleaned.snapshot_id]
            steps = updates.removal_of([name for name in metadata.references if name != MAIN], expired)
            reference = metadata.references.get(MAIN)
            if reference is None or reference.snapshot_id != cleaned.snapshot_id:
                problem = "another writer committed meanwhile: erase again"
                raise IcebergError(problem, reason="conflict", file=metadata.location)
            return updates.TableChange(steps, updates.requires(metadata, refs=[MAIN])) if steps else None

        after = commits.change_metadata(cleaned.table, make_change)
        unneeded = files_of(cleaned.table) - files_of(after)
        unneeded |= {path for path, _ in orphan_files(after) if path.endswith(TABLE_FILE_ENDINGS)}
        # Older metadata files whose snapshots have a summary by partition, which names values.
        for entry in after.metadata.document.get("metadata-log") or []:
            location = str(entry["metadata-file"])
            with suppress(IcebergError):  # a file that was removed, or is not in the table
                snapshots = TableMetadata.load(after.files.read(location), location).snapshots
                if any(key.startswith(_PARTITION_SUMMARY) for info in snapshots.values() for key in info.summary):
                    unneeded.add(location)
        after.files.delete(sorted(unneeded))
        after.files.remove_empty_directories()
        metadata_files = sum(path.endswith((".avro", *ICEBERG_METADATA)) for path in unneeded)
        return IcebergTable(newest_snapshot(after), "delete"), len(unneeded) - metadata_files, metadata_files
