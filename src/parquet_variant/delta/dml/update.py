"""``UPDATE table SET column = value, … WHERE condition``.

Owns the public operation and what a task does with a file. Leaves new values to `assigning`, files to `changing`, and
the commit to `committing`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.delta.dml.assigning import assigned, read_assignments
from parquet_variant.delta.dml.changing import ChangedRows, ChangePlan, FileChange, plan_change
from parquet_variant.delta.dml.committing import Change, ChangeResult, run_change
from parquet_variant.delta.dml.delete import TARGET, matched_rows, matching_files, read_condition, reads_of
from parquet_variant.delta.dml.matching import chosen_rows
from parquet_variant.delta.dml.patching import columns_in_use, paths_set, rewrite_file
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.writing.identity import refuse_identity_set
from parquet_variant.errors import DeltaError
from parquet_variant.io.engine import Engine, Progress, ThreadEngine
from parquet_variant.query.sql_expression import NeededColumn, SqlExpression
from parquet_variant.tables.expressions import Assignment, columns_of_table


def update(
    table: str | os.PathLike[str] | Snapshot,
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Change columns, or paths inside of Variants, of the rows for which a condition is true, in one commit.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    updates
        SQL by column or path: ``{"v:seen": "true", "k": "k + 1"}``. Expressions see the row as it was; NULL set at a
        path becomes JSON's null.
    where
        As for `delete`; by default every row changes.
    new_values
        Python values by column or path, beside or instead of `updates`.
    zone, storage_options, threads, progress, engine, **options
        As for `delete`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    DeltaError
        ``"bad-assignment"``, ``"type-mismatch"``; and as `delete`.
    SqlError
        For SQL that cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])})
    ...     pv.delta.update(folder, {"v:s": "'q'", "v:n": "v:n::int * 10"}, "v:n::int = 2").rows_updated
    ...     pv.delta.read(folder).to_pylist()
    1
    [{'n': 1}, {'n': 20, 's': 'q'}]
    """
    workers = engine or ThreadEngine(threads, progress)
    if not updates and not new_values:
        raise DeltaError("nothing is set: give updates= or new_values=", reason="bad-assignment")

    def plan(newest: Snapshot) -> Change:
        tables = {TARGET: columns_of_table(newest.schema)}
        assignments = read_assignments(updates or {}, newest.schema, tables, TARGET, zone)
        assignments += read_assignments(new_values or {}, newest.schema, tables, TARGET, zone, literals=True)
        refuse_identity_set(newest, [each.column for each in assignments])
        condition = read_condition(newest, where, zone)
        opened = matching_files(newest, condition, zone)
        work = partial(_update, plan_change(newest, options), condition, assignments, zone)
        done = workers.run("update", work, newest.to_adds(opened))
        return Change(opened, done, reads_of(newest, condition, zone), parameters={"predicate": where or "true"})

    return run_change(snapshot(table, storage_options=storage_options), "UPDATE", plan)


def _update(
    plan: ChangePlan,
    condition: SqlExpression | None,
    assignments: Sequence[Assignment],
    zone: str,
    task: int,
    attempt: int,
    file: Add,
) -> FileChange:
    live, updated = matched_rows(plan, condition, zone, file)

    def new_rows(rows: pa.Table) -> pa.Table:
        schema = plan.current.schema
        new = assigned(rows, schema, assignments, {TARGET: rows}, zone)
        return plan.write.rules.regenerated(new, schema, {each.column for each in assignments})

    def seen(needed: Mapping[str, Mapping[str, NeededColumn]]) -> Mapping[str, pa.Table]:
        return {TARGET: chosen_rows(plan.current, file, needed.get(TARGET, {}), updated, zone)}

    changed = ChangedRows(live, np.zeros_like(updated), updated, new_rows)
    paths = paths_set(assignments, seen, int(updated.sum()), zone)
    return rewrite_file(plan, file, changed, columns_in_use(assignments, TARGET), paths)
