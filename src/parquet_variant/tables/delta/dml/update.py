"""``UPDATE table SET column = value, … WHERE condition``: the public operation. Leaves the work to `tables.changes`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parquet_variant.io.engine import Engine, Progress, engine_or_threads
from parquet_variant.tables.changes.operations import ChangeResult, update_rows
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.snapshot import TableLike


def update(
    table: TableLike,
    updates: Mapping[str, str] | None = None,
    where: str | None = None,
    *,
    new_values: Mapping[str, Any] | None = None,
    zone: str = "UTC",
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> ChangeResult:
    """Set columns, or paths inside Variants, of the rows for which a condition is true, in one commit.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    updates
        SQL by column or path: ``{"v:seen": "true", "k": "k + 1"}``. Expressions see the row before the change. NULL
        set at a path becomes the JSON null.
    where
        As for `delete`; without a condition all rows are updated.
    new_values
        Python values by column or path, in addition to `updates` or instead.
    zone, txn, storage_options, threads, progress, engine, **options
        As for `delete`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    TableError
        ``"bad-assignment"``, ``"type-mismatch"``; and as `delete`.
    SqlError
        An expression cannot be parsed.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])})
    ...     pv.delta.update(folder, {"v:s": "'q'", "v:n": "v:n::int * 10"}, "v:n::int = 2").rows_updated
    ...     pv.delta.read(folder).to_pylist()
    1
    [{'n': 1}, {'n': 20, 's': 'q'}]
    """
    workers = engine_or_threads(engine, threads, progress)
    return update_rows(DeltaTable.open(table, storage_options, txn), updates, new_values, where, zone, workers, options)
