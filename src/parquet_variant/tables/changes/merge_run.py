"""Running a merge: which files may hold the source's keys, the join of each file with the source, and the inserts.

Owns the request of a merge as data, the join of a file, the choice of a clause for each row, and that no row is changed
twice. Leaves new values to `assignments`, and files to `patching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import TableError
from parquet_variant.io.engine import Engine, Progress, ThreadEngine
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.selection import NeededColumn, TableColumns
from parquet_variant.query.sql_expression import SqlExpression, read_expression, run_sql
from parquet_variant.tables.changes.assignments import assigned, read_assignments
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileChange, FileSet, TableChange
from parquet_variant.tables.changes.operations import (
    ChangeResult,
    read_updated_rows,
    refuse_misspelled_keys,
    run_change,
)
from parquet_variant.tables.changes.patching import RowChanges, Update, rewrite_file
from parquet_variant.tables.expressions import (
    Assignment,
    columns_of_data,
    columns_of_table,
    equal_columns,
    evaluate,
    needed_table,
    number_column,
    quoted,
    renumbered,
)
from parquet_variant.tables.schema import StructType, arrow_schema
from parquet_variant.tables.write_plan import Identities

Numbers: TypeAlias = "npt.NDArray[np.int64]"
RowKind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]

_NO_CLAUSE = -1
_NO_ROW = -1


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause."""

    kind: RowKind  # The rows that the clause applies to.
    action: Literal["update", "insert", "delete"]
    # SQL by column or path; None for all columns of the source, by name.
    values: Mapping[str, str] | None = None
    predicate: str | None = None  # SQL that must also be true; None for no condition.
    without: frozenset[str] = frozenset()  # Columns that "all columns" leaves out, in lower case.
    # The predicate and the values, once they are parsed.
    expression: SqlExpression | None = None
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class _Merge:
    """A merge with parsed expressions; sent to every task."""

    target: str  # Alias.
    source: str  # Alias.
    zone: str
    rows: pa.Table  # The source.
    keys: pa.Table  # The columns of the source that the condition and predicates need, as a `numbered` table.
    condition: SqlExpression
    clauses: tuple[MergeClause, ...]  # Parsed.
    columns: Mapping[str, Mapping[str, NeededColumn]]  # What the condition and predicates need, by alias.

    def of_kind(self, kind: RowKind) -> list[tuple[int, MergeClause]]:
        """Return the clauses for a kind of rows, with their numbers."""
        return [(number, clause) for number, clause in enumerate(self.clauses) if clause.kind == kind]

    def clause_sql(self, kind: RowKind) -> str:
        """Return SQL for the number of the clause that applies to a row."""
        branches = [
            f"WHEN {'TRUE' if clause.expression is None else clause.expression.text} THEN {number}"
            for number, clause in self.of_kind(kind)
        ]
        return f"CASE {' '.join(branches)} ELSE {_NO_CLAUSE} END" if branches else str(_NO_CLAUSE)


def _parse_merge(request: Merge, table: ChangeableTable[Any]) -> _Merge:
    target, source = request.target_alias, request.source_alias
    tables = {target: columns_of_table(table.schema), source: columns_of_data(request.source)}
    condition = read_expression(request.condition, tables, zone=request.zone)
    clauses = tuple(_parsed_clause(clause, request, table.schema, tables) for clause in request.clauses)
    table.refuse_assignment(a.column for clause in clauses if clause.action == "update" for a in clause.assignments)
    columns: dict[str, dict[str, NeededColumn]] = {target: {}, source: {}}
    for expression in [condition, *(clause.expression for clause in clauses)]:
        for name, needed in (expression.columns if expression is not None else {}).items():
            columns[name].update(needed)
    keys, rows = needed_table(request.source, columns[source]), request.source
    return _Merge(target, source, request.zone, rows, keys, condition, clauses, columns)


def _parsed_clause(
    clause: MergeClause, request: Merge, schema: StructType, tables: Mapping[str, TableColumns]
) -> MergeClause:
    target, source = request.target_alias, request.source_alias
    visible = {
        "matched": tables,
        "not_matched": {source: tables[source]},
        "not_matched_by_source": {target: tables[target]},
    }[clause.kind]
    if clause.predicate is not None:
        clause = replace(clause, expression=read_expression(clause.predicate, visible, zone=request.zone))
    if clause.action == "delete":
        return clause
    values = _all_columns(clause, request, schema) if clause.values is None else clause.values
    assignments = read_assignments(values, schema, visible, target, request.zone)
    if clause.action == "insert" and any(assignment.path is not None for assignment in assignments):
        raise TableError(
            "an insert clause sets a path inside a Variant, which a new row does not have yet: set the whole column",
            reason="bad-assignment",
        )
    return replace(clause, assignments=tuple(assignments))


def _all_columns(clause: MergeClause, request: Merge, schema: StructType) -> dict[str, str]:
    if unknown := sorted(clause.without - {name.lower() for name in request.source.column_names}):
        raise TableError(
            f"except_cols names {unknown[0]!r}, which the source does not have: its columns are "
            f"{', '.join(request.source.column_names)}",
            reason="unknown-column",
        )
    values = {}
    for name in request.source.column_names:
        if name.lower() in clause.without:
            continue
        field = schema.get(name)
        if field is None:
            raise TableError(
                f"the source's column {name!r} is not in the table: leave it out with except_cols, or name the columns",
                reason="unknown-column",
            )
        values[field.name] = f"{quoted(request.source_alias)}.{quoted(name)}"
    return values


def _candidates(table: ChangeableTable[Any], merge: _Merge, files: FileSet) -> FileSet:
    """Return the files that may hold rows that the merge changes."""
    if merge.of_kind("not_matched_by_source"):
        return files
    columns = merge.columns[merge.target]
    files = table.candidates(files, merge.condition.pushdown.get(merge.target), columns, merge.zone)
    for left, right in equal_columns(merge.condition, merge.target, merge.source):
        if not len(files):
            break
        mask = table.may_hold_keys(files, columns[left], left, merge.keys[right], merge.zone)
        files = table.filtered(files, mask)
    return files


def _merge_file(
    plan: ChangePlan[Any], merge: _Merge, dry_run: bool, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    rows, live = plan.read_columns(file, merge.columns[merge.target], merge.zone)
    alive = rows.filter(pa.array(live))
    pairs = run_sql(
        f"SELECT {number_column(merge.target, alive)} AS l, {number_column(merge.source, merge.keys)} AS r, "
        f"{merge.clause_sql('matched')} AS c "
        f"FROM {quoted(merge.target)} JOIN {quoted(merge.source)} ON ({merge.condition.text})",
        {merge.target: alive, merge.source: merge.keys},
        zone=merge.zone,
    )
    left, right, clauses = (pairs[name].to_numpy().astype(np.int64) for name in ("l", "r", "c"))
    applied, source = _applied_clauses(merge, rows, (left, right, clauses), plan.path(file))
    if merge.of_kind("not_matched_by_source"):
        unmatched = live.copy()
        unmatched[left] = False
        applied[unmatched] = _clauses_of_unmatched(merge, "not_matched_by_source", rows.filter(pa.array(unmatched)))
    is_delete = np.array([clause.action == "delete" for clause in merge.clauses] + [False])
    deleted = (applied != _NO_CLAUSE) & is_delete[applied]
    updated = (applied != _NO_CLAUSE) & ~is_delete[applied]
    if dry_run:
        is_changed, counts = bool((deleted | updated).any()), (int(deleted.sum()), int(updated.sum()))
        return FileChange(file, is_changed, rows_deleted=counts[0], rows_updated=counts[1], matched=np.unique(right))

    def new_rows(before: pa.Table) -> pa.Table:
        positions = np.flatnonzero(updated)
        return _updated_rows(plan, merge, before, applied[positions], source[positions])

    # Inserts do not change rows of a file.
    updates = [clause for clause in merge.clauses if clause.action == "update"]
    assignments = [assignment for clause in updates for assignment in clause.assignments]

    def read(needed: Mapping[str, Mapping[str, NeededColumn]]) -> Mapping[str, pa.Table]:
        tables = {merge.target: read_updated_rows(plan, file, needed.get(merge.target, {}), updated, merge.zone)}
        if updates[0].kind == "matched":
            partners = merge.rows.take(pa.array(source[updated]))
            tables[merge.source] = needed_table(partners, needed.get(merge.source, {}))
        return tables

    update = Update(assignments, merge.target, read if len(updates) == 1 else None, merge.zone)
    change = rewrite_file(plan, file, RowChanges(live, deleted, updated, new_rows), update)
    return replace(change, matched=np.unique(right))


def _applied_clauses(
    merge: _Merge, rows: pa.Table, pairs: tuple[Numbers, Numbers, Numbers], path: str
) -> tuple[Numbers, Numbers]:
    """Return, for each row of a file, the number of the clause that applies and the position of the source row."""
    applied, source = np.full(len(rows), _NO_CLAUSE), np.full(len(rows), _NO_ROW)
    acting = pairs[2] != _NO_CLAUSE
    left, right, clauses = (numbers[acting] for numbers in pairs)
    matched = merge.of_kind("matched")
    only_deletes = len(matched) == 1 and matched[0][1].action == "delete" and matched[0][1].predicate is None
    unique, counts = np.unique(left, return_counts=True)
    if (counts > 1).any() and not only_deletes:
        row = int(unique[counts > 1][0])
        shown = ", ".join(
            f"{needed.column if needed.path is None else with_steps(needed.column, needed.path.segments)} = "
            f"{rows[name][row].as_py()!r}"
            for name, _ in equal_columns(merge.condition, merge.target, merge.source)
            for needed in [merge.columns[merge.target][name]]
        )
        raise TableError(
            f"several source rows match row {row} of {path}{f' ({shown})' if shown else ''}, so the result of the "
            "merge is ambiguous: make the join keys of the source unique",
            reason="ambiguous-merge",
        ).at(file=path, row=row)
    applied[left], source[left] = clauses, right
    return applied, source


def _clauses_of_unmatched(merge: _Merge, kind: RowKind, rows: pa.Table) -> Numbers:
    """Return the number of the clause that applies to each row of a `numbered` table of unmatched rows."""
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    alias = merge.source if kind == "not_matched" else merge.target
    answer = evaluate({"clause": merge.clause_sql(kind)}, {alias: renumbered(rows)}, merge.zone)
    clauses: Numbers = answer["clause"].to_numpy()
    return clauses


def _updated_rows(
    plan: ChangePlan[Any], merge: _Merge, before: pa.Table, applied: Numbers, source: Numbers
) -> pa.Table:
    schema = plan.schema
    parts, positions = [], []
    for number, clause in enumerate(merge.clauses):
        mask = applied == number
        if not mask.any():
            continue
        positions.append(np.flatnonzero(mask))
        rows = before.filter(pa.array(mask))
        tables = {merge.target: rows}
        if clause.kind == "matched":
            tables[merge.source] = merge.rows.take(pa.array(source[mask]))
        new = assigned(rows, schema, clause.assignments, tables, merge.zone)
        parts.append(plan.write.rules.regenerated(new, schema, {item.column for item in clause.assignments}))
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate(positions))
    return pa.concat_tables(parts, promote_options="permissive").take(pa.array(order))


def _inserted_rows(
    merge: _Merge, done: Sequence[FileChange[Any]], identities: Identities, plan: ChangePlan[Any]
) -> pa.Table:
    """Return the rows that the source adds, with the columns that are given or generated."""
    schema = plan.schema
    if not merge.of_kind("not_matched"):
        return _null_rows(schema, 0)
    unmatched = np.ones(len(merge.rows), dtype=bool)
    for change in done:
        unmatched[change.matched] = False
    positions = np.flatnonzero(unmatched)
    clauses = _clauses_of_unmatched(merge, "not_matched", merge.keys.take(pa.array(positions)))
    parts: list[pa.Table] = []
    for number, clause in merge.of_kind("not_matched"):
        inserted = positions[clauses == number]
        if len(inserted):
            rows = _null_rows(schema, len(inserted))
            tables = {merge.source: merge.rows.take(pa.array(inserted))}
            set_columns = {assignment.column for assignment in clause.assignments}
            new = assigned(rows, schema, clause.assignments, tables, merge.zone)
            new = new.select([f.name for f in schema.fields if f.name in set_columns])
            parts += map(plan.write.with_generated_columns, identities.fill([new]))
    return pa.concat_tables(parts, promote_options="permissive") if parts else _null_rows(schema, 0)


def _null_rows(schema: StructType, rows: int) -> pa.Table:
    fields = [field.with_nullable(True) for field in arrow_schema(schema)]
    return pa.table([pa.nulls(rows, field.type) for field in fields], schema=pa.schema(fields))


def merge(
    target: ChangeableTable[Any],
    source: Any,
    condition: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """Begin a merge of rows into a table: its methods add clauses, and ``execute`` commits; see `Table.merge`."""
    target.batch = batch
    workers = ThreadEngine(threads, progress)
    return Merge(target, rows_of(source), condition, source_alias, target_alias, zone, workers, options)


@dataclass(frozen=True)
class Merge:
    """A merge that waits for its clauses and for `execute`; made by `merge`. Each method returns a new merge.

    Of the clauses for a row, the first one whose predicate is true applies.
    """

    target: ChangeableTable[Any]
    source: pa.Table
    condition: str
    source_alias: str
    target_alias: str
    zone: str
    engine: Engine
    options: Mapping[str, Any]
    clauses: tuple[MergeClause, ...] = ()

    def __post_init__(self) -> None:
        aliases = (self.source_alias, self.target_alias)
        if not all(isinstance(alias, str) for alias in aliases) or len({alias.lower() for alias in aliases}) == 1:
            raise TableError(
                f"source_alias is {self.source_alias!r}, and target_alias is {self.target_alias!r}: give two names",
                reason="bad-argument",
            )

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that a source row matches."""
        return self._with_clause(MergeClause("matched", "update", dict(updates), predicate))

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Iterable[str] | str = ()) -> Merge:
        """Set every column that the source has, by name, except for some."""
        return self._with_clause(MergeClause("matched", "update", None, predicate, _names(except_cols)))

    def when_matched_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that a source row matches."""
        return self._with_clause(MergeClause("matched", "delete", predicate=predicate))

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Insert source rows that match no row: values by column; other columns become null."""
        return self._with_clause(MergeClause("not_matched", "insert", dict(updates), predicate))

    def when_not_matched_insert_all(self, predicate: str | None = None, except_cols: Iterable[str] | str = ()) -> Merge:
        """Insert source rows that match no row, with their columns by name, except for some."""
        return self._with_clause(MergeClause("not_matched", "insert", None, predicate, _names(except_cols)))

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that no source row matches."""
        return self._with_clause(MergeClause("not_matched_by_source", "update", dict(updates), predicate))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that no source row matches."""
        return self._with_clause(MergeClause("not_matched_by_source", "delete", predicate=predicate))

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
            merge = _parse_merge(self, table)
            opened = _candidates(table, merge, table.files)
            changes = table.plan(self.options)
            done = self.engine.run("merge", partial(_merge_file, changes, merge, dry_run), table.to_files(opened))
            if not any(len(change.matched) for change in done) and table.batch is None:
                refuse_misspelled_keys(table, self.source, merge.condition, (merge.target, merge.source))
            identities = table.identities()
            inserts = _inserted_rows(merge, done, identities, changes)
            writes = not dry_run and len(inserts) > 0
            recorded = {"insert": inserts} if writes and changes.records_changes else {}
            clauses = [
                {"when": clause.kind, "action": clause.action, "predicate": clause.predicate} for clause in self.clauses
            ]
            return TableChange(
                opened,
                done,
                lambda files: len(_candidates(table, merge, files)) > 0,
                added=changes.write.write_files(inserts) if writes else [],
                change_data=changes.write_changes(changes.write, recorded) if recorded else (),
                rows_inserted=len(inserts),
                source_rows=len(self.source),
                parameters={"predicate": self.condition, "clauses": clauses},
                identities=identities,
            )

        return run_change(self.target, "MERGE", plan, dry_run=dry_run)

    def _with_clause(self, clause: MergeClause) -> Merge:
        return replace(self, clauses=(*self.clauses, clause))


def _names(columns: Iterable[str] | str) -> frozenset[str]:
    names = [columns] if isinstance(columns, str) else columns
    return frozenset(name.lower() for name in names)
