"""Delta tables with Variant columns, shredded or not: create, write, read, change, look back, look after.

Owns the public names of ``pv.delta`` and loads each on first use. No module directly in this
folder has the name of a public function, so none hides one.
"""

from __future__ import annotations

from parquet_variant.lazy_names import lazy_names

# Module -> the public names that it defines. `make snapshots` writes __init__.pyi from this table.
_NAMES = {
    "tables.changes.retries": "ChangeResult",
    "delta.dml.delete": "delete",
    "delta.dml.merge": "merge",
    "delta.dml.replacing": "replace_partitions replace_where",
    "delta.dml.update": "update",
    "delta.dml.write": "write",
    "delta.log.checkpoint": "checkpoint",
    "delta.log.commit": "CommitResult",
    "delta.log.history": "history",
    "delta.log.snapshot": "Snapshot snapshot",
    "delta.maintenance.erase": "erase",
    "delta.maintenance.evolution": "add_columns drop_column rename_column widen_column",
    "delta.maintenance.optimize": "OptimizeResult drop_shredding optimize",
    "delta.maintenance.properties": "set_properties",
    "delta.maintenance.restore": "restore",
    "delta.maintenance.vacuum": "vacuum",
    "delta.reading.changes": "added changes",
    "delta.reading.read": "read read_table",
    "delta.reading.scan": "DeltaScan extract scan",
    "delta.writing.create": "create",
    "delta.writing.data_files": "WritePlan",
    "delta.writing.write": "append commit_files overwrite plan",
    "tables.changes.erasing": "EraseReport",
    "tables.changes.merge_builder": "Merge",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
__all__ = __dir__()  # noqa: PLE0605 - the table above lists the names
