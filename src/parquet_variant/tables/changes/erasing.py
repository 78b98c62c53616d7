"""Erasing rows for good over any table format: which files are rewritten, how, and the check that nothing is left.

Owns the report and the steps that read and write data files. Removing history and old files is left to the formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantError
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.io.engine import Engine
from parquet_variant.ops.value_edits import variant_normalize
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
    ChangeResult,
    delete_from_file,
    matching_files,
    matching_rows,
    missing_paths,
    read_condition,
    reads_matching,
    run_change,
)
from parquet_variant.tables.columns import align_table, by_logical_name
from parquet_variant.tables.schema import Place, StructType

# A data file without a commit that is younger than this belongs to a writer that is probably at work.
WRITER_MILLIS = 3_600_000
# Endings of the files that writers of tables make: data, deletes, statistics, manifests, and incomplete files.
TABLE_FILE_ENDINGS = (".parquet", ".orc", ".avro", ".bin", ".puffin", ".stats", ".tmp")


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


def with_own_keys(rows: pa.Table, schema: StructType) -> pa.Table:
    """Return rows whose Variants are unshredded, with dictionaries that hold the keys of these rows only.

    Plans of erasures read rows so, because keys of erased objects are in dictionaries and shredding schemas.
    """
    table = align_table(rows, schema, by_logical_name, _normalized)
    for field in rows.schema:
        if field.name not in table.column_names:
            table = table.append_column(field, rows[field.name])
    return table


def _normalized(_: Place, array: VariantArray) -> VariantArray:
    return variant_normalize(array.to_unshredded())


def check_condition(where: object, error: type[TableError]) -> None:
    """Refuse an erasure without a condition. Raises `TableError`: reason ``"bad-argument"``."""
    if not isinstance(where, str) or not where.strip():
        raise error("erase needs a condition: pass where='v:user::int = 1'", reason="bad-argument")


def check_no_writer(active: Sequence[str], table: str, error: type[TableError]) -> None:
    """Refuse an erasure while a writer seems to be active. Raises `TableError`: reason ``"writer-active"``.

    `active`: data files that no version of the table names, and that are younger than `WRITER_MILLIS`.
    """
    if active:
        raise error(
            f"a writer seems to be active, because {active[0]} has no commit and is younger than an hour: wait, or "
            "pass force=True (--force) if no writer is active",
            reason="writer-active",
            file=table,
        )


def refuse_misspelled_condition(table: ChangeableTable[Any], where: str, zone: str, rows: int) -> None:
    """Refuse an erasure whose condition matches no row because of a misspelled path: history must not be lost for it.

    `rows`: the number of matching rows.
    """
    if not rows:
        advice = "; pass force=True (--force) if the path is right"
        missing_paths(table, read_condition(table, where, zone), TARGET, advice)


def erase_rows(
    table: ChangeableTable[Any], where: str, zone: str, engine: Engine, options: Mapping[str, Any]
) -> ChangeResult:
    """Rewrite the files that may hold matching rows, and those with rows that are only marked as deleted.

    `table`: a table whose plans read rows by `with_own_keys`, write no deletion vectors and copy no pages.
    """
    return run_change(table, "DELETE", partial(_plan_erasure, where, zone, engine, options))


@contextmanager
def unfinished_erasure(table: str) -> Iterator[None]:
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
    plan = table.plan(options)
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
    rows = plan.read_rows(file, None)
    added = plan.like_file(rows).write_files(iter([rows])) if len(rows) else []
    return FileChange(file, True, tuple(added), rows_copied=len(rows))


def count_erasure(
    table: ChangeableTable[Any], where: str, zone: str, engine: Engine, options: Mapping[str, Any]
) -> tuple[int, int]:
    """Return how many rows match, and how many files would be rewritten."""
    condition = read_condition(table, where, zone)
    plan = table.plan(options)
    work = partial(_count_in_file, plan, condition, zone)
    counts = engine.run("count", work, table.to_files(_files_to_erase(table, plan, condition, zone)))
    return sum(rows for rows, _ in counts), sum(is_rewritten for _, is_rewritten in counts)


def _count_in_file(
    plan: ChangePlan[Any], condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Any
) -> tuple[int, bool]:
    rows = int(matching_rows(plan, condition, zone, file)[1].sum())
    return rows, rows > 0 or _has_deleted(plan, file)


def verify_erasure(
    table: ChangeableTable[Any], where: str, zone: str, engine: Engine, options: Mapping[str, Any]
) -> int:
    """Read all files of a table again, and return their number.

    Raises `TableError`: reason ``"not-erased"`` if one of them holds a matching row, marked as deleted or not.
    """
    condition = read_condition(table, where, zone)
    plan = table.plan(options)
    files = [plan.with_every_row(file) for file in table.to_files(table.files)]
    counts = engine.run("verify", partial(_count_in_file, plan, condition, zone), files)
    for file, (rows, _) in zip(files, counts, strict=True):
        if rows:
            path = plan.path(file)
            raise TableError(
                f"{counted(rows, 'matching row')} left in {path}: erase again", reason="not-erased", file=path
            )
    return len(files)
