# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.tables.changes.erasing import EraseReport as EraseReport
from parquet_variant.tables.changes.merge_run import Merge as Merge
from parquet_variant.tables.changes.operations import ChangeResult as ChangeResult
from parquet_variant.tables.changes.optimizing import OptimizeResult as OptimizeResult
from parquet_variant.tables.iceberg.changes.delete import delete as delete
from parquet_variant.tables.iceberg.changes.merge import merge as merge
from parquet_variant.tables.iceberg.changes.update import update as update
from parquet_variant.tables.iceberg.maintenance.erase import erase as erase
from parquet_variant.tables.iceberg.maintenance.evolution import add_columns as add_columns
from parquet_variant.tables.iceberg.maintenance.evolution import drop_column as drop_column
from parquet_variant.tables.iceberg.maintenance.evolution import move_column as move_column
from parquet_variant.tables.iceberg.maintenance.evolution import rename_column as rename_column
from parquet_variant.tables.iceberg.maintenance.evolution import set_default as set_default
from parquet_variant.tables.iceberg.maintenance.evolution import widen_column as widen_column
from parquet_variant.tables.iceberg.maintenance.expiration import ExpireResult as ExpireResult
from parquet_variant.tables.iceberg.maintenance.expiration import expire_snapshots as expire_snapshots
from parquet_variant.tables.iceberg.maintenance.manifests import RewriteManifestsResult as RewriteManifestsResult
from parquet_variant.tables.iceberg.maintenance.manifests import rewrite_manifests as rewrite_manifests
from parquet_variant.tables.iceberg.maintenance.optimize import drop_shredding as drop_shredding
from parquet_variant.tables.iceberg.maintenance.optimize import optimize as optimize
from parquet_variant.tables.iceberg.maintenance.orphans import remove_orphan_files as remove_orphan_files
from parquet_variant.tables.iceberg.maintenance.partitions import set_partitioning as set_partitioning
from parquet_variant.tables.iceberg.maintenance.partitions import set_sort_order as set_sort_order
from parquet_variant.tables.iceberg.maintenance.properties import remove_properties as remove_properties
from parquet_variant.tables.iceberg.maintenance.properties import set_properties as set_properties
from parquet_variant.tables.iceberg.maintenance.properties import upgrade as upgrade
from parquet_variant.tables.iceberg.maintenance.references import branch as branch
from parquet_variant.tables.iceberg.maintenance.references import drop_reference as drop_reference
from parquet_variant.tables.iceberg.maintenance.references import fast_forward as fast_forward
from parquet_variant.tables.iceberg.maintenance.references import rollback as rollback
from parquet_variant.tables.iceberg.maintenance.references import tag as tag
from parquet_variant.tables.iceberg.reading.history import history as history
from parquet_variant.tables.iceberg.reading.read import read as read
from parquet_variant.tables.iceberg.reading.read import read_table as read_table
from parquet_variant.tables.iceberg.reading.scan import IcebergScan as IcebergScan
from parquet_variant.tables.iceberg.reading.scan import extract as extract
from parquet_variant.tables.iceberg.reading.scan import scan as scan
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot as Snapshot
from parquet_variant.tables.iceberg.reading.snapshot import snapshot as snapshot
from parquet_variant.tables.iceberg.writing.tables import create_namespace as create_namespace
from parquet_variant.tables.iceberg.writing.tables import drop_table as drop_table
from parquet_variant.tables.iceberg.writing.write import CommitResult as CommitResult
from parquet_variant.tables.iceberg.writing.write import append as append
from parquet_variant.tables.iceberg.writing.write import commit_files as commit_files
from parquet_variant.tables.iceberg.writing.write import overwrite as overwrite
from parquet_variant.tables.iceberg.writing.write import plan as plan
from parquet_variant.tables.iceberg.writing.write import write as write

__all__ = [
    "ChangeResult",
    "CommitResult",
    "EraseReport",
    "ExpireResult",
    "IcebergScan",
    "Merge",
    "OptimizeResult",
    "RewriteManifestsResult",
    "Snapshot",
    "add_columns",
    "append",
    "branch",
    "commit_files",
    "create_namespace",
    "delete",
    "drop_column",
    "drop_reference",
    "drop_shredding",
    "drop_table",
    "erase",
    "expire_snapshots",
    "extract",
    "fast_forward",
    "history",
    "merge",
    "move_column",
    "optimize",
    "overwrite",
    "plan",
    "read",
    "read_table",
    "remove_orphan_files",
    "remove_properties",
    "rename_column",
    "rewrite_manifests",
    "rollback",
    "scan",
    "set_default",
    "set_partitioning",
    "set_properties",
    "set_sort_order",
    "snapshot",
    "tag",
    "update",
    "upgrade",
    "widen_column",
    "write",
]

def __dir__() -> list[str]: ...
