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
    """Return the snapshots of a table, newest first.

    Parameters
    ----------
    table, catalog, storage_options
        The table; see `snapshot`.
    limit
        Maximum number of snapshots.

    Returns
    -------
    list of dict
        ``snapshot_id``, ``parent_id``, ``sequence_number``, ``timestamp`` (milliseconds since 1970), ``operation``,
        ``summary``, ``schema_id``, ``references`` (branches and tags at the snapshot) and ``is_current``: whether the
        snapshot is the current one or one of its ancestors.

    Raises
    ------
    IcebergError
        As `snapshot`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.iceberg.append(folder, {"v": pv.parse_json(["2"])})
    ...     [entry["operation"] for entry in pv.iceberg.history(folder)]
    ['append', 'append']
    """
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
