"""``DELETE FROM table WHERE condition``: the public operation. Leaves the work to `tables.changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, count_rows, delete_rows
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.snapshot import TableLike


def delete(
    table: TableLike,
    where: str | None = None,
    *,
    dry_run: bool = False,
    zone: str = "UTC",
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit; see `Table.delete`."""
    workers = engine_or_threads(engine, threads, progress)
    run = count_rows if dry_run else delete_rows
    return run(DeltaTable.open(table, storage_options, txn), where, zone, workers, options)
