"""Committing: one atomic put-if-absent of a version, retried after commits of other writers.

Owns the transaction, conflict checks, exactly-once application versions, row ids and times of commits (PROTOCOL.md,
"Row Tracking" and "In-Commit Timestamps"). Leaves writing data files to `writing`.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.commits import CommitResult, CommitSteps, best_effort, commit_steps
from parquet_variant.tables.delta.log.file_actions import split_commits
from parquet_variant.tables.delta.log.segment import commit_path, in_commit_time, later_versions
from parquet_variant.tables.delta.log.snapshot import Snapshot, checkpoint_if_due, load_snapshot
from parquet_variant.tables.delta.protocol.actions import (
    Action,
    Add,
    Cdc,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    to_lines,
)
from parquet_variant.tables.delta.protocol.features import enabled, partition_names, supports
from parquet_variant.tables.storage import Storage, now_millis

ROW_TRACKING = "delta.rowTracking"
_TIME = "inCommitTimestamp"
_IN_COMMIT = ("inCommitTimestamp", "delta.enableInCommitTimestamps")


class CommitWatermarks(Record):
    """The highest row id and the latest time of the commits so far."""

    row_id: int | None = None  # The highest assigned row id; None if the table does not track rows.
    time: int | None = None  # The time of the last commit; None if commits do not record theirs.
    enables_times: bool = False  # Whether the next commit is the first one that records its time.

    @classmethod
    def of(cls, storage: Storage, transaction: Any) -> CommitWatermarks:
        """Return the watermarks at the version that a transaction was planned on."""
        current = transaction.current
        protocol = transaction.protocol or (current.protocol if current else None)
        metadata = transaction.metadata or (current.metadata if current else None)
        if protocol is None or metadata is None:
            return cls()
        row_id = None
        is_suspended = metadata.configuration.get("delta.rowTrackingSuspended", "false").lower() == "true"
        if supports(protocol, "rowTracking") and not is_suspended:
            row_id = -1 if current is None else _high_water_mark(current.domains.get(ROW_TRACKING))
        if not enabled(protocol, metadata, *_IN_COMMIT):
            return cls(row_id)
        if current is None or current.version < 0:
            return cls(row_id, 0)
        was_enabled = enabled(current.protocol, current.metadata, *_IN_COMMIT)
        last_time = None if was_enabled else current.timestamp
        with suppress(FileNotFoundError):
            last_time = in_commit_time(storage.read(commit_path(current.version))) if was_enabled else last_time
        return cls(row_id, now_millis() if last_time is None else last_time, not was_enabled)

    def after(self, actions: Iterable[Mapping[str, Any]]) -> CommitWatermarks:
        """Return the watermarks after a commit of another writer."""
        after = self
        for action in actions:
            domain, info = action.get("domainMetadata"), action.get("commitInfo")
            if after.row_id is not None and domain is not None and domain.get("domain") == ROW_TRACKING:
                row_id = _high_water_mark(DomainMetadata.from_dict(domain))
                after = replace(after, row_id=max(after.row_id, row_id))
            if after.time is not None and isinstance(info, dict):
                time = int(info.get(_TIME) or info.get("timestamp") or 0)
                after = replace(after, time=max(after.time, time))
        return after

    def with_row_ids(self, adds: Sequence[Add], version: int) -> tuple[list[Add], DomainMetadata | None]:
        """Return the files with row ids for those that have none, and the new high water mark if it changed."""
        if self.row_id is None:
            return list(adds), None
        row_id, numbered = self.row_id, []
        for add in adds:
            if add.base_row_id is None:
                add = replace(add, base_row_id=row_id + 1)
                if add.num_records is None:
                    problem = f"the statistics of {add.path} have no numRecords, which a table with row tracking needs"
                    raise DeltaError(problem, reason="bad-data-file")
                row_id += add.num_records
            if add.default_row_commit_version is None:
                add = replace(add, default_row_commit_version=version)
            numbered.append(add)
        if row_id == self.row_id:
            return numbered, None
        configuration = json.dumps({"rowIdHighWaterMark": row_id}, separators=(",", ":"))
        return numbered, DomainMetadata(ROW_TRACKING, configuration)


def _high_water_mark(domain: DomainMetadata | None) -> int:
    if domain is None:
        return -1
    try:
        return int(json.loads(domain.configuration)["rowIdHighWaterMark"])
    except (ValueError, KeyError, TypeError):
        problem = f"the metadata domain {ROW_TRACKING} has no rowIdHighWaterMark, so new rows cannot get ids"
        raise DeltaError(problem, reason="broken-log") from None


_ENGINE = "parquet-variant"
_RETRIES = 1000
_MAX_WAIT_SECONDS = 0.1

# Return the transaction planned again on a newer snapshot.
Rebase: TypeAlias = "Callable[[Snapshot], Transaction]"


class Transaction(Record):
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
    rows: Mapping[str, int] = field(default_factory=dict)  # Numbers of rows, for the metrics of the history.


def commit(
    storage: Storage,
    transaction: Transaction | Callable[[], Transaction],
    *,
    rebase: Rebase | None = None,
    written: Sequence[str] = (),
) -> CommitResult:
    """Commit a transaction at the first free version after the one that it was planned on; write a due checkpoint.

    `transaction`: the content, or a function that returns it; its data files exist already.
    `rebase`: plans again on the newest snapshot on a conflict; without it, a conflict raises an error.
    `written`: files that only this transaction names; they are removed if it was certainly not committed.
    Raises `DeltaError`: reason ``"exists"`` if the table to create exists; ``"conflict"``; ``"too-many-retries"``; then
    nothing was committed. ``"unknown-outcome"`` if it may have been committed.
    """

    def discard() -> None:
        for path in written:
            storage.delete(path)

    with commit_steps(storage.uri, discard) as steps:
        content = transaction if isinstance(transaction, Transaction) else transaction()
        result = _Attempts(storage, content, steps).run(rebase)
    if not result.committed:
        best_effort(discard)
    elif content.current is not None:
        checkpoint_if_due(content.current, result.version)
    return result


class _Attempts:
    """The attempts to commit a transaction: other commits are checked, and the next version is put."""

    def __init__(self, storage: Storage, transaction: Transaction, steps: CommitSteps) -> None:
        self.storage, self.steps, self.identity = storage, steps, uuid.uuid4().hex
        self._plan(transaction)

    def _plan(self, transaction: Transaction) -> None:
        current = transaction.current
        self.transaction = transaction
        self.version = 0 if current is None else current.version + 1
        self.watermarks = CommitWatermarks.of(self.storage, transaction)
        self.partition_names = () if current is None else partition_names(current.protocol, current.metadata)

    def run(self, rebase: Rebase | None) -> CommitResult:
        """Return the result of the first attempt that succeeds."""
        if self._is_recorded_already():
            return CommitResult(load_snapshot(self.storage, files=False).version, committed=False)
        for lost_races in range(_RETRIES):
            if lost_races > 1:
                # Writers that lost the same race should not retry at the same moment.
                time.sleep(random.uniform(0, min(_MAX_WAIT_SECONDS, 0.002 * 2**lost_races)))
            result = self._after_other_commits(rebase)
            if result is not None:
                return result
            if self.steps.swap(self._put):
                return CommitResult(self.version)
        problem = f"{_RETRIES} other commits came first: try again when fewer writers are active"
        raise DeltaError(problem, reason="too-many-retries", file=self.storage.uri)

    def _is_recorded_already(self) -> bool:
        transaction = self.transaction
        if transaction.txn is None or transaction.current is None:
            return False
        newest = load_snapshot(self.storage, files=False)
        return _is_recorded(transaction.txn, newest.txns.get(transaction.txn.app_id))

    def _after_other_commits(self, rebase: Rebase | None) -> CommitResult | None:
        """Check and pass the versions of other writers; return a result if one has the application's version."""
        uri, is_new = self.storage.uri, self.transaction.current is None
        for version in later_versions(self.storage, self.version - 1):
            data, conflict = None, ""
            with suppress(FileNotFoundError):
                # After a cleanup the name of the commit file may be free, although the version was taken.
                data = self.storage.read(commit_path(version)) if version == self.version and not is_new else None
            if data is not None:
                other = _OtherCommit(data, self.partition_names)
                txn = self.transaction.txn
                if txn is not None and _is_recorded(txn, other.txns.get(txn.app_id)):
                    return CommitResult(version, committed=False)
                conflict = _conflict(self.transaction, other) or ""
            elif not is_new:
                problem = f"the log no longer holds version {self.version}: read the table again"
                raise DeltaError(problem, reason="conflict", file=uri)
            if rebase is not None and (is_new or conflict):
                self._plan(rebase(load_snapshot(self.storage)))
                return CommitResult(self.version - 1, committed=False) if self._is_recorded_already() else None
            if is_new:
                raise table_exists(self.storage)
            if conflict:
                problem = f"version {version} {conflict}: read the table again and retry"
                raise DeltaError(problem, reason="conflict", file=uri)
            self.watermarks = self.watermarks.after(other.actions)
            self.version += 1
        return None

    def _put(self) -> bool:
        """Put the next version; return False if another writer did."""
        path = commit_path(self.version)
        lines = to_lines(_actions(self.transaction, self.identity, self.version, self.watermarks))
        if self.storage.put_if_absent(path, lines):
            return True
        try:
            # The put may have succeeded although an object store's first answer was lost.
            return self.identity.encode() in self.storage.read(path)
        except (OSError, VariantError) as error:
            problem = f"it is unknown if {path} was committed ({error}): check the history"
            raise DeltaError(problem, reason="unknown-outcome", file=self.storage.uri) from None


def table_exists(storage: Storage) -> DeltaError:
    """Return the error for a table to create that exists."""
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
    recorded = [action for action in transaction.other_actions if isinstance(action, Txn)]
    if shared := [txn.app_id for txn in recorded if _is_recorded(txn, other.txns.get(txn.app_id))]:
        return f"recorded {shared[0]}, as this commit does"
    domains = {action.domain for action in transaction.other_actions if isinstance(action, DomainMetadata)}
    if shared := sorted(domains & other.domains):
        return f"changed the domain {shared[0]}"
    if transaction.reads is not None and len(other.added) and transaction.reads(other.added):
        return "added rows that this change would have read"
    return None


def _is_recorded(txn: Txn, recorded: Txn | None) -> bool:
    return recorded is not None and recorded.version >= txn.version


def _actions(transaction: Transaction, identity: str, version: int, watermarks: CommitWatermarks) -> list[Action]:
    now, metadata = now_millis(), transaction.metadata
    adds, row_tracking = watermarks.with_row_ids(transaction.adds, version)
    info: dict[str, Any] = {}
    if watermarks.time is not None:
        info[_TIME] = max(now, watermarks.time + 1)
        if watermarks.enables_times and metadata is not None:
            enablement = {
                "delta.inCommitTimestampEnablementVersion": str(version),
                "delta.inCommitTimestampEnablementTimestamp": str(info[_TIME]),
            }
            metadata = replace(metadata, configuration={**metadata.configuration, **enablement})
    only_appends = not transaction.removes and transaction.protocol is None and transaction.metadata is None
    info |= {
        "timestamp": now,
        "operation": transaction.operation,
        "operationParameters": {
            name: value if isinstance(value, str) else json.dumps(value, default=os.fspath)
            for name, value in transaction.parameters.items()
        },
        "isolationLevel": "Serializable",
        "isBlindAppend": only_appends and bool(transaction.adds),
        "operationMetrics": _metrics(transaction),
        "engineInfo": _ENGINE,
        "txnId": identity,
    }
    if transaction.current is not None:
        info["readVersion"] = transaction.current.version
    if watermarks.row_id is not None:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    actions: list[Action] = [CommitInfo(info)]
    optional = (transaction.protocol, metadata, transaction.txn, row_tracking)
    actions += [action for action in optional if action is not None]
    return [*actions, *transaction.other_actions, *transaction.removes, *adds]


def _metrics(transaction: Transaction) -> dict[str, str]:
    """Return the metrics of a commit by the names that delta-spark gives them."""
    readded = {add.path for add in transaction.adds} & {remove.path for remove in transaction.removes}
    added = [add.size for add in transaction.adds if add.path not in readded]
    removed = [remove.size or 0 for remove in transaction.removes if remove.path not in readded]
    rows, operation = transaction.rows, transaction.operation
    vectors = {
        "Added": sum(add.deletion_vector is not None for add in transaction.adds),
        "Removed": sum(remove.deletion_vector is not None for remove in transaction.removes),
    }
    changes = sum(isinstance(action, Cdc) for action in transaction.other_actions)
    if operation == "RESTORE" and transaction.current is not None:
        sizes = transaction.current.files["size"].to_pylist()
        metrics = {
            "numRestoredFiles": len(transaction.adds),
            "restoredFilesSize": sum(add.size for add in transaction.adds),
            "numRemovedFiles": len(transaction.removes),
            "removedFilesSize": sum(remove.size or 0 for remove in transaction.removes),
        }
        metrics["numOfFilesAfterRestore"] = len(sizes) + metrics["numRestoredFiles"] - metrics["numRemovedFiles"]
        metrics["tableSizeAfterRestore"] = sum(sizes) + metrics["restoredFilesSize"] - metrics["removedFilesSize"]
    elif operation == "MERGE":
        metrics = {f"numTargetRows{name.title()}": count for name, count in rows.items() if name != "source"}
        metrics |= {"numSourceRows": rows.get("source", 0), "numTargetChangeFilesAdded": changes}
        metrics["numOutputRows"] = sum(rows.get(name, 0) for name in ("inserted", "updated", "copied"))
        metrics |= {"numTargetFilesAdded": len(added), "numTargetBytesAdded": sum(added)}
        metrics |= {"numTargetFilesRemoved": len(removed), "numTargetBytesRemoved": sum(removed)}
        metrics |= {f"numTargetDeletionVectors{name}": count for name, count in vectors.items()}
    elif operation in ("DELETE", "UPDATE", "OPTIMIZE"):
        metrics = {f"num{name.title()}Rows": count for name, count in rows.items() if count}
        metrics |= {"numAddedFiles": len(added), "numAddedBytes": sum(added), "numAddedChangeFiles": changes}
        metrics |= {"numRemovedFiles": len(removed), "numRemovedBytes": sum(removed)}
        metrics |= {f"numDeletionVectors{name}": count for name, count in vectors.items()}
    else:
        counts = [add.num_records for add in transaction.adds]
        metrics = {"numFiles": len(added), "numOutputBytes": sum(added)}
        metrics |= {"numRemovedFiles": len(removed), "numRemovedBytes": sum(removed)} if removed else {}
        metrics |= {} if None in counts else {"numOutputRows": sum(count or 0 for count in counts)}
    return {name: str(count) for name, count in metrics.items()}
