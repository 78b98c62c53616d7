"""What changed between versions, row by row: change data where it was written, else what files came and went.

Owns reading commits one by one: `changes` (PROTOCOL.md, "Add CDC File"), and `added`, the files that appends brought,
for readers that follow a table. Leaves the rows of a file to `read`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import empty_table
from parquet_variant.delta.data.deletion_vector import deleted_rows
from parquet_variant.delta.log.file_actions import iter_adds, log_lines, no_files, split_commits
from parquet_variant.delta.log.segment import commit_path, commit_times, in_commit_time
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add, Cdc, DeletionVector, Remove
from parquet_variant.delta.protocol.features import in_commit_since, partition_names
from parquet_variant.delta.reading.read import PLACES, read_file
from parquet_variant.errors import DeltaError
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_schema

_FileAction = TypeVar("_FileAction", Add, Remove)
_TYPE, _VERSION, _TIME = "_change_type", "_commit_version", "_commit_timestamp"


def changes(
    table: str | os.PathLike[str],
    since: int,
    until: int | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> pa.Table:
    """The rows that versions inserted, deleted and updated.

    Parameters
    ----------
    table
        Path or URL.
    since
        The first version whose changes are wanted.
    until
        The last one; by default the newest.
    storage_options
        Configuration of the object store.
    allow_outside
        As for `snapshot`.

    Returns
    -------
    pyarrow.Table
        The table's columns as they are at `until`, and ``_change_type`` (``insert``, ``delete``, ``update_preimage``,
        ``update_postimage``), ``_commit_version`` and ``_commit_timestamp``. Where a version wrote no change data, as
        without ``delta.enableChangeDataFeed``, an update is a delete and an insert.

    Raises
    ------
    DeltaError
        ``"no-such-version"`` if a commit is no longer in the log; ``"missing-file"`` if vacuum has removed a file.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"n": [1, 2]}, properties={"delta.enableChangeDataFeed": True})
    ...     _ = pv.delta.update(folder, {"n": "n * 10"}, "n = 2")
    ...     pv.delta.changes(folder, since=1).select(["n", "_change_type"]).to_pylist()
    [{'n': 2, '_change_type': 'update_preimage'}, {'n': 20, '_change_type': 'update_postimage'}]
    """
    newest = snapshot(table, version=until, storage_options=storage_options, allow_outside=allow_outside)
    times = commit_times(newest.storage) if since <= newest.version else {}
    parts = [part for version in range(since, newest.version + 1) for part in _version(newest, version, times)]
    return pa.concat_tables(parts, promote_options="permissive") if parts else _nothing(newest.schema)


def _version(newest: Snapshot, version: int, times: Mapping[int, int]) -> Iterator[pa.Table]:
    commit = _commit(newest, version)
    since = in_commit_since(newest.protocol, newest.metadata)
    told = None if since is None or version < since else in_commit_time(commit)
    stamp = told or times.get(version, 0)
    for kind, rows in _rows(newest, version, log_lines(commit)):
        if len(rows):
            if kind is not None:
                rows = rows.append_column(_TYPE, pa.repeat(pa.scalar(kind), len(rows)))
            rows = rows.append_column(_VERSION, pa.repeat(pa.scalar(version, pa.int64()), len(rows)))
            stamps = pa.repeat(pa.scalar(stamp * 1000, pa.timestamp("us", "UTC")), len(rows))
            yield rows.append_column(_TIME, stamps)


def _commit(newest: Snapshot, version: int) -> bytes:
    try:
        return newest.storage.read(commit_path(version))
    except FileNotFoundError:
        raise DeltaError(
            f"the log no longer holds version {version}: begin again with a whole snapshot",
            reason="no-such-version",
            file=newest.storage.uri,
        ) from None


def _rows(newest: Snapshot, version: int, actions: list[dict[str, Any]]) -> Iterator[tuple[str | None, pa.Table]]:
    told = [Cdc.from_dict(each["cdc"]) for each in actions if each.get("cdc")]
    if told:
        columns = StructType((*newest.schema.fields, Field(_TYPE, PrimitiveType("string"))))
        for each in told:
            yield None, read_file(newest, columns, _as_file(each.path, each.partition_values))
        return
    adds, removes = _of_rows(Add, actions), _of_rows(Remove, actions)
    values: dict[str, Mapping[str, str | None]] = {}
    if newest.partition_columns and not all(each.partition_values for each in removes.values()):
        # A remove need not tell partition values.
        before = iter_adds(load_snapshot(newest.storage, version - 1).files.select(PLACES))
        values = {unquote(each.path): each.partition_values for each in before}
    for path, remove in removes.items():
        old = _as_file(remove.path, remove.partition_values or values.get(path, {}), remove.deletion_vector)
        if path in adds:
            yield from _marked(newest, old, adds[path])
        else:
            yield "delete", read_file(newest, newest.schema, old)
    for path, add in adds.items():
        if path not in removes:
            yield "insert", read_file(newest, newest.schema, add)


def _of_rows(kind: type[_FileAction], actions: list[dict[str, Any]]) -> dict[str, _FileAction]:
    """The actions of a kind that change rows, by path: writers differ in what they escape."""
    files = [kind.from_dict({"dataChange": True} | each[kind.key]) for each in actions if each.get(kind.key)]
    return {unquote(each.path): each for each in files if each.data_change}


def _as_file(path: str, values: Mapping[str, str | None], vector: DeletionVector | None = None) -> Add:
    return Add(path, values, 0, 0, True, deletion_vector=vector)


def _marked(newest: Snapshot, old: Add, new: Add) -> Iterator[tuple[str, pa.Table]]:
    """A file whose deletion vector changed: the rows that are marked now, and those that no longer are."""
    before, after = (
        deleted_rows(newest.storage, each.deletion_vector) if each.deletion_vector else np.empty(0, dtype=np.uint64)
        for each in (old, new)
    )
    rows = read_file(newest, newest.schema, replace(new, deletion_vector=None))
    for kind, positions in (("delete", np.setdiff1d(after, before)), ("insert", np.setdiff1d(before, after))):
        yield kind, rows.take(pa.array(positions))


def _nothing(schema: StructType) -> pa.Table:
    more = [pa.field(_TYPE, pa.string()), pa.field(_VERSION, pa.int64()), pa.field(_TIME, pa.timestamp("us", "UTC"))]
    return empty_table(pa.schema([*arrow_schema(schema), *more]))


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
        files = split_commits(_commit(newest, version)).table(names)
        changes = files.filter(pc.fill_null(files["dataChange"], True))
        removed = changes.filter(pc.invert(changes["isAdd"]))
        if len(removed) and not ignore_changes:
            raise DeltaError(
                f"version {version} removed rows, which cannot be told as additions", reason="rows-removed"
            ).at(file=newest.storage.uri)
        parts.append(changes.filter(changes["isAdd"]))
    return replace(newest, files=pa.concat_tables(parts), tombstones=no_files())
