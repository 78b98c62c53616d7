"""Delta and Iceberg tables, Vortex, Parquet, JSON and CSV files: the files of a path, and a query over any of them.

Owns the choice of the format for commands that accept all of them. Leaves reading to the packages of the formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.tables.iceberg.reading.snapshot import Snapshot

from parquet_variant.ingestion.formats.csv_rows import is_csv
from parquet_variant.tables.opening import is_delta, is_iceberg, is_json, is_vortex, refuse_versions


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
    from parquet_variant.tables.iceberg import snapshot

    return snapshot(path, catalog=read_catalog(catalog), snapshot_id=version, timestamp=at, allow_outside=allow_outside)


def local_or_uri(location: str) -> str:
    """Return the location of an Iceberg file as other commands take it.

    >>> local_or_uri("file:///t/data/a.parquet")
    '/t/data/a.parquet'
    """
    from parquet_variant.tables.iceberg.locations import normal_location

    return normal_location(location)


def read_catalog(text: Any) -> Any:
    """Return the catalog that ``--catalog`` names, as `pv.iceberg` takes it; properties are returned unchanged.

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


def table_package(table: str, catalog: str | None) -> tuple[Any, dict[str, Any]]:
    """Return the package of a table's format, `delta` or `iceberg`, and the arguments that name the table's catalog."""
    if catalog is not None or is_iceberg(table):
        from parquet_variant.tables import iceberg

        return iceberg, {"catalog": read_catalog(catalog)}
    from parquet_variant.tables import delta

    return delta, {}


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

    Raises `VariantError` as the functions `scan` of the formats, and for a version of other files.
    """
    from parquet_variant.errors import VariantFileError

    current = iceberg_snapshot(path, catalog, version, at, allow_outside=allow_outside)
    if current is not None:
        from parquet_variant.tables.iceberg import scan as scan_iceberg

        if strict:
            raise VariantFileError("--strict is not supported for Iceberg tables", reason="bad-option")
        return scan_iceberg(current, columns, where, column=column, threads=threads)
    if is_delta(path):
        from parquet_variant.tables.delta import scan as scan_table

        if strict:
            raise VariantFileError("--strict is not supported for Delta tables", reason="bad-option")
        return scan_table(
            path,
            columns,
            where,
            column=column,
            version=version,
            timestamp=at,
            allow_outside=allow_outside,
            threads=threads,
        )
    refuse_versions(path, version, at)
    if is_vortex(path):
        from parquet_variant.files.vortex import scan_files as scan_vortex

        if strict:
            raise VariantFileError("--strict is not supported for Vortex files", reason="bad-option")
        return scan_vortex(path, columns, where, column=column, threads=threads)
    if is_json(path) or is_csv(path):
        from parquet_variant.sql_query.table_query import TableQuery
        from parquet_variant.sql_query.tables import bind_table

        errors: Any = "raise" if strict else "null"
        return TableQuery.plan(bind_table(path, path), columns, where, errors=errors, threads=threads)
    from parquet_variant.files.parquet import scan as scan_files

    return scan_files(path, columns, where, column=column, errors="raise" if strict else "null", threads=threads)
