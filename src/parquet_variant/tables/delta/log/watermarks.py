"""The watermarks that a commit must exceed: the highest row id, and the time of the last commit.

Owns these watermarks (PROTOCOL.md, "Row Tracking" and "In-Commit Timestamps"), also after commits of other writers.
Leaves the commit to `commit`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.log.segment import commit_path, in_commit_time
from parquet_variant.tables.delta.protocol.actions import Add, DomainMetadata, Metadata, now_millis
from parquet_variant.tables.delta.protocol.features import enabled, supports
from parquet_variant.tables.storage import Storage

ROW_TRACKING = "delta.rowTracking"
_TIME = "inCommitTimestamp"
_IN_COMMIT = ("inCommitTimestamp", "delta.enableInCommitTimestamps")


@dataclass(frozen=True)
class CommitWatermarks:
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
                    raise DeltaError(
                        f"the statistics of {add.path} have no numRecords, which a table with row tracking needs",
                        reason="bad-data-file",
                    )
                row_id += add.num_records
            if add.default_row_commit_version is None:
                add = replace(add, default_row_commit_version=version)
            numbered.append(add)
        if row_id == self.row_id:
            return numbered, None
        configuration = json.dumps({"rowIdHighWaterMark": row_id}, separators=(",", ":"))
        return numbered, DomainMetadata(ROW_TRACKING, configuration)

    def with_time(self, metadata: Metadata | None, version: int, now: int) -> tuple[Metadata | None, int | None]:
        """Return metadata that states since when commits record their time, and the time of this commit."""
        if self.time is None:
            return metadata, None
        time = max(now, self.time + 1)
        if self.enables_times and metadata is not None:
            enablement = {
                "delta.inCommitTimestampEnablementVersion": str(version),
                "delta.inCommitTimestampEnablementTimestamp": str(time),
            }
            metadata = replace(metadata, configuration={**metadata.configuration, **enablement})
        return metadata, time


def _high_water_mark(domain: DomainMetadata | None) -> int:
    if domain is None:
        return -1
    try:
        return int(json.loads(domain.configuration)["rowIdHighWaterMark"])
    except (ValueError, KeyError, TypeError):
        raise DeltaError(
            f"the metadata domain {ROW_TRACKING} has no rowIdHighWaterMark, so new rows cannot get ids",
            reason="broken-log",
        ) from None
