"""Delete, update and replace over any table format: what the driver plans, and what a task does with a file.

Owns the operations as plans for `run_change`, their condition and result, and errors of misspelled paths. Leaves new
values to `assignments`, files to `patching`, and merges to `merge_run`.
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
from parquet_variant.files.parquet.scanning.projection import keys_of_files
from parquet_variant.io.engine import Engine, Progress, ThreadEngine, engine_or_threads
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.query.path_hints import is_correction
from parquet_variant.query.selection import NeededColumn
from parquet_variant.query.sql_expression import SqlExpression, needed_path_hints, read_expression
from parquet_variant.tables.changes.assignments import assigned, read_assignments
from parquet_variant.tables.changes.change_plan import (
    ChangeableTable,
    ChangePlan,
    FileChange,
    FileSet,
    NeededColumns,
    TableChange,
)
from parquet_variant.tables.changes.patching import RowChanges, Update, rewrite_file
from parquet_variant.tables.commits import planned_again
from parquet_variant.tables.expressions import Assignment, columns_of_table, is_true, needed_table, numbered, renumbered
from parquet_variant.tables.row_input import all_rows
from parquet_variant.tables.write_plan import File, Identities

TARGET = "target"


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


@dataclass(frozen=True)
class Condition:
    """The rows of a table that a change is about: those for which SQL is true, or all rows; sent to every task."""

    where: str | None = None
    zone: str = "UTC"
    expression: SqlExpression | None = None  # None for all rows.

    @classmethod
    def of(cls, table: ChangeableTable[Any], where: str | None, zone: str) -> Condition:
        """Return the condition of SQL over a table's rows."""
        if where is None:
            return cls(zone=zone)
        return cls(where, zone, read_expression(where, {TARGET: columns_of_table(table.schema)}, zone=zone))

    def files(self, table: ChangeableTable[Any], files: FileSet) -> FileSet:
        """Return those of some files that may hold matching rows."""
        if self.expression is None:
            return files
        pushdown, columns = self.expression.pushdown.get(TARGET), self.expression.columns[TARGET]
        return table.candidates(files, pushdown, columns, self.zone)

    def rows(self, plan: ChangePlan[Any], file: Any) -> tuple[Mask, Mask]:
        """Return two masks of a file's rows by position: not deleted, and not deleted and matching."""
        columns = {} if self.expression is None else self.expression.columns[TARGET]
        rows, live = plan.read_columns(file, columns, self.zone)
        if self.expression is None:
            return live, live.copy()
        return live, live & is_true(self.expression, TARGET, rows, self.zone)

    def change(
        self,
        table: ChangeableTable[Any],
        engine: Engine,
        step: str,
        work: Callable[..., FileChange[Any]],
        files: FileSet | None = None,
    ) -> TableChange[Any]:
        """Change files (default: those that may hold matching rows) by tasks.

        The change conflicts with files with matching rows that other commits add.
        `work`: the task, which also takes the condition.
        """
        opened = self.files(table, table.files) if files is None else files
        done = engine.run(step, partial(work, self), table.to_files(opened))
        parameters = {"predicate": self.where or "true"}
        return TableChange(opened, done, lambda added: len(self.files(table, added)) > 0, parameters=parameters)

    def with_hints(self, table: ChangeableTable[Any], change: TableChange[Any]) -> TableChange[Any]:
        """Return a change with `missing_paths` if it matches no row; a repeated transaction may match none."""
        matches_none = not change.changed and table.batch is None
        return replace(change, hints=self.missing_paths(table)) if matches_none else change

    def missing_paths(self, table: ChangeableTable[Any], advice: str = "") -> tuple[str, ...]:
        """Return messages about the paths that the condition needs and no row has; call it if no row matches.

        Raises `TableError`, whose message ends in `advice`, if the rows have a similar path.
        """
        if self.expression is None:
            return ()
        hints = tuple(needed_path_hints(partial(_keys, table), self.expression, TARGET))
        for hint in filter(is_correction, hints):
            raise TableError(f"the condition matches no row: {hint}{advice}", reason="no-such-path", file=table.uri)
        return hints


def run_change(
    table: ChangeableTable[File],
    operation: str,
    plan: Callable[[ChangeableTable[File]], TableChange[File]],
    *,
    dry_run: bool = False,
) -> ChangeResult:
    """Plan a change and commit it; on a conflict, plan it again on the newest version.

    `dry_run`: the plan has written nothing, and nothing is committed.
    Raises `TableError`: ``"append-only"``; ``"too-many-retries"``; and as `plan`.
    """

    def run(current: ChangeableTable[File]) -> ChangeResult:
        if current.is_applied():
            return ChangeResult(current.version, files_total=len(current.files), committed=False)
        change = plan(current)
        changed, rows = change.changed, change.rows
        result = ChangeResult(
            version=current.version,
            rows_deleted=rows["deleted"],
            rows_updated=rows["updated"],
            rows_inserted=rows["inserted"],
            rows_copied=rows["copied"],
            files_total=len(current.files),
            files_opened=len(change.opened),
            files_removed=len(changed),
            files_added=sum(len(file.added) for file in changed) + len(change.added),
            bytes_removed=sum(current.removed_bytes(file) for file in changed),
            hints=tuple(change.hints),
        )
        if dry_run or (not changed and not change.added and current.batch is None):
            return result
        return replace(result, version=current.commit(operation, change))

    return planned_again(run, table, lambda current: current.reload(), table.uri)


def refuse_misspelled_keys(
    table: ChangeableTable[Any], source: pa.Table, condition: SqlExpression, names: tuple[str, str]
) -> None:
    """Raise `TableError` if a merge that matched no row needs a missing path that is similar to a path of the rows.

    `names`: those of the table and of the source in the condition.
    """

    def keys_of_source(column: str) -> frozenset[str] | None:
        if column not in source.column_names:
            return None
        return keys_of_storage(VariantArray.from_arrow(source, column).to_unshredded().storage)

    sides: list[Callable[[str], frozenset[str] | None]] = [partial(_keys, table), keys_of_source]
    for name, keys_of in zip(names, sides, strict=True):
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
        step, work = ("count", count_in_file) if dry_run else ("delete", delete_from_file)
        condition, changes = Condition.of(current, where, zone), current.plan(options)
        return condition.with_hints(current, condition.change(current, workers, step, partial(work, changes)))

    return run_change(table, "DELETE", plan, dry_run=dry_run)


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
        condition, work = Condition.of(current, where, zone), partial(_update_file, current.plan(options), assignments)
        return condition.with_hints(current, condition.change(current, workers, "update", work))

    return run_change(table, "UPDATE", plan)


def replace_where(
    table: ChangeableTable[Any],
    data: Any,
    where: str,
    *,
    zone: str = "UTC",
    threads: int | None = 1,
    **options: Any,
) -> ChangeResult:
    """Replace the rows for which a condition is true by new rows, for which it must be true too; see `Table.overwrite`.

    Everything happens in one commit.
    """
    rows, engine = all_rows(data), ThreadEngine(threads, None)

    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        condition = Condition.of(current, where, zone)
        changes, identities = current.plan(options), current.identities()
        new = [changes.write.with_generated_columns(part) for part in identities.fill(rows)]
        assert condition.expression is not None
        for part in new:
            needed = needed_table(changes.write.completed(part), condition.expression.columns[TARGET])
            is_inside = is_true(condition.expression, TARGET, needed, zone)
            if not is_inside.all():
                raise TableError(
                    f"the condition {where} is not true for {int((~is_inside).sum())} of the new rows: change the rows "
                    "or the condition",
                    reason="outside-condition",
                    row=int((~is_inside).argmax()),
                )
        change = condition.change(current, engine, "replace", partial(delete_from_file, changes))
        return with_inserts(change, changes, new, identities)

    return run_change(table, "WRITE", plan)


def with_inserts(
    change: TableChange[Any], plan: ChangePlan[Any], rows: Sequence[pa.Table], identities: Identities
) -> TableChange[Any]:
    """Write new rows and return a change that also adds them; `identities` filled in their identity columns."""
    added = plan.write.write_files(iter(rows))
    data = plan.write_changes(plan.write, {"insert": pa.concat_tables(rows)}) if plan.records_changes else ()
    count = sum(len(part) for part in rows)
    return replace(change, added=added, change_data=data, rows_inserted=count, identities=identities)


def read_updated_rows(plan: ChangePlan[Any], file: Any, columns: NeededColumns, updated: Mask, zone: str) -> pa.Table:
    """Return the columns that expressions need of the updated rows, as a `numbered` table."""
    if not columns:
        return numbered({}, int(updated.sum()))
    rows = plan.read_columns(file, columns, zone)[0]
    return renumbered(rows.filter(pa.array(updated)))


def count_in_file(plan: ChangePlan[Any], condition: Condition, task: int, attempt: int, file: Any) -> FileChange[Any]:
    """Count the matching rows of a file as `delete_from_file` deletes them (the work of a task)."""
    rows = int(condition.rows(plan, file)[1].sum())
    return FileChange(file, rows > 0, rows_deleted=rows)


def delete_from_file(
    plan: ChangePlan[Any], condition: Condition, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    """Delete the matching rows of a file (the work of a task)."""
    live, deleted = condition.rows(plan, file)
    rows = RowChanges(live, deleted, np.zeros_like(deleted), lambda table: table)
    return rewrite_file(plan, file, rows)


def _update_file(
    plan: ChangePlan[Any],
    assignments: Sequence[Assignment],
    condition: Condition,
    task: int,
    attempt: int,
    file: Any,
) -> FileChange[Any]:
    live, updated = condition.rows(plan, file)

    def new_rows(rows: pa.Table) -> pa.Table:
        new = assigned(rows, plan.schema, assignments, {TARGET: rows}, condition.zone)
        return plan.write.rules.regenerated(new, plan.schema, {assignment.column for assignment in assignments})

    def read_columns(needed: Mapping[str, Mapping[str, NeededColumn]]) -> Mapping[str, pa.Table]:
        return {TARGET: read_updated_rows(plan, file, needed.get(TARGET, {}), updated, condition.zone)}

    rows = RowChanges(live, np.zeros_like(updated), updated, new_rows)
    return rewrite_file(plan, file, rows, Update(assignments, TARGET, read_columns, condition.zone))
