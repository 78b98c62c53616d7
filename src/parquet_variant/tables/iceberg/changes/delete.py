"""``DELETE FROM table WHERE condition`` over Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, count_rows, delete_rows
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption
from parquet_variant.tables.iceberg.changes.changeable import IcebergTable
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike, snapshot


def delete(
    table: TableLike,
    where: str | None = None,
    *,
    dry_run: bool = False,
    catalog: CatalogOption = None,
    branch: str = MAIN,
    zone: str = "UTC",
    batch: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit.

    Files that cannot match, by partition values and metrics, are not opened. Files with matches get a deletion
    vector, or are rewritten without these rows if ``write.delete.mode`` is ``copy-on-write``.

    Parameters
    ----------
    table, catalog, storage_options
        The table; see `snapshot`.
    where
        SQL over the table's columns and paths of its Variants: ``"v:a.b::int = 3 AND day < DATE '2024-01-31'"``; all
        rows by default.
    dry_run
        Only count the rows; nothing is changed.
    branch
        The branch to change.
    zone
        The session time zone.
    batch
        Name and number of a batch, under which the table records the change. A recorded batch, or an earlier one of the
        same name, is not applied again.
    threads
        Number of files that are changed at the same time (None: one per CPU).
    progress
        Called with the step, the finished tasks and the number of tasks.
    engine
        Runs the tasks (default: threads of this process).
    **options
        Options of `VariantWriter`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    IcebergError
        ``"unsupported-version"``; ``"too-many-retries"`` if other commits kept changing the same rows.
    TableError
        ``"no-such-path"`` if no row matches because of a path that no row has, and rows have a similar path.
    SqlError
        For a condition that cannot be read.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.iceberg.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}', "3"])})
    ...     pv.iceberg.delete(folder, "v:n::int = 2").rows_deleted
    ...     pv.iceberg.read(folder).to_pylist()
    1
    [{'n': 1}, 3]
    """
    current = table_to_change(table, catalog, branch, storage_options)
    workers = engine_or_threads(engine, threads, progress)
    operation = count_rows if dry_run else delete_rows
    return operation(IcebergTable(current, "delete", batch), where, zone, workers, options)


def table_to_change(
    table: TableLike,
    catalog: CatalogOption,
    branch: str,
    storage_options: Mapping[str, str] | None,
) -> Snapshot:
    """Return the newest snapshot of the branch to change."""
    return snapshot(table, catalog=catalog, branch=None if branch == MAIN else branch, storage_options=storage_options)
