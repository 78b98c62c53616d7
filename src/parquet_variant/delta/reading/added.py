"""What was added since a version: the files that appends brought, for readers that follow a table.

Owns reading single commits forward. Leaves the rows to `scan` and `read_table`, which take the snapshot that it gives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.delta.log.file_actions import no_files, split_commits
from parquet_variant.delta.log.segment import commit_path
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.features import partition_names
from parquet_variant.errors import DeltaError


def added(
    table: str | os.PathLike[str],
    since: int,
    until: int | None = None,
    *,
    ignore_changes: bool = False,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Snapshot:
    """A snapshot that holds only the files that were added after a version.

    Files that only rearrange rows (``dataChange=false``, as `optimize` writes) are left out.

    Parameters
    ----------
    table
        Path or URL.
    since
        The last version that was seen; -1 to begin with the first.
    until
        The last version to look at; by default the newest.
    ignore_changes
        Go on where rows were removed (an overwrite); by default that is an error.
    storage_options
        Configuration of the object store.
    allow_outside
        Read files that the log names outside of the table, too (shallow clones); by default they are refused.

    Returns
    -------
    Snapshot
        Of version `until`, with the added files only: `scan`, `extract` and `read_table` take it.

    Raises
    ------
    DeltaError
        ``"rows-removed"`` if a commit removed rows; ``"no-such-version"`` if a commit is no longer in the log.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pv.delta.write(folder, {"v": pv.parse_json(["1"])}).version
    ...     _ = pv.delta.append(folder, {"v": pv.parse_json(["2"])})
    ...     pv.delta.read(pv.delta.added(folder, since=first)).to_pylist()
    [2]
    """
    newest = snapshot(table, version=until, storage_options=storage_options, allow_outside=allow_outside)
    names = partition_names(newest.protocol, newest.metadata)
    parts = [no_files()]
    for version in range(since + 1, newest.version + 1):
        try:
            data = newest.storage.read(commit_path(version))
        except FileNotFoundError:
            raise DeltaError(
                f"the log no longer holds version {version}: begin again with a whole snapshot",
                reason="no-such-version",
                file=newest.storage.uri,
            ) from None
        files = split_commits(data).table(names)
        changes = files.filter(pc.fill_null(files["dataChange"], True))
        removed = changes.filter(pc.invert(changes["isAdd"]))
        if len(removed) and not ignore_changes:
            raise DeltaError(
                f"version {version} removed rows, which cannot be told as additions", reason="rows-removed"
            ).at(file=newest.storage.uri)
        parts.append(changes.filter(changes["isAdd"]))
    return replace(newest, files=pa.concat_tables(parts), tombstones=no_files())
