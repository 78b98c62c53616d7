"""``MERGE INTO target USING source ON condition WHEN …``: the builder of a merge, with the methods of deltalake.

Leaves running the merge to `tables.changes.merge_run`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from parquet_variant.delta.dml.changeable import DeltaTable
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.reading.read import read_table
from parquet_variant.errors import TableError
from parquet_variant.interop.table_of import table_of
from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.tables.changes.merge_run import MergeClause, MergeRequest, run_merge
from parquet_variant.tables.changes.retries import ChangeResult


class Merge(MergeRequest):
    """A merge that waits for its clauses and for `execute`; made by `merge`. Each method returns a new merge.

    Of the clauses for a row, the first one whose predicate is true applies.
    """

    def when_matched_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that a source row matches."""
        return self._with(MergeClause("matched", "update", dict(updates), predicate))

    def when_matched_update_all(self, predicate: str | None = None, except_cols: Iterable[str] = ()) -> Merge:
        """Set every column that the source has, by name."""
        return self._with(MergeClause("matched", "update", None, predicate, frozenset(except_cols)))

    def when_matched_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that a source row matches."""
        return self._with(MergeClause("matched", "delete", predicate=predicate))

    def when_not_matched_insert(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Insert source rows that match no row: values by column; other columns become null."""
        return self._with(MergeClause("not_matched", "insert", dict(updates), predicate))

    def when_not_matched_insert_all(self, predicate: str | None = None, except_cols: Iterable[str] = ()) -> Merge:
        """Insert source rows that match no row, with their columns by name."""
        return self._with(MergeClause("not_matched", "insert", None, predicate, frozenset(except_cols)))

    def when_not_matched_by_source_update(self, updates: Mapping[str, str], predicate: str | None = None) -> Merge:
        """Set columns or paths of rows that no source row matches."""
        return self._with(MergeClause("not_matched_by_source", "update", dict(updates), predicate))

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> Merge:
        """Delete rows that no source row matches."""
        return self._with(MergeClause("not_matched_by_source", "delete", predicate=predicate))

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

    def _with(self, clause: MergeClause) -> Merge:
        return replace(self, clauses=(*self.clauses, clause))


def merge(
    table: str | os.PathLike[str] | Snapshot,
    source: Any,
    condition: str,
    *,
    source_alias: str = "source",
    target_alias: str = "target",
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Merge:
    """Begin a merge of rows into a table; its clauses define the changes, and ``execute`` commits them.

    If the condition requires columns or paths to be equal, files that hold no key of the source are not opened; this is
    decided by partition values and statistics.

    Parameters
    ----------
    table
        Path, URL or snapshot of the target.
    source
        Rows: a pyarrow table, columns by name, any object with Arrow's C stream, or the path of a Delta table.
    condition
        SQL over both: ``"target.id = source.v:id::bigint"``.
    source_alias, target_alias
        Names of the tables in SQL.
    zone, storage_options, threads, progress, **options
        As for `delete`.

    Returns
    -------
    Merge

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"id": [1, 2], "v": pv.parse_json(['{"n": 1}', '{"n": 2}'])})
    ...     news = {"id": [2, 3], "v": pv.parse_json(['{"n": 20}', '{"n": 30}'])}
    ...     merged = pv.delta.merge(folder, news, "target.id = source.id")
    ...     result = merged.when_matched_update_all().when_not_matched_insert_all().execute()
    ...     (result.rows_updated, result.rows_inserted), pv.delta.read(folder).to_pylist()
    ((1, 1), [{'n': 1}, {'n': 20}, {'n': 30}])
    """
    target = DeltaTable.open(table, storage_options)
    if source_alias.lower() == target_alias.lower():
        raise TableError(
            f"source_alias and target_alias are both {source_alias!r}: give two different names", reason="bad-argument"
        )
    rows = _source_rows(source, storage_options)
    return Merge(target, rows, condition, source_alias, target_alias, zone, ThreadEngine(threads, progress), options)


def _source_rows(source: Any, storage_options: Mapping[str, str] | None) -> pa.Table:
    if isinstance(source, (str, os.PathLike, Snapshot)):
        return read_table(source, storage_options=storage_options)
    return table_of(source)
