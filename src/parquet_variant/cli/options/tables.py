"""Delta and Iceberg tables, Vortex, Parquet, JSON and CSV files: the files of a path, and a query over any of them.

Owns the choice of the format for commands that accept all of them. Leaves reading to the packages of the formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
    from parquet_variant.tables.table.table import Table

from parquet_variant.tables.opening import is_delta, is_iceberg, is_vortex


def data_files(path: str, *, catalog: Any = None, allow_outside: bool = False) -> list[str]:
    """Return the files of the newest version of a Delta or Iceberg table; any other path is returned unchanged.

    Raises `VariantFileError` for a table without files, `DeltaError` and `IcebergError` for files outside the table
    that are not allowed.
    """
    from parquet_variant.errors import VariantFileError

    current = iceberg_snapshot(path, catalog, allow_outside=allow_outside)
    if current is not None:
        from parquet_variant.tables.iceberg.reading.planning import plan_files

        locations = [local_or_uri(file.path) for file in plan_files(current).files]
        if not locations:
            raise VariantFileError(f"the Iceberg table {path} has no files", reason="no-files", file=path)
        return locations
    if not is_delta(path):
        if is_vortex(path):
            raise VariantFileError(
                f"{path} is a Vortex file, and this command needs Parquet: use query or cat",
                reason="not-parquet",
                file=path,
            )
        return [path]
    from parquet_variant.tables.delta.reading.read import data_files as files_of_table

    files = files_of_table(path, allow_outside=allow_outside)
    if not files:
        raise VariantFileError(f"the Delta table {path} has no files", reason="no-files", file=path)
    return files


def iceberg_snapshot(
    path: str, catalog: Any, version: int | None = None, at: str | None = None, *, allow_outside: bool = False
) -> Snapshot | None:
    """Return the snapshot of an Iceberg table that options name; None for any other path."""
    if catalog is None and not is_iceberg(path):
        return None
    from parquet_variant.tables.iceberg.reading.snapshot import snapshot

    return snapshot(path, catalog=read_catalog(catalog), snapshot_id=version, timestamp=at, allow_outside=allow_outside)


def local_or_uri(location: str) -> str:
    """Return the location of an Iceberg file as other commands take it.

    >>> local_or_uri("file:///t/data/a.parquet")
    '/t/data/a.parquet'
    """
    from parquet_variant.tables.iceberg.locations import normal_location

    return normal_location(location)


def read_catalog(text: Any) -> Any:
    """Return the catalog that ``--catalog`` names, as `pv.open` takes it; properties are returned unchanged.

    >>> read_catalog("http://127.0.0.1:8181")
    {'type': 'rest', 'uri': 'http://127.0.0.1:8181'}
    """
    import json

    if not isinstance(text, str) or not text.startswith(("{", "http://", "https://")):
        return text
    if text.startswith("http"):
        return {"type": "rest", "uri": text}
    try:
        return json.loads(text)
    except ValueError as error:
        from parquet_variant.errors import bad_option

        raise bad_option(f"--catalog is not JSON: {error}") from None


def open_table(table: str, catalog: str | None = None, engine: Any = None, column: str | None = None) -> Table:
    """Open the table or files that a command names."""
    from parquet_variant.tables.opening import open as open_any

    return open_any(table, catalog=read_catalog(catalog), engine=engine, column=column)


def plan_query(
    path: str,
    columns: Any,
    where: Any,
    column: str | None,
    *,
    version: int | None,
    at: str | None,
    catalog: str | None = None,
    strict: bool = False,
    threads: int | None = None,
    allow_outside: bool = False,
) -> Any:
    """Plan a query over a table (of a version), Vortex, Parquet, JSON or CSV files; all plans have the same methods.

    Raises `VariantError` as `Table.scan`, and for a version of other files.
    """
    from parquet_variant.errors import VariantFileError
    from parquet_variant.tables.opening import open as open_any

    table = open_any(
        path, column=column, version=version, at=at, catalog=read_catalog(catalog), allow_outside=allow_outside
    )
    if strict and table.format in ("delta", "iceberg", "vortex"):
        name = {"delta": "Delta tables", "iceberg": "Iceberg tables"}.get(table.format, "Vortex files")
        raise VariantFileError(f"--strict is not supported for {name}", reason="bad-option")
    return table.scan(columns, where, errors="raise" if strict else "null", threads=threads)
