"""Erasing rows for good over any table format: which files are rewritten, how, and the check that nothing is left.

Owns the report and the steps that read and write data files. Removing history and old files is left to the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.io.engine import Engine
from parquet_variant.query.sql_expression import SqlExpression
from parquet_variant.tables.changes.change_plan import (
    ChangeableTable,
    ChangePlan,
    FileChange,
    FileSet,
    TableChange,
)
from parquet_variant.tables.changes.operations import (
    TARGET,
    delete_from_file,
    matching_files,
    matching_rows,
    missing_paths,
    read_condition,
    reads_matching,
    run_change,
)
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


def run_erasure(
    erasable: ErasableTable,
    where: str,
    zone: str,
    engine: Engine,
    options: Mapping[str, Any],
    *,
    dry_run: bool = False,
    force: bool = False,
) -> EraseReport:
    """Erase rows, and verify that no remaining file holds a matching row; `force`: do not look for active writers."""
    if not isinstance(where, str) or not where.strip():
        raise TableError("erase needs a condition: pass where='v:user::int = 1'", reason="bad-argument")
    table = erasable.table
    versions, uri = erasable.version_count(), table.uri
    if dry_run:
        rows, files = _count_erasure(table, where, zone, engine, options)
        _refuse_misspelled(table, where, zone, rows)
        return EraseReport(uri, True, table.version, rows, files, versions_removed=versions)
    if not force and (active := erasable.recent_files(now_millis() - _WRITER_MILLIS)):
        raise TableError(
            f"a writer seems to be active, because {active[0]} has no commit and is younger than an hour: wait, or "
            "pass force=True (--force) if no writer is active",
            reason="writer-active",
            file=uri,
        )
    done = run_change(table, "DELETE", partial(_plan_erasure, where, zone, engine, options))
    if not force:
        _refuse_misspelled(table, where, zone, done.rows_deleted)
    with _unfinished_erasure(uri):
        newest, data_files, log_files = erasable.remove_history(done.rows_deleted)
        verified = _verify_erasure(newest, where, zone, engine, options)
    return EraseReport(
        uri,
        False,
        newest.version,
        rows_erased=done.rows_deleted,
        files_rewritten=done.files_removed,
        files_removed=data_files,
        versions_removed=versions,
        log_files_removed=log_files,
        files_verified=verified,
    )


def _refuse_misspelled(table: ChangeableTable[Any], where: str, zone: str, rows: int) -> None:
    """Refuse an erasure whose condition matches no row because of a misspelled path: history must not be lost for it.

    `rows`: the number of matching rows.
    """
    if not rows:
        advice = "; pass force=True (--force) if the path is right"
        missing_paths(table, read_condition(table, where, zone), TARGET, advice)


@contextmanager
def _unfinished_erasure(table: str) -> Iterator[None]:
    """Say that the rows of the newest version are erased, if a later step of the erasure fails.

    Raises `TableError`: reason ``"not-erased"``; ``"conflict"`` if another writer committed meanwhile.
    """
    try:
        yield
    except (VariantError, OSError) as error:
        if isinstance(error, VariantError) and error.reason in ("conflict", "not-erased"):
            raise
        raise TableError(
            f"the newest version has no matching row, but older versions and files are not removed yet: {error}; erase "
            "again to finish",
            reason="not-erased",
            file=table,
        ) from error


def _plan_erasure(
    where: str, zone: str, engine: Engine, options: Mapping[str, Any], table: ChangeableTable[Any]
) -> TableChange[Any]:
    condition = read_condition(table, where, zone)
    plan = table.plan(options).for_erasing()
    opened = _files_to_erase(table, plan, condition, zone)
    done = engine.run("erase", partial(_erase_from_file, plan, condition, zone), table.to_files(opened))
    # The predicate is not recorded, because it may name what is erased.
    return TableChange(opened, done, reads_matching(table, condition, zone))


def _files_to_erase(
    table: ChangeableTable[Any], plan: ChangePlan[Any], condition: SqlExpression | None, zone: str
) -> FileSet:
    matching = {plan.path(file) for file in table.to_files(matching_files(table, table.files, condition, zone))}
    mask = [plan.path(file) in matching or _has_deleted(plan, file) for file in table.to_files(table.files)]
    return table.filtered(table.files, np.array(mask, dtype=bool))


def _has_deleted(plan: ChangePlan[Any], file: Any) -> bool:
    """Return whether a file holds rows that are only marked as deleted."""
    return bool(plan.with_every_row(file) != file)


def _erase_from_file(
    plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Any
) -> FileChange[Any]:
    change = delete_from_file(plan, condition, zone, task, attempt, file)
    if change.is_changed or not _has_deleted(plan, file):
        return change
    rows = plan.read_kept_rows(file, None)
    added = plan.write_like(rows).write_files(iter([rows])) if len(rows) else []
    return FileChange(file, True, tuple(added), rows_copied=len(rows))


def _count_erasure(
    table: ChangeableTable[Any], where: str, zone: str, engine: Engine, options: Mapping[str, Any]
) -> tuple[int, int]:
    """Return how many rows match, and how many files would be rewritten."""
    condition = read_condition(table, where, zone)
    plan = table.plan(options).for_erasing()
    work = partial(_count_in_file, plan, condition, zone)
    counts = engine.run("count", work, table.to_files(_files_to_erase(table, plan, condition, zone)))
    return sum(rows for rows, _ in counts), sum(is_rewritten for _, is_rewritten in counts)


def _count_in_file(
    plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Any
) -> tuple[int, bool]:
    rows = int(matching_rows(plan, condition, zone, file)[1].sum())
    return rows, rows > 0 or _has_deleted(plan, file)


def _verify_erasure(
    table: ChangeableTable[Any], where: str, zone: str, engine: Engine, options: Mapping[str, Any]
) -> int:
    """Read all files of a table again, and return their number.

    Raises `TableError`: reason ``"not-erased"`` if one of them holds a matching row, marked as deleted or not.
    """
    condition = read_condition(table, where, zone)
    plan = table.plan(options).for_erasing()
    files = [plan.with_every_row(file) for file in table.to_files(table.files)]
    counts = engine.run("verify", partial(_count_in_file, plan, condition, zone), files)
    for file, (rows, _) in zip(files, counts, strict=True):
        if rows:
            path = plan.path(file)
            raise TableError(
                f"{counted(rows, 'matching row')} left in {path}: erase again", reason="not-erased", file=path
            )
    return len(files)
