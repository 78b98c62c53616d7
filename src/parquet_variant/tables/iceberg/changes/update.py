"""``UPDATE table SET column = value, … WHERE condition`` over Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, update_rows
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.changes.delete import table_to_change
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.snapshot import TableLike


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
