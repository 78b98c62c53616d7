"""Delta tables with Variant columns, shredded or not: create, write, read, change, look back, look after.

Owns the public names of ``pv.delta`` and loads each on first use. No module directly in this
folder has the name of a public function, so none hides one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from parquet_variant.lazy_names import lazy_names

_OWNERS = {
    "CommitResult": "delta.log.commit",
    "DeltaScan": "delta.reading.scan",
    "OptimizeResult": "delta.maintenance.optimize",
    "Snapshot": "delta.log.snapshot",
    "WritePlan": "delta.writing.data_files",
    "changes": "delta.reading.changes",
    "add_columns": "delta.maintenance.evolution",
    "drop_column": "delta.maintenance.evolution",
    "rename_column": "delta.maintenance.evolution",
    "widen_column": "delta.maintenance.evolution",
    "replace_partitions": "delta.dml.replacing",
    "replace_where": "delta.dml.replacing",
    "added": "delta.reading.changes",
    "append": "delta.writing.write",
    "checkpoint": "delta.log.checkpoint",
    "commit_files": "delta.writing.write",
    "create": "delta.writing.create",
    "ChangeResult": "delta.dml.committing",
    "delete": "delta.dml.delete",
    "update": "delta.dml.update",
    "Merge": "delta.dml.merge",
    "merge": "delta.dml.merge",
    "drop_shredding": "delta.maintenance.optimize",
    "extract": "delta.reading.scan",
    "history": "delta.log.history",
    "optimize": "delta.maintenance.optimize",
    "overwrite": "delta.writing.write",
    "plan": "delta.writing.write",
    "read": "delta.reading.read",
    "read_table": "delta.reading.read",
    "restore": "delta.maintenance.restore",
    "scan": "delta.reading.scan",
    "set_properties": "delta.maintenance.properties",
    "snapshot": "delta.log.snapshot",
    "vacuum": "delta.maintenance.vacuum",
    "write": "delta.dml.write",
}
if not TYPE_CHECKING:  # or every name would be known, as Any
    __getattr__, __dir__ = lazy_names(__name__, _OWNERS)
__all__ = sorted(_OWNERS)  # noqa: PLE0605 - the table above is the truth

if TYPE_CHECKING:
    from parquet_variant.delta.dml.committing import ChangeResult as ChangeResult
    from parquet_variant.delta.dml.delete import delete as delete
    from parquet_variant.delta.dml.merge import Merge as Merge
    from parquet_variant.delta.dml.merge import merge as merge
    from parquet_variant.delta.dml.replacing import replace_partitions as replace_partitions
    from parquet_variant.delta.dml.replacing import replace_where as replace_where
    from parquet_variant.delta.dml.update import update as update
    from parquet_variant.delta.dml.write import write as write
    from parquet_variant.delta.log.checkpoint import checkpoint as checkpoint
    from parquet_variant.delta.log.commit import CommitResult as CommitResult
    from parquet_variant.delta.log.history import history as history
    from parquet_variant.delta.log.snapshot import Snapshot as Snapshot
    from parquet_variant.delta.log.snapshot import snapshot as snapshot
    from parquet_variant.delta.maintenance.evolution import add_columns as add_columns
    from parquet_variant.delta.maintenance.evolution import drop_column as drop_column
    from parquet_variant.delta.maintenance.evolution import rename_column as rename_column
    from parquet_variant.delta.maintenance.evolution import widen_column as widen_column
    from parquet_variant.delta.maintenance.optimize import OptimizeResult as OptimizeResult
    from parquet_variant.delta.maintenance.optimize import drop_shredding as drop_shredding
    from parquet_variant.delta.maintenance.optimize import optimize as optimize
    from parquet_variant.delta.maintenance.properties import set_properties as set_properties
    from parquet_variant.delta.maintenance.restore import restore as restore
    from parquet_variant.delta.maintenance.vacuum import vacuum as vacuum
    from parquet_variant.delta.reading.changes import added as added
    from parquet_variant.delta.reading.changes import changes as changes
    from parquet_variant.delta.reading.read import read as read
    from parquet_variant.delta.reading.read import read_table as read_table
    from parquet_variant.delta.reading.scan import DeltaScan as DeltaScan
    from parquet_variant.delta.reading.scan import extract as extract
    from parquet_variant.delta.reading.scan import scan as scan
    from parquet_variant.delta.writing.create import create as create
    from parquet_variant.delta.writing.data_files import WritePlan as WritePlan
    from parquet_variant.delta.writing.write import append as append
    from parquet_variant.delta.writing.write import commit_files as commit_files
    from parquet_variant.delta.writing.write import overwrite as overwrite
    from parquet_variant.delta.writing.write import plan as plan
