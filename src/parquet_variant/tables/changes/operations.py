"""Delete, update and replace over any table format: what the driver plans, and what a task does with a file.

Owns the operations as plans for `run_change`, their result, and errors of misspelled paths. Leaves new values to
`assignments`, files to `patching`, and merges to `merge_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.field_names import keys_of_storage
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.scanning.path_facts import keys_of_files
from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.path_hints import is_correction, needed_path_hints
from parquet_variant.query.sql_expression import NeededColumn, SqlExpression, read_expression
from parquet_variant.tables.changes.assignments import assigned, read_assignments
from parquet_variant.tables.changes.change_plan import (
    ChangeableTable,
    ChangePlan,
    FileChange,
    FileSet,
    IdentitySource,
    NeededColumns,
    TableChange,
)
from parquet_variant.tables.changes.patching import (
    NO_COLUMNS,
    RowChanges,
    columns_in_use,
    path_assignments,
    rewrite_file,
)
from parquet_variant.tables.commits import planned_again
from parquet_variant.tables.expressions import Assignment, columns_of_table, is_true, needed_table, numbered, renumbered
from parquet_variant.tables.write_plan import File


@dataclass(frozen=True)
class ChangeResult:
    """The result of a delete, update, replace or merge.

    Parameters
    ----------
    version
        The table's version afterwards.
    rows_deleted, rows_updated, rows_inserted, rows_copied
        Numbers of rows; copied rows are rewritten unchanged.
    files_total, files_opened, files_removed, files_added
        Numbers of data files: in the table, opened because they could hold matches, removed or changed, added.
    bytes_removed
        Size of the removed files, which remain in storage until a vacuum.
    committed
        False if the table had recorded the transaction ``txn`` before, so that nothing was done.
    hints
        If no row matched: messages about paths of the condition that no row of the table has.
    """

    version: int
    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_total: int = 0
    files_opened: int = 0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    committed: bool = True
    hints: tuple[str, ...] = ()


def run_change(
    table: ChangeableTable[File], operation: str, plan: Callable[[ChangeableTable[File]], TableChange[File]]
) -> ChangeResult:
    """Plan a change and commit it; on a conflict, plan it again on the newest version.

    Raises `TableError`: ``"append-only"``; ``"too-many-retries"``; and as `plan`.
    """

    def run(current: ChangeableTable[File]) -> ChangeResult:
        if current.is_applied():
            return ChangeResult(current.version, files_total=len(current.files), committed=False)
        change = plan(current)
        result = _result(current, change)
        if not change.changed and not change.added and current.batch is None:
            return result
        return replace(result, version=current.commit(operation, change))

    return planned_again(run, table, lambda current: current.reload(), table.uri)


def _result(table: ChangeableTable[File], change: TableChange[File]) -> ChangeResult:
    changed = change.changed
    return ChangeResult(
        version=table.version,
        rows_deleted=sum(file.rows_deleted for file in changed),
        rows_updated=sum(file.rows_updated for file in changed),
        rows_inserted=change.rows_inserted,
        rows_copied=sum(file.rows_copied for file in changed),
        files_total=len(table.files),
        files_opened=len(change.opened),
        files_removed=len(changed),
        files_added=sum(len(file.added) for file in changed) + len(change.added),
        bytes_removed=sum(table.removed_bytes(file) for file in changed),
        hints=tuple(change.hints),
    )


def missing_paths(
    table: ChangeableTable[Any], condition: SqlExpression | None, target: str, advice: str = ""
) -> tuple[str, ...]:
    """Return messages about the paths that a condition needs and no row has; call it if the condition matched no row.

    `target`: the name of the table in the condition.
    `advice`: the end of the error's message.
    Raises `TableError` if the rows have a similar path.
    """
    hints = () if condition is None else tuple(needed_path_hints(partial(_keys, table), condition, target))
    for hint in filter(is_correction, hints):
        raise TableError(f"the condition matches no row: {hint}{advice}", reason="no-such-path", file=table.uri)
    return hints


def refuse_misspelled_keys(
    table: ChangeableTable[Any], source: pa.Table, condition: SqlExpression, names: tuple[str, str]
) -> None:
    """Raise `TableError` if a merge that matched no row needs a missing path that is similar to a path of the rows.

    `names`: those of the table and of the source in the condition.
    """
    for name, keys_of in zip(names, (partial(_keys, table), partial(_keys_of_rows, source)), strict=True):
        for hint in filter(is_correction, needed_path_hints(keys_of, condition, name)):
            raise TableError(
                f"the condition of the merge matches no row: in {name} {hint}", reason="no-such-path", file=table.uri
            )


def _keys(table: ChangeableTable[Any], column: str) -> frozenset[str] | None:
    """Return the keys of the objects in a Variant column; None if the files do not have the column by its name."""
    try:
        return keys_of_files(sources, column) if (sources := table.parquet_files()) else None
    except VariantError:
        return None


def _keys_of_rows(rows: pa.Table, column: str) -> frozenset[str] | None:
    if column not in rows.column_names:
        return None
    return keys_of_storage(VariantArray.from_arrow(rows, column).to_unshredded().storage)


TARGET = "target"


def delete(
    table: ChangeableTable[Any],
    where: str | None = None,
    *,
    dry_run: bool = False,
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit; see `Table.delete`."""
    workers = engine_or_threads(engine, threads, progress)
    table.batch = batch

    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        work = partial(delete_from_file, current.plan(options))
        return _change_of_matching_rows(current, where, zone, workers, "delete", work)

    if not dry_run:
        return run_change(table, "DELETE", plan)
    condition = read_condition(table, where, zone)
    opened = matching_files(table, table.files, condition, zone)
    count = partial(_count_in_file, table.plan(options), condition, zone)
    counts = workers.run("count", count, table.to_files(opened))
    return ChangeResult(
        table.version,
        rows_deleted=sum(counts),
        files_total=len(table.files),
        files_opened=len(opened),
        files_removed=sum(rows > 0 for rows in counts),
        hints=() if any(counts) else missing_paths(table, condition, TARGET),
    )


def _change_of_matching_rows(
    table: ChangeableTable[Any],
    where: str | None,
    zone: str,
    engine: Engine,
    step: str,
    work: Callable[..., FileChange[Any]],
) -> TableChange[Any]:
    """Change the rows for which a condition is true, in every file that may hold such rows.

    `work`: the work of a task, which takes the condition, the zone, and the arguments of `Engine.run`.
    Raises `TableError` if no row matches because of a misspelled path; a repeated transaction may match none.
    """
    condition = read_condition(table, where, zone)
    opened = matching_files(table, table.files, condition, zone)
    done = engine.run(step, partial(work, condition, zone), table.to_files(opened))
    matches_none = not any(change.is_changed for change in done) and table.batch is None
    return TableChange(
        opened,
        done,
        reads_matching(table, condition, zone),
        parameters={"predicate": where or "true"},
        hints=missing_paths(table, condition, TARGET) if matches_none else (),
    )


def _count_in_file(
    plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Any
) -> int:
    return int(matching_rows(plan, condition, zone, file)[1].sum())


def update(
    table: ChangeableTable[Any],
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Set columns or paths of the rows for which a condition is true, in one commit; see `Table.update`."""
    workers = engine_or_threads(engine, threads, progress)
    table.batch = batch
    if not updates and not new_values:
        raise TableError("nothing to set: pass updates= or new_values=", reason="bad-assignment")

    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        tables = {TARGET: columns_of_table(current.schema)}
        assignments = read_assignments(updates or {}, current.schema, tables, TARGET, zone)
        assignments += read_assignments(new_values or {}, current.schema, tables, TARGET, zone, literals=True)
        current.refuse_assignment(assignment.column for assignment in assignments)
        work = partial(_update_file, current.plan(options), assignments)
        return _change_of_matching_rows(current, where, zone, workers, "update", work)

    return run_change(table, "UPDATE", plan)


def replace_rows(
    table: ChangeableTable[Any],
    rows: Sequence[pa.Table],
    where: str,
    zone: str,
    engine: Engine,
    options: Mapping[str, Any],
) -> ChangeResult:
    """Replace the rows for which a condition is true by new rows, for which it must be true too."""

    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        condition = read_condition(current, where, zone)
        assert condition is not None
        changes = current.plan(options)
        identities = current.identities()
        new = [changes.write.with_generated_columns(part) for part in identities.fill(rows)]
        for part in new:
            _check_condition(changes, condition, part, where, zone)
        opened = matching_files(current, current.files, condition, zone)
        work = partial(delete_from_file, changes, condition, zone)
        done = engine.run("replace", work, current.to_files(opened))
        return replace(
            insertion(current, new, identities, changes),
            opened=opened,
            files=done,
            reads=reads_matching(current, condition, zone),
            parameters={"predicate": where},
        )

    return run_change(table, "WRITE", plan)


def _check_condition(plan: ChangePlan[Any], condition: SqlExpression, rows: pa.Table, where: str, zone: str) -> None:
    needed = needed_table(plan.write.completed(rows), condition.columns[TARGET])
    is_inside = is_true(condition, TARGET, needed, zone)
    if not is_inside.all():
        raise TableError(
            f"the condition {where} is not true for {int((~is_inside).sum())} of the new rows: change the rows or the "
            "condition",
            reason="outside-condition",
            row=int((~is_inside).argmax()),
        )


def insertion(
    table: ChangeableTable[Any], rows: Sequence[pa.Table], identities: IdentitySource, plan: ChangePlan[Any]
) -> TableChange[Any]:
    """Write new rows and return the change that adds them.

    `identities`: what filled in their identity columns.
    """
    added = plan.write.write_files(iter(rows))
    change_data: Sequence[Any] = ()
    if plan.records_changes:
        change_data = plan.write_changes(plan.write, {"insert": pa.concat_tables(rows)})
    inserted = sum(len(part) for part in rows)
    nothing = table.filtered(table.files, np.zeros(len(table.files), dtype=bool))
    return TableChange(nothing, (), None, added, change_data, inserted, identities=identities)


def read_condition(table: ChangeableTable[Any], where: str | None, zone: str) -> SqlExpression | None:
    """Return a condition over a table's rows; None for all rows."""
    if where is None:
        return None
    return read_expression(where, {TARGET: columns_of_table(table.schema)}, zone=zone)


def matching_files(table: ChangeableTable[Any], files: FileSet, condition: SqlExpression | None, zone: str) -> FileSet:
    """Return those of some files that may hold rows for which a condition is true."""
    if condition is None:
        return files
    return table.candidates(files, condition.pushdown.get(TARGET), condition.columns[TARGET], zone)


def reads_matching(
    table: ChangeableTable[Any], condition: SqlExpression | None, zone: str
) -> Callable[[FileSet], bool]:
    """Return a function that checks whether files may hold rows for which a condition is true."""
    return lambda files: len(matching_files(table, files, condition, zone)) > 0


def matching_rows(plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, file: Any) -> tuple[Mask, Mask]:
    """Return two masks of a file's rows by position: not deleted, and not deleted with the condition true."""
    columns = {} if condition is None else condition.columns[TARGET]
    rows, live = plan.read_columns(file, columns, zone)
    if condition is None:
        return live, live.copy()
    return live, live & is_true(condition, TARGET, rows, zone)


def read_updated_rows(plan: ChangePlan[Any], file: Any, columns: NeededColumns, updated: Mask, zone: str) -> pa.Table:
    """Return the columns that expressions need of the updated rows, as a `numbered` table."""
    if not columns:
        return numbered({}, int(updated.sum()))
    rows = plan.read_columns(file, columns, zone)[0]
    return renumbered(rows.filter(pa.array(updated)))


def delete_from_file(
    plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    """Delete the rows of a file for which a condition is true (the work of a task)."""
    live, deleted = matching_rows(plan, condition, zone, file)
    rows = RowChanges(live, deleted, np.zeros_like(deleted), lambda table: table)
    return rewrite_file(plan, file, rows, NO_COLUMNS)


def _update_file(
    plan: ChangePlan[Any],
    assignments: Sequence[Assignment],
    condition: SqlExpression | None,
    zone: str,
    task: int,
    attempt: int,
    file: Any,
) -> FileChange[Any]:
    live, updated = matching_rows(plan, condition, zone, file)

    def new_rows(rows: pa.Table) -> pa.Table:
        new = assigned(rows, plan.schema, assignments, {TARGET: rows}, zone)
        set_columns = {assignment.column for assignment in assignments}
        return plan.write.rules.regenerated(new, plan.schema, set_columns)

    def read_columns(needed: Mapping[str, Mapping[str, NeededColumn]]) -> Mapping[str, pa.Table]:
        return {TARGET: read_updated_rows(plan, file, needed.get(TARGET, {}), updated, zone)}

    rows = RowChanges(live, np.zeros_like(updated), updated, new_rows)
    paths = path_assignments(assignments, read_columns, int(updated.sum()), zone)
    return rewrite_file(plan, file, rows, columns_in_use(assignments, TARGET), paths)
