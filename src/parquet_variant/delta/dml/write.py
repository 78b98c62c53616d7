"""Rows into a table that may or may not be there: made, appended to, or its rows replaced.

Owns the choice by `mode`. Leaves each of these to its own operation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from parquet_variant.choices import Mode
from parquet_variant.delta.log.commit import CommitResult, removed_unless_committed
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.writing.create import commit_new, existing_table, planned_table
from parquet_variant.delta.writing.write import append, overwrite, plan
from parquet_variant.errors import DeltaError
from parquet_variant.lazy_names import optional_libraries
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
    """Write rows to a table, which is made of the first rows' columns if it is not there.

    Parameters
    ----------
    table
        Path or URL.
    data
        As for `append`.
    mode
        If the table is there: ``"error"``, ``"append"``, ``"overwrite"`` or ``"ignore"``.
    replace_where
        SQL, for mode ``"overwrite"``: only the rows for which it is true are replaced, and it must be true for every
        new row (see `replace_where`).
    partition_by, properties, preview
        As for `create`, for a new table.
    storage_options
        Configuration of the object store.
    **options
        As for `append`.

    Returns
    -------
    CommitResult

    Raises
    ------
    DeltaError
        ``"exists"`` if `mode` is ``"error"`` and the table is there; and as `append`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     pv.delta.write(folder, {"v": pv.parse_json(["2"])}, mode="append").version
    1
    """
    if mode not in ("error", "append", "overwrite", "ignore"):
        raise DeltaError(f"mode {mode!r} is none of error, append, overwrite, ignore", reason="bad-argument")
    if replace_where is not None and mode != "overwrite":
        raise DeltaError(f"replace_where goes with mode 'overwrite', not {mode!r}", reason="bad-argument")
    storage = open_storage(table, storage_options)
    current = existing_table(storage)
    if current is not None and mode in ("error", "ignore"):
        if mode == "error":
            raise DeltaError(f"{storage.uri} is a Delta table already", reason="exists", file=storage.uri)
        return CommitResult(current.version, committed=False)
    if current is None:
        first, data = first_rows(data)
        planned = planned_table(storage, from_arrow_schema(first.schema), partition_by, properties, True, preview)
        return _create_with_rows(planned, data, mode, options)
    if replace_where is not None:
        if other := sorted({"txn", "schema", "shredding", "schema_mode", "file_bytes"} & set(options)):
            raise DeltaError(f"{other[0]} does not go with replace_where", reason="bad-argument")
        with optional_libraries("replace_where"):
            from parquet_variant.delta.dml.replacing import replace_where as put_where

        done = put_where(current, data, replace_where, **options)
        return CommitResult(done.version, committed=done.version > current.version)
    run = overwrite if mode == "overwrite" else append
    return run(current, data, **options)


def _create_with_rows(planned: Snapshot, data: Any, mode: Mode, options: dict[str, Any]) -> CommitResult:
    txn = options.pop("txn", None)
    adds = plan(planned, **options).write_files(data)
    with removed_unless_committed(planned.storage, adds):
        return commit_new(planned, adds, mode, txn)
