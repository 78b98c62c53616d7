"""Committing a change, and planning it again if another commit came first.

Owns the result of row changes and the retries. Leaves the rules of one commit to the format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from parquet_variant.tables.changes.change_plan import ChangeableTable, TableChange
from parquet_variant.tables.commits import planned_again
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
        if not change.changed and not change.added and not current.has_transaction:
            return result
        return replace(result, version=current.commit(operation, change))

    return planned_again(run, table, lambda current: current.reload(), table.uri)


def _result(table: ChangeableTable[File], change: TableChange[File]) -> ChangeResult:
    changed = change.changed
    return ChangeResult(
        table.version,
        sum(file.rows_deleted for file in changed),
        sum(file.rows_updated for file in changed),
        change.rows_inserted,
        sum(file.rows_copied for file in changed),
        len(table.files),
        len(change.opened),
        len(changed),
        sum(len(file.added) for file in changed) + len(change.added),
        sum(table.removed_bytes(file) for file in changed),
        hints=tuple(change.hints),
    )
