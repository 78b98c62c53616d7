"""What every commit of some tables must tell: row ids of new files, and a time that only rises.

Owns row tracking's base ids and high water mark, and in-commit timestamps, as they stand after each commit of others.
Leaves the attempt itself to `commit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from parquet_variant.delta.log.segment import commit_path
from parquet_variant.delta.protocol.actions import Add, DomainMetadata, Metadata, now_millis
from parquet_variant.delta.protocol.features import enabled, supports
from parquet_variant.delta.storage import Storage
from parquet_variant.errors import DeltaError

if TYPE_CHECKING:
    from parquet_variant.delta.log.commit import Transaction

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
        last = _time_of(storage, current.version) if before else current.timestamp
        return cls(mark, current.timestamp if last is None else last, not before)

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
                mark += _rows(add)
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


def _rows(add: Add) -> int:
    if add.num_records is None:
        raise DeltaError(
            f"the file {add.path} tells no numRecords, which a table that tracks rows needs", reason="bad-data-file"
        )
    return add.num_records


def _time_of(storage: Storage, version: int) -> int | None:
    try:
        first = json.loads(storage.read(commit_path(version)).lstrip().partition(b"\n")[0])
        return int(first["commitInfo"][_TIME])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return now_millis()
