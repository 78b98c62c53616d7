"""Iceberg tables with Variant columns, shredded or not: create, write, read, change and maintain, without a JVM.

Owns the public names of ``pv.iceberg`` and loads each on first use.
"""

from __future__ import annotations

from parquet_variant.lazy_names import lazy_names

_NAMES = {
    "iceberg.changes.delete": "delete",
    "iceberg.changes.merge": "merge",
    "iceberg.changes.update": "update",
    "iceberg.maintenance.erase": "erase",
    "iceberg.maintenance.evolution": "add_columns drop_column move_column rename_column set_default widen_column",
    "iceberg.maintenance.expiration": "ExpireResult expire_snapshots",
    "iceberg.maintenance.manifests": "RewriteManifestsResult rewrite_manifests",
    "iceberg.maintenance.optimize": "OptimizeResult drop_shredding optimize",
    "iceberg.maintenance.orphans": "remove_orphan_files",
    "iceberg.maintenance.partitions": "set_partitioning set_sort_order",
    "iceberg.maintenance.properties": "remove_properties set_properties upgrade",
    "iceberg.maintenance.references": "branch drop_reference fast_forward rollback tag",
    "iceberg.reading.history": "history",
    "iceberg.reading.read": "read read_table",
    "iceberg.reading.scan": "IcebergScan extract scan",
    "iceberg.reading.snapshot": "Snapshot snapshot",
    "iceberg.writing.tables": "create_namespace drop_table",
    "iceberg.writing.write": "CommitResult append commit_files overwrite plan write",
    "tables.changes.erasing": "EraseReport",
    "tables.changes.merge_builder": "Merge",
    "tables.changes.retries": "ChangeResult",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
