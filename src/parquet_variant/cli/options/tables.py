"""Delta table, Vortex or Parquet files: which of them a path names, and the query over each.

Owns telling them apart, for the commands that take all. Leaves the rest to `delta`, `vortex` and `parquet`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.sql_query.paths import is_delta, is_vortex, refuse_versions


def data_files(path: str, *, allow_outside: bool = False) -> list[str]:
    """The files that the newest version of a Delta table holds; any other path as it is.

    Raises `VariantFileError` for a table without files; a `DeltaError` for files outside of the table that were not
    allowed.
    """
    from parquet_variant.errors import VariantFileError

    if not is_delta(path):
        if is_vortex(path):
            raise VariantFileError(
                f"{path} is Vortex: this command is for Parquet; query and cat take Vortex files",
                reason="not-parquet",
                file=path,
            )
        return [path]
    from parquet_variant.delta.reading.read import data_files as files_of_table

    files = files_of_table(path, allow_outside=allow_outside)
    if not files:
        raise VariantFileError(f"the Delta table {path} has no rows", reason="no-files", file=path)
    return files


def plan_query(
    path: str,
    columns: Any,
    where: Any,
    column: str | None,
    *,
    version: int | None,
    at: str | None,
    strict: bool = False,
    threads: int | None = None,
    allow_outside: bool = False,
) -> Any:
    """Plan a query over a Delta table (of a version), Vortex or Parquet files; all answers have the same methods.

    Raises `VariantError` as `delta.scan`, `vortex.scan_files` and `parquet.scan`, and for a version of what is no Delta
    table.
    """
    from parquet_variant.errors import VariantFileError

    if is_delta(path):
        from parquet_variant.delta import scan as scan_table

        if strict:
            raise VariantFileError("--strict is for Parquet files, not for Delta tables", reason="bad-option")
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
        from parquet_variant.vortex import scan_files as scan_vortex

        if strict:
            raise VariantFileError("--strict is for Parquet files, not for Vortex files", reason="bad-option")
        return scan_vortex(path, columns, where, column=column, threads=threads)
    from parquet_variant.parquet import scan as scan_files

    return scan_files(path, columns, where, column=column, errors="raise" if strict else "null", threads=threads)
