"""Changing a table's properties and features: `ALTER TABLE … SET TBLPROPERTIES`.

Owns the change of metadata and protocol. Leaves the list of properties to `protocol.table_properties`, and rewriting
files to `optimize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from parquet_variant.errors import TableError
from parquet_variant.tables.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike, snapshot
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol
from parquet_variant.tables.delta.protocol.column_metadata import check_change_data_names, with_mode
from parquet_variant.tables.delta.protocol.features import check_writable, has_feature, with_features
from parquet_variant.tables.delta.protocol.table_properties import CONSTRAINT, resolve_properties, with_tracking_columns
from parquet_variant.tables.delta.reading.read import iter_files
from parquet_variant.tables.delta.writing.data_files import rules_of
from parquet_variant.tables.rules import Rules


def set_properties(
    table: TableLike,
    properties: Mapping[str, str | bool | int | None],
    *,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Set or remove table properties; see `Table.set_properties`."""
    current = snapshot(table, storage_options=storage_options)
    resolved = resolve_properties(properties)
    protocol = with_features(current.protocol, resolved.features, preview=preview)
    metadata = with_properties(current.metadata, resolved.changes)
    metadata = with_tracking_columns(with_mode(current.metadata, metadata))
    check_writable(protocol, current.storage.uri)
    check_change_data_names(current.schema, metadata.configuration)
    _check_constraints(current, protocol, metadata)
    key = "delta.enableRowTracking"
    # Existing rows of a table that enables row tracking need ids too.
    backfill = metadata.configuration.get(key) == "true" and current.metadata.configuration.get(key) != "true"
    return commit(
        current.storage,
        Transaction(
            "SET TBLPROPERTIES",
            {"properties": {name: value for name, value in resolved.changes.items() if value is not None}},
            protocol=protocol if protocol != current.protocol else None,
            metadata=metadata,
            adds=current.to_adds(current.files, data_change=False) if backfill else (),
            reads_table=backfill or any(name.startswith(CONSTRAINT) for name in resolved.changes),
            current=current,
        ),
    )


def _check_constraints(current: Snapshot, protocol: Protocol, metadata: Metadata) -> None:
    """Raise `TableError` for a new constraint that a row of the table breaks."""
    old = rules_of(current.protocol, current.metadata).checks
    new = rules_of(protocol, metadata).checks
    added = Rules(tuple(check for check in new if check not in old))
    if added.checks:
        rules_of(protocol, metadata)
        for path, rows in iter_files(current, current.schema):
            try:
                added.enforce(rows)
            except TableError as error:
                raise error.at(file=path) from None


def with_properties(metadata: Metadata, changes: Mapping[str, str | None]) -> Metadata:
    """Return metadata with some properties set, or removed if their value is None."""
    merged = {**metadata.configuration, **changes}
    configuration = {name: value for name, value in merged.items() if value is not None}
    return replace(metadata, configuration=configuration)


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """Return the protocol without a feature, by its name and its preview name."""

    def without(features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if features is None else tuple(f for f in features if not has_feature([f], name))

    return replace(
        protocol, reader_features=without(protocol.reader_features), writer_features=without(protocol.writer_features)
    )
