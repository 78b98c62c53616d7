"""Erasing rows for good: from the table, its older versions, its log and its statistics.

Owns the steps and the report. Leaves choosing and rewriting rows to `tables.changes`, and removing files to `vacuum`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.dml.changeable import DeltaChangePlan, DeltaTable
from parquet_variant.delta.log.checkpoint import write_checkpoint
from parquet_variant.delta.log.cleanup import checkpoint_sidecars
from parquet_variant.delta.log.commit import Transaction, commit
from parquet_variant.delta.log.file_actions import iter_adds
from parquet_variant.delta.log.segment import LOG, commit_path, commit_times
from parquet_variant.delta.log.snapshot import Snapshot, load_snapshot, writable_snapshot
from parquet_variant.delta.maintenance.vacuum import files_to_remove, remove_files, uncommitted_since
from parquet_variant.delta.protocol.actions import Add, now_millis
from parquet_variant.delta.writing.data_files import WritePlan
from parquet_variant.errors import DeltaError
from parquet_variant.functions.value_edits import variant_normalize
from parquet_variant.io.engine import Engine, Progress, ThreadEngine
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.kernels.arrow_buffers import Mask
from parquet_variant.parquet.report_text import counted
from parquet_variant.query.sql_expression import SqlExpression
from parquet_variant.tables.changes.change_plan import ChangeableTable, FileChange, TableChange
from parquet_variant.tables.changes.operations import (
    delete_from_file,
    matching_files,
    matching_rows,
    read_condition,
    reads_matching,
)
from parquet_variant.tables.changes.retries import run_change
from parquet_variant.tables.columns import align_table, by_logical_name
from parquet_variant.tables.schema import Place, StructType

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
        The table's version afterwards.
    rows_erased
        Rows of the table for which the condition was true.
    files_rewritten
        Data files that held such rows, or rows that were only marked as deleted.
    files_removed
        Data files, deletion vectors and files of change data removed from storage.
    versions_removed
        Older versions that can no longer be read.
    log_files_removed
        Commits, checkpoints and checksums of these versions.
    files_verified
        Data files that were read again and hold no matching row: all that are left.
    """

    table: str
    dry_run: bool
    version: int
    rows_erased: int
    files_rewritten: int
    files_removed: int
    versions_removed: int
    log_files_removed: int
    files_verified: int

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


def erase(
    table: str | os.PathLike[str],
    where: str,
    *,
    dry_run: bool = False,
    force: bool = False,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> EraseReport:
    """Erase the rows for which a condition is true from a table, its history and its statistics.

    The steps: rewrite the files that hold matching rows, and those with deletion vectors; remove all older versions,
    with their data files, change data, commits and checkpoints, because these hold the rows, or statistics and
    predicates that name their values; read all remaining files again to verify that no row matches. A process that is
    killed in between leaves a readable table; call `erase` again to finish.

    Files that hold no matching row are kept: their lists of object keys and shredding schemas may name keys, but not
    values, that only erased rows used. An erasure cannot reach copies: backups, shallow and deep clones, exports,
    snapshots and versions of the object store, and the memory of running readers.

    Parameters
    ----------
    table
        Path or URL.
    where
        SQL, as for `delete`.
    dry_run
        Only count rows, files and versions.
    force
        Also erase if a writer seems to be active: if a data file without a commit is younger than an hour. Its commit
        would then fail or lose files. Readers of older versions fail in any case.
    zone, storage_options, threads, progress, engine, **options
        As for `delete`.

    Returns
    -------
    EraseReport

    Raises
    ------
    TableError
        ``"writer-active"`` without `force`; ``"append-only"``; ``"conflict"`` if another commit came in between: call
        `erase` again; ``"not-erased"`` if a remaining file still holds a matching row; and as `delete`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"user": 1}', '{"user": 2}'])})
    ...     report = pv.delta.erase(folder, "v:user::int = 1")
    ...     report.rows_erased, report.versions_removed, pv.delta.read(folder).to_pylist()
    (1, 1, [{'user': 2}])
    """
    if not isinstance(where, str) or not where.strip():
        raise DeltaError("erase needs a condition: pass where='v:user::int = 1'", reason="bad-argument")
    workers = engine or ThreadEngine(threads, progress)
    current = writable_snapshot(table, storage_options)
    uri, versions = current.storage.uri, _readable_versions(current)
    if dry_run:
        rows, files = _count(_ErasingTable(current), where, zone, workers, options)
        return EraseReport(uri, True, current.version, rows, files, 0, versions, 0, 0)
    if not force and (active := uncommitted_since(current, now_millis() - _WRITER_MILLIS)):
        raise DeltaError(
            f"a writer seems to be active, because {active[0]} has no commit and is younger than an hour: wait, or "
            "pass force=True (--force) if no writer is active",
            reason="writer-active",
            file=uri,
        )
    done = run_change(_ErasingTable(current), "DELETE", partial(_plan, where, zone, workers, options))
    # A commit of its own, so that the log can begin with a commit that names no file.
    erased = load_snapshot(current.storage)
    start = commit(current.storage, Transaction("ERASE", {"numErasedRows": done.rows_deleted}, current=erased))
    newest = load_snapshot(current.storage)
    if newest.version != start.version:
        raise DeltaError(
            f"version {newest.version} was committed by another writer meanwhile: erase again",
            reason="conflict",
            file=uri,
        )
    # Data files go first, while tombstones name them: otherwise a killed erasure would leave files without a commit.
    removed = files_to_remove(newest, now_millis() + 1, tombstones=False)
    remove_files(newest, removed)
    write_checkpoint(newest, tombstones=False)
    log_files = _remove_log(newest)
    newest = load_snapshot(newest.storage)
    verified = _verify(newest, where, zone, workers, options)
    return EraseReport(
        uri, False, newest.version, done.rows_deleted, done.files_removed, len(removed), versions, log_files, verified
    )


class _ErasingPlan(DeltaChangePlan):
    """A plan that keeps nothing of erased rows: keys of their objects are in dictionaries and shredding schemas."""

    def read_rows(self, file: Add, chosen: Mask | None, columns: StructType | None = None) -> pa.Table:
        """Return rows whose Variants are unshredded, with dictionaries that hold the keys of these rows only."""
        rows = super().read_rows(file, chosen, columns)
        table = align_table(rows, columns or self.schema, by_logical_name, _with_own_keys)
        for name in rows.column_names:
            if name not in table.column_names:
                table = table.append_column(name, rows[name])
        return table

    def like_file(self, rows: pa.Table) -> WritePlan:
        """Return the plan that infers the shredding schema from the rows that are left."""
        return replace(self.write, shredding={})


def _with_own_keys(_: Place, array: VariantArray) -> VariantArray:
    return variant_normalize(array.to_unshredded())


class _ErasingTable(DeltaTable):
    """A table whose changes rewrite whole files: no deletion vectors, no copied pages, no change data."""

    def plan(self, options: Mapping[str, Any]) -> DeltaChangePlan:
        """See `ChangeableTable.plan`."""
        plan = super().plan(options)
        return _ErasingPlan(plan.current, plan.write, uses_vectors=False, records_changes=False, copies_pages=False)

    def reload(self) -> _ErasingTable:
        """See `ChangeableTable.reload`."""
        return _ErasingTable(load_snapshot(self.current.storage))

    def to_erase(self, condition: SqlExpression | None, zone: str) -> pa.Table:
        """Return the files that may hold matching rows, and those with rows that are only marked as deleted."""
        matching = set(matching_files(self, self.files, condition, zone)["path"].to_pylist())
        vectors = self.files["deletionVector"].is_valid().to_pylist()
        mask = [
            path in matching or has_vector
            for path, has_vector in zip(self.files["path"].to_pylist(), vectors, strict=True)
        ]
        return self.files.filter(pa.array(mask, pa.bool_()))


def _plan(
    where: str, zone: str, engine: Engine, options: Mapping[str, Any], table: ChangeableTable[Add]
) -> TableChange[Add]:
    assert isinstance(table, _ErasingTable)
    condition = read_condition(table, where, zone)
    opened = table.to_erase(condition, zone)
    work = partial(_erase_from_file, table.plan(options), condition, zone)
    done = engine.run("erase", work, table.to_files(opened))
    # The predicate is not recorded, because it may name what is erased.
    return TableChange(opened, done, reads_matching(table, condition, zone))


def _erase_from_file(
    plan: DeltaChangePlan, condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Add
) -> FileChange[Add]:
    change = delete_from_file(plan, condition, zone, task, attempt, file)
    if change.is_changed or file.deletion_vector is None:
        return change
    rows = plan.read_rows(file, None)
    added = plan.like_file(rows).write_files(iter([rows])) if len(rows) else []
    return FileChange(file, True, tuple(added), rows_copied=len(rows))


def _count(table: _ErasingTable, where: str, zone: str, engine: Engine, options: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many rows match, and how many files would be rewritten."""
    condition = read_condition(table, where, zone)
    work = partial(_count_in_file, table.plan(options), condition, zone)
    counts = engine.run("count", work, table.to_files(table.to_erase(condition, zone)))
    return sum(rows for rows, _ in counts), sum(is_rewritten for _, is_rewritten in counts)


def _count_in_file(
    plan: DeltaChangePlan, condition: SqlExpression | None, zone: str, task: int, attempt: int, file: Add
) -> tuple[int, bool]:
    rows = int(matching_rows(plan, condition, zone, file)[1].sum())
    return rows, rows > 0 or file.deletion_vector is not None


def _readable_versions(current: Snapshot) -> int:
    """Return for how many versions, up to this one, the log has commits."""
    return sum(version <= current.version for version in commit_times(current.storage))


def _remove_log(newest: Snapshot) -> int:
    """Remove the files of the log that the newest version does not need, and return their number.

    The checkpoint of the newest version exists already, so the table can be read at any time.
    """
    storage = newest.storage
    prefix = f"{newest.version:020}.checkpoint"
    files = [file.path for file in storage.list(LOG)]
    checkpoints = [path for path in files if path.startswith(f"{LOG}/{prefix}")]
    sidecars = {name for path in checkpoints for name in checkpoint_sidecars(storage, path)}
    removed = [f"{LOG}/{name}" for name in dead_temporaries(*storage.filesystem(LOG))]
    for path in files:
        directory, _, name = path.rpartition("/")
        if directory == f"{LOG}/_sidecars":
            removed += [] if name in sidecars else [path]
        elif directory == LOG and name[:20].isdigit() and path not in (*checkpoints, commit_path(newest.version)):
            removed.append(path)
    for path in sorted(removed):
        storage.delete(path)
    return len(removed)


def _verify(newest: Snapshot, where: str, zone: str, engine: Engine, options: Mapping[str, Any]) -> int:
    """Read all files of the table again, and return their number.

    Raises `DeltaError`: reason ``"not-erased"`` if one of them holds a matching row, marked as deleted or not, or if
    there are data files that the table does not name.
    """
    table = _ErasingTable(newest)
    condition = read_condition(table, where, zone)
    files = [replace(add, deletion_vector=None) for add in iter_adds(newest.files)]
    work: Callable[..., Any] = partial(_count_in_file, table.plan(options), condition, zone)
    counts = engine.run("verify", work, files)
    for file, (rows, _) in zip(files, counts, strict=True):
        if rows:
            raise DeltaError(
                f"{counted(rows, 'matching row')} left in {file.path}: erase again", reason="not-erased", file=file.path
            )
    if left := files_to_remove(newest, now_millis() + 1, tombstones=False):
        raise DeltaError(
            f"{left[0]} is left in the table's directory, although no version names it: erase again when no writer is "
            "active",
            reason="not-erased",
            file=left[0],
        )
    return len(files)
