"""The history of a table: the information that each commit records.

Owns reading `commitInfo`, newest first. Leaves the effects of commits to `snapshot`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from parquet_variant.errors import DeltaError, TableError, check_count
from parquet_variant.tables.delta.log.segment import commit_path, commit_times
from parquet_variant.tables.delta.log.snapshot import load_snapshot
from parquet_variant.tables.delta.protocol.actions import parse_json
from parquet_variant.tables.delta.protocol.features import in_commit_since
from parquet_variant.tables.storage import Storage, open_storage


def history(
    table: str | os.PathLike[str],
    limit: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the commits that the log still holds, newest first; see `Table.history`."""
    if limit is not None:
        check_count("limit", limit)
    storage = open_storage(table, storage_options)
    commits = commit_times(storage)
    if not commits:
        raise DeltaError(f"{storage.uri} is not a Delta table, or its log has no commits", reason="not-a-table")
    since, entries = _in_commit_since(storage), []
    for version in sorted(commits, reverse=True)[:limit]:
        info = _commit_info(storage.read(commit_path(version)))
        info.pop("timestamp", None)  # The writer's clock, which is not used to find versions.
        recorded = info.get("inCommitTimestamp") if since is not None and version >= since else None
        time = _first_valid_time(recorded, commits[version])
        entries.append({"version": version, "timestamp": time, "operation": info.pop("operation", None)} | info)
    return entries


def _in_commit_since(storage: Storage) -> int | None:
    with suppress(TableError):  # The history can be read even if the table cannot.
        newest = load_snapshot(storage, files=False)
        return in_commit_since(newest.protocol, newest.metadata)
    return None


def _first_valid_time(*candidates: Any) -> datetime:
    """Return the first candidate that is a time in milliseconds since 1970."""
    for millis in candidates:
        with suppress(OverflowError, ValueError, TypeError, OSError):
            return datetime.fromtimestamp(millis / 1000, UTC)
    return datetime.fromtimestamp(0, UTC)


def _commit_info(data: bytes) -> dict[str, Any]:
    for line in data.split(b"\n"):
        if b'"commitInfo"' in line:
            try:
                action = parse_json(line)
            except ValueError:  # The information is for people, so damage is not an error.
                return {}
            if isinstance(action, dict) and isinstance(action.get("commitInfo"), dict):
                return dict(action["commitInfo"])
    return {}
