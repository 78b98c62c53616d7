"""Iceberg tables with Variant columns, shredded or not: create, write, read, change and maintain, without a JVM.

Owns the public names of ``pv.iceberg`` and loads each on first use.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

_NAMES = {
    "tables.iceberg.changes.delete": "delete",
    "tables.iceberg.changes.merge": "merge",
    "tables.iceberg.changes.update": "update",
    "tables.iceberg.maintenance.erase": "erase",
    "tables.iceberg.maintenance.evolution": (
        "add_columns drop_column move_column rename_column set_default widen_column"
    ),
    "tables.iceberg.maintenance.expiration": "ExpireResult expire_snapshots",
    "tables.iceberg.maintenance.manifests": "RewriteManifestsResult rewrite_manifests",
    "tables.changes.optimizing": "OptimizeResult",
    "tables.iceberg.maintenance.optimize": "drop_shredding optimize",
    "tables.iceberg.maintenance.orphans": "remove_orphan_files",
    "tables.iceberg.maintenance.partitions": "set_partitioning set_sort_order",
    "tables.iceberg.maintenance.properties": "remove_properties set_properties upgrade",
    "tables.iceberg.maintenance.references": "branch drop_reference fast_forward rollback tag",
    "tables.iceberg.reading.history": "history",
    "tables.iceberg.reading.read": "read read_table",
    "tables.iceberg.reading.scan": "IcebergScan extract scan",
    "tables.iceberg.reading.snapshot": "Snapshot snapshot",
    "tables.iceberg.writing.tables": "create_namespace drop_table",
    "tables.iceberg.writing.write": "CommitResult append commit_files overwrite plan write",
    "tables.changes.erasing": "EraseReport",
    "tables.changes.merge_run": "Merge",
    "tables.changes.operations": "ChangeResult",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
