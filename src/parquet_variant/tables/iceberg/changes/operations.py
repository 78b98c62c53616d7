"""Delete, update and merge over Iceberg tables: opening the branch to change. Leaves the work to `tables.changes`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from parquet_variant.interop.tables import table_of
from parquet_variant.io.engine import Engine, Progress, ThreadEngine, engine_or_threads
from parquet_variant.tables.changes.merge_run import Merge
from parquet_variant.tables.changes.operations import ChangeResult, count_rows, delete_rows, update_rows
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.scan import read_table
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike, snapshot


def delete(
    table: TableLike,
    where: str | None = None,
    *,
    dry_run: bool = False,
    catalog: CatalogOption = None,
    branch: str = MAIN,
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit; see `Table.delete`."""
    current = table_to_change(table, catalog, branch, storage_options)
    workers = engine_or_threads(engine, threads, progress)
    operation = count_rows if dry_run else delete_rows
    return operation(IcebergTable(current, "delete", batch), where, zone, workers, options)


def table_to_change(
    table: TableLike,
    catalog: CatalogOption,
    branch: str,
    storage_options: Mapping[str, str] | None,
) -> Snapshot:
    """Return the newest snapshot of the branch to change."""
    return snapshot(table, catalog=catalog, branch=None if branch == MAIN else branch, storage_options=storage_options)


def update(
    table: TableLike,
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    catalog: CatalogOption = None,
    new_values: Mapping[str, Any] | None = None,
    branch: str = MAIN,
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Change columns, or paths inside of Variants, of the rows for which a condition is true, in one commit.

    See `Table.update`.
    """
    current = table_to_change(table, catalog, branch, storage_options)
    workers = engine_or_threads(engine, threads, progress)
    return update_rows(IcebergTable(current, "update", batch), updates, new_values, where, zone, workers, options)


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
