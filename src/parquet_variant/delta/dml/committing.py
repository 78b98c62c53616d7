"""The commit of rows that changed, planned anew where others came first.

Owns what a change commits, its result, and trying again from the newest version on a conflict, as Delta's rules allow.
Leaves the rules of one commit to `log.commit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from parquet_variant.delta.data.paths import relative_path, vector_path
from parquet_variant.delta.dml.changing import FileChange
from parquet_variant.delta.log.checkpoint import checkpoint_if_due
from parquet_variant.delta.log.commit import Transaction, commit, is_uncommitted
from parquet_variant.delta.log.file_actions import iter_adds
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.protocol.actions import Add, Cdc, Metadata
from parquet_variant.delta.protocol.features import check_writable
from parquet_variant.delta.reading.read import PLACES
from parquet_variant.errors import DeltaError, VariantError

_RETRIES = 20


@dataclass(frozen=True)
class ChangeResult:
    """What a delete, update or merge did.

    Parameters
    ----------
    version
        The table's version afterwards.
    rows_deleted, rows_updated, rows_inserted, rows_copied
        Rows; those copied are written anew as they were.
    files_total, files_opened, files_removed, files_added
        Data files: in the table, those that could hold matches, those that went or changed, those that came.
    """

    version: int
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_total: int = 0
    files_opened: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(frozen=True)
class Change:
    """A change as it is planned on one version."""

    opened: pa.Table  # The files that were looked into: rows of `Snapshot.files`.
    files: Sequence[FileChange]  # What became of each.
    reads: Callable[[pa.Table], bool] | None  # Whether added files may hold rows that it would have read.
    # New files beside those of `files`.
    adds: Sequence[Add] = ()
    change_data: Sequence[Cdc] = ()
    inserted: int = 0  # Rows in them.
    parameters: Mapping[str, Any] = field(default_factory=dict)  # Told in the history.
    metadata: Metadata | None = None  # The table's, if it changes.


def run_change(current: Snapshot, operation: str, plan: Callable[[Snapshot], Change]) -> ChangeResult:
    """Plan a change and commit it; on a conflict drop its files and begin again from the newest version.

    Raises `DeltaError`: ``"append-only"``; ``"too-many-retries"``; and as `plan`.
    """
    problem = ""
    for _ in range(_RETRIES):
        check_writable(current.protocol, current.storage.uri)
        change = plan(current)
        changed = [each for each in change.files if each.changed]
        result = _result(current, change, changed)
        if not changed and not change.adds:
            return result
        try:
            done = commit(current.storage, _transaction(current, operation, change, changed))
        except VariantError as error:
            if is_uncommitted(error):
                _drop(current, change, changed)
            if error.reason != "conflict":
                raise
            problem = error.message
            current = load_snapshot(current.storage)
            continue
        checkpoint_if_due(current, done.version)
        return ChangeResult(**{**vars(result), "version": done.version})
    raise DeltaError(
        f"{_RETRIES} other commits changed the rows that this one is about: try again when fewer writers are at work "
        f"(the last: {problem})",
        reason="too-many-retries",
        file=current.storage.uri,
    )


def _transaction(current: Snapshot, operation: str, change: Change, changed: Sequence[FileChange]) -> Transaction:
    keys = {(each.file.path, each.file.deletion_vector) for each in changed}
    mask = [(each.path, each.deletion_vector) in keys for each in iter_adds(change.opened.select(PLACES))]
    going = change.opened.filter(pa.array(mask, pa.bool_()))
    adds = [add for each in changed for add in each.adds] + list(change.adds)
    return Transaction(
        operation,
        change.parameters,
        adds=adds,
        removes=current.to_removes(going),
        others=[told for each in changed for told in each.change_data] + list(change.change_data),
        metadata=change.metadata,
        reads=change.reads,
        read_paths=frozenset(change.opened["path"].to_pylist()),
        current=current,
    )


def _result(current: Snapshot, change: Change, changed: Sequence[FileChange]) -> ChangeResult:
    return ChangeResult(
        current.version,
        sum(each.deleted for each in changed),
        sum(each.updated for each in changed),
        change.inserted,
        sum(each.copied for each in changed),
        current.num_files,
        len(change.opened),
        len(changed),
        sum(len(each.adds) for each in changed) + len(change.adds),
    )


def _drop(current: Snapshot, change: Change, changed: Sequence[FileChange]) -> None:
    """Remove the files of a change that no commit will name; files that were only marked stay."""
    old = set(change.opened["path"].to_pylist())
    adds = [add for each in changed for add in each.adds] + list(change.adds)
    told = [each for part in changed for each in part.change_data] + list(change.change_data)
    with suppress(OSError, VariantError):
        for path in [add.path for add in adds if add.path not in old] + [each.path for each in told]:
            current.storage.delete(relative_path(current.storage, path))
        for add in adds:
            vector = None if add.deletion_vector is None else vector_path(current.storage, add.deletion_vector)
            if vector is not None and add.path in old:
                current.storage.delete(vector)
