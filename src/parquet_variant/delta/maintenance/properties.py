"""Changing a table's properties and features: `ALTER TABLE … SET TBLPROPERTIES`, and dropping variant shredding.

Owns the change itself. Leaves which properties there are to `table_properties`, and rewriting files to `optimize`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from parquet_variant.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Metadata, Protocol
from parquet_variant.delta.protocol.column_mapping import with_mode
from parquet_variant.delta.protocol.column_metadata import check_change_data_names
from parquet_variant.delta.protocol.features import check_writable, has_feature, with_features
from parquet_variant.delta.protocol.table_properties import CONSTRAINT, resolve_properties, with_tracking_columns
from parquet_variant.delta.reading.read import iter_files
from parquet_variant.delta.writing.table_rules import rules_of
from parquet_variant.errors import TableError
from parquet_variant.tables.rules import Rules


def set_properties(
    table: str | os.PathLike[str] | Snapshot,
    properties: Mapping[str, str | bool | int | None],
    *,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Set or remove table properties.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    properties
        Values by name; None removes a property. ``delta.enableVariantShredding=true`` also adds the feature that it
        needs; ``false`` keeps it, so that files that are shredded stay readable (see `drop_shredding`).
    preview
        Name a feature that is added ``variantShredding-preview``.
    storage_options
        Configuration of the object store.

    Returns
    -------
    CommitResult

    Raises
    ------
    DeltaError
        ``"unsupported-property"`` for a ``delta.`` property that nothing here acts on, ``"bad-property"`` for a value,
        ``"unsupported-feature"``; ``"conflict"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.set_properties(folder, {"delta.enableVariantShredding": False})
    ...     pv.delta.snapshot(folder).shredding_enabled
    False
    """
    current = snapshot(table, storage_options=storage_options)
    resolved = resolve_properties(properties)
    protocol = with_features(current.protocol, resolved.features, preview=preview)
    metadata = with_properties(current.metadata, resolved.changes)
    metadata = with_tracking_columns(with_mode(current.metadata, metadata))
    check_writable(protocol, current.storage.uri)
    check_change_data_names(current.schema, metadata.configuration)
    _check_constraints(current, protocol, metadata)
    key = "delta.enableRowTracking"
    # Every row of a table that tracks them has an id, also those that are there already.
    backfill = metadata.configuration.get(key) == "true" and current.metadata.configuration.get(key) != "true"
    return commit(
        current.storage,
        Transaction(
            "SET TBLPROPERTIES",
            {"properties": {k: v for k, v in resolved.changes.items() if v is not None}},
            protocol=protocol if protocol != current.protocol else None,
            metadata=metadata,
            adds=current.to_adds(current.files, data_change=False) if backfill else (),
            reads_table=backfill or any(name.startswith(CONSTRAINT) for name in resolved.changes),
            current=current,
        ),
    )


def _check_constraints(current: Snapshot, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a new constraint that a row of the table breaks."""
    old, new = (rules_of(*each).checks for each in ((current.protocol, current.metadata), (protocol, metadata)))
    added = Rules(tuple(each for each in new if each not in old))
    if added.checks:
        rules_of(protocol, metadata)
        for path, rows in iter_files(current, current.schema):
            try:
                added.enforce(rows)
            except TableError as error:
                raise error.at(file=path) from None


def with_properties(metadata: Metadata, changes: Mapping[str, str | None]) -> Metadata:
    """The metadata with some properties set, or removed where the value is None."""
    configuration = {k: v for k, v in metadata.configuration.items() if changes.get(k, v) is not None}
    configuration |= {k: v for k, v in changes.items() if v is not None}
    return replace(metadata, configuration=configuration)


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """The protocol without a feature, under its own and its preview name."""

    def kept(features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if features is None else tuple(f for f in features if not has_feature([f], name))

    return replace(
        protocol, reader_features=kept(protocol.reader_features), writer_features=kept(protocol.writer_features)
    )
