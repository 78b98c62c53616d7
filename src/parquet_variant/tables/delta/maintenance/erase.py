"""Erasing rows for good: from the table, its older versions, its log and its statistics.

Owns the steps. Leaves rewriting files and the report to `tables.changes.erasing`, and removing files to `vacuum`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from parquet_variant.errors import DeltaError
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.tables.changes.erasing import ErasableTable
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.checkpoint import checkpoint_sidecars, write_checkpoint
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.segment import LOG, commit_path, commit_times
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot, writable_snapshot
from parquet_variant.tables.delta.maintenance.vacuum import (
    check_not_published,
    files_to_remove,
    remove_files,
    uncommitted_since,
)
from parquet_variant.tables.storage import now_millis


class ErasableDeltaTable(ErasableTable):
    """The history of a Delta table, from which rows are erased."""

    def __init__(self, table: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        self.current = writable_snapshot(table, storage_options)
        self.table = DeltaTable(self.current)

    def version_count(self) -> int:
        """See `ErasableTable.version_count`."""
        check_not_published(self.current)
        return sum(version <= self.current.version for version in commit_times(self.current.storage))

    def recent_files(self, since: int) -> list[str]:
        """See `ErasableTable.recent_files`."""
        return uncommitted_since(self.current, since)

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
        log_files = _remove_log(newest)
        storage.remove_empty_directories()
        newest = load_snapshot(storage)
        if unnamed := files_to_remove(newest, now_millis() + 1, tombstones=False):
            raise DeltaError(
                f"{unnamed[0]} is left in the table's directory, although no version names it: erase again when no "
                "writer is active",
                reason="not-erased",
                file=unnamed[0],
            )
        return DeltaTable(newest), len(removed), log_files


def _remove_log(newest: Snapshot) -> int:
    """Remove the files of the log that the newest version does not need, and return their number.

    The checkpoint of the newest version exists already, so the table can be read at any time.
    """
    storage = newest.storage
    prefix = f"{newest.version:020}.checkpoint"
    files = [file.path for file in storage.list(LOG)]
    checkpoints = [path for path in files if path.startswith(f"{LOG}/{prefix}")]
    sidecars = {name for path in checkpoints for name in checkpoint_sidecars(storage, path)}
    removed = [f"{LOG}/{name}" for name in dead_temporaries(*storage.filesystem(LOG))]
    for path in files:
        directory, _, name = path.rpartition("/")
        if directory == f"{LOG}/_sidecars":
            removed += [] if name in sidecars else [path]
        elif directory == LOG and name[:20].isdigit() and path not in (*checkpoints, commit_path(newest.version)):
            removed.append(path)
    for path in sorted(removed):
        storage.delete(path)
    return len(removed)
