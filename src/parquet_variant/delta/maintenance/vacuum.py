"""Removing files that no version within the retention needs: old data, and what failed or killed writers left.

Owns which files may go. Leaves the log's own files alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.data.paths import relative_path, vector_path
from parquet_variant.delta.log.checkpoint import DEFAULT_RETENTION
from parquet_variant.delta.log.commit import Transaction, commit
from parquet_variant.delta.log.segment import LOG
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.protocol.actions import DeletionVector, now_millis
from parquet_variant.delta.protocol.features import check_writable
from parquet_variant.delta.protocol.table_properties import duration_millis
from parquet_variant.delta.writing.data_files import CHANGE_DATA
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.tables.storage import open_storage

_RETENTION = "delta.deletedFileRetentionDuration"


def vacuum(
    table: str | os.PathLike[str],
    *,
    retention: timedelta | None = None,
    dry_run: bool = False,
    force: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Delete the files that the table no longer needs.

    A file goes if the newest version does not hold it, and it was removed, or (if no version ever held it) written,
    longer ago than the retention. So do temporary files in the log whose writers died. Other tables in directories of
    the table stay.

    Parameters
    ----------
    table
        Path or URL.
    retention
        How long to keep; by default ``delta.deletedFileRetentionDuration``, one week unless set.
    dry_run
        Only tell.
    force
        Allow a retention shorter than the table's: running writers and readers of old versions may then break.
    storage_options
        Configuration of the object store.

    Returns
    -------
    list of str
        The files deleted, relative to the table.

    Raises
    ------
    DeltaError
        Reason ``"retention-too-short"`` without `force`; ``"unsupported-feature"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.vacuum(folder)
    []
    """
    current = load_snapshot(open_storage(table, storage_options))
    check_writable(current.protocol, current.storage.uri)
    least = duration_millis(current.metadata.configuration.get(_RETENTION, DEFAULT_RETENTION))
    keep = least if retention is None else int(retention.total_seconds() * 1000)
    if keep < least and not force:
        raise DeltaError(
            f"retention {retention} is shorter than the table's {timedelta(milliseconds=least)}: writers that are at "
            "work would lose their files; use force if there are none",
            reason="retention-too-short",
        )
    cutoff = now_millis() - keep
    files = list(current.storage.list(""))
    needed = _needed(current, cutoff)
    needed |= {current.storage.unlinked(path) for path in needed - {file.path for file in files}}
    others = {file.path.partition(f"/{LOG}/")[0] for file in files if f"/{LOG}/" in file.path}
    going = [
        file.path
        for file in files
        if not _hidden(file.path) and file.path not in needed and file.modified <= cutoff
        and others.isdisjoint(_parents(file.path))
    ]  # fmt: skip
    going += [f"{LOG}/{name}" for name in dead_temporaries(*current.storage.filesystem(LOG))]
    if not dry_run:
        for path in going:
            current.storage.delete(path)
        if going:
            parameters = {"numDeletedFiles": len(going), "retentionMillis": keep}
            commit(current.storage, Transaction("VACUUM END", parameters, current=current))
    return sorted(going)


def _parents(path: str) -> list[str]:
    """The directories that a file lies in, the table's own apart."""
    return [path[:at] for at, character in enumerate(path) if character == "/"]


def _needed(current: Snapshot, cutoff: int) -> set[str]:
    recent = current.tombstones.filter(pc.greater(pc.fill_null(current.tombstones["deletionTimestamp"], 0), cutoff))
    needed: set[str] = set()
    for table in (current.files, recent):
        for path, vector in zip(table["path"].to_pylist(), table["deletionVector"].to_pylist(), strict=True):
            # A path outside of the table names no file that vacuum looks at; its deletion vector may be inside.
            with suppress(TableError):
                needed.add(relative_path(current.storage, path))
            with suppress(TableError):
                file = None if vector is None else vector_path(current.storage, DeletionVector.from_dict(vector))
                needed |= set() if file is None else {file}
    return needed


def _hidden(path: str) -> bool:
    """What vacuum never touches: names that begin with `_` or `.`, unless a partition column's name does.

    Change data goes as other files do that no version holds: once it is older than the retention.
    """
    *directories, name = path.removeprefix(CHANGE_DATA).split("/")
    if name.startswith("_"):
        return True
    if name.startswith("."):
        # Temporary files of a writer that died begin with a dot and end in .tmp.
        return not name.endswith(".tmp") or any(part.startswith("_") for part in directories)
    return any(part.startswith(("_", ".")) and "=" not in part for part in directories)
