"""Delta table, Vortex or Parquet files: which of them a path names, and the query over each.

Owns telling them apart, for the commands that take all. Leaves the rest to `delta`, `vortex` and `parquet`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.sql_query.paths import is_delta, is_vortex

__all__ = ["data_files", "is_delta", "is_vortex", "plan_query"]


def data_files(path: str) -> list[str]:
    """The files that the newest version of a Delta table holds; any other path as it is.

    Raises
    ------
    VariantFileError
        For a table without files.
    """
    from urllib.parse import unquote

    from parquet_variant.errors import VariantFileError

    if not is_delta(path):
        if is_vortex(path):
            raise VariantFileError(
                f"{path} is Vortex: this command is for Parquet; query and cat take Vortex files",
                reason="not-parquet",
                file=path,
            )
        return [path]
    from parquet_variant.delta import snapshot

    names = [unquote(name) for name in snapshot(path).files["path"].to_pylist()]
    if not names:
        raise VariantFileError(f"the Delta table {path} has no rows", reason="no-files", file=path)
    return [name if "://" in name or name.startswith("/") else f"{path.rstrip('/')}/{name}" for name in names]


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
) -> Any:
    """Plan a query over a Delta table (of a version), Vortex or Parquet files; all answers have the same methods.

    Raises
    ------
    VariantError
        As `delta.scan`, `vortex.scan_files` and `parquet.scan`, and for a version of what is no Delta table.
    """
    from parquet_variant.errors import VariantFileError

    if is_delta(path):
        from parquet_variant.delta import scan as scan_table

        if strict:
            raise VariantFileError("--strict is for Parquet files, not for Delta tables", reason="bad-option")
        return scan_table(path, columns, where, column=column, version=version, timestamp=at)
    if version is not None or at is not None:
        raise VariantFileError(f"{path} is no Delta table, so it has no versions", reason="not-a-table", file=path)
    if is_vortex(path):
        from parquet_variant.vortex import scan_files as scan_vortex

        if strict:
            raise VariantFileError("--strict is for Parquet files, not for Vortex files", reason="bad-option")
        return scan_vortex(path, columns, where, column=column)
    from parquet_variant.parquet import scan as scan_files

    return scan_files(path, columns, where, column=column, errors="raise" if strict else "null", threads=threads)
