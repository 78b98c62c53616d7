"""Removing files: those that no version within the retention needs, and all that names erased rows.

Owns which files are removed, and the steps of an erasure that are specific to Delta. Leaves the log's own files to
`log.checkpoint`, and rewriting files and the report to `tables.changes.erasing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

from parquet_variant.errors import DeltaError, TableError
from parquet_variant.io.directories import ICEBERG_METADATA, is_inside, table_directories
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.changes.erasing import ErasableTable
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import relative_path, vector_path
from parquet_variant.tables.delta.log.checkpoint import DEFAULT_RETENTION, remove_log_files, write_checkpoint
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.segment import LOG, commit_times
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot, writable_snapshot
from parquet_variant.tables.delta.protocol.actions import DeletionVector
from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY, duration_millis
from parquet_variant.tables.delta.writing.data_files import CHANGE_DATA
from parquet_variant.tables.storage import TABLE_FILE_ENDINGS, Storage, StorageFile, now_millis

_RETENTION = "delta.deletedFileRetentionDuration"
_ICEBERG = "metadata"


def vacuum(
    storage: Storage, *, retention: timedelta | None = None, dry_run: bool = False, force: bool = False
) -> list[str]:
    """Delete the files that the table no longer needs; see `Table.vacuum`."""
    current = writable_snapshot(storage)
    check_not_published(current)
    if not isinstance(retention, timedelta | None):
        raise DeltaError(f"retention is {retention!r}: give a timedelta", reason="bad-option")
    minimum = duration_millis(current.metadata.configuration.get(_RETENTION, DEFAULT_RETENTION))
    keep = minimum if retention is None else int(retention.total_seconds() * 1000)
    if keep < minimum and not force:
        raise DeltaError(
            f"the retention {retention} is shorter than the table's {timedelta(milliseconds=minimum)}: active writers "
            "would lose their files; pass force=True (--force) if there are none",
            reason="retention-too-short",
        )
    removed = files_to_remove(current, now_millis() - keep)
    removed += [f"{LOG}/{name}" for name in dead_temporaries(*current.storage.filesystem(LOG))]
    if removed and not dry_run:
        remove_files(current, removed)
        parameters = {"numDeletedFiles": len(removed), "retentionMillis": keep}
        commit(current.storage, Transaction("VACUUM END", parameters, current=current))
    return sorted(removed)


def check_not_published(current: Snapshot) -> None:
    """Refuse to remove files of a table that `Table.publish` made. Raises `DeltaError`: reason ``"published"``."""
    source = current.metadata.configuration.get(PUBLISHED_FROM_PROPERTY)
    if source is not None:
        raise DeltaError(
            f"{current.storage.uri} was published from {source}, whose files are not all in Delta's log: clean up the "
            f"{source} table instead",
            reason="published",
            file=current.storage.uri,
        )


def files_to_remove(current: Snapshot, cutoff: int, *, tombstones: bool = True) -> list[str]:
    """Return the files that were removed, or written without a commit, at or before a time in milliseconds since 1970.

    Without `tombstones`, files that were removed after the cutoff are returned too, and files that no version in the
    log names only if their name ends as those of tables do.
    """
    files = list(current.storage.list(""))
    needed = _needed_files(current, cutoff if tombstones else None)
    needed |= {current.storage.unlinked(path) for path in needed - {file.path for file in files}}
    unneeded = [file.path for file in _own_files(files) if file.path not in needed and file.modified <= cutoff]
    if tombstones:
        return unneeded
    named = _needed_files(current, -1)
    return [path for path in unneeded if path.endswith(TABLE_FILE_ENDINGS) or path in named]


def _own_files(files: Sequence[StorageFile]) -> list[StorageFile]:
    """Return the files in a table's directory that are not hidden, and not in the directory of another table."""
    other_tables = set(table_directories(file.path for file in files))
    # Iceberg metadata of the same files (`Table.publish`).
    if any(file.path.startswith(f"{_ICEBERG}/") and file.path.endswith(ICEBERG_METADATA) for file in files):
        other_tables.add(_ICEBERG)
    return [
        file for file in files
        if not _is_hidden(file.path) and not is_inside(file.path, other_tables)
    ]  # fmt: skip


def remove_files(current: Snapshot, paths: Iterable[str]) -> None:
    """Delete files of a table."""
    for path in paths:
        current.storage.delete(path)


def _needed_files(current: Snapshot, cutoff: int | None) -> set[str]:
    """Return the files of a version, and those removed after a time unless it is None."""
    tables = [current.files]
    if cutoff is not None:
        stamps = pc.fill_null(current.tombstones["deletionTimestamp"], 0)
        tables.append(current.tombstones.filter(pc.greater(stamps, cutoff)))
    needed: set[str] = set()
    for table in tables:
        for path, vector in zip(table["path"].to_pylist(), table["deletionVector"].to_pylist(), strict=True):
            # A file outside of the table is not among the listed files, but its deletion vector may be.
            with suppress(TableError):
                needed.add(relative_path(current.storage, path))
            with suppress(TableError):
                file = None if vector is None else vector_path(current.storage, DeletionVector.from_dict(vector))
                needed |= set() if file is None else {file}
    return needed


def _is_hidden(path: str) -> bool:
    """Return whether vacuum must keep a file: its name begins with `_` or `.` and it is not in a partition directory.

    Change data is treated as other files that no version holds.
    """
    *directories, name = path.removeprefix(CHANGE_DATA).split("/")
    if name.startswith("_"):
        return True
    if name.startswith("."):
        # Temporary files of a dead writer begin with a dot and end in .tmp.
        return not name.endswith(".tmp") or any(part.startswith("_") for part in directories)
    return any(part.startswith(("_", ".")) and "=" not in part for part in directories)


class ErasableDeltaTable(ErasableTable):
    """The history of a Delta table, from which rows are erased."""

    def __init__(self, storage: Storage) -> None:
        self.current = writable_snapshot(storage)
        self.table = DeltaTable(self.current)

    def version_count(self) -> int:
        """See `ErasableTable.version_count`."""
        check_not_published(self.current)
        return sum(version <= self.current.version for version in commit_times(self.current.storage))

    def recent_files(self, since: int) -> list[str]:
        """See `ErasableTable.recent_files`."""
        named = _needed_files(self.current, -1)
        return [
            file.path
            for file in _own_files(list(self.current.storage.list("")))
            if file.modified > since and file.path.endswith(".parquet") and file.path not in named
            and not file.path.startswith(CHANGE_DATA)
        ]  # fmt: skip

    def remove_history(self, rows: int) -> tuple[DeltaTable, int, int]:
        """See `ErasableTable.remove_history`."""
        storage = self.current.storage
        # A commit of its own, so that the log can begin with a commit that names no file.
        start = commit(storage, Transaction("ERASE", {"numErasedRows": rows}, current=load_snapshot(storage)))
        newest = load_snapshot(storage)
        if newest.version != start.version:
            raise DeltaError(
                f"version {newest.version} was committed by another writer meanwhile: erase again",
                reason="conflict",
                file=storage.uri,
            )
        # Data files go first, while tombstones name them: a killed erasure must not leave files without a commit.
        removed = files_to_remove(newest, now_millis() + 1, tombstones=False)
        remove_files(newest, removed)
        write_checkpoint(newest, tombstones=False)
        # The checkpoint of the newest version exists already, so the table can be read at any time.
        needed = (f"{newest.version:020}.checkpoint", f"{newest.version:020}.json")
        log_files = remove_log_files(
            storage, lambda name: not name[:20].isdigit() or name.startswith(needed), now_millis() + 1
        )
        temporaries = [f"{LOG}/{name}" for name in dead_temporaries(*storage.filesystem(LOG))]
        remove_files(newest, temporaries)
        storage.remove_empty_directories()
        newest = load_snapshot(storage)
        if unnamed := files_to_remove(newest, now_millis() + 1, tombstones=False):
            raise DeltaError(
                f"{unnamed[0]} is left in the table's directory, although no version names it: erase again when no "
                "writer is active",
                reason="not-erased",
                file=unnamed[0],
            )
        return DeltaTable(newest), len(removed), len(log_files) + len(temporaries)
