"""``MERGE INTO target USING source ON condition WHEN …`` over Delta tables.

Leaves the clauses to `tables.changes.merge_run`, and running the merge to `tables.changes.merge_run`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.interop.tables import table_of
from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.tables.changes.merge_run import Merge
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike
from parquet_variant.tables.delta.reading.read import read_table


def merge(
    table: TableLike,
    source: Any,
    condition: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    zone: str = "UTC",
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """Begin a merge of rows into a table; its clauses define the changes, and ``execute`` commits them.

    See `Table.merge`.
    """
    target = DeltaTable.open(table, storage_options, txn)
    rows = _source_rows(source, storage_options)
    return Merge(target, rows, condition, source_alias, target_alias, zone, ThreadEngine(threads, progress), options)


def _source_rows(source: Any, storage_options: Mapping[str, str] | None) -> pa.Table:
    if isinstance(source, (str, os.PathLike, Snapshot)):
        return read_table(source, storage_options=storage_options)
    return table_of(source)
