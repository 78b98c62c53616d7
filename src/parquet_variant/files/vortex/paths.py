"""Find the Vortex files that a path names.

The module does not need vortex-data, so that commands can ask about any path.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem

from parquet_variant.errors import VariantFileError
from parquet_variant.io.commit_journal import matching_entries, visible_files
from parquet_variant.io.directories import VORTEX_MAGIC, VORTEX_SUFFIX, data_file_names
from parquet_variant.io.filesystems import filesystem_of, path_text
from parquet_variant.io.staging import check_target
from parquet_variant.support.options import FileMode


def local_files(path: str | os.PathLike[str]) -> list[str]:
    """Return the data files of a local directory, Parquet or Vortex files, or the Vortex files of a name or a glob.

    The list is empty if the path names neither. Raises `VariantFileError`, reason ``"two-formats"``.
    """
    name = path_text(path).removeprefix("file://")
    if os.path.isdir(name):  # noqa: PTH112 - a name, perhaps of a remote file
        infos = visible_files(*filesystem_of(name))  # "a:b" is written "./a:b" for pyarrow
        paths = {os.path.relpath(info.path, name): info.path for info in infos}
        return [paths[file] for file in data_file_names(paths, place=name)]
    if not is_vortex_file(name):
        return []
    if any(character in name for character in "*?[") and not Path(name).exists():
        infos = [] if "://" in name else matching_entries(LocalFileSystem(), name)
        return [os.path.normpath(info.path) for info in infos if info.is_file]
    # A missing file is returned too, so that opening it raises the error for a missing Vortex file.
    return [name]


def vortex_files(path: str | os.PathLike[str]) -> list[str]:
    """Return the Vortex files that a path names: a file, the matches of a glob, or the files of a directory.

    The list is empty if the path names no Vortex file.
    """
    files = local_files(path)
    return files if files and is_vortex_file(files[0]) else []


def is_vortex_file(name: str) -> bool:
    """Return whether a file is a Vortex file, by its name or its first bytes."""
    with suppress(OSError):
        if not name.lower().endswith(VORTEX_SUFFIX) and os.path.isfile(name):  # noqa: PTH113
            with Path(name).open("rb") as file:
                return file.read(len(VORTEX_MAGIC)) == VORTEX_MAGIC
    return name.lower().endswith(VORTEX_SUFFIX)


def local_name(path: str) -> str:
    """Return the path of Vortex files without ``file://``.

    Raises `VariantFileError`, reason ``"bad-option"``, for a path that is not local.
    """
    name = path.removeprefix("file://")
    if "://" in name:
        problem = f"{name} is not on a local disk, where Vortex files are read and written: copy the files"
        raise VariantFileError(problem, reason="bad-option", file=name)
    return name


def local_target(path: Any, mode: FileMode) -> Path:
    """Return the local path of a Vortex file to write.

    Raises `VariantFileError` as `check_target`; with reason ``"bad-option"`` for a path that is not local.
    """
    filesystem, local = filesystem_of(local_name(path_text(path)))
    check_target(filesystem, local, mode)
    return Path(local)
