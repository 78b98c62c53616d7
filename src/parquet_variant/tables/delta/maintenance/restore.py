"""Restoring an older version by a new commit.

Owns which files are added again and which are removed. Leaves the commit to `log.commit`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.file_locations import relative_path
from parquet_variant.tables.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot, writable_snapshot
from parquet_variant.tables.delta.protocol.actions import DomainMetadata
from parquet_variant.tables.delta.protocol.column_metadata import with_last_id
from parquet_variant.tables.delta.protocol.features import with_protocol
from parquet_variant.tables.delta.writing.data_files import CLUSTERING
from parquet_variant.tables.delta.writing.identity import with_last_marks
from parquet_variant.tables.storage import Storage


def restore(
    table: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Restore the rows, schema and properties of an older version as a new version; see `Table.restore`."""
    if version is None and timestamp is None:
        raise DeltaError("restore needs a version: pass version= or at=", reason="bad-argument")
    current = writable_snapshot(table, storage_options)
    past = snapshot(table, version=version, timestamp=timestamp, storage_options=storage_options)
    current_keys, past_keys = _file_keys(current.files), _file_keys(past.files)
    added = past.files.filter(pc.invert(pc.is_in(past_keys, current_keys)))
    removed = current.files.filter(pc.invert(pc.is_in(current_keys, past_keys)))
    _check_existing(current.storage, added)
    metadata = with_last_marks(with_last_id(past.metadata, current.metadata), current.metadata)
    protocol = with_protocol(current.protocol, past.protocol)
    transaction = Transaction(
        "RESTORE",
        {"version": past.version},
        adds=past.to_adds(added),
        removes=current.to_removes(removed),
        metadata=metadata if metadata != current.metadata else None,
        protocol=protocol if protocol != current.protocol else None,
        other_actions=_clustering(current, past),
        current=current,
        reads_table=True,
    )
    return commit(current.storage, transaction)


def _clustering(current: Snapshot, past: Snapshot) -> list[DomainMetadata]:
    """Return the actions that restore the clustering columns."""
    current_domain, past_domain = current.domains.get(CLUSTERING), past.domains.get(CLUSTERING)
    if current_domain == past_domain:
        return []
    return [past_domain or DomainMetadata(CLUSTERING, '{"clusteringColumns":[]}')]


def _file_keys(files: pa.Table) -> pa.Array:
    vectors = [None if v is None else str(sorted(v.items(), key=str)) for v in files["deletionVector"].to_pylist()]
    paths = files["path"].to_pylist()
    keys = [path if vector is None else f"{path}\x00{vector}" for path, vector in zip(paths, vectors, strict=True)]
    return pa.array(keys, pa.string())


def _check_existing(storage: Storage, files: pa.Table) -> None:
    if not len(files):
        return
    existing = {file.path for file in storage.list("")}
    paths = [relative_path(storage, path) for path in files["path"].to_pylist()]
    missing = [path for path in paths if path not in existing and storage.unlinked(path) not in existing]
    if missing:
        raise DeltaError(
            f"the version cannot be restored, because {len(missing)} of its files are missing, such as {missing[0]}",
            reason="missing-file",
            file=missing[0],
        )
