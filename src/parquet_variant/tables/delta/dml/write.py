"""Writing rows to a table that may not exist yet: create it, append to it, or replace its rows.

Owns the choice by `mode`. Leaves the work to the operations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from parquet_variant.errors import DeltaError
from parquet_variant.support.choices import Mode
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.file_locations import paths_of_adds
from parquet_variant.tables.delta.log.commit import CommitResult
from parquet_variant.tables.delta.writing.write import (
    append,
    commit_new,
    existing_table,
    overwrite,
    plan,
    planned_table,
)
from parquet_variant.tables.row_input import first_rows
from parquet_variant.tables.schema import from_arrow_schema
from parquet_variant.tables.storage import open_storage


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
