"""The history of a table: its snapshots, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.errors import check_count
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.reading.snapshot import TableLike, snapshot


def history(
    table: TableLike,
    *,
    catalog: CatalogOption = None,
    limit: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the snapshots of a table, newest first; see `Table.history`."""
    current = snapshot(table, catalog=catalog, storage_options=storage_options)
    if limit is not None:
        check_count("limit", limit)
    metadata = current.metadata
    line = {info.id for info in metadata.ancestors(current.snapshot_id)}
    references: dict[int, list[str]] = {}
    for name, reference in metadata.references.items():
        references.setdefault(reference.snapshot_id, []).append(name)
    newest_first = sorted(metadata.snapshots.values(), key=lambda info: (info.sequence_number, info.timestamp_ms))[::-1]
    return [
        {
            "snapshot_id": info.id,
            "parent_id": info.parent_id,
            "sequence_number": info.sequence_number,
            "timestamp": info.timestamp_ms,
            "operation": info.operation,
            "summary": dict(info.summary),
            "schema_id": info.schema_id,
            "references": sorted(references.get(info.id, ())),
            "is_current": info.id in line,
        }
        for info in newest_first[:limit]
    ]
