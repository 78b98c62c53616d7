"""Erasing rows for good over any table format: which files are rewritten, how, and the check that nothing is left.

Owns the report and the steps that read and write data files. Removing history and old files is left to the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.change_plan import ChangeableTable, ChangePlan, FileChange, TableChange
from parquet_variant.tables.changes.operations import Condition, count_in_file, delete_from_file, run_change
from parquet_variant.tables.storage import now_millis

# A data file without a commit that is younger than this belongs to a writer that is probably at work.
_WRITER_MILLIS = 3_600_000


@dataclass(frozen=True)
class EraseReport:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the report for machines."""
        return asdict(self)

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
    where: str,
    *,
    dry_run: bool = False,
    force: bool = False,
    zone: str = "UTC",
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> EraseReport:
    """Erase the rows for which a condition is true from a table, its history and its statistics; see `Table.erase`."""
    if not isinstance(where, str) or not where.strip():
        raise TableError("erase needs a condition: pass where='v:user::int = 1'", reason="bad-argument")
    workers, uri = engine_or_threads(engine, threads, progress), erasable.table.uri
    versions = erasable.version_count()

    def planned(table: ChangeableTable[Any]) -> tuple[Condition, ChangePlan[Any]]:
        plan: Any = table.plan(options)
        return Condition.of(table, where, zone), replace(plan, uses_vectors=False, records_changes=False, erases=True)

    def change(table: ChangeableTable[Any]) -> TableChange[Any]:
        """Change the files that may hold matching rows, or rows that are only marked as deleted."""
        condition, plan = planned(table)
        matching = {plan.path(file) for file in table.to_files(condition.files(table, table.files))}
        mask = [plan.path(file) in matching or _has_deleted(plan, file) for file in table.to_files(table.files)]
        files = table.filtered(table.files, np.array(mask, dtype=bool))
        step, work = ("count", _count_erased_in_file) if dry_run else ("erase", _erase_from_file)
        # The predicate is not recorded, because it may name what is erased.
        return replace(condition.change(table, workers, step, partial(work, plan), files), parameters={})

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
        Condition.of(erasable.table, where, zone).missing_paths(erasable.table, advice)
    report = EraseReport(uri, dry_run, done.version, done.rows_deleted, done.files_removed, versions_removed=versions)
    if dry_run:
        return report
    try:
        newest, data_files, log_files = erasable.remove_history(done.rows_deleted)
        condition, plan = planned(newest)
        files = [plan.with_every_row(file) for file in newest.to_files(newest.files)]
        for found in workers.run("verify", partial(count_in_file, plan, condition), files):
            if found.is_changed:
                path, rows = plan.path(found.file), counted(found.rows_deleted, "matching row")
                raise TableError(f"{rows} left in {path}: erase again", reason="not-erased", file=path)
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


def _has_deleted(plan: ChangePlan[Any], file: Any) -> bool:
    """Return whether a file holds rows that are only marked as deleted."""
    return bool(plan.with_every_row(file) != file)


def _count_erased_in_file(
    plan: ChangePlan[Any], condition: Condition, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    found = count_in_file(plan, condition, task, attempt, file)
    return replace(found, is_changed=found.is_changed or _has_deleted(plan, file))


def _erase_from_file(
    plan: ChangePlan[Any], condition: Condition, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    change = delete_from_file(plan, condition, task, attempt, file)
    if change.is_changed or not _has_deleted(plan, file):
        return change
    rows = plan.read_kept_rows(file, None)
    added = plan.write_like(rows).write_files(iter([rows])) if len(rows) else []
    return FileChange(file, True, tuple(added), rows_copied=len(rows))
