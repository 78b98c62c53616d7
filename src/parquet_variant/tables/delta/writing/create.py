"""Creating a table: empty, or together with its first rows in one commit.

Owns `create`, the plan of a new table, and the commit that creates it. Leaves rows to `write`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError, TableError, check_mapping, strings_of
from parquet_variant.support.choices import Mode
from parquet_variant.tables.delta.log.commit import CommitResult, Transaction, commit, table_exists
from parquet_variant.tables.delta.log.file_actions import no_files
from parquet_variant.tables.delta.log.snapshot import Snapshot, load_snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Metadata, Txn
from parquet_variant.tables.delta.protocol.column_metadata import (
    check_change_data_names,
    check_column_metadata,
    metadata_features,
    with_mode,
)
from parquet_variant.tables.delta.protocol.features import check_writable, table_protocol
from parquet_variant.tables.delta.protocol.schema import read_schema, schema_json
from parquet_variant.tables.delta.protocol.table_properties import (
    SHREDDING_PROPERTY,
    resolve_properties,
    with_tracking_columns,
)
from parquet_variant.tables.delta.writing.data_files import warn_of_nulls
from parquet_variant.tables.delta.writing.write import rows_transaction
from parquet_variant.tables.schema import StructType, check_schema, variant_paths
from parquet_variant.tables.storage import Storage, now_millis, open_storage


def create(
    table: str | os.PathLike[str],
    schema: pa.Schema | StructType | str,
    *,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    shredding: bool = True,
    preview: bool = False,
    name: str | None = None,
    description: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Snapshot:
    """Create an empty table; see `pv.create`."""
    storage = open_storage(table, storage_options)
    planned = planned_table(
        storage, read_schema(schema), partition_by, properties, shredding, preview, name=name, description=description
    )
    commit(storage, _creation(planned, "CREATE TABLE"))
    return load_snapshot(storage, 0)


def planned_table(
    storage: Storage,
    columns: StructType,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, Any] | None = None,
    shredding: bool = True,
    preview: bool = False,
    **names: Any,
) -> Snapshot:
    """Return a table that does not exist yet, at version -1: the input of `plan` and `commit_new`."""
    variants = any(True for _ in variant_paths(columns))
    defaults: dict[str, Any] = {SHREDDING_PROPERTY: True} if shredding and variants else {}
    check_mapping("properties", properties or {}, DeltaError)
    resolved = resolve_properties(defaults | dict(properties or {}))
    partitions = strings_of("partition_by", partition_by or ())
    check_schema(columns, partitions)
    check_column_metadata(columns)
    check_change_data_names(columns, resolved.changes)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema_json(columns),
        partition_columns=partitions,
        configuration={name: value for name, value in resolved.changes.items() if value is not None},
        created_time=now_millis(),
        **names,
    )
    metadata = with_tracking_columns(with_mode(None, metadata))
    features = (*resolved.features, *metadata_features(columns))
    protocol = table_protocol(columns, features, preview=preview)
    check_writable(protocol, storage.uri)
    return Snapshot(
        storage=storage,
        version=-1,
        timestamp=0,
        protocol=protocol,
        metadata=metadata,
        txns={},
        domains={},
        files=no_files(),
        tombstones=no_files(),
    )


def _creation(planned: Snapshot, operation: str) -> Transaction:
    metadata = planned.metadata
    parameters = {"partitionBy": list(metadata.partition_columns), "properties": dict(metadata.configuration)}
    return Transaction(operation, parameters, protocol=planned.protocol, metadata=metadata)


def commit_new(
    planned: Snapshot,
    adds: Sequence[Add],
    mode: Mode = "error",
    txn: tuple[str, int] | None = None,
    *,
    written: Sequence[str] = (),
) -> CommitResult:
    """Create a planned table with its first files in one commit, so that no reader sees it without them.

    If another writer created the same table meanwhile, modes ``"append"`` and ``"overwrite"`` commit to that table.
    Raises `DeltaError`: reason ``"exists"``; files that are not in `written` (see `commit`) are left for the caller.
    """
    warn_of_nulls(planned, adds)
    application = None if txn is None else Txn(txn[0], txn[1], now_millis())
    transaction = replace(_creation(planned, "CREATE TABLE AS SELECT"), adds=adds, txn=application)

    def rebase(newest: Snapshot) -> Transaction:
        same = replace(newest.metadata, id=planned.metadata.id, created_time=planned.metadata.created_time)
        if same != planned.metadata:
            raise table_exists(planned.storage)
        return rows_transaction(newest, adds, mode, txn)

    is_open = mode in ("append", "overwrite")
    return commit(planned.storage, transaction, rebase=rebase if is_open else None, written=written)


def existing_table(storage: Storage) -> Snapshot | None:
    """Return the newest version of a table; None if the table does not exist."""
    try:
        return load_snapshot(storage)
    except TableError as error:
        if error.reason == "not-a-table":
            return None
        raise


def check_partitioned_by(current: Snapshot, names: tuple[str, ...]) -> None:
    """Refuse partition columns other than the table's; an empty tuple accepts any."""
    if names and names != current.partition_columns:
        columns = ", ".join(current.partition_columns) or "none"
        raise DeltaError(
            f"the table's partition columns are {columns}, not {', '.join(names)}: leave out partition_by",
            reason="bad-option",
        )
