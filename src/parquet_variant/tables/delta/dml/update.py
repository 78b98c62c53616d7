"""``UPDATE table SET column = value, … WHERE condition``: the public operation. Leaves the work to `tables.changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, update_rows
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.snapshot import TableLike


def update(
    table: TableLike,
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
    zone: str = "UTC",
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Set columns, or paths inside Variants, of the rows for which a condition is true, in one commit.

    See `Table.update`.
    """
    workers = engine_or_threads(engine, threads, progress)
    return update_rows(DeltaTable.open(table, storage_options, txn), updates, new_values, where, zone, workers, options)
