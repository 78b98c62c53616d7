# Generated from the table in __init__.py: change that, then run make snapshots.
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

__all__ = [
    "CommitResult",
    "IcebergScan",
    "Snapshot",
    "append",
    "commit_files",
    "extract",
    "history",
    "overwrite",
    "plan",
    "read",
    "read_table",
    "scan",
    "snapshot",
    "write",
]

def __dir__() -> list[str]: ...
