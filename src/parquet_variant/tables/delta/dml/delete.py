"""``DELETE FROM table WHERE condition``: the public operation. Leaves the work to `tables.changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, count_rows, delete_rows
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.snapshot import TableLike


def delete(
    table: TableLike,
    where: str | None = None,
    *,
    dry_run: bool = False,
    zone: str = "UTC",
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Delete the rows for which a condition is true, in one commit.

    Files that cannot match, by partition values and statistics, are not opened. Files with matching rows are rewritten
    without them, or get a deletion vector if the table has ``delta.enableDeletionVectors``. The old files remain in
    storage, for readers of older versions, until `vacuum`; `erase` also removes them.

    Parameters
    ----------
    table, storage_options
        The table; see `snapshot`.
    where
        SQL over the table's columns and paths of its Variants: ``"v:a.b::int = 3 AND day < DATE '2024-01-31'"``.
        Without a condition all rows are deleted.
    dry_run
        Only count the rows to delete and the files that hold them; nothing is changed.
    zone
        Session time zone.
    txn
        Application id and version, under which the table records the change. A change with a recorded version, or an
        earlier one, is not made again.
    threads
        Number of files to process at the same time; None for one per CPU core.
    progress
        Called with the step, the number of finished tasks and the number of tasks.
    engine
        Engine that runs the tasks (default: threads of this process).
    **options
        Options of `VariantWriter`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    TableError
        ``"append-only"``; ``"unsupported-feature"``; ``"too-many-retries"`` if other commits kept changing the same
        rows; ``"no-such-path"`` if no row matches because of a path that no row has, and rows have a similar path.
    SqlError
        The condition cannot be parsed.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}', "3"])})
    ...     pv.delta.delete(folder, "v:n::int = 2").rows_deleted
    ...     pv.delta.read(folder).to_pylist()
    1
    [{'n': 1}, 3]
    """
    workers = engine_or_threads(engine, threads, progress)
    run = count_rows if dry_run else delete_rows
    return run(DeltaTable.open(table, storage_options, txn), where, zone, workers, options)
