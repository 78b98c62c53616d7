"""Going back to an older version, by a new commit.

Owns which files come back and which go. Leaves the commit to `commit`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.data.paths import relative_path
from parquet_variant.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.delta.protocol.actions import DomainMetadata
from parquet_variant.delta.protocol.column_mapping import with_last_id
from parquet_variant.delta.protocol.features import check_writable, with_protocol
from parquet_variant.delta.writing.data_files import CLUSTERING
from parquet_variant.delta.writing.identity import with_last_marks
from parquet_variant.errors import DeltaError
from parquet_variant.tables.storage import Storage, open_storage


def restore(
    table: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Make the rows, schema and properties of an older version the newest ones.

    The protocol stays as it is, since newer files may need it; features that were dropped meanwhile come back. Ids of
    columns and values of identity columns are never given twice.

    Parameters
    ----------
    table
        Path or URL.
    version, timestamp
        Which version; one of them is needed.
    storage_options
        Configuration of the object store.

    Returns
    -------
    CommitResult

    Raises
    ------
    DeltaError
        ``"missing-file"`` if vacuum has deleted a file of that version; ``"no-such-version"``; ``"append-only"``;
        ``"conflict"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.overwrite(folder, {"v": pv.parse_json(["2"])})
    ...     _ = pv.delta.restore(folder, version=0)
    ...     pv.delta.read(folder).to_pylist()
    [{'n': 1}]
    """
    if version is None and timestamp is None:
        raise DeltaError("restore needs a version or a timestamp", reason="bad-argument")
    current = load_snapshot(open_storage(table, storage_options))
    past = snapshot(table, version=version, timestamp=timestamp, storage_options=storage_options)
    check_writable(current.protocol, current.storage.uri)
    now, then = _keys(current.files), _keys(past.files)
    back = past.files.filter(pc.invert(pc.is_in(then, now)))
    gone = current.files.filter(pc.invert(pc.is_in(now, then)))
    _check_present(current.storage, back)
    metadata = with_last_marks(with_last_id(past.metadata, current.metadata), current.metadata)
    protocol = with_protocol(current.protocol, past.protocol)
    transaction = Transaction(
        "RESTORE",
        {"version": past.version},
        adds=past.to_adds(back),
        removes=current.to_removes(gone),
        metadata=metadata if metadata != current.metadata else None,
        protocol=protocol if protocol != current.protocol else None,
        others=_clustering(current, past),
        current=current,
        reads_table=True,
    )
    return commit(current.storage, transaction)


def _clustering(current: Snapshot, past: Snapshot) -> list[DomainMetadata]:
    """What makes the table clustered as it was."""
    now, then = current.domains.get(CLUSTERING), past.domains.get(CLUSTERING)
    if now == then:
        return []
    return [then or DomainMetadata(CLUSTERING, '{"clusteringColumns":[]}')]


def _keys(files: pa.Table) -> pa.Array:
    vectors = [None if v is None else str(sorted(v.items(), key=str)) for v in files["deletionVector"].to_pylist()]
    pairs = zip(files["path"].to_pylist(), vectors, strict=True)
    return pa.array([p if v is None else f"{p}\x00{v}" for p, v in pairs], pa.string())


def _check_present(storage: Storage, files: pa.Table) -> None:
    if not len(files):
        return
    there = {file.path for file in storage.list("")}
    paths = [relative_path(storage, path) for path in files["path"].to_pylist()]
    missing = [path for path in paths if path not in there and storage.unlinked(path) not in there]
    if missing:
        raise DeltaError(
            f"{len(missing)} files of that version are gone, {missing[0]} among them: it cannot be restored",
            reason="missing-file",
            file=missing[0],
        )
