"""``MERGE INTO target USING source ON condition WHEN …`` over Iceberg tables.

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
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.changes.delete import table_to_change
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.read import read_table
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike


def merge(
    table: TableLike,
    source: Any,
    condition: str,
    *,
    catalog: CatalogOption = None,
    branch: str = MAIN,
    source_alias: str = "source",
    target_alias: str = "target",
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """Begin a merge of rows into a table: its methods add clauses, and ``execute`` commits; see `Table.merge`."""
    current = table_to_change(table, catalog, branch, storage_options)
    rows = _source_rows(source, catalog, storage_options)
    workers = ThreadEngine(threads, progress)
    target = IcebergTable(current, "merge", batch)
    return Merge(target, rows, condition, source_alias, target_alias, zone, workers, options)


def _source_rows(source: Any, catalog: CatalogOption, storage_options: Mapping[str, str] | None) -> pa.Table:
    if isinstance(source, (str, os.PathLike, Snapshot)):
        return read_table(source, catalog=catalog, storage_options=storage_options)
    return table_of(source)
