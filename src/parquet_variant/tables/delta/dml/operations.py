"""Replacing whole partitions of Delta tables.

Owns the choice of partitions. Leaves the work to `tables.changes`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.io.engine import ThreadEngine
from parquet_variant.tables.changes.change_plan import ChangeableTable, TableChange
from parquet_variant.tables.changes.operations import (
    ChangeResult,
    Condition,
    delete_from_file,
    run_change,
    with_inserts,
)
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import partition_keys
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.row_input import all_rows


def replace_partitions(table: DeltaTable, data: Any, *, threads: int | None = 1, **options: Any) -> ChangeResult:
    """Replace all rows of the partitions that new rows belong to, in one commit; other partitions are kept.

    See `Table.overwrite`.
    """
    rows = all_rows(data)
    if not table.current.partition_columns:
        raise DeltaError(
            "the table has no partition columns, so no partitions can be replaced: use overwrite or replace_where",
            reason="not-partitioned",
        )
    engine = ThreadEngine(threads, None)

    def plan(current: ChangeableTable[Add]) -> TableChange[Add]:
        assert isinstance(current, DeltaTable)
        changes, identities = current.plan(options), current.identities()
        new = [changes.write.with_generated_columns(part) for part in identities.fill(rows)]
        inserts = with_inserts(TableChange((), (), None), changes, new, identities)
        fields = current.current.partition_fields
        written = {tuple(add.partition_values[field.physical_name] for field in fields) for add in inserts.added}

        def in_written_partitions(files: pa.Table) -> pa.Table:
            return files.filter(pa.array([key in written for key in partition_keys(files, fields)], pa.bool_()))

        opened = in_written_partitions(current.files)
        work = partial(delete_from_file, changes, Condition())
        return replace(
            inserts,
            opened=opened,
            files=engine.run("replace", work, current.to_files(opened)),
            reads=lambda files: len(in_written_partitions(files)) > 0,
            parameters={"mode": "Overwrite"},
        )

    return run_change(table, "WRITE", plan)
