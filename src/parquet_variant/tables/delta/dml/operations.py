"""Delete, update, merge and replace over Delta tables: rows that meet a condition, or whole partitions.

Owns opening the table, and the choice of partitions. Leaves the work to `tables.changes`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.interop.tables import table_of
from parquet_variant.io.engine import Engine, Progress, ThreadEngine, engine_or_threads
from parquet_variant.tables.changes.change_plan import ChangeableTable, TableChange
from parquet_variant.tables.changes.merge_run import Merge
from parquet_variant.tables.changes.operations import (
    ChangeResult,
    count_rows,
    delete_from_file,
    delete_rows,
    insertion,
    replace_rows,
    run_change,
    update_rows,
)
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import partition_keys
from parquet_variant.tables.delta.log.snapshot import Snapshot, TableLike
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.reading.read import read_table
from parquet_variant.tables.write_plan import all_rows


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


def replace_where(
    table: TableLike,
    data: Any,
    where: str,
    *,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    **options: Any,
) -> ChangeResult:
    """Replace the rows for which a condition is true by new rows, in one commit; see `Table.overwrite`."""
    rows = all_rows(data)
    current = DeltaTable.open(table, storage_options)
    return replace_rows(current, rows, where, zone, ThreadEngine(threads, None), options)


def replace_partitions(
    table: TableLike,
    data: Any,
    *,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    **options: Any,
) -> ChangeResult:
    """Replace all rows of the partitions that new rows belong to, in one commit; other partitions are kept.

    See `Table.overwrite`.
    """
    rows = all_rows(data)
    opened_table = DeltaTable.open(table, storage_options)
    if not opened_table.current.partition_columns:
        raise DeltaError(
            "the table has no partition columns, so no partitions can be replaced: use overwrite or replace_where",
            reason="not-partitioned",
        )
    engine = ThreadEngine(threads, None)

    def plan(current: ChangeableTable[Add]) -> TableChange[Add]:
        assert isinstance(current, DeltaTable)
        changes = current.plan(options)
        identities = current.identities()
        new = [changes.write.with_generated_columns(part) for part in identities.fill(rows)]
        change = insertion(current, new, identities, changes)
        fields = current.current.partition_fields
        written = {tuple(add.partition_values[field.physical_name] for field in fields) for add in change.added}

        def in_written_partitions(files: pa.Table) -> pa.Table:
            return files.filter(pa.array([key in written for key in partition_keys(files, fields)], pa.bool_()))

        opened = in_written_partitions(current.files)
        work = partial(delete_from_file, changes, None, "UTC")
        done = engine.run("replace", work, current.to_files(opened))
        return replace(
            change,
            opened=opened,
            files=done,
            reads=lambda files: len(in_written_partitions(files)) > 0,
            parameters={"mode": "Overwrite"},
        )

    return run_change(opened_table, "WRITE", plan)
