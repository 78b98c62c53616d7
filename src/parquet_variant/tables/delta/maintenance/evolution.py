"""Changing columns, properties and features, restoring an older version, the history, and removing files.

Owns these operations, each in one commit, which files are removed by vacuum, and the steps of an erasure that are
specific to Delta. Leaves the allowed type changes, ids and physical names to `protocol.schema_merging`, the list of
properties to `protocol.features`, appends with new columns to `writing.write`, and the log's own files to
`log.snapshot`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, check_count
from parquet_variant.files.parquet.operations.rewrite import OptimizeResult
from parquet_variant.io.directories import ICEBERG_METADATA, is_inside, table_directories
from parquet_variant.io.parallel import Engine
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.tables import schema as shared
from parquet_variant.tables.changes.change_plan import TableChange
from parquet_variant.tables.changes.operations import ErasableTable
from parquet_variant.tables.changes.optimizing import optimize
from parquet_variant.tables.commits import CommitResult
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import relative_path, vector_path
from parquet_variant.tables.delta.log.commit import Transaction, commit
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.log.segment import LOG, commit_path, commit_times
from parquet_variant.tables.delta.log.snapshot import (
    DEFAULT_RETENTION,
    Snapshot,
    checkpoint,
    load_snapshot,
    remove_log_files,
    snapshot,
    writable_snapshot,
)
from parquet_variant.tables.delta.protocol import actions, features
from parquet_variant.tables.delta.protocol import schema_merging as merging
from parquet_variant.tables.delta.protocol.actions import DeletionVector
from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY, duration_millis
from parquet_variant.tables.delta.reading.read import PLACES, rows_of_file
from parquet_variant.tables.delta.writing.data_files import CHANGE_DATA, CLUSTERING, rules_of
from parquet_variant.tables.delta.writing.write import with_last_marks
from parquet_variant.tables.storage import TABLE_FILE_ENDINGS, Storage, StorageFile, now_millis
from parquet_variant.tables.write_plan import Rules

_RETENTION = "delta.deletedFileRetentionDuration"
_ICEBERG = "metadata"


def vacuum(
    storage: Storage, *, retention: timedelta | None = None, dry_run: bool = False, force: bool = False
) -> list[str]:
    """Delete the files that the table no longer needs; see `Table.vacuum`."""
    current = writable_snapshot(storage)
    check_not_published(current)
    if not isinstance(retention, timedelta | None):
        raise DeltaError(f"retention is {retention!r}: give a timedelta", reason="bad-option")
    minimum = duration_millis(current.metadata.configuration.get(_RETENTION, DEFAULT_RETENTION))
    keep = minimum if retention is None else int(retention.total_seconds() * 1000)
    if keep < minimum and not force:
        raise DeltaError(
            f"the retention {retention} is shorter than the table's {timedelta(milliseconds=minimum)}: active writers "
            "would lose their files; pass force=True if there are none",
            reason="retention-too-short",
        )
    removed = files_to_remove(current, now_millis() - keep)
    removed += [f"{LOG}/{name}" for name in dead_temporaries(*current.storage.filesystem(LOG))]
    if removed and not dry_run:
        remove_files(current, removed)
        parameters = {"numDeletedFiles": len(removed), "retentionMillis": keep}
        commit(current.storage, Transaction("VACUUM END", parameters, current=current))
    return sorted(removed)


def check_not_published(current: Snapshot) -> None:
    """Refuse to remove files of a table that `Table.publish` made. Raises `DeltaError`: reason ``"published"``."""
    source = current.metadata.configuration.get(PUBLISHED_FROM_PROPERTY)
    if source is not None:
        problem = (
            f"{current.storage.uri} was published from {source}, whose files are not all in Delta's log: clean up the "
            f"{source} table instead"
        )
        raise DeltaError(problem, reason="published", file=current.storage.uri)


def files_to_remove(current: Snapshot, cutoff: int, *, tombstones: bool = True) -> list[str]:
    """Return the files that were removed, or written without a commit, at or before a time in milliseconds since 1970.

    Without `tombstones`, files that were removed after the cutoff are returned too, and files that no version in the
    log names only if their name ends as those of tables do.
    """
    files = list(current.storage.list(""))
    needed = _needed_files(current, cutoff if tombstones else None)
    needed |= {current.storage.unlinked(path) for path in needed - {file.path for file in files}}
    unneeded = [file.path for file in _own_files(files) if file.path not in needed and file.modified <= cutoff]
    if tombstones:
        return unneeded
    named = _needed_files(current, -1)
    return [path for path in unneeded if path.endswith(TABLE_FILE_ENDINGS) or path in named]


def _own_files(files: Sequence[StorageFile]) -> list[StorageFile]:
    """Return the files in a table's directory that are not hidden, and not in the directory of another table."""
    other_tables = set(table_directories(file.path for file in files))
    # Iceberg metadata of the same files (`Table.publish`).
    if any(file.path.startswith(f"{_ICEBERG}/") and file.path.endswith(ICEBERG_METADATA) for file in files):
        other_tables.add(_ICEBERG)
    return [
        file for file in files
        if not _is_hidden(file.path) and not is_inside(file.path, other_tables)
    ]  # fmt: skip


def remove_files(current: Snapshot, paths: Iterable[str]) -> None:
    """Delete files of a table."""
    for path in paths:
        current.storage.delete(path)


def _needed_files(current: Snapshot, cutoff: int | None) -> set[str]:
    """Return the files of a version, and those removed after a time unless it is None."""
    tables = [current.files]
    if cutoff is not None:
        stamps = pc.fill_null(current.tombstones["deletionTimestamp"], 0)
        tables.append(current.tombstones.filter(pc.greater(stamps, cutoff)))
    needed: set[str] = set()
    for table in tables:
        for path, vector in zip(table["path"].to_pylist(), table["deletionVector"].to_pylist(), strict=True):
            # A file outside of the table is not among the listed files, but its deletion vector may be.
            with suppress(TableError):
                needed.add(relative_path(current.storage, path))
            with suppress(TableError):
                file = None if vector is None else vector_path(current.storage, DeletionVector.from_dict(vector))
                needed |= set() if file is None else {file}
    return needed


def _is_hidden(path: str) -> bool:
    """Return whether vacuum must keep a file: hidden, not change data, and not in a partition directory."""
    *directories, name = path.removeprefix(CHANGE_DATA).split("/")
    if name.startswith("_"):
        return True
    if name.startswith("."):
        # Temporary files of a dead writer begin with a dot and end in .tmp.
        return not name.endswith(".tmp") or any(part.startswith("_") for part in directories)
    return any(part.startswith(("_", ".")) and "=" not in part for part in directories)


class ErasableDeltaTable(ErasableTable):
    """The history of a Delta table, from which rows are erased."""

    def __init__(self, storage: Storage) -> None:
        self.current = writable_snapshot(storage)
        self.table = DeltaTable(self.current)

    def version_count(self) -> int:
        """See `ErasableTable.version_count`."""
        check_not_published(self.current)
        return sum(version <= self.current.version for version in commit_times(self.current.storage))

    def recent_files(self, since: int) -> list[str]:
        """See `ErasableTable.recent_files`."""
        named = _needed_files(self.current, -1)
        return [
            file.path
            for file in _own_files(list(self.current.storage.list("")))
            if file.modified > since and file.path.endswith(".parquet") and file.path not in named
            and not file.path.startswith(CHANGE_DATA)
        ]  # fmt: skip

    def remove_history(self, rows: int) -> tuple[DeltaTable, int, int]:
        """See `ErasableTable.remove_history`."""
        storage = self.current.storage
        # A commit of its own, so that the log can begin with a commit that names no file.
        start = commit(storage, Transaction("ERASE", {"numErasedRows": rows}, current=load_snapshot(storage)))
        newest = load_snapshot(storage)
        if newest.version != start.version:
            problem = f"version {newest.version} was committed by another writer meanwhile: erase again"
            raise DeltaError(problem, reason="conflict", file=storage.uri)
        # Data files go first, while tombstones name them: a killed erasure must not leave files without a commit.
        removed = files_to_remove(newest, now_millis() + 1, tombstones=False)
        remove_files(newest, removed)
        checkpoint(newest, tombstones=False)
        # The checkpoint of the newest version exists already, so the table can be read at any time.
        needed = (f"{newest.version:020}.checkpoint", f"{newest.version:020}.json")
        log_files = remove_log_files(
            storage, lambda name: not name[:20].isdigit() or name.startswith(needed), now_millis() + 1
        )
        temporaries = [f"{LOG}/{name}" for name in dead_temporaries(*storage.filesystem(LOG))]
        remove_files(newest, temporaries)
        storage.remove_empty_directories()
        newest = load_snapshot(storage)
        if unnamed := files_to_remove(newest, now_millis() + 1, tombstones=False):
            problem = (
                f"{unnamed[0]} is left in the table's directory, although no version names it: erase again when no "
                "writer is active"
            )
            raise DeltaError(problem, reason="not-erased", file=unnamed[0])
        return DeltaTable(newest), len(removed), len(log_files) + len(temporaries)


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
        since = features.in_commit_since(newest.protocol, newest.metadata)
    for version in sorted(commits, reverse=True)[:limit]:
        try:
            info = _commit_info(storage.read(commit_path(version)))
        except FileNotFoundError:
            break  # Another process removes the oldest commits.
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
                action = actions.parse_json(line)
                if isinstance(action, dict) and isinstance(action.get("commitInfo"), dict):
                    return dict(action["commitInfo"])
    return {}


def restore(storage: Storage, *, version: int | None = None, at: int | str | datetime | None = None) -> CommitResult:
    """Restore the rows, schema and properties of an older version as a new version; see `Table.restore`."""
    if version is None and at is None:
        raise DeltaError("restore needs a version: pass version= or at=", reason="bad-argument")
    current, past = writable_snapshot(storage), snapshot(storage, version=version, timestamp=at)
    current_keys, past_keys = _file_keys(current.files), _file_keys(past.files)
    added = past.files.filter(pc.invert(pc.is_in(past_keys, current_keys)))
    removed = current.files.filter(pc.invert(pc.is_in(current_keys, past_keys)))
    existing = {file.path for file in current.storage.list("")} if len(added) else set()
    paths = [relative_path(current.storage, path) for path in added["path"].to_pylist()]
    # The files of a shallow clone may be outside of it.
    inside = [path for path in paths if "://" not in path and not path.startswith("/")]
    missing = [path for path in inside if path not in existing and current.storage.unlinked(path) not in existing]
    if missing:
        problem = (
            f"the version cannot be restored, because {len(missing)} of its files are missing, such as {missing[0]}"
        )
        raise DeltaError(problem, reason="missing-file", file=missing[0])
    metadata = with_last_marks(merging.with_last_id(past.metadata, current.metadata), current.metadata)
    protocol = features.with_features(current.protocol, features.implied_features(past.protocol))
    # The source files that count as loaded are those of the version.
    loaded = {name: txn for name, txn in past.txns.items() if name.startswith(actions.LOAD_ID) and txn.version}
    changes: list[actions.Action] = [
        *actions.forgotten_loads(current.txns, loaded),
        *(txn for name, txn in loaded.items() if current.txns.get(name) != txn),
    ]
    if current.domains.get(CLUSTERING) != past.domains.get(CLUSTERING):
        changes += [past.domains.get(CLUSTERING) or actions.DomainMetadata(CLUSTERING, '{"clusteringColumns":[]}')]
    transaction = Transaction(
        "RESTORE",
        {"version": past.version},
        adds=past.to_adds(added),
        removes=current.to_removes(removed),
        metadata=metadata if metadata != current.metadata else None,
        protocol=protocol if protocol != current.protocol else None,
        other_actions=changes,
        current=current,
        reads_table=True,
    )
    return commit(current.storage, transaction)


def _file_keys(files: pa.Table) -> pa.Array:
    vectors = [None if v is None else str(sorted(v.items(), key=str)) for v in files["deletionVector"].to_pylist()]
    paths = files["path"].to_pylist()
    keys = [path if vector is None else f"{path}\x00{vector}" for path, vector in zip(paths, vectors, strict=True)]
    return pa.array(keys, pa.string())


def set_properties(
    current: Snapshot, properties: Mapping[str, str | bool | int | None], *, preview: bool = False
) -> CommitResult:
    """Set or remove table properties; see `Table.set_properties`."""
    changes, needed = features.resolve_properties(properties)
    protocol = features.with_features(current.protocol, needed, preview=preview)
    metadata = with_properties(current.metadata, changes)
    metadata = features.with_tracking_columns(merging.with_mode(current.metadata, metadata))
    features.check_writable(protocol, current.storage.uri)
    merging.check_change_data_names(current.schema, metadata.configuration)
    old, new = rules_of(current.protocol, current.metadata).checks, rules_of(protocol, metadata).checks
    added = Rules(tuple(check for check in new if check not in old))
    for file in iter_adds(current.files.select(PLACES)) if added.checks else ():
        try:
            added.enforce(rows_of_file(current, file))
        except TableError as error:
            raise error.at(file=relative_path(current.storage, file.path)) from None
    key = "delta.enableRowTracking"
    # Existing rows of a table that enables row tracking need ids too.
    backfill = metadata.configuration.get(key) == "true" and current.metadata.configuration.get(key) != "true"
    return commit(
        current.storage,
        Transaction(
            "SET TBLPROPERTIES",
            {"properties": {name: value for name, value in changes.items() if value is not None}},
            protocol=protocol if protocol != current.protocol else None,
            metadata=metadata,
            adds=current.to_adds(current.files, data_change=False) if backfill else (),
            reads_table=backfill or any(name.startswith(features.CONSTRAINT) for name in changes),
            current=current,
        ),
    )


def with_properties(metadata: actions.Metadata, changes: Mapping[str, str | None]) -> actions.Metadata:
    """Return metadata with some properties set, or removed if their value is None."""
    merged = {**metadata.configuration, **changes}
    return replace(metadata, configuration={name: value for name, value in merged.items() if value is not None})


class _UnshreddedTable(DeltaTable):
    """A table without Variant shredding: the commit of its files also removes the feature from the protocol."""

    changes_definition = True

    def __init__(self, before: Snapshot) -> None:
        self.before, protocol = before, before.protocol
        readers, writers = (
            None
            if names is None
            else tuple(name for name in names if not features.has_feature([name], features.SHREDDING))
            for names in (protocol.reader_features, protocol.writer_features)
        )
        metadata = with_properties(before.metadata, {features.SHREDDING_PROPERTY: None})
        protocol = replace(protocol, reader_features=readers, writer_features=writers)
        super().__init__(replace(before, metadata=metadata, protocol=protocol))

    def transaction(self, operation: str, change: TableChange[actions.Add]) -> Transaction:
        """Return the content of the commit."""
        return replace(
            super().transaction("DROP FEATURE", change),
            parameters={"featureName": features.SHREDDING},
            protocol=self.current.protocol,
            metadata=self.current.metadata,
            reads_table=True,
            current=self.before,
        )

    def reload(self) -> DeltaTable:
        """See `ChangeableTable.reload`."""
        return _UnshreddedTable(load_snapshot(self.before.storage))


def drop_shredding(table: DeltaTable, *, engine: Engine | None = None, **options: Any) -> OptimizeResult:
    """Rewrite all files unshredded and remove the feature from the protocol, in one commit; see `Table.optimize`."""
    if not features.has_feature(table.current.protocol.reader_features, features.SHREDDING):
        return OptimizeResult(version=table.version)
    return optimize(_UnshreddedTable(table.current), engine=engine, rewrite_all=True, **options)


def add_columns(current: Snapshot, columns: pa.Schema | shared.StructType | str) -> CommitResult:
    """Add columns, which are null in existing rows; see `Table.add_columns`."""
    new = actions.read_schema(columns)
    for f in new.fields:
        if current.schema.get(f.name) is not None:
            raise DeltaError(f"the table already has a column {f.name!r}: choose another name", reason="bad-schema")
        if not f.nullable:
            problem = f"column {f.name!r} must be nullable, because existing rows have no value for it"
            raise DeltaError(problem, reason="bad-schema")
    merging.refuse_added_metadata(new)
    metadata, protocol = merging.merged_metadata(current.metadata, current.protocol, new)
    parameters = {"columns": [f.name for f in new.fields]}
    return _commit(current, "ADD COLUMNS", parameters, actions.parse_schema(metadata.schema_string), metadata, protocol)


def rename_column(current: Snapshot, old: str, new: str) -> CommitResult:
    """Rename a column. No file is rewritten, so the table must have column mapping; see `Table.rename_column`."""
    _check_mapping(current, "renamed")
    _check_unused(current, old.split(".")[0])
    place, f = shared.find_field(current.schema, old)
    schema = shared.with_field_at(current.schema, place, replace(f, name=new))
    names = tuple(new if name.lower() == old.lower() else name for name in current.partition_columns)
    parameters = {"oldColumnPath": old, "newColumnPath": new}
    return _commit(current, "RENAME COLUMN", parameters, schema, replace(current.metadata, partition_columns=names))


def drop_column(current: Snapshot, name: str) -> CommitResult:
    """Drop a column. No file is rewritten, so the table must have column mapping; see `Table.drop_column`."""
    _check_mapping(current, "dropped")
    _check_unused(current, name.split(".")[0])
    if name.lower() in {column.lower() for column in current.partition_columns}:
        raise DeltaError(f"column {name!r} is a partition column, which cannot be dropped", reason="bad-schema")

    place, _ = shared.find_field(current.schema, name)
    schema = shared.with_field_at(current.schema, place, None)
    if any(isinstance(kind, shared.StructType) and not kind.fields for kind in shared.all_types(schema)):
        raise DeltaError(f"column {name!r} is the last one, which cannot be dropped", reason="bad-schema")
    return _commit(current, "DROP COLUMNS", {"columns": [name]}, schema)


def widen_column(current: Snapshot, name: str, to: str) -> CommitResult:
    """Widen the type of a column. No file is rewritten; the table must have ``delta.enableTypeWidening``.

    See `Table.widen_column`.
    """
    wide, (place, f) = actions.named_type(to), shared.find_field(current.schema, name)
    merging.check_widening(name, f.type, wide, current.metadata)
    schema = shared.with_field_at(current.schema, place, replace(f, type=wide))
    schema = merging.with_history(current.schema, schema)
    return _commit(current, "CHANGE COLUMN", {"column": name, "type": to}, schema)


def _commit(
    current: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    schema: shared.StructType,
    metadata: actions.Metadata | None = None,
    protocol: actions.Protocol | None = None,
) -> CommitResult:
    """Commit a new schema as one version."""
    metadata = replace(metadata or current.metadata, schema_string=actions.schema_json(schema))
    shared.check_schema(schema, metadata.partition_columns)
    merging.check_change_data_names(schema, metadata.configuration)
    protocol = features.with_features(protocol or current.protocol, features.schema_features(schema))
    features.check_writable(protocol, current.storage.uri)
    change = Transaction(
        operation,
        parameters,
        metadata=metadata,
        protocol=protocol if protocol != current.protocol else None,
        current=current,
    )
    return commit(current.storage, change)


def _check_mapping(current: Snapshot, participle: str) -> None:
    if current.column_mapping == "none":
        problem = (
            f"columns can only be {participle} in tables with column mapping, because files are not rewritten: set "
            "delta.columnMapping.mode to name first"
        )
        raise DeltaError(problem, reason="no-column-mapping", file=current.storage.uri)


def _check_unused(current: Snapshot, name: str) -> None:
    configuration = current.metadata.configuration
    expressions = {key: text for key, text in configuration.items() if key.startswith("delta.constraints.")}
    for f in current.schema.fields:
        for key in ("delta.generationExpression", "delta.invariants"):
            if key in f.metadata:
                expressions[f"column {f.name}"] = str(f.metadata[key])
    for owner, text in expressions.items():
        if re.search(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", text):
            raise DeltaError(f"column {name!r} is used by {owner} ({text}): remove that first", reason="column-in-use")
