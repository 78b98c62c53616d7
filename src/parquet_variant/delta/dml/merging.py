"""Running a merge: which files may hold the source's keys, each file joined with the source, the rest inserted.

Owns what a merge is asked, as data, the join of a file, which clause applies to which row, and that no row is changed
twice. Leaves filling in the clauses to `merge`, new values to `assigning`, files to `changing`, and the commit to
`committing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.delta.dml.assigning import assigned, read_assignments
from parquet_variant.delta.dml.changing import ChangedRows, ChangePlan, FileChange, plan_change
from parquet_variant.delta.dml.committing import Change, ChangeResult, run_change
from parquet_variant.delta.dml.matching import candidate_files, chosen_rows, file_columns, may_hold_keys
from parquet_variant.delta.dml.patching import columns_in_use, paths_set, rewrite_file
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add
from parquet_variant.delta.writing.identity import IdentityValues, refuse_identity_set
from parquet_variant.errors import DeltaError
from parquet_variant.io.engine import Engine
from parquet_variant.query.duckdb_engine import run_sql
from parquet_variant.query.sql_expression import NeededColumn, SqlExpression, TableColumns, read_expression
from parquet_variant.tables.expressions import (
    ROW,
    Assignment,
    columns_of_data,
    columns_of_table,
    equal_columns,
    evaluate,
    needed_table,
)
from parquet_variant.tables.schema import StructType, arrow_schema

Numbers: TypeAlias = "npt.NDArray[np.int64]"
Kind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]


@dataclass(frozen=True)
class MergeClause:
    """One WHEN clause."""

    kind: Kind  # Of which rows it speaks.
    action: Literal["update", "insert", "delete"]
    # SQL by column or path; None for all columns of the source under their own names.
    values: Mapping[str, str] | None = None
    predicate: str | None = None  # SQL that must also be true; None for nothing.
    without: frozenset[str] = frozenset()  # Columns that "all" leaves out.


@dataclass(frozen=True)
class MergeRequest:
    """A merge whole: of the clauses about a row, the first whose predicate is true applies."""

    target: Snapshot
    source: pa.Table
    condition: str
    source_alias: str
    target_alias: str
    zone: str
    engine: Engine
    options: Mapping[str, Any]
    clauses: tuple[MergeClause, ...] = ()


_NONE = -1


@dataclass(frozen=True)
class _ReadClause:
    """A clause with its expressions read."""

    kind: str
    action: str
    predicate: SqlExpression | None
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True)
class _Plan:
    """A merge with its expressions read; goes to every task."""

    target: str
    source: str
    zone: str
    rows: pa.Table
    keys: pa.Table
    condition: SqlExpression
    clauses: tuple[_ReadClause, ...]
    columns: Mapping[str, Mapping[str, NeededColumn]]

    def of(self, kind: str) -> list[tuple[int, _ReadClause]]:
        return [(at, clause) for at, clause in enumerate(self.clauses) if clause.kind == kind]

    def case(self, kind: str) -> str:
        """SQL for the number of the clause that applies to a row."""
        whens = [
            f"WHEN {'TRUE' if clause.predicate is None else clause.predicate.text} THEN {at}"
            for at, clause in self.of(kind)
        ]
        return f"CASE {' '.join(whens)} ELSE {_NONE} END" if whens else str(_NONE)


def run_merge(request: MergeRequest) -> ChangeResult:
    """Do it; `merge` says what the options mean."""

    def plan(newest: Snapshot) -> Change:
        read = _read(request, newest)
        opened = _candidates(newest, read, newest.files)
        changes = plan_change(newest, request.options)
        done = request.engine.run("merge", partial(_merge_file, changes, read), newest.to_adds(opened))
        identity = IdentityValues(newest)
        inserts = _inserts(newest, read, done, identity, changes)
        adds = changes.write.write_files(inserts) if len(inserts) else []
        told = changes.write.write_changes({"insert": inserts}) if changes.change_data else []
        return Change(
            opened,
            done,
            lambda added: len(_candidates(newest, read, added)) > 0,
            adds,
            told,
            len(inserts),
            {
                "predicate": request.condition,
                "clauses": [
                    {"when": each.kind, "action": each.action, "predicate": each.predicate} for each in request.clauses
                ],
            },
            identity.metadata,
        )

    return run_change(request.target, "MERGE", plan)


def _read(request: MergeRequest, newest: Snapshot) -> _Plan:
    target, source = request.target_alias, request.source_alias
    tables = {target: columns_of_table(newest.schema), source: columns_of_data(request.source)}
    condition = read_expression(request.condition, tables, zone=request.zone)
    clauses = tuple(_read_clause(each, request, newest.schema, tables) for each in request.clauses)
    set_by = [a.column for clause in clauses if clause.action == "update" for a in clause.assignments]
    refuse_identity_set(newest, set_by)
    columns: dict[str, dict[str, NeededColumn]] = {target: {}, source: {}}
    for expression in [condition, *(each.predicate for each in clauses)]:
        for name, needed in (expression.columns if expression is not None else {}).items():
            columns[name].update(needed)
    keys = needed_table(request.source, columns[source])
    return _Plan(target, source, request.zone, request.source, keys, condition, clauses, columns)


def _read_clause(
    clause: MergeClause, request: MergeRequest, schema: StructType, tables: Mapping[str, TableColumns]
) -> _ReadClause:
    target, source = request.target_alias, request.source_alias
    seen = {
        "matched": tables,
        "not_matched": {source: tables[source]},
        "not_matched_by_source": {target: tables[target]},
    }[clause.kind]
    predicate = None if clause.predicate is None else read_expression(clause.predicate, seen, zone=request.zone)
    if clause.action == "delete":
        return _ReadClause(clause.kind, clause.action, predicate, ())
    values = clause.values
    if values is None:
        values = _all_columns(clause, request, schema)
    assignments = read_assignments(values, schema, seen, target, request.zone)
    if clause.action == "insert" and any(each.path is not None for each in assignments):
        raise DeltaError(
            "an insert gives whole columns: a path cannot be set in a row that is new", reason="bad-assignment"
        )
    return _ReadClause(clause.kind, clause.action, predicate, tuple(assignments))


def _all_columns(clause: MergeClause, request: MergeRequest, schema: StructType) -> dict[str, str]:
    values = {}
    for name in request.source.column_names:
        if name in clause.without:
            continue
        field = schema.get(name)
        if field is None:
            raise DeltaError(
                f"the source's column {name!r} is not in the table: leave it out (except_cols), or name the columns",
                reason="unknown-column",
            )
        values[field.name] = f'{request.source_alias}."{name}"'
    return values


def _candidates(newest: Snapshot, read: _Plan, files: pa.Table) -> pa.Table:
    """The files that may hold rows that the merge is about."""
    if read.of("not_matched_by_source"):
        return files
    known = read.columns[read.target]
    pushed = read.condition.pushdown.get(read.target)
    files = candidate_files(replace(newest, files=files), pushed, known, read.zone)
    for left, right in equal_columns(read.condition, read.target, read.source):
        if not len(files):
            break
        mask = may_hold_keys(newest, files, known[left], left, read.keys[right], read.zone)
        files = files.filter(pa.array(mask))
    return files


def _merge_file(plan: ChangePlan, read: _Plan, task: int, attempt: int, file: Add) -> FileChange:
    rows, live = file_columns(plan.current, file, read.columns[read.target], read.zone)
    left, right, clause = _joined(read, rows.filter(pa.array(live)))
    applied, source = _applied(read, len(live), left, right, clause, file.path)
    if read.of("not_matched_by_source"):
        alone = live.copy()
        alone[left] = False
        applied[alone] = _numbered(read, "not_matched_by_source", read.target, rows.filter(pa.array(alone)))
    actions = np.array([each.action == "delete" for each in read.clauses] + [False])
    deleted = (applied != _NONE) & actions[applied]
    updated = (applied != _NONE) & ~actions[applied]

    def new_rows(before: pa.Table) -> pa.Table:
        at = np.flatnonzero(updated)
        return _updated(plan, read, before, applied[at], source[at])

    updates = [clause for clause in read.clauses if clause.action == "update"]

    def seen(needed: Mapping[str, Mapping[str, NeededColumn]]) -> Mapping[str, pa.Table]:
        tables = {read.target: chosen_rows(plan.current, file, needed.get(read.target, {}), updated, read.zone)}
        if updates[0].kind == "matched":
            partners = read.rows.take(pa.array(source[updated]))
            tables[read.source] = needed_table(partners, needed.get(read.source, {}))
        return tables

    # What is inserted changes no row of a file.
    set_by = [a for clause in updates for a in clause.assignments]
    paths = paths_set(set_by, seen, int(updated.sum()), read.zone) if len(updates) == 1 else None
    used = columns_in_use(set_by, read.target)
    file_change = rewrite_file(plan, file, ChangedRows(live, deleted, updated, new_rows), used, paths)
    return replace(file_change, matched=np.unique(right))


def _joined(read: _Plan, rows: pa.Table) -> tuple[Numbers, ...]:
    """The pairs of rows that the condition joins, and the clause of each."""
    text = (
        f'SELECT {read.target}."{ROW}" AS l, {read.source}."{ROW}" AS r, {read.case("matched")} AS c '
        f"FROM {read.target} JOIN {read.source} ON ({read.condition.text})"
    )
    pairs = run_sql(text, {read.target: rows, read.source: read.keys}, zone=read.zone)
    return tuple(pairs[name].to_numpy().astype(np.int64) for name in ("l", "r", "c"))


def _applied(
    read: _Plan, rows: int, left: Numbers, right: Numbers, clause: Numbers, path: str
) -> tuple[Numbers, Numbers]:
    """For each row of a file, the clause that applies and the row of the source."""
    applied, source = np.full(rows, _NONE), np.full(rows, _NONE)
    acting = clause != _NONE
    left, right, clause = left[acting], right[acting], clause[acting]
    first = read.of("matched")
    only_deletes = len(first) == 1 and first[0][1].action == "delete" and first[0][1].predicate is None
    unique, counts = np.unique(left, return_counts=True)
    if (counts > 1).any() and not only_deletes:
        row = int(unique[counts > 1][0])
        raise DeltaError(
            f"several rows of the source match row {row} of {path}, so what becomes of it is not clear: "
            "let the source have one row for each",
            reason="ambiguous-merge",
        ).at(file=path, row=row)
    applied[left], source[left] = clause, right
    return applied, source


def _numbered(read: _Plan, kind: str, alias: str, rows: pa.Table) -> Numbers:
    """The clause that applies to each of some rows that have no partner."""
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    numbered = rows.set_column(rows.column_names.index(ROW), ROW, pa.array(np.arange(len(rows))))
    clauses: Numbers = evaluate({"clause": read.case(kind)}, {alias: numbered}, read.zone)["clause"].to_numpy()
    return clauses


def _updated(plan: ChangePlan, read: _Plan, before: pa.Table, applied: Numbers, source: Numbers) -> pa.Table:
    schema = plan.current.schema
    parts, places = [], []
    for at, clause in enumerate(read.clauses):
        chosen = applied == at
        if not chosen.any():
            continue
        places.append(np.flatnonzero(chosen))
        rows = before.filter(pa.array(chosen))
        tables = {read.target: rows}
        if clause.kind == "matched":
            tables[read.source] = read.rows.take(pa.array(source[chosen]))
        new = assigned(rows, schema, clause.assignments, tables, read.zone)
        parts.append(plan.write.rules.regenerated(new, schema, {each.column for each in clause.assignments}))
    if len(parts) == 1:
        return parts[0]
    return pa.concat_tables(parts, promote_options="permissive").take(pa.array(np.argsort(np.concatenate(places))))


def _inserts(
    newest: Snapshot, read: _Plan, done: Sequence[FileChange], identity: IdentityValues, changes: ChangePlan
) -> pa.Table:
    """The rows that the source adds, with the columns that are given or made."""
    empty = _nothing(newest.schema, 0)
    if not read.of("not_matched"):
        return empty
    alone = np.ones(len(read.rows), dtype=bool)
    for each in done:
        alone[each.matched] = False
    positions = np.flatnonzero(alone)
    clauses = _numbered(read, "not_matched", read.source, read.keys.take(pa.array(positions)))
    parts: list[pa.Table] = []
    for at, clause in read.of("not_matched"):
        chosen = positions[clauses == at]
        if len(chosen):
            rows = _nothing(newest.schema, len(chosen))
            tables = {read.source: read.rows.take(pa.array(chosen))}
            set_columns = {each.column for each in clause.assignments}
            new = assigned(rows, newest.schema, clause.assignments, tables, read.zone)
            new = new.select([f.name for f in newest.schema.fields if f.name in set_columns])
            parts += map(changes.write.with_generated_columns, identity.of([new]))
    return pa.concat_tables(parts, promote_options="permissive") if parts else empty


def _nothing(schema: StructType, rows: int) -> pa.Table:
    fields = [each.with_nullable(True) for each in arrow_schema(schema)]
    return pa.table([pa.nulls(rows, each.type) for each in fields], schema=pa.schema(fields))
