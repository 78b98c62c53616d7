"""``DELETE FROM table WHERE condition``.

Owns the public operation and what a task does with a file. Leaves files to `changing` and the commit to `committing`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.delta.dml.changing import ChangedRows, ChangePlan, FileChange, plan_change
from parquet_variant.delta.dml.committing import Change, ChangeResult, run_change
from parquet_variant.delta.dml.matching import candidate_files, file_columns
from parquet_variant.delta.dml.patching import NO_COLUMNS, rewrite_file
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.io.engine import Engine, Progress, ThreadEngine
from parquet_variant.query.sql_expression import SqlExpression, read_expression
from parquet_variant.tables.expressions import columns_of_table, is_true

TARGET = "target"


def delete(
    table: str | os.PathLike[str] | Snapshot,
    where: str | None = None,
    *,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit.

    Files that cannot match, by partition values and statistics, are never opened. Of the others, those with matches are
    written anew without them, or marked by a deletion vector where the table has ``delta.enableDeletionVectors``.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    where
        SQL over the table's columns and paths of its Variants: ``"v:a.b::int = 3 AND day < DATE '2024-01-31'"``; by
        default every row goes.
    zone
        The session time zone.
    storage_options
        Configuration of the object store.
    threads
        Files that are worked on at a time; None for as many as there are cores.
    progress
        Called with the step, the tasks done and the tasks in all.
    engine
        What runs the tasks; by default threads of this process.
    **options
        Options of `VariantWriter`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    DeltaError
        ``"append-only"``; ``"unsupported-feature"``; ``"too-many-retries"`` if others kept changing the same rows.
    SqlError
        For a condition that cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}', "3"])})
    ...     pv.delta.delete(folder, "v:n::int = 2").rows_deleted
    ...     pv.delta.read(folder).to_pylist()
    1
    [{'n': 1}, 3]
    """
    workers = engine or ThreadEngine(threads, progress)

    def plan(newest: Snapshot) -> Change:
        condition = read_condition(newest, where, zone)
        opened = matching_files(newest, condition, zone)
        work = partial(delete_from_file, plan_change(newest, options), condition, zone)
        done = workers.run("delete", work, newest.to_adds(opened))
        return Change(opened, done, reads_of(newest, condition, zone), parameters={"predicate": where or "true"})

    return run_change(snapshot(table, storage_options=storage_options), "DELETE", plan)


def read_condition(current: Snapshot, where: str | None, zone: str) -> SqlExpression | None:
    """A condition over a table's rows; None for every row."""
    if where is None:
        return None
    return read_expression(where, {TARGET: columns_of_table(current.schema)}, zone=zone)


def matching_files(current: Snapshot, condition: SqlExpression | None, zone: str) -> pa.Table:
    """The files that may hold rows for which a condition is true."""
    if condition is None:
        return current.files
    return candidate_files(current, condition.pushdown.get(TARGET), condition.columns[TARGET], zone)


def reads_of(current: Snapshot, condition: SqlExpression | None, zone: str) -> Any:
    """Whether files that others add may hold rows for which a condition is true."""
    return lambda added: len(matching_files(replace(current, files=added), condition, zone)) > 0


def matched_rows(plan: ChangePlan, condition: SqlExpression | None, zone: str, file: Add) -> Any:
    """For the rows of a file, by position: whether they count, and whether they do and the condition is true."""
    columns = {} if condition is None else condition.columns[TARGET]
    rows, live = file_columns(plan.current, file, columns, zone)
    if condition is None:
        return live, live.copy()
    return live, live & is_true(condition, TARGET, rows, zone)


def delete_from_file(
    plan: ChangePlan, condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Add
) -> FileChange:
    """What a task does: let the rows of a file go for which a condition is true."""
    live, deleted = matched_rows(plan, condition, zone, file)
    changed = ChangedRows(live, deleted, np.zeros_like(deleted), lambda rows: rows)
    return rewrite_file(plan, file, changed, NO_COLUMNS)
