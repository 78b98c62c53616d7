"""The history of a table, and restoring an older version by a new commit.

Owns reading `commitInfo`, and which files are added again or removed. Leaves the commit to `log.commit`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, check_count
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.file_locations import relative_path
from parquet_variant.tables.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.tables.delta.log.segment import commit_path, commit_times
from parquet_variant.tables.delta.log.snapshot import load_snapshot, snapshot, writable_snapshot
from parquet_variant.tables.delta.protocol.actions import DomainMetadata, parse_json
from parquet_variant.tables.delta.protocol.features import in_commit_since, with_protocol
from parquet_variant.tables.delta.protocol.schema_merging import with_last_id
from parquet_variant.tables.delta.writing.data_files import CLUSTERING
from parquet_variant.tables.delta.writing.identity import with_last_marks
from parquet_variant.tables.storage import Storage


def history(storage: Storage, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the commits that the log still holds, newest first; see `Table.history`."""
    if limit is not None:
        check_count("limit", limit)
    commits = commit_times(storage)
    if not commits:
        raise DeltaError(f"{storage.uri} is not a Delta table, or its log has no commits", reason="not-a-table")
    since, entries = None, []
    with suppress(TableError):  # The history can be read even if the table cannot.
        newest = load_snapshot(storage, files=False)
        since = in_commit_since(newest.protocol, newest.metadata)
    for version in sorted(commits, reverse=True)[:limit]:
        info = _commit_info(storage.read(commit_path(version)))
        info.pop("timestamp", None)  # The writer's clock, which is not used to find versions.
        recorded = info.get("inCommitTimestamp") if since is not None and version >= since else None
        time = datetime.fromtimestamp(0, UTC)
        candidates: tuple[Any, ...] = (commits[version], recorded)
        for millis in candidates:
            with suppress(OverflowError, ValueError, TypeError, OSError):
                time = datetime.fromtimestamp(millis / 1000, UTC)
        entries.append({"version": version, "timestamp": time, "operation": info.pop("operation", None)} | info)
    return entries


def _commit_info(data: bytes) -> dict[str, Any]:
    for line in data.split(b"\n"):
        if b'"commitInfo"' in line:
            with suppress(ValueError):  # The information is for people, so damage is not an error.
                action = parse_json(line)
                if isinstance(action, dict) and isinstance(action.get("commitInfo"), dict):
                    return dict(action["commitInfo"])
    return {}


def restore(
    storage: Storage, *, version: int | None = None, timestamp: int | str | datetime | None = None
) -> CommitResult:
    """Restore the rows, schema and properties of an older version as a new version; see `Table.restore`."""
    if version is None and timestamp is None:
        raise DeltaError("restore needs a version: pass version= or at=", reason="bad-argument")
    current, past = writable_snapshot(storage), snapshot(storage, version=version, timestamp=timestamp)
    current_keys, past_keys = _file_keys(current.files), _file_keys(past.files)
    added = past.files.filter(pc.invert(pc.is_in(past_keys, current_keys)))
    removed = current.files.filter(pc.invert(pc.is_in(current_keys, past_keys)))
    existing = {file.path for file in current.storage.list("")} if len(added) else set()
    paths = [relative_path(current.storage, path) for path in added["path"].to_pylist()]
    missing = [path for path in paths if path not in existing and current.storage.unlinked(path) not in existing]
    if missing:
        raise DeltaError(
            f"the version cannot be restored, because {len(missing)} of its files are missing, such as {missing[0]}",
            reason="missing-file",
            file=missing[0],
        )
    metadata = with_last_marks(with_last_id(past.metadata, current.metadata), current.metadata)
    protocol = with_protocol(current.protocol, past.protocol)
    clustering: list[DomainMetadata] = []
    if current.domains.get(CLUSTERING) != past.domains.get(CLUSTERING):
        clustering = [past.domains.get(CLUSTERING) or DomainMetadata(CLUSTERING, '{"clusteringColumns":[]}')]
    transaction = Transaction(
        "RESTORE",
        {"version": past.version},
        adds=past.to_adds(added),
        removes=current.to_removes(removed),
        metadata=metadata if metadata != current.metadata else None,
        protocol=protocol if protocol != current.protocol else None,
        other_actions=clustering,
        current=current,
        reads_table=True,
    )
    return commit(current.storage, transaction)


def _file_keys(files: pa.Table) -> pa.Array:
    vectors = [None if v is None else str(sorted(v.items(), key=str)) for v in files["deletionVector"].to_pylist()]
    paths = files["path"].to_pylist()
    keys = [path if vector is None else f"{path}\x00{vector}" for path, vector in zip(paths, vectors, strict=True)]
    return pa.array(keys, pa.string())
