"""Commits that change metadata only: made again on the newest metadata if another commit came first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.tables.commits import CommitSteps
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, load_table
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import TableChange
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike
from parquet_variant.tables.iceberg.writing.commit import check_writable, wait_before_retry

_RETRIES = 10


def change_metadata(
    table: TableLike,
    make: Callable[[TableMetadata], TableChange | None],
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    any_version: bool = False,
) -> LoadedTable:
    """Commit a change of a table's metadata and return the table after it.

    `make`: returns the change for the newest metadata; None if there is nothing to change.
    `any_version`: also change tables that `check_writable` refuses.
    Raises `IcebergError`: reason ``"too-many-retries"``, and as `check_writable` and `make`.
    """
    loaded = table.table if isinstance(table, Snapshot) else load_table(table, catalog, storage_options)
    message = ""
    for attempt in range(_RETRIES):
        if not any_version:
            check_writable(loaded.metadata)
        change = make(loaded.metadata)
        if change is None:
            return loaded
        try:
            return CommitSteps(loaded.name).swap(partial(loaded.commit, change))
        except VariantError as error:
            if error.reason != "conflict":
                raise
            message = error.message
        wait_before_retry(loaded.metadata, attempt)
        loaded = loaded.refreshed()
    raise IcebergError(
        f"{_RETRIES} attempts to commit found other commits first: try again when fewer writers are active "
        f"(the last: {message})",
        reason="too-many-retries",
        file=loaded.name,
    )
