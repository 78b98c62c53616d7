"""Delta tables with Variant columns, shredded or not: create, write, read, change, look back, look after.

Owns the public names of ``pv.delta`` and loads each on first use. No module directly in this
folder has the name of a public function, so none hides one.
"""

from __future__ import annotations

from parquet_variant.support.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "tables.changes.operations": "ChangeResult",
    "tables.delta.dml.delete": "delete",
    "tables.delta.dml.merge": "merge",
    "tables.delta.dml.replacing": "replace_partitions replace_where",
    "tables.delta.dml.update": "update",
    "tables.delta.dml.write": "write",
    "tables.delta.log.checkpoint": "checkpoint",
    "tables.delta.log.commit": "CommitResult",
    "tables.delta.log.history": "history",
    "tables.delta.log.snapshot": "Snapshot snapshot",
    "tables.delta.maintenance.erase": "erase",
    "tables.delta.maintenance.evolution": "add_columns drop_column rename_column widen_column",
    "tables.changes.optimizing": "OptimizeResult",
    "tables.delta.maintenance.optimize": "drop_shredding optimize",
    "tables.delta.maintenance.properties": "set_properties",
    "tables.delta.maintenance.restore": "restore",
    "tables.delta.maintenance.vacuum": "vacuum",
    "tables.delta.reading.changes": "added changes",
    "tables.delta.reading.read": "read read_table",
    "tables.delta.reading.scan": "DeltaScan extract scan",
    "tables.delta.writing.create": "create",
    "tables.delta.writing.data_files": "WritePlan",
    "tables.delta.writing.write": "append commit_files overwrite plan",
    "tables.changes.erasing": "EraseReport",
    "tables.changes.merge_run": "Merge",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
