"""Removing orphan files: those below the table's location that its metadata does not name.

Owns what is an orphan. A file that a running write has not committed yet looks like one, so only old files are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from parquet_variant.errors import IcebergError
from parquet_variant.io.filesystems import ICEBERG_METADATA, is_inside, table_directories
from parquet_variant.io.temporaries import dead_temporaries
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, load_table
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.maintenance.expiration import check_deletable, files_of
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableLike, to_millis
from parquet_variant.tables.storage import now_millis

_DEFAULT_AGE_MS = 3 * 24 * 3_600_000
_KEPT_NAMES = ("version-hint.text", *ICEBERG_METADATA)


def remove_orphan_files(
    table: TableLike,
    *,
    older_than: int | str | datetime | None = None,
    dry_run: bool = False,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Delete files below the table's location that no snapshot needs, such as those of writes that were killed.

    See `IcebergTable.remove_orphan_files`.
    """
    cutoff = now_millis() - _DEFAULT_AGE_MS if older_than is None else to_millis(older_than)
    loaded = table.table if isinstance(table, Snapshot) else load_table(table, catalog, storage_options)
    check_deletable(loaded.metadata)
    orphans = [location for location, modified in orphan_files(loaded) if modified < cutoff]
    if not dry_run:
        loaded.files.delete(orphans)
    return orphans


def orphan_files(loaded: LoadedTable) -> list[tuple[str, int]]:
    """Return the files below a table's location that no snapshot needs, with the times of their last change.

    Raises `IcebergError`: reason ``"conflict"`` if the table was upgraded meanwhile.
    """
    metadata = loaded.metadata
    listed: dict[str, int] = {}
    root = normal_location(metadata.location).rstrip("/")
    others = (normal_location(other).rstrip("/") for other in loaded.files.other_roots)
    # Other tables may have files in the same directory elsewhere.
    directories = {f"{root}/data", f"{root}/metadata", *(other for other in others if other.startswith(f"{root}/"))}
    for directory in directories:
        storage, path = loaded.files.root, directory.removeprefix(f"{root}/")
        files = list(storage.list(path))
        tables = table_directories([file.path for file in files])
        # Temporary files of writers that were killed are orphans from then on.
        dead = {f"{path}/{name}" for name in dead_temporaries(*storage.filesystem(path))} if files else set()
        listed |= {
            f"{root}/{file.path}": 0 if file.path in dead else file.modified
            for file in files
            if not is_inside(file.path, tables)
        }
    # What is needed is found after the listing: a file that a commit adds in between is not listed.
    newest = loaded.refreshed()
    if newest.metadata.version != metadata.version:
        raise IcebergError("the table was upgraded meanwhile: try again", reason="conflict")
    needed = {
        normal_location(location) for location in files_of(newest, newest.metadata.snapshots.values(), newest.metadata)
    }
    return sorted(
        (location, modified)
        for location, modified in listed.items()
        if location not in needed and not location.endswith(_KEPT_NAMES)
    )
