"""Committing: one atomic put-if-absent of a version, retried after commits of other writers.

Owns the transaction, conflict checks and exactly-once application versions. Leaves row ids and times of commits to
`watermarks`, and writing data files to `writing`.

What other writers may commit in between depends on what a transaction relies on:

- always: protocol and metadata are as they were read (even a plain append does not tolerate a change);
- a transaction that removes files: each of them still exists;
- a transaction about all rows (overwrite, restore, dropping a feature): no file was added or removed;
- a transaction with an application version: no other commit recorded the same version or a later one; otherwise
  nothing is committed.
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.data.paths import relative_path
from parquet_variant.tables.delta.log.file_actions import split_commits
from parquet_variant.tables.delta.log.segment import commit_path, later_versions
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.log.watermarks import CommitWatermarks
from parquet_variant.tables.delta.protocol.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    now_millis,
    to_lines,
)
from parquet_variant.tables.delta.protocol.features import partition_names
from parquet_variant.tables.storage import Storage, is_uncommitted

_ENGINE = "parquet-variant"
_RETRIES = 1000
_MAX_WAIT_SECONDS = 0.5

# Return the transaction planned again on a newer snapshot.
Rebase: TypeAlias = "Callable[[Snapshot], Transaction]"


@dataclass(frozen=True)
class CommitResult:
    """The result of a commit.

    Parameters
    ----------
    version
        The version that contains the transaction.
    committed
        False if nothing was committed, because the same application version had been committed before.
    """

    version: int
    committed: bool


@dataclass(frozen=True)
class Transaction:
    """The content of one commit."""

    # Recorded in the commit's `commitInfo`.
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # File actions.
    adds: Sequence[Add] = ()
    removes: Sequence[Remove] = ()
    # Set if they change.
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    other_actions: Sequence[Action] = ()
    txn: Txn | None = None  # Application id and version, for exactly-once writes.
    reads_table: bool = False  # Whether it depends on all rows, so that a concurrent append is a conflict.
    # Return whether added files (as `FILE_SCHEMA`) may hold rows that it would have read; None if it reads no rows.
    reads: Callable[[pa.Table], bool] | None = None
    # The inspected files, by path in the log: their removal is a conflict.
    read_paths: frozenset[str] = frozenset()
    current: Snapshot | None = None  # The snapshot that it was planned on; None for the first commit.

    @property
    def read_version(self) -> int | None:
        """The version that it was planned on."""
        return None if self.current is None else self.current.version

    @property
    def is_blind(self) -> bool:
        """Whether it only appends, and so does not depend on files that others add or remove."""
        return not self.removes and self.protocol is None and self.metadata is None


@contextmanager
def removed_unless_committed(storage: Storage, adds: Iterable[Add]) -> Iterator[None]:
    """Remove files that were written for a commit if the commit has certainly failed."""
    try:
        yield
    except VariantError as error:
        if is_uncommitted(error):
            with suppress(OSError, VariantError):
                for add in adds:
                    storage.delete(relative_path(storage, add.path))
        raise


def commit(
    storage: Storage, transaction: Transaction, *, rebase: Rebase | None = None, retries: int = _RETRIES
) -> CommitResult:
    """Commit a transaction at the first free version after the one that it was planned on.

    `transaction`: the content; its data files exist already.
    `rebase`: called with the newest snapshot on a conflict that planning again can resolve; without it, a conflict
      raises an error.
    `retries`: the maximum number of lost races.
    Raises `DeltaError`: reason ``"exists"`` if the table to create exists; ``"conflict"`` if another commit changed
    what the transaction relies on; ``"too-many-retries"``. In these cases nothing was committed.
    """
    identity = uuid.uuid4().hex
    version = 0 if transaction.read_version is None else transaction.read_version + 1
    if transaction.txn is not None and transaction.read_version is not None:
        newest = load_snapshot(storage, files=False)
        if _is_recorded(transaction.txn, newest.txns.get(transaction.txn.app_id)):
            return CommitResult(newest.version, committed=False)
    later = later_versions(storage, version - 1)
    if later and later[0] != version:
        # A cleanup removed the commit file: its name is free, but the version was taken.
        if transaction.read_version is None:
            raise _exists(storage)
        raise DeltaError(
            f"the log no longer holds version {version}: read the table again", reason="conflict", file=storage.uri
        )
    taken, lost_races = set(later), 0
    watermarks = CommitWatermarks.of(storage, transaction)
    while lost_races < retries:
        if version not in taken:
            lines = to_lines(_actions(transaction, identity, version, watermarks))
            if storage.put_if_absent(commit_path(version), lines):
                return CommitResult(version, committed=True)
            lost_races += 1
        winner = storage.read(commit_path(version))
        if identity.encode() in winner:
            # The put succeeded, but its answer was lost.
            return CommitResult(version, committed=True)
        if transaction.read_version is None:
            raise _exists(storage)
        current = transaction.current
        other = _OtherCommit(winner, [] if current is None else partition_names(current.protocol, current.metadata))
        watermarks = watermarks.after(other.actions)
        if transaction.txn is not None and _is_recorded(transaction.txn, other.txns.get(transaction.txn.app_id)):
            return CommitResult(version, committed=False)
        conflict = _conflict(transaction, other)
        if conflict is None:
            version += 1
        elif rebase is not None:
            transaction = rebase(load_snapshot(storage))
            watermarks = CommitWatermarks.of(storage, transaction)
            version = (transaction.read_version or 0) + 1
        else:
            raise DeltaError(
                f"version {version} {conflict}: read the table again and retry", reason="conflict", file=storage.uri
            )
        if lost_races > 1:
            # Writers that lost the same race should not retry at the same moment.
            time.sleep(random.uniform(0, min(_MAX_WAIT_SECONDS, 0.002 * 2 ** min(lost_races, 8))))
    raise DeltaError(
        f"{retries} other commits came first: try again when fewer writers are active",
        reason="too-many-retries",
        file=storage.uri,
    )


def _exists(storage: Storage) -> DeltaError:
    return DeltaError(
        f"{storage.uri} is a Delta table already: append to it, or choose another path",
        reason="exists",
        file=storage.uri,
    )


class _OtherCommit:
    """The changes in a commit of another writer."""

    def __init__(self, data: bytes, names: Sequence[str]) -> None:
        lines = split_commits(data)
        actions, files = lines.other_actions, lines.table(names)
        self.actions = actions
        self.added = files.filter(pc.and_(files["isAdd"], pc.fill_null(files["dataChange"], True)))
        self.protocol = any("protocol" in action for action in actions)
        self.metadata = any("metaData" in action for action in actions)
        self.txns = {a["txn"]["appId"]: Txn.from_dict(a["txn"]) for a in actions if "txn" in a}
        self.domains = {a["domainMetadata"]["domain"] for a in actions if "domainMetadata" in a}
        rows = zip(files["isAdd"].to_pylist(), files["path"].to_pylist(), strict=True)
        self.changes_files = len(files) > 0
        self.removed = {unquote(path) for is_add, path in rows if not is_add}


def _conflict(transaction: Transaction, other: _OtherCommit) -> str | None:
    """Return what another commit changed that the transaction relies on, as the end of a sentence."""
    if other.protocol:
        return "changed the table's protocol"
    if other.metadata:
        return "changed the table's schema or properties"
    if transaction.reads_table and other.changes_files:
        return "changed the table's rows"
    touched = {unquote(r.path) for r in transaction.removes} | {unquote(path) for path in transaction.read_paths}
    if removed := sorted(touched & other.removed):
        return f"removed the file {removed[0]}"
    domains = {action.domain for action in transaction.other_actions if isinstance(action, DomainMetadata)}
    if shared := sorted(domains & other.domains):
        return f"changed the domain {shared[0]}"
    if transaction.reads is not None and len(other.added) and transaction.reads(other.added):
        return "added rows that this change would have read"
    return None


def _is_recorded(txn: Txn, recorded: Txn | None) -> bool:
    """Return whether a table has recorded an application's version, or a later one."""
    return recorded is not None and recorded.version >= txn.version


def _actions(transaction: Transaction, identity: str, version: int, watermarks: CommitWatermarks) -> list[Action]:
    now = now_millis()
    adds, row_tracking = watermarks.with_row_ids(transaction.adds, version)
    metadata, commit_time = watermarks.with_time(transaction.metadata, version, now)
    info: dict[str, Any] = {} if commit_time is None else {"inCommitTimestamp": commit_time}
    info |= {
        "timestamp": now,
        "operation": transaction.operation,
        "operationParameters": {name: _text(value) for name, value in transaction.parameters.items()},
        "isolationLevel": "Serializable",
        "isBlindAppend": transaction.is_blind and bool(transaction.adds),
        "operationMetrics": _metrics(transaction),
        "engineInfo": _ENGINE,
        "txnId": identity,
    }
    if transaction.read_version is not None:
        info["readVersion"] = transaction.read_version
    if watermarks.row_id is not None:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    actions: list[Action] = [CommitInfo(info)]
    optional = (transaction.protocol, metadata, transaction.txn, row_tracking)
    actions += [action for action in optional if action is not None]
    return [*actions, *transaction.other_actions, *transaction.removes, *adds]


def _metrics(transaction: Transaction) -> dict[str, str]:
    metrics = {
        "numFiles": len(transaction.adds),
        "numRemovedFiles": len(transaction.removes),
        "numOutputBytes": sum(add.size for add in transaction.adds),
    }
    rows = [add.num_records for add in transaction.adds]
    if None not in rows:
        metrics["numOutputRows"] = sum(count or 0 for count in rows)
    return {name: str(value) for name, value in metrics.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=os.fspath)
