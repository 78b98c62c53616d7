"""Erasing rows for good over any table format: which files are rewritten, how, and the check that nothing is left.

Owns the report and the steps that read and write data files. Removing history and old files is left to the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from parquet_variant.errors import TableError, VariantError
from parquet_variant.support.report_text import Report, counted
from parquet_variant.tables.changes.change_plan import ChangeableTable, TableChange
from parquet_variant.tables.changes.operations import run_change
from parquet_variant.tables.changes.row_changes import Clause, RowChange, change_rows
from parquet_variant.tables.row_input import ChangeOptions
from parquet_variant.tables.storage import now_millis

# A data file without a commit that is younger than this belongs to a writer that is probably at work.
_WRITER_MILLIS = 3_600_000


@dataclass(frozen=True)
class EraseReport(Report):
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

    def __str__(self) -> str:
        rows, rewritten = counted(self.rows_erased, "row"), counted(self.files_rewritten, "file")
        if self.dry_run:
            return (
                f"{rows} in {rewritten} of {self.table} would be erased, "
                f"and {counted(self.versions_removed, 'older version')} removed; nothing was changed"
            )
        return (
            f"{rows} erased from {self.table}: {rewritten} rewritten, {counted(self.files_removed, 'data file')} and "
            f"{counted(self.log_files_removed, 'log file')} removed, {counted(self.versions_removed, 'older version')} "
            f"gone; {counted(self.files_verified, 'remaining file')} read again without a match; version {self.version}"
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

    def rows_of(table: ChangeableTable[Any], dry_run: bool) -> RowChange:
        plan: Any = table.plan(options.files)
        plan = replace(plan, uses_vectors=False, records_changes=False, erases=True)
        clause = Clause("not_matched_by_source", "delete", predicate=where)
        return RowChange.of(table, plan, [clause], options.zone, dry_run=dry_run)

    def change(table: ChangeableTable[Any]) -> TableChange[Any]:
        """Change the files that may hold matching rows, or rows that are only marked as deleted."""
        rows, files = rows_of(table, dry_run), table.to_files(table.files)
        plan, matching = rows.plan, {rows.plan.path(file) for file in table.to_files(rows.files(table, table.files))}
        mask = [plan.path(file) in matching or bool(plan.with_every_row(file) != file) for file in files]
        opened = table.filtered(table.files, np.array(mask, dtype=bool))
        # The predicate is not recorded, because it may name what is erased.
        return replace(rows.run(table, options.engine, "count" if dry_run else "erase", opened), parameters={})

    if not (dry_run or force) and (active := erasable.recent_files(now_millis() - _WRITER_MILLIS)):
        raise TableError(
            f"a writer seems to be active, because {active[0]} has no commit and is younger than an hour: wait, or "
            "pass force=True (--force) if no writer is active",
            reason="writer-active",
            file=uri,
        )
    done = run_change(erasable.table, "DELETE", change, dry_run=dry_run)
    if not done.rows_deleted and (dry_run or not force):
        # History is not lost for a condition that matches no row because of a misspelled path.
        advice = "; pass force=True (--force) if the path is right"
        rows_of(erasable.table, True).missing_paths(erasable.table, advice)
    report = EraseReport(uri, dry_run, done.version, done.rows_deleted, done.files_removed, versions_removed=versions)
    if dry_run:
        return report
    try:
        newest, data_files, log_files = erasable.remove_history(done.rows_deleted)
        rows = rows_of(newest, True)
        files = [rows.plan.with_every_row(file) for file in newest.to_files(newest.files)]
        for found in options.engine.run("verify", partial(change_rows, rows), files):
            if found.is_changed:
                path, left = rows.plan.path(found.file), counted(found.rows_deleted, "matching row")
                raise TableError(f"{left} left in {path}: erase again", reason="not-erased", file=path)
    except (VariantError, OSError) as error:
        if isinstance(error, VariantError) and error.reason in ("conflict", "not-erased"):
            raise
        raise TableError(
            f"the newest version has no matching row, but older versions and files are not removed yet: {error}; erase "
            "again to finish",
            reason="not-erased",
            file=uri,
        ) from error
    return replace(
        report,
        version=newest.version,
        files_removed=data_files,
        log_files_removed=log_files,
        files_verified=len(files),
    )
