"""A version of a table: its schema, properties and files; and its checkpoint (PROTOCOL.md, "Checkpoints").

Owns `Snapshot` and its choice by version or by time, the rows and columns of checkpoints, `stats_parsed` with Variants
in Parquet form among them, `_last_checkpoint`, and which files of the log no version within the retention needs. Leaves
replay to `segment`, reading checkpoints to `file_actions`, and the data to `reading.read`.
"""

from __future__ import annotations

import json
import os
import re
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import empty_table, one_chunk
from parquet_variant.errors import DeltaError, TableError, check_batch, check_count, first_line, without_secrets
from parquet_variant.files.parquet.writing.writer import VariantWriter
from parquet_variant.io.staging import atomic_file
from parquet_variant.ops.validate import sound_rows
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.delta import statistics
from parquet_variant.tables.delta.file_locations import partition_column, relative_path
from parquet_variant.tables.delta.log import segment as log
from parquet_variant.tables.delta.log.file_actions import FILE_SCHEMA, iter_adds, log_lines, read_checkpoint_part
from parquet_variant.tables.delta.log.segment import LAST_CHECKPOINT, LOG, SIDECARS, classify, commit_times, list_log
from parquet_variant.tables.delta.protocol import actions, features
from parquet_variant.tables.delta.protocol.features import duration_millis, supports
from parquet_variant.tables.delta.protocol.schema_merging import check_type_changes
from parquet_variant.tables.delta.statistics import with_json_stats
from parquet_variant.tables.pruning import parsed_bounds
from parquet_variant.tables.schema import Field, Place, StructType
from parquet_variant.tables.storage import Storage, now_millis, open_storage, to_millis
from parquet_variant.types.targets import VARIANT_STORAGE


class Snapshot(Record):
    """A table at one version, or at a version that is to be created."""

    storage: Storage
    version: int
    timestamp: int  # Modification time of the commit file, in milliseconds since 1970.
    protocol: actions.Protocol
    metadata: actions.Metadata
    txns: Mapping[str, actions.Txn]
    domains: Mapping[str, actions.DomainMetadata]
    # Added and removed files, as `file_actions.FILE_SCHEMA`.
    files: pa.Table
    tombstones: pa.Table

    @cached_property
    def schema(self) -> StructType:
        """The columns."""
        return features.table_schema(self.protocol, self.metadata)

    @property
    def columns(self) -> StructType:
        """The columns."""
        return self.schema

    struct = columns

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.configuration

    def place(self, file: actions.Add) -> tuple[Storage, str, str]:
        """Return the storage of a data file, its path there, and its name for errors."""
        path = relative_path(self.storage, file.path)
        return self.storage, path, path

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns."""
        return self.metadata.partition_columns

    @property
    def partition_fields(self) -> tuple[Field, ...]:
        """The partition columns."""
        return tuple(field for name in self.partition_columns if (field := self.schema.get(name)) is not None)

    @property
    def shredding_enabled(self) -> bool:
        """Whether new files may contain shredded Variants.

        The protocol must list ``variantShredding`` and ``variantType``, on which it depends, for readers and writers,
        and the property must be ``true``; with any other value the feature is only supported.
        """
        if self.metadata.configuration.get(features.SHREDDING_PROPERTY, "false") != "true":
            return False
        lists = (self.protocol.reader_features, self.protocol.writer_features)
        needed = (features.VARIANT_TYPE, features.SHREDDING)
        return all(features.has_feature(listed, name) for listed in lists for name in needed)

    @property
    def column_mapping(self) -> str:
        """``"none"``, ``"name"`` or ``"id"``."""
        return features.column_mapping_mode(self.protocol, self.metadata)

    @property
    def row_tracking_columns(self) -> tuple[str, str] | None:
        """The names of the columns with row ids and commit versions; None if the table does not track rows."""
        if not features.enabled(self.protocol, self.metadata, "rowTracking", "delta.enableRowTracking"):
            return None
        names = self.metadata.configuration
        row_id, commit = names.get(features.ROW_ID_COLUMN), names.get(features.ROW_COMMIT_COLUMN)
        return None if row_id is None or commit is None else (row_id, commit)

    def has_recorded(self, batch: tuple[str, int] | None) -> bool:
        """Return whether the table has recorded an application's version, or a later one."""
        check_batch(batch)
        recorded = None if batch is None else self.txns.get(batch[0])
        return recorded is not None and batch is not None and recorded.version >= batch[1]

    @property
    def num_files(self) -> int:
        """The number of data files."""
        return int(self.files.num_rows)

    def to_adds(self, files: pa.Table, *, data_change: bool = True) -> list[actions.Add]:
        """Return actions that add rows of `files` again, with statistics as JSON."""
        return [replace(add, data_change=data_change) for add in iter_adds(with_json_stats(files, self.schema))]

    def to_removes(self, files: pa.Table, *, data_change: bool = True) -> list[actions.Remove]:
        """Return actions that remove rows of `files`; without `data_change`, the same commit adds their rows again."""
        if data_change and self.metadata.configuration.get("delta.appendOnly", "false").lower() == "true":
            problem = f"{self.storage.uri} is append-only: set delta.appendOnly to false to change or delete rows"
            raise DeltaError(problem, reason="append-only", file=self.storage.uri)
        now = now_millis()
        return [add.removed(now, data_change=data_change) for add in iter_adds(files)]

    def for_tasks(self) -> Snapshot:
        """Return the snapshot without its list of files, for tasks: a large table's list is slow to pickle."""
        # An empty slice would be pickled with the memory that it shares.
        no_files = empty_table(self.files.schema)
        return replace(self, files=no_files, tombstones=no_files)

    def __repr__(self) -> str:
        return f"Snapshot({without_secrets(self.storage.uri)!r}, version={self.version}, files={self.num_files})"


# A table as operations take it: a path, a URL, its files, or a snapshot of it.
TableLike: TypeAlias = str | os.PathLike[str] | Storage | Snapshot


def snapshot(
    table: TableLike,
    *,
    version: int | None = None,
    timestamp: int | str | datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_outside: bool = False,
) -> Snapshot:
    """Return a table at a version, or as of a time; see `pv.open`."""
    if isinstance(table, Snapshot):
        return table
    if version is not None and timestamp is not None:
        raise DeltaError("give a version or a timestamp, not both", reason="bad-argument")
    if version is not None:
        check_count("version", version)
    storage = table
    if not isinstance(storage, Storage):
        storage = open_storage(storage, storage_options, allow_outside=allow_outside)
    if timestamp is not None:
        newest = load_snapshot(storage, files=False)
        since = features.in_commit_since(newest.protocol, newest.metadata)
        version = log.version_at(storage, to_millis(timestamp, DeltaError), since)
    return load_snapshot(storage, version)


def writable_snapshot(table: TableLike, storage_options: Mapping[str, str] | None = None) -> Snapshot:
    """Return the newest version of a table, or a given snapshot, which this library must be able to write."""
    current = snapshot(table, storage_options=storage_options)
    features.check_writable(current.protocol, current.storage.uri)
    return current


def load_snapshot(storage: Storage, version: int | None = None, *, files: bool = True) -> Snapshot:
    """Return the table in a storage at a version; `files=False` leaves out the file actions."""
    damaged: set[str] = set()
    try:
        segment, damage = log.list_segment(storage, version), None
        while True:
            try:
                state = log.replay(storage, segment, files=files)
                break
            except log.DamagedCheckpointError as error:
                # A checkpoint only speeds up reading: a damaged one is ignored if the log still has the commits.
                assert segment.checkpoint is not None
                damage = damage or error
                damaged.update(segment.checkpoint.files)
                try:
                    segment = log.list_segment(storage, version, damaged=damaged)
                except DeltaError:
                    raise damage from None
            except FileNotFoundError as error:
                # Another process removed commits that a newer checkpoint replaces.
                listed, segment = segment, log.list_segment(storage, version, damaged=damaged)
                if segment == listed:
                    problem = f"a commit file cannot be read: {first_line(error)}"
                    raise DeltaError(problem, reason="broken-log") from None
    except TableError as error:
        raise error.at(file=storage.uri) from None
    if damage is not None:
        warnings.warn(
            f"{damage.message}: the checkpoint is ignored, because {without_secrets(storage.uri)} still has the "
            "commits; write a new one with DeltaTable.checkpoint",
            stacklevel=3,
        )
    assert state.protocol is not None and state.metadata is not None
    features.check_readable(state.protocol, storage.uri)
    if "delta.typeChanges" in state.metadata.schema_string:
        schema = actions.parse_schema(state.metadata.schema_string)
        check_type_changes(schema, state.protocol.reader_features, storage.uri)
    return Snapshot(storage, segment.version, segment.modified, **vars(state))


_DAY = 86_400_000
_LOG_RETENTION = "interval 30 days"
_PROTECTED_BEFORE = "delta.requireCheckpointProtectionBeforeVersion"
_NAME = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|(\d{20})\.compacted\.json)")


def clean_log(storage: Storage, configuration: Mapping[str, str]) -> list[str]:
    """Delete files that no version within ``delta.logRetentionDuration`` needs, and return their paths."""
    if configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return []
    keep = duration_millis(configuration.get("delta.logRetentionDuration", _LOG_RETENTION))
    cutoff = (now_millis() - keep) // _DAY * _DAY
    last_expired = max((version for version, time in commit_times(storage).items() if time <= cutoff), default=-1)
    # The newest expired checkpoint that can be read: the commits before a damaged one are still needed.
    checkpoints = sorted(classify(list_log(storage))[1], key=lambda point: point.version, reverse=True)
    usable = (c.version for c in checkpoints if c.version <= last_expired and _is_readable(storage, c.files))
    first = next(usable, None)
    # Older versions have features that this library may not know: all of them may go at once, or none
    # (feature ``checkpointProtection``).
    protected = configuration.get(_PROTECTED_BEFORE, "0")
    if first is None or first < (int(protected) if protected.isdecimal() else 0):
        return []

    def is_needed(name: str) -> bool:
        match = _NAME.fullmatch(name)
        return match is None or int(match[1]) > first or (int(match[1]) == first and "compacted" not in match[2])

    return remove_log_files(storage, is_needed, now_millis() // _DAY * _DAY - _DAY)


def _is_readable(storage: Storage, files: Sequence[str]) -> bool:
    try:
        return all(_sidecars(storage, path) is not None for path in files)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return False


def _sidecars(storage: Storage, path: str) -> set[str]:
    """Return the names of the sidecars of a checkpoint file."""
    if path.endswith(".json"):
        actions = log_lines(storage.read(path))
    else:
        actions = read_checkpoint_part(storage.open(path), files=False)[0]
    return {action["sidecar"]["path"].rpartition("/")[2] for action in actions if action.get("sidecar")}


def remove_log_files(storage: Storage, is_needed: Callable[[str], bool], cutoff: int) -> list[str]:
    """Delete files of the log by their names, and sidecars up to a time that no other checkpoint names."""
    files = list_log(storage)
    removed = sorted(file.path for file in files if not is_needed(file.path.rpartition("/")[2]))
    if sidecars := [file.path for file in storage.list(SIDECARS) if file.modified <= cutoff]:
        checkpoints = [f.path for f in files if ".checkpoint." in f.path and f.size and f.path not in removed]
        named: set[str] = set()
        for path in checkpoints:
            with suppress(FileNotFoundError):  # Another process removes old checkpoints.
                named |= _sidecars(storage, path)
        removed += [path for path in sidecars if path.rpartition("/")[2] not in named]
    for path in removed:
        storage.delete(path)
    return removed


_TEXT, _LONG = pa.string(), pa.int64()
_STRINGS, _LIST = pa.map_(_TEXT, _TEXT), pa.list_(_TEXT)
_TYPES = {
    "protocol": {
        "minReaderVersion": pa.int32(), "minWriterVersion": pa.int32(), "readerFeatures": _LIST,
        "writerFeatures": _LIST,
    },
    "metaData": {
        "id": _TEXT, "name": _TEXT, "description": _TEXT,
        "format": pa.struct({"provider": _TEXT, "options": _STRINGS}), "schemaString": _TEXT,
        "partitionColumns": _LIST, "configuration": _STRINGS, "createdTime": _LONG,
    },
    "txn": {"appId": _TEXT, "version": _LONG, "lastUpdated": _LONG},
    "checkpointMetadata": {"version": _LONG, "tags": _STRINGS},
    "sidecar": {"path": _TEXT, "sizeInBytes": _LONG, "modificationTime": _LONG, "tags": _STRINGS},
    "domainMetadata": {"domain": _TEXT, "configuration": _TEXT, "removed": pa.bool_()},
}  # fmt: skip
_REMOVE_NAMES = (
    "path", "deletionTimestamp", "dataChange", "partitionValues", "size", "deletionVector", "baseRowId",
    "defaultRowCommitVersion",
)  # fmt: skip
_ADD_NAMES = tuple(n for n in FILE_SCHEMA.names if n not in ("isAdd", "deletionTimestamp"))
_DEFAULT_INTERVAL = 100
DEFAULT_RETENTION = "interval 1 week"


def checkpoint(current: Snapshot, *, stats_parsed: bool | None = None, tombstones: bool = True) -> str:
    """Write a checkpoint of a snapshot and return its path; without `tombstones`, it names no removed file.

    See `DeltaTable.checkpoint`.
    """
    features.check_writable(current.protocol, current.storage.uri)
    configuration = current.metadata.configuration
    if stats_parsed is None:
        stats_parsed = configuration.get("delta.checkpoint.writeStatsAsStruct", "false").lower() == "true"
    as_json = configuration.get("delta.checkpoint.writeStatsAsJson", "true").lower() != "false"
    # Deletion vectors need numRecords, in one form or the other.
    stats_parsed = stats_parsed or (not as_json and current.files["deletionVector"].null_count < current.num_files)
    retention = duration_millis(configuration.get("delta.deletedFileRetentionDuration", DEFAULT_RETENTION))
    stamps = pc.fill_null(current.tombstones["deletionTimestamp"], 0)
    is_recent = pc.greater(stamps, pa.scalar(now_millis() - retention))  # Vacuum may still need it.
    removes = current.tombstones.filter(is_recent) if tombstones else current.tombstones.slice(0, 0)
    files = [
        _file_actions("add", current.files, _add_columns(current, as_json=as_json, stats_parsed=stats_parsed)),
        _file_actions("remove", removes, {name: removes[name] for name in _REMOVE_NAMES}),
    ]
    if configuration.get("delta.checkpointPolicy") == "v2" and supports(current.protocol, "v2Checkpoint"):
        return _write_v2(current, pa.concat_tables(files, promote_options="default"))
    rows = pa.concat_tables([*_other_actions(current), *files], promote_options="default")
    path = f"{LOG}/{current.version:020}.checkpoint.parquet"
    _write_hint(current, len(rows), _write_rows(current, path, rows))
    return path


def _write_v2(current: Snapshot, files: pa.Table) -> str:
    """Write a checkpoint with the file actions in a sidecar (PROTOCOL.md, "V2 Spec") and return its path."""
    name = f"{uuid.uuid4()}.parquet"
    size = _write_rows(current, f"{SIDECARS}/{name}", files)
    sidecar = {"path": name, "sizeInBytes": size, "modificationTime": now_millis(), "tags": None}
    rows = pa.concat_tables(
        [
            _actions("checkpointMetadata", [{"version": current.version, "tags": None}]),
            *_other_actions(current),
            _actions("sidecar", [sidecar]),
            files.slice(0, 0),  # delta-spark reads the columns add and remove of every checkpoint
        ],
        promote_options="default",
    )
    path = f"{LOG}/{current.version:020}.checkpoint.{uuid.uuid4()}.parquet"
    _write_hint(current, len(rows) + len(files), size + _write_rows(current, path, rows))
    return path


def _write_rows(current: Snapshot, path: str, rows: pa.Table) -> int:
    with current.storage.create(path) as local:
        # A version may have a checkpoint, which is replaced.
        with atomic_file(local) as new, VariantWriter(new, compression="snappy") as writer:
            writer.write_batch(rows)
        return int(local.stat().st_size)


def _write_hint(current: Snapshot, rows: int, size: int) -> None:
    hint = {"version": current.version, "size": rows, "sizeInBytes": size, "numOfAddFiles": current.num_files}
    current.storage.put(LAST_CHECKPOINT, json.dumps(hint).encode())


def checkpoint_if_due(current: Snapshot, version: int) -> None:
    """Write a checkpoint if one is due (``delta.checkpointInterval``); it only speeds up reading, so it may fail."""
    try:
        interval = int(current.metadata.configuration.get("delta.checkpointInterval", _DEFAULT_INTERVAL))
    except ValueError:
        interval = _DEFAULT_INTERVAL
    if interval > 0 and version > 0 and version % interval == 0:
        with suppress(Exception):
            checkpoint(load_snapshot(current.storage, version))
            clean_log(current.storage, current.metadata.configuration)


def _other_actions(current: Snapshot) -> list[pa.Table]:
    text = current.metadata.configuration.get("delta.setTransactionRetentionDuration")
    since = 0 if text is None else now_millis() - duration_millis(text)
    txns = [
        txn for txn in current.txns.values() if text is None or txn.last_updated is None or txn.last_updated >= since
    ]
    metadata = current.metadata
    options = metadata.format.get("options")
    file_format = {
        "provider": str(metadata.format.get("provider", "parquet")),
        "options": [(key, str(value)) for key, value in options.items()] if isinstance(options, dict) else [],
    }
    maps = {"configuration": list(metadata.configuration.items()), "format": file_format}
    return [
        _actions("protocol", [current.protocol.to_dict()]),
        _actions("metaData", [metadata.to_dict() | maps]),
        _actions("txn", [txn.to_dict() for txn in txns]),
        _actions("domainMetadata", [domain.to_dict() for domain in current.domains.values()]),
    ]


def _actions(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array(rows, pa.struct(_TYPES[name]))})


def _file_actions(name: str, files: pa.Table, columns: dict[str, Any]) -> pa.Table:
    arrays = [one_chunk(column) for column in columns.values()]
    fields = [pa.field(key, array.type) for key, array in zip(columns, arrays, strict=True)]
    struct = pa.StructArray.from_arrays(arrays, fields=fields) if len(files) else pa.nulls(0, pa.struct(fields))
    return pa.table({name: struct})


def _add_columns(current: Snapshot, *, as_json: bool, stats_parsed: bool) -> dict[str, Any]:
    files = current.files
    columns = {name: files[name] for name in _ADD_NAMES if name != "stats"}
    # A checkpoint changes no rows: streams that read it must not treat its files as new ones.
    columns["dataChange"] = pa.array(np.zeros(len(files), dtype=bool))
    if as_json:
        columns["stats"] = statistics.with_json_stats(files, current.schema)["stats"].cast(pa.string())
    if stats_parsed:
        kind = statistics.stats_type(current.schema, variants=VARIANT_STORAGE)
        columns["stats_parsed"] = _typed_stats(statistics.read_stats(files, current.schema), kind, ())
        if current.partition_columns:
            parsed = {f.physical_name: partition_column(files, f) for f in current.partition_fields}
            columns["partitionValues_parsed"] = pa.StructArray.from_arrays(list(parsed.values()), list(parsed))
    return columns


def _typed_stats(stats: statistics.StatsTable, kind: pa.StructType, place: Place) -> pa.Array:
    """Return the statistics of files in their original types, with Variants as Variant columns (RFC, "In Parquet")."""
    children, fields = [], []
    for f in kind:
        field_place = (*place, f.name)
        if pa.types.is_struct(f.type) and f.type != VARIANT_STORAGE:
            if not f.type.num_fields:
                continue
            children.append(_typed_stats(stats, f.type, field_place))
        elif f.type == VARIANT_STORAGE:
            children.append(_variant_bounds(stats, field_place))
        else:
            children.append(one_chunk(stats.get(field_place[0], field_place[1:])))
        fields.append(pa.field(f.name, children[-1].type, metadata=f.metadata))
    return pa.StructArray.from_arrays(children, fields=fields)


def _variant_bounds(stats: statistics.StatsTable, place: Place) -> pa.Array:
    bounds = statistics.decode_bounds_array(one_chunk(stats.get(place[0], place[1:])))
    other = stats.parsed_variant(place[0], place[1:])
    if other is not None:
        bounds = pc.if_else(bounds.is_null(), parsed_bounds(other), bounds)
    pieces = [pc.fill_null(pc.struct_field(bounds, [name]).cast(pa.binary()), b"") for name in ("metadata", "value")]
    storage = pa.StructArray.from_arrays(pieces, fields=list(VARIANT_STORAGE), mask=bounds.is_null())
    is_known = pc.and_(bounds.is_valid(), pa.array(sound_rows(storage)))  # Damaged bounds are unknown.
    return pa.StructArray.from_arrays(pieces, fields=list(VARIANT_STORAGE), mask=pc.invert(is_known))
