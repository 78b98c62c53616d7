"""Directories of Delta and Iceberg tables, recognized by the names of their files.

Owns only the recognition, so that the files of a table are not read, replaced or removed as files of a directory.
Leaves logs and metadata to `tables`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias

from pyarrow import fs

from parquet_variant.io.filesystems import filesystem_of, info_of

TableFormat: TypeAlias = Literal["delta", "iceberg"]
A_TABLE: dict[TableFormat, str] = {"delta": "a Delta table", "iceberg": "an Iceberg table"}
# How the names of Iceberg's metadata files end.
ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")


def format_of_directory(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the format of the table at a path; None if there is none.

    >>> format_of_directory("examples") is None
    True
    """
    return "delta" if has_delta_log(path) else "iceberg" if has_iceberg_metadata(path) else None


def has_delta_log(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a Delta table: a directory with a log."""
    filesystem, root = filesystem_of(path)
    return bool(info_of(filesystem, f"{root.rstrip('/')}/_delta_log").type == fs.FileType.Directory)


def has_iceberg_metadata(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an Iceberg table: a directory with metadata files, or a metadata file."""
    if str(path).endswith(ICEBERG_METADATA):
        return True
    filesystem, root = filesystem_of(path)
    directory = f"{root.rstrip('/')}/metadata"
    if info_of(filesystem, f"{directory}/version-hint.text").type == fs.FileType.File:
        return True
    # A writer that was killed may have left the hint out.
    files = filesystem.get_file_info(fs.FileSelector(directory, allow_not_found=True))
    return any(file.path.endswith(ICEBERG_METADATA) for file in files)


def table_directories(paths: Iterable[str]) -> dict[str, TableFormat]:
    """Return the tables below a common directory, with their formats; the directory itself is ``""``.

    `paths`: of files, and of directories if they are known, relative to the common directory.

    >>> table_directories(["a/x.parquet", "b/_delta_log/0.json", "c/d/metadata/v1.metadata.json"])
    {'b': 'delta', 'c/d': 'iceberg'}
    """
    tables: dict[str, TableFormat] = {}
    for path in paths:
        above, log, _ = f"/{path}/".partition("/_delta_log/")
        parent, metadata, name = f"/{path}".rpartition("/metadata/")
        if log:
            tables[above[1:]] = "delta"
        elif metadata and "/" not in name and name.endswith(ICEBERG_METADATA):
            tables.setdefault(parent[1:], "iceberg")
    return tables


def is_inside(path: str, directories: Collection[str]) -> bool:
    """Return whether a file is below one of some directories; all are relative to a common one.

    >>> is_inside("a/b/c.parquet", {"a/b"}), is_inside("a/b.parquet", {"a/b"})
    (True, False)
    """
    return bool(directories) and any(path[:end] in directories for end, sign in enumerate(path) if sign == "/")
