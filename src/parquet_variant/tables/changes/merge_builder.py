"""The builder of a merge, with the methods of deltalake.

Owns the clauses that a user adds. Leaves running the merge to `merge_run`, and the target to the table formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from parquet_variant.errors import TableError
from parquet_variant.tables.changes.merge_run import MergeClause, MergeRequest, run_merge
from parquet_variant.tables.changes.retries import ChangeResult


class Merge(MergeRequest):
    """A merge that waits for its clauses and for `execute`; made by `merge`. Each method returns a new merge.

    Of the clauses for a row, the first one whose predicate is true applies.
    """

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

    def execute(self) -> ChangeResult:
        """Run the merge, in one commit.

        Raises
        ------
        TableError
            ``"ambiguous-merge"`` if several source rows would change one row; ``"no-clauses"``; and as `update`.
        """
        if not self.clauses:
            raise TableError(
                "the merge has no clauses: add one, such as when_matched_update_all()", reason="no-clauses"
            )
        return run_merge(self)

    def _with_clause(self, clause: MergeClause) -> Merge:
        return replace(self, clauses=(*self.clauses, clause))


def _names(columns: Iterable[str] | str) -> frozenset[str]:
    names = [columns] if isinstance(columns, str) else columns
    return frozenset(name.lower() for name in names)
