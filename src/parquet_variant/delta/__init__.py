"""Delta tables with Variant columns, shredded or not: create, write, read, look back, look after.

Owns the public names of the layer. They are imported here, not on first use, so that a function is never hidden by the
module of the same name.
"""

from __future__ import annotations

from parquet_variant.delta.added import added as added
from parquet_variant.delta.checkpoint import checkpoint as checkpoint
from parquet_variant.delta.commit import CommitResult as CommitResult
from parquet_variant.delta.data_files import WritePlan as WritePlan
from parquet_variant.delta.history import history as history
from parquet_variant.delta.optimize import OptimizeResult as OptimizeResult
from parquet_variant.delta.optimize import drop_shredding as drop_shredding
from parquet_variant.delta.optimize import optimize as optimize
from parquet_variant.delta.properties import set_properties as set_properties
from parquet_variant.delta.read import read as read
from parquet_variant.delta.read import read_table as read_table
from parquet_variant.delta.restore import restore as restore
from parquet_variant.delta.scan import DeltaScan as DeltaScan
from parquet_variant.delta.scan import extract as extract
from parquet_variant.delta.scan import scan as scan
from parquet_variant.delta.snapshot import Snapshot as Snapshot
from parquet_variant.delta.snapshot import snapshot as snapshot
from parquet_variant.delta.vacuum import vacuum as vacuum
from parquet_variant.delta.write import append as append
from parquet_variant.delta.write import commit_files as commit_files
from parquet_variant.delta.write import create as create
from parquet_variant.delta.write import overwrite as overwrite
from parquet_variant.delta.write import plan as plan
from parquet_variant.delta.write import write as write

__all__ = [
    "CommitResult",
    "DeltaScan",
    "OptimizeResult",
    "Snapshot",
    "WritePlan",
    "added",
    "append",
    "checkpoint",
    "commit_files",
    "create",
    "drop_shredding",
    "extract",
    "history",
    "optimize",
    "overwrite",
    "plan",
    "read",
    "read_table",
    "restore",
    "scan",
    "set_properties",
    "snapshot",
    "vacuum",
    "write",
]
