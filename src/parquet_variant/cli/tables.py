"""Delta table, Vortex or Parquet files: which of them a path names, and the query over each.

Owns telling them apart, for the commands that take all. Leaves the rest to `delta`, `vortex` and `parquet`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["column_names", "data_files", "is_delta", "is_vortex", "plan_query"]


def is_delta(path: str) -> bool:
    """Whether a path is that of a Delta table: a directory with a log.

    Examples
    --------
    >>> is_delta("examples")
    False
    """
    import pyarrow.fs as pafs

    from parquet_variant.io.filesystems import filesystem_of

    filesystem, root = filesystem_of(path, None)
    return bool(filesystem.get_file_info(f"{root.rstrip('/')}/_delta_log").type == pafs.FileType.Directory)


def is_vortex(path: str) -> bool:
    """Whether a path names Vortex files: one, a glob, or a directory that holds some.

    Examples
    --------
    >>> is_vortex("events.vortex"), is_vortex("examples")
    (True, False)
    """
    from parquet_variant.vortex.files import vortex_files

    return bool(vortex_files(path))


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


def column_names(path: str, *, version: int | None, at: str | None) -> tuple[list[str], list[str]]:
    """The names of the Variant columns at the top of a table, and of its other columns."""
    from parquet_variant.cli.output import is_variant

    if is_delta(path):
        from parquet_variant.delta import snapshot

        names = [field.name for field in snapshot(path, version=version, timestamp=at).schema.fields]
        fields = plan_query(path, names, None, None, version=version, at=at).schema
        return [f.name for f in fields if is_variant(f)], [f.name for f in fields if not is_variant(f)]
    if is_vortex(path):
        from parquet_variant.vortex.files import vortex_files
        from parquet_variant.vortex.reader import column_names as names_in_file

        return names_in_file(vortex_files(path)[0])
    from parquet_variant.parquet.format.columns import find_variants
    from parquet_variant.parquet.format.files import locate, open_file

    with open_file(locate(path)[0]) as file:
        variants = [found.name for found in find_variants(file.schema) if not found.repeated]
        tops = {name.split(".")[0] for name in variants}
        return variants, [node.name for node in file.schema.children if node.name not in tops]


def plan_query(
    path: str,
    columns: Any,
    where: Any,
    column: str | None,
    *,
    version: int | None,
    at: str | None,
    strict: bool = False,
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

    return scan_files(path, columns, where, column=column, on_error="raise" if strict else "null")
