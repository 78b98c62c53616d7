"""Committing: one atomic put-if-absent of a version, retried against what others committed meanwhile.

Owns the transaction, conflict checks, exactly-once application versions, and what every commit of some tables must
tell, as it stands after each commit of others: row ids of new files (base ids, high water mark), and a time that only
rises. Leaves writing data files to `write`.

What may happen concurrently is checked by what a transaction relies on:

- always: protocol and metadata are as they were read (a plain append tolerates neither changing);
- a transaction that removes files: each of them is still there;
- a transaction about every row (overwrite, restore, dropping a feature): no file was added or removed;
- a transaction with an application version: no other commit recorded the same or a later one (then it is a no-op).
"""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.file_actions import split_commits
from parquet_variant.delta.log.segment import commit_path, in_commit_time, later_versions
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.delta.protocol.actions import (
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
from parquet_variant.delta.protocol.features import enabled, partition_names, supports
from parquet_variant.errors import DeltaError, VariantError
from parquet_variant.tables.storage import Storage, is_uncommitted

ROW_TRACKING = "delta.rowTracking"
_TIME = "inCommitTimestamp"


@dataclass(frozen=True)
class Told:
    """What the commits so far tell, of what the next one must go beyond."""

    mark: int | None = None  # The highest row id that was given; None if the table does not track rows.
    last: int | None = None  # The time of the last commit; None if commits need not tell theirs.
    enabling: bool = False  # Whether this commit is the first that tells its time.

    @classmethod
    def begin(cls, storage: Storage, transaction: Transaction) -> Told:
        """What is told at the version that a transaction was planned on."""
        current = transaction.current
        protocol = transaction.protocol or (current.protocol if current else None)
        metadata = transaction.metadata or (current.metadata if current else None)
        if protocol is None or metadata is None:
            return cls()
        mark = None
        suspended = metadata.configuration.get("delta.rowTrackingSuspended", "false").lower() == "true"
        if supports(protocol, "rowTracking") and not suspended:
            mark = -1 if current is None else _mark(current.domains.get(ROW_TRACKING))
        if not enabled(protocol, metadata, "inCommitTimestamp", "delta.enableInCommitTimestamps"):
            return cls(mark)
        if current is None or current.version < 0:
            return cls(mark, 0)
        before = enabled(current.protocol, current.metadata, "inCommitTimestamp", "delta.enableInCommitTimestamps")
        last = None if before else current.timestamp
        with suppress(FileNotFoundError):
            last = in_commit_time(storage.read(commit_path(current.version))) if before else last
        return cls(mark, now_millis() if last is None else last, not before)

    def after(self, actions: Iterable[Mapping[str, Any]]) -> Told:
        """What is told after a commit of somebody else."""
        after = self
        for action in actions:
            domain, info = action.get("domainMetadata"), action.get("commitInfo")
            if after.mark is not None and domain is not None and domain.get("domain") == ROW_TRACKING:
                after = replace(after, mark=max(after.mark, _mark(DomainMetadata.from_dict(domain))))
            if after.last is not None and isinstance(info, dict):
                after = replace(after, last=max(after.last, int(info.get(_TIME) or info.get("timestamp") or 0)))
        return after

    def with_row_ids(self, adds: Sequence[Add], version: int) -> tuple[list[Add], DomainMetadata | None]:
        """The files with ids for their rows where they have none yet, and the new high water mark."""
        if self.mark is None:
            return list(adds), None
        mark, numbered = self.mark, []
        for add in adds:
            if add.base_row_id is None:
                add = replace(add, base_row_id=mark + 1)
                if add.num_records is None:
                    raise DeltaError(
                        f"the file {add.path} tells no numRecords, which a table that tracks rows needs",
                        reason="bad-data-file",
                    )
                mark += add.num_records
            if add.default_row_commit_version is None:
                add = replace(add, default_row_commit_version=version)
            numbered.append(add)
        if mark == self.mark:
            return numbered, None
        return numbered, DomainMetadata(ROW_TRACKING, json.dumps({"rowIdHighWaterMark": mark}, separators=(",", ":")))

    def with_time(self, metadata: Metadata | None, version: int, now: int) -> tuple[Metadata | None, int | None]:
        """The commit's own time, and the metadata that says since when commits tell it."""
        if self.last is None:
            return metadata, None
        at = max(now, self.last + 1)
        if self.enabling and metadata is not None:
            since = {
                "delta.inCommitTimestampEnablementVersion": str(version),
                "delta.inCommitTimestampEnablementTimestamp": str(at),
            }
            metadata = replace(metadata, configuration={**metadata.configuration, **since})
        return metadata, at


def _mark(domain: DomainMetadata | None) -> int:
    if domain is None:
        return -1
    try:
        return int(json.loads(domain.configuration)["rowIdHighWaterMark"])
    except (ValueError, KeyError, TypeError):
        raise DeltaError(
            "the domain delta.rowTracking tells no rowIdHighWaterMark, so no row can get an id", reason="broken-log"
        ) from None


_ENGINE = "parquet-variant"
_RETRIES = 1000
_MAX_WAIT_SECONDS = 0.5

# Makes the transaction anew for a snapshot that others moved on to.
Rebase: TypeAlias = "Callable[[Snapshot], Transaction]"


@dataclass(frozen=True)
class CommitResult:
    """What came of a transaction.

    Parameters
    ----------
    version
        The version that holds it.
    committed
        False if an earlier attempt (the same application version) had committed it already.
    """

    version: int
    committed: bool


@dataclass(frozen=True)
class Transaction:
    """What one commit is to hold."""

    # Told in the commit's `commitInfo`.
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # File actions.
    adds: Sequence[Add] = ()
    removes: Sequence[Remove] = ()
    # Set when they change.
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    others: Sequence[Action] = ()
    txn: Txn | None = None  # Application id and version, for exactly-once.
    # Whether it is about every row of the table, so that a row appended meanwhile is a conflict.
    reads_table: bool = False
    # Whether one of some added files (as `FILE_SCHEMA`) may hold rows that it would have read; None if it reads none.
    reads: Callable[[pa.Table], bool] | None = None
    # The files, by path in the log, that it has looked into: their removal is a conflict.
    read_paths: frozenset[str] = frozenset()
    # The table that it was planned on, for what every commit must say of row ids and time; None for the first commit.
    current: Snapshot | None = None

    @property
    def read_version(self) -> int | None:
        """The version that it was planned on."""
        return None if self.current is None else self.current.version

    @property
    def blind(self) -> bool:
        """Whether it only appends, and so depends on nothing that others append or remove."""
        return not self.removes and self.protocol is None and self.metadata is None


@contextmanager
def removed_unless_committed(storage: Storage, adds: Iterable[Add]) -> Iterator[None]:
    """Remove files that were written for a commit, if it fails for certain."""
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

    `transaction`: what to commit; its data files are in place already.
    `rebase`: called on a conflict that a new plan solves, with the newest snapshot; without it the conflict is an
      error.
    `retries`: how many lost races to take before giving up.
    Raises `DeltaError`: reason ``"exists"`` if a table is to be created where one is; ``"conflict"`` if another commit
    changed what this one relies on; ``"too-many-retries"``. The table is then as the others left it.
    """
    identity = uuid.uuid4().hex
    version = 0 if transaction.read_version is None else transaction.read_version + 1
    if transaction.txn is not None and transaction.read_version is not None:
        done = load_snapshot(storage, files=False)
        if _already(transaction.txn, done.txns.get(transaction.txn.app_id)):
            return CommitResult(done.version, committed=False)
    later = later_versions(storage, version - 1)
    if later and later[0] != version:
        # Cleaned up by somebody: the name is free, but the version was taken long ago.
        if transaction.read_version is None:
            raise _exists(storage)
        raise DeltaError(
            f"the log no longer holds version {version}: read the table again", reason="conflict", file=storage.uri
        )
    taken, lost = set(later), 0
    told = Told.begin(storage, transaction)
    while lost < retries:
        if version not in taken:
            if storage.put_if_absent(commit_path(version), to_lines(_actions(transaction, identity, version, told))):
                return CommitResult(version, committed=True)
            lost += 1
        winner = storage.read(commit_path(version))
        if identity.encode() in winner:
            # Our own put had arrived although its answer got lost.
            return CommitResult(version, committed=True)
        if transaction.read_version is None:
            raise _exists(storage)
        current = transaction.current
        seen = _Seen(winner, [] if current is None else partition_names(current.protocol, current.metadata))
        told = told.after(seen.others)
        if transaction.txn is not None and _already(transaction.txn, seen.txns.get(transaction.txn.app_id)):
            return CommitResult(version, committed=False)
        problem = _conflict(transaction, seen)
        if problem is None:
            version += 1
        elif rebase is not None:
            transaction = rebase(load_snapshot(storage))
            told = Told.begin(storage, transaction)
            version = (transaction.read_version or 0) + 1
        else:
            raise DeltaError(f"version {version} {problem}: read the table again and retry", reason="conflict").at(
                file=storage.uri
            )
        if lost > 1:
            # Many writers that lost together should not all come back together.
            time.sleep(random.uniform(0, min(_MAX_WAIT_SECONDS, 0.002 * 2 ** min(lost, 8))))
    raise DeltaError(f"{retries} other commits came first", reason="too-many-retries", file=storage.uri)


def _exists(storage: Storage) -> DeltaError:
    return DeltaError(f"{storage.uri} is a Delta table already", reason="exists", file=storage.uri)


class _Seen:
    """What a commit of somebody else did."""

    def __init__(self, data: bytes, names: Sequence[str]) -> None:
        lines = split_commits(data)
        others, files = lines.others, lines.table(names)
        self.others = others
        self.added = files.filter(pc.and_(files["isAdd"], pc.fill_null(files["dataChange"], True)))
        self.protocol = any("protocol" in action for action in others)
        self.metadata = any("metaData" in action for action in others)
        self.txns = {a["txn"]["appId"]: Txn.from_dict(a["txn"]) for a in others if "txn" in a}
        self.domains = {a["domainMetadata"]["domain"] for a in others if "domainMetadata" in a}
        rows = zip(files["isAdd"].to_pylist(), files["path"].to_pylist(), strict=True)
        self.changed = len(files) > 0
        self.removed = {unquote(path) for is_add, path in rows if not is_add}


def _conflict(transaction: Transaction, seen: _Seen) -> str | None:
    if seen.protocol:
        return "changed the table's protocol"
    if seen.metadata:
        return "changed the table's schema or properties"
    if transaction.reads_table and seen.changed:
        return "changed the table's rows"
    touched = {unquote(r.path) for r in transaction.removes} | {unquote(path) for path in transaction.read_paths}
    if gone := sorted(touched & seen.removed):
        return f"removed the file {gone[0]}"
    mine = {each.domain for each in transaction.others if isinstance(each, DomainMetadata)}
    if both := sorted(mine & seen.domains):
        return f"changed the domain {both[0]}"
    if transaction.reads is not None and len(seen.added) and transaction.reads(seen.added):
        return "added rows that this one would have read"
    return None


def _already(txn: Txn, known: Txn | None) -> bool:
    return known is not None and known.version >= txn.version


def _actions(transaction: Transaction, identity: str, version: int, told: Told) -> list[Action]:
    now = now_millis()
    adds, tracked = told.with_row_ids(transaction.adds, version)
    metadata, at = told.with_time(transaction.metadata, version, now)
    info: dict[str, Any] = {} if at is None else {"inCommitTimestamp": at}
    info |= {
        "timestamp": now,
        "operation": transaction.operation,
        "operationParameters": {k: _text(v) for k, v in transaction.parameters.items()},
        "isolationLevel": "Serializable",
        "isBlindAppend": transaction.blind and bool(transaction.adds),
        "operationMetrics": _metrics(transaction),
        "engineInfo": _ENGINE,
        "txnId": identity,
    }
    if transaction.read_version is not None:
        info["readVersion"] = transaction.read_version
    if told.mark is not None:
        info["tags"] = {"delta.rowTracking.preserved": "true"}
    actions: list[Action] = [CommitInfo(info)]
    actions += [a for a in (transaction.protocol, metadata, transaction.txn, tracked) if a is not None]
    return [*actions, *transaction.others, *transaction.removes, *adds]


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
