"""Delete, update, replace, merge and erase over any table format: what the driver plans and commits.

Owns the operations as plans for `run_change`, their results, and the check that an erasure leaves nothing. Leaves the
rows of a file to `row_changes`, and the commit and the removal of history and old files to the formats.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import TableError, VariantError
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.query.selection import TableColumns
from parquet_variant.support.records import Record, Report, counted
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, TableChange
from parquet_variant.tables.changes.row_changes import TARGET, Clause, Join, RowChange, change_rows
from parquet_variant.tables.columns import align_table, by_given_name
from parquet_variant.tables.commits import planned_again
from parquet_variant.tables.expressions import is_true, needed_table
from parquet_variant.tables.row_input import ChangeOptions, all_rows
from parquet_variant.tables.storage import now_millis
from parquet_variant.tables.write_plan import File


class ChangeResult(Record):
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
        False if the table had recorded the batch before, so that nothing was done.
    hints
        Messages about values that the condition did not compare and, if no row matched, paths that no row has.
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
    table: ChangeableTable[File],
    operation: str,
    plan: Callable[[ChangeableTable[File]], TableChange[File]],
    batch: tuple[str, int] | None = None,
    *,
    dry_run: bool = False,
) -> ChangeResult:
    """Plan a change and commit it; on a conflict, plan it again on the newest version.

    `batch`: recorded by the commit; a change that the table has recorded is not made again.
    `dry_run`: the plan has written nothing, and nothing is committed.
    Raises `TableError`: ``"append-only"``; ``"too-many-retries"``; and as `plan`.
    """
    table.batch = batch

    def run(current: ChangeableTable[File]) -> ChangeResult:
        if current.current.has_recorded(batch):
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


def delete(
    table: ChangeableTable[Any], options: ChangeOptions, where: str | None = None, *, dry_run: bool = False
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit; see `Table.delete`."""
    clause = Clause("not_matched_by_source", "delete", predicate=where)
    return _change_rows(table, options, clause, "count" if dry_run else "delete", dry_run=dry_run)


def update(
    table: ChangeableTable[Any],
    options: ChangeOptions,
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> ChangeResult:
    """Set columns or paths of the rows for which a condition is true, in one commit; see `Table.update`."""
    if not updates and not new_values:
        raise TableError("nothing to set: pass updates= or new_values=", reason="bad-assignment")
    clause = Clause("not_matched_by_source", "update", updates or {}, where, literals=new_values or {})
    return _change_rows(table, options, clause, "count" if dry_run else "update", dry_run=dry_run)


def _change_rows(
    table: ChangeableTable[Any], options: ChangeOptions, clause: Clause, step: str, *, dry_run: bool = False
) -> ChangeResult:
    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        return RowChange.of(current, options, [clause], dry_run=dry_run).run(current, options.engine, step)

    return run_change(table, clause.action.upper(), plan, options.batch, dry_run=dry_run)


def replace_where(table: ChangeableTable[Any], options: ChangeOptions, data: Any, where: str) -> ChangeResult:
    """Replace the rows for which a condition is true by new rows, for which it must be true too; see `Table.overwrite`.

    Everything happens in one commit.
    """
    rows, clause = all_rows(data), Clause("not_matched_by_source", "delete", predicate=where)

    def plan(current: ChangeableTable[Any]) -> TableChange[Any]:
        deletes = RowChange.of(current, options, [clause])
        changes = deletes.plan
        (condition,) = [parsed.expression for parsed in deletes.clauses]
        assert condition is not None
        new = [changes.write.with_generated_columns(part) for part in current.numbered(rows)]
        for part in new:
            aligned = align_table(part, current.schema, by_given_name, exact=True)
            needed = needed_table(aligned, condition.columns[TARGET], deletes.context.zone)
            is_inside = is_true(condition, TARGET, needed, deletes.context)
            if not is_inside.all():
                problem = (
                    f"the condition {where} is not true for {int((~is_inside).sum())} of the new rows: change the rows "
                    "or the condition"
                )
                raise TableError(problem, reason="outside-condition", row=int((~is_inside).argmax()))
        change = deletes.run(current, options.engine, "replace", advice=None)
        with current.writing():
            return with_inserts(change, changes, new)

    return run_change(table, "WRITE", plan, options.batch)


# A condition of a merge that is only the name of a column or path.
_KEY = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s=<>!()"'])+""")


def with_inserts(change: TableChange[Any], plan: ChangePlan[Any], rows: Sequence[pa.Table]) -> TableChange[Any]:
    """Write new rows, and return a change that also adds them."""
    added = plan.write.write_files(iter(rows))
    data: tuple[Any, ...] = ()
    if plan.records_changes and rows:
        data = plan.write_changes(plan.write, {"insert": pa.concat_tables(rows)})
    return replace(change, added=added, change_data=data, rows_inserted=sum(map(len, rows)))


def merge(
    target: ChangeableTable[Any],
    options: ChangeOptions,
    source: Any,
    condition: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
) -> Merge:
    """Begin a merge of rows into a table: its methods add clauses, and ``execute`` commits; see `Table.merge`."""
    aliases, rows = (f"{source_alias}.", f"{target_alias}."), rows_of(source)
    if isinstance(condition, str) and _KEY.fullmatch(condition) and not condition.startswith(aliases):
        columns = TableColumns.of(rows.schema)
        if condition.isidentifier() and len(columns.variants) == 1 and columns.find(condition) is None:
            path = f"write the path, on='{columns.variants[0]}:{condition}', or fill it with columns=['{condition}']"
            raise TableError(f"the source has no column {condition}: {path}", reason="unknown-column")
        condition = f"{target_alias}.{condition} = {source_alias}.{condition}"
    return Merge(target, Join(rows, condition, source_alias, target_alias), options)


class Merge(Record):
    """A merge that waits for its clauses and for `execute`; made by `merge`. Each method returns a new merge.

    Of the clauses for a row, the first one whose predicate is true applies.
    """

    target: ChangeableTable[Any]
    join: Join
    options: ChangeOptions
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that a source row matches."""
        return self._with_clause(Clause("matched", "update", dict(updates), predicate))

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Iterable[str] | str = ()) -> Merge:
        """Set every column that the source has, by name, except for some."""
        return self._with_clause(Clause("matched", "update", None, predicate, _names(except_cols)))

    def when_matched_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that a source row matches."""
        return self._with_clause(Clause("matched", "delete", predicate=predicate))

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Insert source rows that match no row: values by column; other columns become null."""
        return self._with_clause(Clause("not_matched", "insert", dict(updates), predicate))

    def when_not_matched_insert_all(self, predicate: str | None = None, except_cols: Iterable[str] | str = ()) -> Merge:
        """Insert source rows that match no row, with their columns by name, except for some."""
        return self._with_clause(Clause("not_matched", "insert", None, predicate, _names(except_cols)))

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that no source row matches."""
        return self._with_clause(Clause("not_matched_by_source", "update", dict(updates), predicate))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that no source row matches."""
        return self._with_clause(Clause("not_matched_by_source", "delete", predicate=predicate))

    def execute(self, *, dry_run: bool = False) -> ChangeResult:
        """Run the merge, in one commit.

        Parameters
        ----------
        dry_run
            Only count the rows that would be changed, and the files that hold them.

        Raises
        ------
        TableError
            ``"ambiguous-merge"`` if several source rows would change one row; ``"no-clauses"``; and as `update`.
        """
        if not self.clauses:
            raise TableError(
                "the merge has no clauses: add one, such as when_matched_update_all()", reason="no-clauses"
            )

        def plan(table: ChangeableTable[Any]) -> TableChange[Any]:
            rows = RowChange.of(table, self.options, self.clauses, join=self.join, dry_run=dry_run)
            change = rows.run(table, self.options.engine, "merge")
            with table.writing(may_write=bool(change.changed)):
                inserts = rows.inserted(table, change.files)
            clauses = [
                {"when": clause.kind, "action": clause.action, "predicate": clause.predicate} for clause in self.clauses
            ]
            change = replace(
                change,
                rows_inserted=len(inserts),
                source_rows=len(self.join.source),
                hints=(*change.hints, *rows.context.take_warnings()),
                parameters={"predicate": self.join.condition, "clauses": clauses},
            )
            with table.writing():
                return with_inserts(change, rows.plan, [inserts]) if len(inserts) and not dry_run else change

        return run_change(self.target, "MERGE", plan, self.options.batch, dry_run=dry_run)

    def _with_clause(self, clause: Clause) -> Merge:
        return replace(self, clauses=(*self.clauses, clause))


def _names(columns: Iterable[str] | str) -> frozenset[str]:
    names = [columns] if isinstance(columns, str) else columns
    return frozenset(name.lower() for name in names)


# A data file without a commit that is younger than this belongs to a writer that is probably at work.
_WRITER_MILLIS = 3_600_000


class EraseReport(Report, Record):
    """What an erasure did, or would do.

    Parameters
    ----------
    table
        The table.
    dry_run
        Whether nothing was changed.
    version
        The table's version afterwards: of Iceberg, the id of its snapshot.
    rows_erased
        Rows of the table for which the condition was true.
    files_rewritten
        Data files that held such rows, or rows that were only marked as deleted.
    files_removed
        Data files, deletion vectors and files of change data removed from storage.
    versions_removed
        Older versions, or snapshots, that can no longer be read.
    log_files_removed
        Commits, checkpoints and checksums of these versions; manifests and their lists.
    files_verified
        Data files that were read again and hold no matching row: all that are left.
    hints
        Values that the condition did not compare, because they have another type; their rows remain.
    """

    table: str
    dry_run: bool
    version: int
    rows_erased: int
    files_rewritten: int
    files_removed: int = 0
    versions_removed: int = 0
    log_files_removed: int = 0
    files_verified: int = 0
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows, rewritten = counted(self.rows_erased, "row"), counted(self.files_rewritten, "file")
        hints = "".join(f"\n{hint}" for hint in self.hints)
        if self.dry_run:
            return (
                f"{rows} in {rewritten} of {self.table} would be erased, "
                f"and {counted(self.versions_removed, 'older version')} removed; nothing was changed{hints}"
            )
        return (
            f"{rows} erased from {self.table}: {rewritten} rewritten, {counted(self.files_removed, 'data file')} and "
            f"{counted(self.log_files_removed, 'log file')} removed, {counted(self.versions_removed, 'older version')} "
            f"gone; {counted(self.files_verified, 'remaining file')} read again without a match; version {self.version}"
            f"{hints}"
        )


class ErasableTable(ABC):
    """What an erasure needs of a format, apart from changes of rows.

    `table`: the version from which rows are erased.
    """

    table: ChangeableTable[Any]

    @abstractmethod
    def version_count(self) -> int:
        """Return the number of versions that can be read. Raises `TableError` if files must not be removed."""

    @abstractmethod
    def recent_files(self, since: int) -> list[str]:
        """Return the data files that no version names and that changed after a time in milliseconds since 1970.

        Raises `TableError` if the table has other references that need older versions.
        """

    @abstractmethod
    def remove_history(self, rows: int) -> tuple[ChangeableTable[Any], int, int]:
        """Remove all older versions and every file that only they need.

        `rows`: the number of erased rows.
        Return the newest version, and the numbers of removed data files and of other files.
        """


def erase(
    erasable: ErasableTable,
    options: ChangeOptions,
    where: str,
    *,
    dry_run: bool = False,
    force: bool = False,
) -> EraseReport:
    """Erase the rows for which a condition is true from a table, its history and its statistics; see `Table.erase`."""
    if not isinstance(where, str) or not where.strip():
        raise TableError("erase needs a condition: pass where='v:user::int = 1'", reason="bad-argument")
    uri, versions = erasable.table.uri, erasable.version_count()
    # History is not lost for a condition that matches no row because of a misspelled path or a missing cast.
    advice = "; pass force=True if the condition is right" if dry_run or not force else None

    def rows_of(table: ChangeableTable[Any], dry_run: bool) -> RowChange:
        clause = Clause("not_matched_by_source", "delete", predicate=where)
        rows = RowChange.of(table, options, [clause], dry_run=dry_run)
        return replace(rows, plan=replace(rows.plan, uses_vectors=False, records_changes=False, erases=True))

    def change(table: ChangeableTable[Any]) -> TableChange[Any]:
        """Change the files that may hold matching rows, or rows that are only marked as deleted."""
        rows, files = rows_of(table, dry_run), table.to_files(table.files)
        plan, matching = rows.plan, {rows.plan.path(file) for file in table.to_files(rows.files(table, table.files))}
        mask = [plan.path(file) in matching or file.has_deletes for file in files]
        opened = table.filtered(table.files, np.array(mask, dtype=bool))
        # The predicate is not recorded, because it may name what is erased.
        step = "count" if dry_run else "erase"
        return replace(rows.run(table, options.engine, step, opened, advice=advice), parameters={})

    if not (dry_run or force) and (active := erasable.recent_files(now_millis() - _WRITER_MILLIS)):
        problem = (
            f"a writer seems to be active, because {active[0]} has no commit and is younger than an hour: wait, or "
            "pass force=True if no writer is active"
        )
        raise TableError(problem, reason="writer-active", file=uri)
    done = run_change(erasable.table, "DELETE", change, dry_run=dry_run)
    report = EraseReport(
        uri, dry_run, done.version, done.rows_deleted, done.files_removed, versions_removed=versions, hints=done.hints
    )
    if dry_run:
        return report
    try:
        newest, data_files, log_files = erasable.remove_history(done.rows_deleted)
        rows = rows_of(newest, True)
        files = [rows.plan.with_every_row(file) for file in newest.to_files(newest.files)]
        for file_change in options.engine.run("verify", partial(change_rows, rows), files):
            if file_change.is_changed:
                path, remaining = rows.plan.path(file_change.file), counted(file_change.rows_deleted, "matching row")
                raise TableError(f"{remaining} left in {path}: erase again", reason="not-erased", file=path)
    except (VariantError, OSError) as error:
        if isinstance(error, VariantError) and error.reason in ("conflict", "not-erased"):
            raise
        problem = (
            f"the newest version has no matching row, but older versions and files are not removed yet: {error}; erase "
            "again to finish"
        )
        raise TableError(problem, reason="not-erased", file=uri) from error
    return replace(
        report,
        version=newest.version,
        files_removed=data_files,
        log_files_removed=log_files,
        files_verified=len(files),
    )
