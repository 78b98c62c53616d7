"""Changes of rows as clauses: which rows of a file are deleted or updated, and which rows of a source are inserted.

Owns the clauses of a delete, update, erasure or merge, the files that may hold rows for them, the join of a file with
the source, the choice of a clause for each row, and that no row is changed twice. Leaves new values to `assignments`,
and files to `patching`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError
from parquet_variant.io.parallel import Engine
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, to_numpy
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.selection import Selected, TableFacts
from parquet_variant.query.sql_expression import SqlExpression, needed_path_hints, read_expression, run_sql
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.records import Record
from parquet_variant.tables import expressions
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileChange, FileSet, TableChange
from parquet_variant.tables.changes.patching import FileRows
from parquet_variant.tables.row_input import ChangeOptions
from parquet_variant.tables.schema import StructType, arrow_schema
from parquet_variant.types.path import quoted

Numbers: TypeAlias = "npt.NDArray[np.int64]"
RowKind: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]

TARGET = "target"
_NO_CLAUSE = -1
_NO_ROW = -1


class Join(Record):
    """The source of a merge, and the condition that its rows meet with rows of the table."""

    source: pa.Table
    condition: str
    source_alias: str
    target_alias: str

    def __post_init__(self) -> None:
        aliases = (self.source_alias, self.target_alias)
        if not all(isinstance(alias, str) for alias in aliases) or len({alias.lower() for alias in aliases}) == 1:
            raise TableError(
                f"source_alias is {self.source_alias!r}, and target_alias is {self.target_alias!r}: give two names",
                reason="bad-argument",
            )


class Clause(Record):
    """What happens to some rows: one WHEN clause of a merge, or the whole of a delete or update."""

    kind: RowKind  # The rows that the clause applies to; without a source, all rows are not matched by it.
    action: Literal["update", "insert", "delete"]
    # SQL by column or path; None for all columns of the source, by name.
    values: Mapping[str, str] | None = None
    predicate: str | None = None  # SQL that must also be true; None for no condition.
    without: frozenset[str] = frozenset()  # Columns that "all columns" leaves out, in lower case.
    literals: Mapping[str, Any] = field(default_factory=dict)  # Python values by column or path.
    # The predicate and the values, once they are parsed.
    expression: SqlExpression | None = None
    assignments: tuple[expressions.Assignment, ...] = ()

    def parsed(self, schema: StructType, tables: Mapping[str, TableFacts], join: Join | None, zone: str) -> Clause:
        """Return the clause with parsed expressions; `tables`: the columns of the target, then of the source."""
        target, *sources = tables
        names = {"matched": [target, *sources], "not_matched": sources, "not_matched_by_source": [target]}[self.kind]
        visible = {name: tables[name] for name in names}
        predicate = self.predicate
        expression = None if predicate is None else read_expression(predicate, visible, zone=zone)
        if self.action == "delete":
            return replace(self, expression=expression)
        values = self.values
        if values is None:
            assert join is not None
            values = _all_columns(join.source, join.source_alias, schema, self.without)
        assignments = expressions.read_assignments(values, schema, visible, target, zone)
        assignments += expressions.read_assignments(self.literals, schema, visible, target, zone, literals=True)
        if self.action == "insert" and any(assignment.path is not None for assignment in assignments):
            raise TableError(
                "an insert clause sets a path inside a Variant, which a new row does not have yet: set the whole "
                "column",
                reason="bad-assignment",
            )
        return replace(self, expression=expression, assignments=tuple(assignments))


def _all_columns(source: pa.Table, alias: str, schema: StructType, without: frozenset[str]) -> dict[str, str]:
    if unknown := sorted(without - {name.lower() for name in source.column_names}):
        raise TableError(
            f"except_cols names {unknown[0]!r}, which the source does not have: its columns are "
            f"{', '.join(source.column_names)}",
            reason="unknown-column",
        )
    values = {}
    for name in source.column_names:
        if name.lower() in without:
            continue
        column = schema.get(name)
        if column is None:
            raise TableError(
                f"the source's column {name!r} is not in the table: name columns, or leave it out with except_cols=",
                reason="unknown-column",
            )
        values[column.name] = f"{quoted(alias)}.{quoted(name)}"
    return values


class RowChange(Record):
    """Parsed clauses over the rows of a table and, in a merge, over the rows of a source; sent to every task."""

    plan: ChangePlan[Any]
    clauses: tuple[Clause, ...]
    columns: Mapping[str, Mapping[str, Selected]]  # What the condition and predicates need, by alias.
    context: CallContext = field(default_factory=CallContext)  # The time zone, and what the conditions found.
    dry_run: bool = False  # Only count rows.
    target: str = TARGET  # Alias.
    # Of a merge: the alias of the source, the condition, the rows, and the columns of the rows that the condition and
    # predicates need, as a `numbered` table.
    source: str = ""
    condition: SqlExpression | None = None
    rows: pa.Table = field(default_factory=lambda: pa.table({}))
    keys: pa.Table = field(default_factory=lambda: pa.table({}))

    @classmethod
    def of(
        cls,
        table: ChangeableTable[Any],
        options: ChangeOptions,
        clauses: Sequence[Clause],
        *,
        join: Join | None = None,
        dry_run: bool = False,
    ) -> RowChange:
        """Parse clauses over the columns of a table, and over those of the source of a merge."""
        plan, zone = table.plan(options.files), options.zone
        facts_of = registered_method("Scan.facts")
        tables = {TARGET if join is None else join.target_alias: facts_of(table.current, table.uri)}
        condition, context = None, CallContext(zone=zone)
        if join is not None:
            tables[join.source_alias] = facts_of(join.source, "the source")
            condition = read_expression(join.condition, tables, zone=zone)
        parsed = tuple(clause.parsed(table.schema, tables, join, zone) for clause in clauses)
        table.refuse_assignment(a.column for clause in parsed if clause.action == "update" for a in clause.assignments)
        columns: dict[str, dict[str, Selected]] = {name: {} for name in tables}
        for expression in [condition, *(clause.expression for clause in parsed)]:
            for name, needed in (expression.columns if expression is not None else {}).items():
                columns[name] |= {key: context.counting(item) for key, item in needed.items()}
        change = cls(plan, parsed, columns, context, dry_run, next(iter(tables)))
        if join is None:
            return change
        source, keys = join.source_alias, expressions.needed_table(join.source, columns[join.source_alias], zone)
        return replace(change, source=source, condition=condition, rows=join.source, keys=keys)

    def of_kind(self, kind: RowKind) -> list[tuple[int, Clause]]:
        """Return the clauses for a kind of rows, with their numbers."""
        return [(number, clause) for number, clause in enumerate(self.clauses) if clause.kind == kind]

    @property
    def _expression(self) -> SqlExpression | None:
        """The condition that every changed row of the table meets, or None."""
        if self.condition is None and len(self.clauses) == 1:
            return self.clauses[0].expression
        return None if self.of_kind("not_matched_by_source") else self.condition

    def files(self, table: ChangeableTable[Any], files: FileSet) -> FileSet:
        """Return those of some files that may hold rows that the change deletes or updates."""
        expression, columns = self._expression, self.columns[self.target]
        if expression is None:
            return files
        files = table.candidates(files, expression.pushdown.get(self.target), columns, self.context.zone)
        for left, right in (
            () if self.condition is None else expressions.equal_columns(self.condition, self.target, self.source)
        ):
            if not len(files):
                break
            files = table.holding_keys(files, columns[left], left, self.keys[right], self.context.zone)
        return files

    def run(
        self, table: ChangeableTable[Any], engine: Engine, step: str, files: FileSet = None, *, advice: str | None = ""
    ) -> TableChange[Any]:
        """Change files (default: those that may hold rows to change) by tasks.

        The change conflicts with files with such rows that other commits add. If no row matches, see `_hints`.
        """
        opened = self.files(table, table.files) if files is None else files
        with table.writing(may_write=not self.dry_run):
            done = engine.run(step, partial(change_rows, self), table.to_files(opened))
        self.context.add(change.context for change in done)
        counts = (len(c.matched) if self.condition is not None else c.rows_deleted + c.rows_updated for c in done)
        # A repeated batch may match no row.
        with table.writing(may_write=any(change.is_changed for change in done)):
            hints = self._hints(table, None if any(counts) or table.batch is not None else advice)
        parameters = {"predicate": self.clauses[0].predicate or "true"}
        return TableChange(
            opened, done, lambda added: len(self.files(table, added)) > 0, parameters=parameters, hints=hints
        )

    def _hints(self, table: ChangeableTable[Any], advice: str | None) -> tuple[str, ...]:
        """Return messages about values that the condition did not compare and, except without advice, missing paths.

        Raises `TableError`, whose message ends in `advice`, if the rows have a similar path or, with an advice that is
        not empty, if any such message exists.
        """
        if advice is None:
            return tuple(self.context.take_warnings())
        expression = self._expression if self.condition is None else self.condition
        messages = self.context.take_warnings()
        facts_of = registered_method("Scan.facts")
        sides = {self.target: facts_of(table.current, table.uri)} if len(table.files) else {}
        rows = arrow_schema(table.schema).empty_table()
        needed = {self.target: expressions.needed_table(rows, self.columns[self.target], self.context.zone)}
        if self.condition is not None:
            sides[self.source], needed[self.source] = facts_of(self.rows, "the source"), self.keys
            keys = [self.keys[name] for name in self.condition.columns[self.source]]
            if 0 < len(self.keys) == min((key.null_count for key in keys), default=0):
                advice_of_keys = "check the path; root='$.items[*]' names the rows inside documents"
                messages.append(f"the key of every row in {self.source} is NULL: {advice_of_keys}")
        of_merge = "" if self.condition is None else " of the merge"
        faults = [text for text in messages if advice and "not compared" in text]
        for name, facts in sides.items():
            hints = [] if expression is None else needed_path_hints(facts, expression, name, needed, self.context)
            faults += [f"in {name} {hint}" if of_merge else hint for hint in hints if advice or "did you mean" in hint]
            messages += hints
        for fault in faults:
            problem = f"the condition{of_merge} matches no row: {fault}{advice}"
            raise TableError(problem, reason="no-such-path", file=table.uri)
        return tuple(f"the condition{of_merge} matches no row: {text}" if of_merge else text for text in messages)

    def _choose(self, kind: RowKind, rows: pa.Table, candidates: Mask, applied: Numbers) -> None:
        """Set the number of the first clause that applies to the candidates among the rows of a `numbered` table."""
        alias = self.source if kind == "not_matched" else self.target
        for number, clause in self.of_kind(kind):
            matching = candidates
            if clause.expression is not None and candidates.any():
                part = rows if candidates.all() else expressions.renumbered(rows.filter(from_numpy(candidates)))
                matching = candidates.copy()
                matching[candidates] = expressions.is_true(clause.expression, alias, part, self.context)
            applied[matching] = number
            candidates = candidates & ~matching

    def _join(self, rows: pa.Table, live: Mask, path: str) -> tuple[Numbers, Numbers, Numbers]:
        """Return rows of a file, the rows of the source that match them, and the number of the clause of each pair."""
        assert self.condition is not None
        alive = rows.filter(from_numpy(live))
        branches = [
            f"WHEN {'TRUE' if clause.expression is None else clause.expression.text} THEN {number}"
            for number, clause in self.of_kind("matched")
        ]
        clause_sql = f"CASE {' '.join(branches)} ELSE {_NO_CLAUSE} END" if branches else str(_NO_CLAUSE)
        left_row = expressions.number_column(self.target, alive)
        right_row = expressions.number_column(self.source, self.keys)
        tables = f"{quoted(self.target)} JOIN {quoted(self.source)}"
        pairs = run_sql(
            f"SELECT {left_row} AS l, {right_row} AS r, {clause_sql} AS c FROM {tables} ON ({self.condition.text})",
            {self.target: alive, self.source: self.keys},
            self.context,
        )
        left, right, clauses = (to_numpy(one_chunk(pairs[name])).astype(np.int64) for name in ("l", "r", "c"))
        matched = self.of_kind("matched")
        only_deletes = len(matched) == 1 and matched[0][1].action == "delete" and matched[0][1].predicate is None
        unique, counts = np.unique(left[clauses != _NO_CLAUSE], return_counts=True)
        if (counts > 1).any() and not only_deletes:
            row = int(unique[counts > 1][0])
            shown = ", ".join(
                f"{key if needed.path is None else with_steps(key, needed.path.segments)} = {rows[name][row].as_py()!r}"
                for name, _ in expressions.equal_columns(self.condition, self.target, self.source)
                for needed in [self.columns[self.target][name]]
                for key in [needed.stored_name]
            )
            raise TableError(
                f"several source rows match row {row} of {path}{f' ({shown})' if shown else ''}, so the result of the "
                "merge is ambiguous: make the join keys of the source unique",
                reason="ambiguous-merge",
            ).at(file=path, row=row)
        return left, right, clauses

    def _updated(self, before: pa.Table, applied: Numbers, source: Numbers) -> pa.Table:
        """Return updated rows with their new values; by row, the clause and the row of the source."""
        schema, rules = self.plan.schema, self.plan.write.rules
        parts, positions = [], []
        for number, clause in enumerate(self.clauses):
            mask = applied == number
            if not mask.any():
                continue
            positions.append(np.flatnonzero(mask))
            rows = before if mask.all() else before.filter(from_numpy(mask))
            tables = {self.target: rows}
            if clause.kind == "matched":
                tables[self.source] = self.rows.take(from_numpy(source[mask]))
            new = expressions.assigned(rows, schema, clause.assignments, tables, self.context.zone)
            parts.append(rules.regenerated(new, schema, {item.column for item in clause.assignments}))
        if len(parts) == 1:
            return parts[0]
        order = np.argsort(np.concatenate(positions))
        return pa.concat_tables(parts, promote_options="permissive").take(from_numpy(order))

    def inserted(self, table: ChangeableTable[Any], done: Sequence[FileChange[Any]]) -> pa.Table:
        """Return the rows that the source adds, with the columns that are given or generated."""
        unmatched = np.ones(len(self.rows), dtype=bool)
        for change in done:
            unmatched[change.matched] = False
        applied, schema = np.full(len(self.rows), _NO_CLAUSE), self.plan.schema
        self._choose("not_matched", self.keys, unmatched, applied)
        parts: list[pa.Table] = []
        for number, clause in self.of_kind("not_matched"):
            positions = np.flatnonzero(applied == number)
            if not len(positions):
                continue
            fields = [f.with_nullable(True) for f in arrow_schema(schema)]
            nulls = pa.table([pa.nulls(len(positions), f.type) for f in fields], pa.schema(fields))
            tables = {self.source: self.rows.take(from_numpy(positions))}
            new = expressions.assigned(nulls, schema, clause.assignments, tables, self.context.zone)
            set_columns = {assignment.column for assignment in clause.assignments}
            new = new.select([f.name for f in schema.fields if f.name in set_columns])
            parts += map(self.plan.write.with_generated_columns, table.numbered([new]))
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def change_rows(change: RowChange, task: int, attempt: int, file: Any) -> FileChange[Any]:
    """Delete and update the rows of a file that a change is about, or count them (the work of a task)."""
    plan, target, context = change.plan, change.target, CallContext(zone=change.context.zone)
    change = replace(change, context=context)  # Other tasks may run in other threads or processes.
    rows, live = plan.read_columns(file, change.columns[target], change.context.zone)
    applied, source = np.full(len(rows), _NO_CLAUSE), np.full(len(rows), _NO_ROW)
    unmatched, matched = live, np.empty(0, dtype=np.int64)
    if change.condition is not None:
        left, right, clauses = change._join(rows, live, plan.path(file))
        matched, acting = np.unique(right), clauses != _NO_CLAUSE
        applied[left[acting]], source[left[acting]] = clauses[acting], right[acting]
        unmatched = live.copy()
        unmatched[left] = False
    change._choose("not_matched_by_source", rows, unmatched, applied)
    is_delete = np.array([clause.action == "delete" for clause in change.clauses] + [False])
    deleted = (applied != _NO_CLAUSE) & is_delete[applied]
    updated = (applied != _NO_CLAUSE) & ~is_delete[applied]
    count = int(updated.sum())
    # An erasure also removes rows that are only marked as deleted.
    has_deleted = plan.erases and file.has_deletes
    if change.dry_run:
        is_changed = has_deleted or bool((deleted | updated).any())
        deletes = int(deleted.sum())
        return FileChange(file, is_changed, rows_deleted=deletes, rows_updated=count, matched=matched, context=context)
    updates = [clause for clause in change.clauses if clause.action == "update"]
    assignments = [assignment for clause in updates for assignment in clause.assignments]

    def new_values() -> list[VariantArray]:
        needed = expressions.needed_columns(assignments)
        columns = needed.get(target, {})
        read = plan.read_columns(file, columns, change.context.zone)[0].filter(from_numpy(updated)) if columns else None
        tables = {target: expressions.numbered({}, count) if read is None else expressions.renumbered(read)}
        if updates[0].kind == "matched":
            partners = change.rows.take(from_numpy(source[updated]))
            of_source = needed.get(change.source, {})
            tables[change.source] = expressions.needed_table(partners, of_source, change.context.zone)
        values = zip(assignments, expressions.new_values(assignments, tables, change.context.zone), strict=True)
        return [expressions.path_column(assignment, value, count) for assignment, value in values]

    rows_of_file = FileRows(
        plan,
        file,
        live=live,
        deleted=deleted,
        updated=updated,
        assignments=assignments,
        alias=target,
        new_rows=lambda before: change._updated(before, applied[updated], source[updated]),
        new_values=new_values if len(updates) == 1 else None,
    )
    return replace(rows_of_file.replace_file(must_rewrite=has_deleted), matched=matched, context=context)
