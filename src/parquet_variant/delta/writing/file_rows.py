"""Rows of a snapshot's file table as actions: what is added again or removed.

Owns that conversion, and that an append-only table lets nothing go. Leaves which files to its callers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add, Remove, now_millis
from parquet_variant.delta.statistics.stats_json import with_json_stats
from parquet_variant.errors import DeltaError


def to_adds(snapshot: Snapshot, files: pa.Table, *, data_change: bool = True) -> list[Add]:
    """Add actions for rows of `Snapshot.files`."""
    files = with_json_stats(files, snapshot.schema)
    return [Add.from_dict(_plain(row) | {"dataChange": data_change}) for row in files.to_pylist()]


def to_removes(snapshot: Snapshot, files: pa.Table, *, data_change: bool = True) -> list[Remove]:
    """Remove actions for rows of `Snapshot.files`.

    `data_change`: false if other files of the same commit take over the rows.
    Raises `DeltaError`: reason ``"append-only"`` if the table forbids it.
    """
    if data_change and snapshot.metadata.configuration.get("delta.appendOnly", "false").lower() == "true":
        raise DeltaError(f"{snapshot.storage.uri} is append-only", reason="append-only", file=snapshot.storage.uri)
    told = {"dataChange": data_change, "deletionTimestamp": now_millis(), "extendedFileMetadata": True}
    files = with_json_stats(files, snapshot.schema)
    return [Remove.from_dict(_plain(row) | told) for row in files.to_pylist()]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    row["partitionValues"] = dict(row["partitionValues"] or ())
    row["tags"] = None if row["tags"] is None else dict(row["tags"])
    return row
