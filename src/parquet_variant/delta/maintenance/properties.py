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
from parquet_variant.delta.protocol.features import check_writable, has_feature, with_features
from parquet_variant.delta.protocol.table_properties import ResolvedProperties, resolve_properties

__all__ = ["set_properties", "with_properties", "with_resolved", "without_feature"]


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
    metadata, protocol = with_resolved(current.metadata, current.protocol, resolved, preview=preview)
    check_writable(protocol, metadata, current.storage.uri)
    return commit(
        current.storage,
        Transaction(
            "SET TBLPROPERTIES",
            {"properties": {k: v for k, v in resolved.changes.items() if v is not None}},
            protocol=protocol if protocol != current.protocol else None,
            metadata=metadata,
            read_version=current.version,
        ),
    )


def with_properties(metadata: Metadata, changes: Mapping[str, str | None]) -> Metadata:
    """The metadata with some properties set, or removed where the value is None."""
    configuration = {k: v for k, v in metadata.configuration.items() if changes.get(k, v) is not None}
    configuration |= {k: v for k, v in changes.items() if v is not None}
    return replace(metadata, configuration=configuration)


def with_resolved(
    metadata: Metadata, protocol: Protocol, resolved: ResolvedProperties, *, preview: bool = False
) -> tuple[Metadata, Protocol]:
    """The metadata and protocol after a change of properties."""
    return with_properties(metadata, resolved.changes), with_features(protocol, resolved.features, preview=preview)


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """The protocol without a feature, under its own and its preview name."""

    def kept(features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if features is None else tuple(f for f in features if not has_feature([f], name))

    return replace(
        protocol, reader_features=kept(protocol.reader_features), writer_features=kept(protocol.writer_features)
    )
