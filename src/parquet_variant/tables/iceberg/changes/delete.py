"""``DELETE FROM table WHERE condition`` over Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, count_rows, delete_rows
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
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
