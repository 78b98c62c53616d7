# Generated from the table in __init__.py: change that, then run make snapshots.
from parquet_variant.iceberg.changes.delete import delete as delete
from parquet_variant.iceberg.changes.merge import merge as merge
from parquet_variant.iceberg.changes.update import update as update
from parquet_variant.iceberg.reading.history import history as history
from parquet_variant.iceberg.reading.read import read as read
from parquet_variant.iceberg.reading.read import read_table as read_table
from parquet_variant.iceberg.reading.scan import IcebergScan as IcebergScan
from parquet_variant.iceberg.reading.scan import extract as extract
from parquet_variant.iceberg.reading.scan import scan as scan
from parquet_variant.iceberg.reading.snapshot import Snapshot as Snapshot
from parquet_variant.iceberg.reading.snapshot import snapshot as snapshot
from parquet_variant.iceberg.writing.write import CommitResult as CommitResult
from parquet_variant.iceberg.writing.write import append as append
from parquet_variant.iceberg.writing.write import commit_files as commit_files
from parquet_variant.iceberg.writing.write import overwrite as overwrite
from parquet_variant.iceberg.writing.write import plan as plan
from parquet_variant.iceberg.writing.write import write as write
from parquet_variant.tables.changes.merge_builder import Merge as Merge
from parquet_variant.tables.changes.retries import ChangeResult as ChangeResult

__all__ = [
    "ChangeResult",
    "CommitResult",
    "IcebergScan",
    "Merge",
    "Snapshot",
    "append",
    "commit_files",
    "delete",
    "extract",
    "history",
    "merge",
    "overwrite",
    "plan",
    "read",
    "read_table",
    "scan",
    "snapshot",
    "update",
    "write",
]

def __dir__() -> list[str]: ...
