"""The history of a table: what every commit says of itself.

Owns reading `commitInfo`, newest first. Leaves what the commits did to `snapshot`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from parquet_variant.delta.log.segment import commit_path, commit_times
from parquet_variant.delta.log.snapshot import load_snapshot
from parquet_variant.delta.protocol.actions import parse_json
from parquet_variant.delta.protocol.features import in_commit_since
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.tables.storage import Storage, open_storage


def history(
    table: str | os.PathLike[str],
    limit: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The commits that the log still holds, newest first.

    Parameters
    ----------
    table
        Path or URL.
    limit
        How many to give at most.
    storage_options
        Configuration of the object store.

    Returns
    -------
    list of dict
        For each commit ``version``, ``timestamp`` (datetime, UTC; by it the version is found), ``operation``, and what
        else its writer told (``operationParameters``, ``operationMetrics``, ``engineInfo``, …).

    Raises
    ------
    DeltaError
        Reason ``"not-a-table"`` if there is no log.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     [entry["operation"] for entry in pv.delta.history(folder)]
    ['CREATE TABLE AS SELECT']
    """
    storage = open_storage(table, storage_options)
    commits = commit_times(storage)
    if not commits:
        raise DeltaError(f"{storage.uri} is not a Delta table, or its log holds no commits", reason="not-a-table")
    since, entries = _in_commit_since(storage), []
    for version in sorted(commits, reverse=True)[:limit]:
        info = _commit_info(storage.read(commit_path(version)))
        info.pop("timestamp", None)  # The clock of the writer, by which no version is found.
        told = info.get("inCommitTimestamp") if since is not None and version >= since else None
        stamp = _time_of(told, commits[version])
        entries.append({"version": version, "timestamp": stamp, "operation": info.pop("operation", None)} | info)
    return entries


def _in_commit_since(storage: Storage) -> int | None:
    with suppress(TableError):  # What the commits tell is there, though the table cannot be read here.
        newest = load_snapshot(storage, files=False)
        return in_commit_since(newest.protocol, newest.metadata)
    return None


def _time_of(*millis: Any) -> datetime:
    """The first of some times that is one."""
    for each in millis:
        with suppress(OverflowError, ValueError, TypeError, OSError):
            return datetime.fromtimestamp(each / 1000, UTC)
    return datetime.fromtimestamp(0, UTC)


def _commit_info(data: bytes) -> dict[str, Any]:
    for line in data.split(b"\n"):
        if b'"commitInfo"' in line:
            try:
                action = parse_json(line)
            except ValueError:  # what it tells is for people: damaged, it is nothing
                return {}
            if isinstance(action, dict) and isinstance(action.get("commitInfo"), dict):
                return dict(action["commitInfo"])
    return {}
