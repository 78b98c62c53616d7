"""Writing rows to a table that may not exist yet: create it, append to it, replace its rows, or whole partitions.

Owns the choice by `mode`, and that of partitions. Leaves the work to the operations, some of which need SQL.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.io.engine import ThreadEngine
from parquet_variant.support.choices import Mode
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.changes.change_plan import ChangeableTable, TableChange
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import partition_keys, paths_of_adds
from parquet_variant.tables.delta.log.commit import CommitResult
from parquet_variant.tables.delta.protocol.actions import Add
from parquet_variant.tables.delta.writing.write import (
    append,
    commit_new,
    existing_table,
    overwrite,
    plan,
    planned_table,
)
from parquet_variant.tables.row_input import all_rows, first_rows
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.storage import open_storage

if TYPE_CHECKING:  # SQL is an optional part.
    from parquet_variant.tables.changes.operations import ChangeResult


def write(
    table: str | os.PathLike[str],
    data: Any,
    *,
    mode: Mode = "error",
    replace_where: str | None = None,
    partition_by: str | Sequence[str] | None = None,
    properties: Mapping[str, str | bool | int] | None = None,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> CommitResult:
    """Write rows to a table, which is created with the columns of the first rows if it does not exist.

    See `pv.write`.
    """
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise DeltaError(f"mode is {mode!r}: use error, append, overwrite or ignore", reason="bad-argument")
    if replace_where is not None and mode != "overwrite":
        raise DeltaError(f"replace_where= needs mode 'overwrite', but mode is {mode!r}", reason="bad-argument")
    storage = open_storage(table, storage_options)
    current = existing_table(storage)
    if current is not None and mode in ("error", "ignore"):
        if mode == "error":
            raise DeltaError(
                f"{storage.uri} is a Delta table already: use mode='append' or mode='overwrite', or another path",
                reason="exists",
                file=storage.uri,
            )
        return CommitResult(current.version, committed=False)
    if current is None:
        first, data = first_rows(data)
        planned = planned_table(storage, from_arrow_schema(first.schema), partition_by, properties, True, preview)
        txn = options.pop("txn", None)
        adds = plan(planned, **options).write_files(data)
        return commit_new(planned, adds, mode, txn, written=paths_of_adds(planned.storage, adds))
    if replace_where is not None:
        if unsupported := sorted({"txn", "schema", "schema_mode", "file_bytes"} & set(options)):
            raise DeltaError(
                f"{unsupported[0]}= cannot be combined with replace_where=: leave it out", reason="bad-argument"
            )
        with optional_libraries("replace_where"):
            from parquet_variant.tables.changes.operations import replace_where as replace_matching

        result = replace_matching(DeltaTable(current), data, replace_where, **options)
        return CommitResult(result.version, committed=result.version > current.version)
    run = overwrite if mode == "overwrite" else append
    return run(current, data, **options)


def replace_partitions(table: DeltaTable, data: Any, *, threads: int | None = 1, **options: Any) -> ChangeResult:
    """Replace all rows of the partitions that new rows belong to, in one commit; other partitions are kept.

    See `Table.overwrite`.
    """
    with optional_libraries("replace_partitions"):
        from parquet_variant.tables.changes.operations import Condition, delete_from_file, run_change, with_inserts

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
