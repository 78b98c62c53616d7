# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.tables.changes.erasing import EraseReport as EraseReport
from parquet_variant.tables.changes.merge_run import Merge as Merge
from parquet_variant.tables.changes.operations import ChangeResult as ChangeResult
from parquet_variant.tables.changes.optimizing import OptimizeResult as OptimizeResult
from parquet_variant.tables.delta.dml.delete import delete as delete
from parquet_variant.tables.delta.dml.merge import merge as merge
from parquet_variant.tables.delta.dml.replacing import replace_partitions as replace_partitions
from parquet_variant.tables.delta.dml.replacing import replace_where as replace_where
from parquet_variant.tables.delta.dml.update import update as update
from parquet_variant.tables.delta.dml.write import write as write
from parquet_variant.tables.delta.log.checkpoint import checkpoint as checkpoint
from parquet_variant.tables.delta.log.commit import CommitResult as CommitResult
from parquet_variant.tables.delta.log.history import history as history
from parquet_variant.tables.delta.log.snapshot import Snapshot as Snapshot
from parquet_variant.tables.delta.log.snapshot import snapshot as snapshot
from parquet_variant.tables.delta.maintenance.erase import erase as erase
from parquet_variant.tables.delta.maintenance.evolution import add_columns as add_columns
from parquet_variant.tables.delta.maintenance.evolution import drop_column as drop_column
from parquet_variant.tables.delta.maintenance.evolution import rename_column as rename_column
from parquet_variant.tables.delta.maintenance.evolution import widen_column as widen_column
from parquet_variant.tables.delta.maintenance.optimize import drop_shredding as drop_shredding
from parquet_variant.tables.delta.maintenance.optimize import optimize as optimize
from parquet_variant.tables.delta.maintenance.properties import set_properties as set_properties
from parquet_variant.tables.delta.maintenance.restore import restore as restore
from parquet_variant.tables.delta.maintenance.vacuum import vacuum as vacuum
from parquet_variant.tables.delta.reading.changes import added as added
from parquet_variant.tables.delta.reading.changes import changes as changes
from parquet_variant.tables.delta.reading.read import read as read
from parquet_variant.tables.delta.reading.read import read_table as read_table
from parquet_variant.tables.delta.reading.scan import DeltaScan as DeltaScan
from parquet_variant.tables.delta.reading.scan import extract as extract
from parquet_variant.tables.delta.reading.scan import scan as scan
from parquet_variant.tables.delta.writing.create import create as create
from parquet_variant.tables.delta.writing.data_files import WritePlan as WritePlan
from parquet_variant.tables.delta.writing.write import append as append
from parquet_variant.tables.delta.writing.write import commit_files as commit_files
from parquet_variant.tables.delta.writing.write import overwrite as overwrite
from parquet_variant.tables.delta.writing.write import plan as plan

__all__ = [
    "ChangeResult",
    "CommitResult",
    "DeltaScan",
    "EraseReport",
    "Merge",
    "OptimizeResult",
    "Snapshot",
    "WritePlan",
    "add_columns",
    "added",
    "append",
    "changes",
    "checkpoint",
    "commit_files",
    "create",
    "delete",
    "drop_column",
    "drop_shredding",
    "erase",
    "extract",
    "history",
    "merge",
    "optimize",
    "overwrite",
    "plan",
    "read",
    "read_table",
    "rename_column",
    "replace_partitions",
    "replace_where",
    "restore",
    "scan",
    "set_properties",
    "snapshot",
    "update",
    "vacuum",
    "widen_column",
    "write",
]

def __dir__() -> list[str]: ...
