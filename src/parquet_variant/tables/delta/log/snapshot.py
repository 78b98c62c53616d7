"""A version of a table: its schema, properties and files.

Owns `Snapshot` and its choice by version or by time. Leaves replay to `segment`, the data to `reading.read`, and
statistics to `reading.pruning`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import DeltaError, TableError, check_batch, check_count, without_secrets
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.delta.log import segment as log
from parquet_variant.tables.delta.log.file_actions import iter_adds
from parquet_variant.tables.delta.protocol import actions, features
from parquet_variant.tables.delta.protocol.schema_merging import check_type_changes
from parquet_variant.tables.delta.statistics import with_json_stats
from parquet_variant.tables.schema import Field, StructType
from parquet_variant.tables.storage import Storage, now_millis, open_storage, to_millis


@dataclass(frozen=True)
class Snapshot:
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

    def has_recorded(self, txn: tuple[str, int] | None) -> bool:
        """Return whether the table has recorded an application's version, or a later one."""
        check_batch("txn", txn)
        recorded = None if txn is None else self.txns.get(txn[0])
        return recorded is not None and txn is not None and recorded.version >= txn[1]

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
            raise DeltaError(
                f"{self.storage.uri} is append-only: set delta.appendOnly to false to change or delete rows",
                reason="append-only",
                file=self.storage.uri,
            )
        new: dict[str, Any] = {"data_change": data_change, "deletion_timestamp": now_millis()}
        same = ("path", "partition_values", "size", "deletion_vector", "base_row_id", "default_row_commit_version")
        return [
            actions.Remove(**new, extended_file_metadata=True, **{name: getattr(add, name) for name in same})
            for add in iter_adds(files)
        ]

    def without_files(self) -> Snapshot:
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
                    segment = log.list_segment(storage, segment.version, damaged=damaged)
                except DeltaError:
                    raise damage from None
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
