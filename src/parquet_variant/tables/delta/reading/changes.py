"""The rows that changed between versions: from change data if it was written, else from the files added and removed.

Owns reading commits one by one: `changes` (PROTOCOL.md, "Add CDC File"), and `added`, the files that appends added, for
readers that follow a table. Leaves the rows of a file to `read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import DeltaError, check_count
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.file_locations import deleted_rows
from parquet_variant.tables.delta.log.file_actions import iter_adds, log_lines, no_files, split_commits
from parquet_variant.tables.delta.log.segment import commit_path, commit_times, in_commit_time
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot, snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Cdc, DeletionVector, Remove
from parquet_variant.tables.delta.protocol.features import in_commit_since, partition_names
from parquet_variant.tables.delta.protocol.schema_merging import CHANGE_COLUMNS
from parquet_variant.tables.delta.reading.read import PLACES, read_file
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_schema
from parquet_variant.tables.storage import Storage

_FileAction = TypeVar("_FileAction", Add, Remove)
_TYPE, _VERSION, _TIME = CHANGE_COLUMNS


def changes(storage: Storage, since: int, until: int | None = None) -> pa.Table:
    """Return the rows that versions inserted, deleted and updated; see `DeltaTable.changes`."""
    check_count("since", since)
    newest = snapshot(storage, version=until)
    for field in newest.schema.fields:
        if field.name.lower() in CHANGE_COLUMNS:
            raise DeltaError(
                f"the table has a column {field.name!r}, a name that its change data would use too: rename the column",
                reason="bad-schema",
            )
    times = commit_times(newest.storage) if since <= newest.version else {}
    own_times_since = in_commit_since(newest.protocol, newest.metadata)
    parts = []
    for version in range(since, newest.version + 1):
        commit = _commit_bytes(newest, version)
        has_own_time = own_times_since is not None and version >= own_times_since
        timestamp = (in_commit_time(commit) if has_own_time else None) or times.get(version, 0)
        for change_type, rows in _changed_rows(newest, version, log_lines(commit)):
            if len(rows):
                if change_type is not None:
                    rows = rows.append_column(_TYPE, pa.repeat(pa.scalar(change_type), len(rows)))
                rows = rows.append_column(_VERSION, pa.repeat(pa.scalar(version, pa.int64()), len(rows)))
                micros = pa.scalar(timestamp * 1000, pa.timestamp("us", "UTC"))
                parts.append(rows.append_column(_TIME, pa.repeat(micros, len(rows))))
    if parts:
        return pa.concat_tables(parts, promote_options="permissive")
    types = (pa.string(), pa.int64(), pa.timestamp("us", "UTC"))
    columns = [pa.field(name, kind) for name, kind in zip(CHANGE_COLUMNS, types, strict=True)]
    return empty_table(pa.schema([*arrow_schema(newest.schema), *columns]))


def _commit_bytes(newest: Snapshot, version: int) -> bytes:
    try:
        return newest.storage.read(commit_path(version))
    except FileNotFoundError:
        raise DeltaError(
            f"the log no longer holds version {version}: start again from a complete snapshot",
            reason="no-such-version",
            file=newest.storage.uri,
        ) from None


def _changed_rows(
    newest: Snapshot, version: int, actions: list[dict[str, Any]]
) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield changed rows with their change type; None if the rows have a column with it."""
    change_files = [Cdc.from_dict(action["cdc"]) for action in actions if action.get("cdc")]
    if change_files:
        columns = StructType((*newest.schema.fields, Field(_TYPE, PrimitiveType("string"))))
        for file in change_files:
            yield None, read_file(newest, columns, _as_add(file.path, file.partition_values))
        return
    adds, removes = _with_changed_rows(Add, actions), _with_changed_rows(Remove, actions)
    values: dict[str, Mapping[str, str | None]] = {}
    if newest.partition_columns and not all(remove.partition_values for remove in removes.values()):
        # Partition values are optional in a remove action.
        before = iter_adds(load_snapshot(newest.storage, version - 1).files.select(PLACES))
        values = {unquote(add.path): add.partition_values for add in before}
    for path, remove in removes.items():
        old = _as_add(remove.path, remove.partition_values or values.get(path, {}), remove.deletion_vector)
        if path in adds:
            yield from _changed_marks(newest, old, adds[path])
        else:
            yield "delete", read_file(newest, newest.schema, old)
    for path, add in adds.items():
        if path not in removes:
            yield "insert", read_file(newest, newest.schema, add)


def _with_changed_rows(kind: type[_FileAction], actions: list[dict[str, Any]]) -> dict[str, _FileAction]:
    """Return the actions of a kind that change rows, by unquoted path: writers differ in what they escape."""
    files = [kind.from_dict({"dataChange": True} | action[kind.key]) for action in actions if action.get(kind.key)]
    return {unquote(file.path): file for file in files if file.data_change}


def _as_add(path: str, values: Mapping[str, str | None], vector: DeletionVector | None = None) -> Add:
    return Add(path, values, 0, 0, True, deletion_vector=vector)


def _changed_marks(newest: Snapshot, old: Add, new: Add) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows that a changed deletion vector deletes, and those that it restores."""
    before, after = (
        deleted_rows(newest.storage, file.deletion_vector) if file.deletion_vector else np.empty(0, dtype=np.uint64)
        for file in (old, new)
    )
    rows = read_file(newest, newest.schema, replace(new, deletion_vector=None))
    for change_type, positions in (("delete", np.setdiff1d(after, before)), ("insert", np.setdiff1d(before, after))):
        yield change_type, rows.take(pa.array(positions))


def added(storage: Storage, since: int, until: int | None = None, *, ignore_changes: bool = False) -> Snapshot:
    """Return a snapshot that holds only the files added after a version; see `DeltaTable.added`."""
    check_count("since", since, -1)
    newest = snapshot(storage, version=until)
    names = partition_names(newest.protocol, newest.metadata)
    parts = [no_files()]
    for version in range(since + 1, newest.version + 1):
        files = split_commits(_commit_bytes(newest, version)).table(names)
        changed = files.filter(pc.fill_null(files["dataChange"], True))
        removed = changed.filter(pc.invert(changed["isAdd"]))
        if len(removed) and not ignore_changes:
            raise DeltaError(
                f"version {version} removed rows, which a reader of added rows does not see: pass ignore_changes=True "
                "to read on, or use changes()",
                reason="rows-removed",
                file=newest.storage.uri,
            )
        parts.append(changed.filter(changed["isAdd"]))
    return replace(newest, files=pa.concat_tables(parts), tombstones=no_files())
