"""Which Vortex files a path names.

Owns finding them. Knows nothing of Vortex, so that commands can ask about any path.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.io.commit_journal import files_that_count

_SUFFIX = ".vortex"


def vortex_files(path: str | os.PathLike[str]) -> list[str]:
    """The Vortex files that a path names: a file, a glob of them, or a directory that holds some; else none.

    Examples
    --------
    >>> vortex_files("examples")
    []
    """
    name = os.fspath(path).removeprefix("file://")
    if os.path.isdir(name):  # noqa: PTH112 - a name, perhaps of a remote file
        infos = files_that_count(pafs.LocalFileSystem(), name)
        files = sorted(info.path for info in infos if info.path.endswith(_SUFFIX))
        parts = ((each, Path(os.path.relpath(each, name)).parts) for each in files)
        return [each for each, names in parts if not any(part.startswith(("_", ".")) for part in names)]
    if not name.endswith(_SUFFIX):
        return []
    if any(each in name for each in "*?[") and not Path(name).exists():
        return sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - patterns may be absolute
    # Also one that is not there: the error is then that of a Vortex file.
    return [name]


def some_vortex_files(path: str | os.PathLike[str]) -> list[str]:
    """As `vortex_files`; an error if there are none."""
    files = vortex_files(path)
    if not files:
        raise VariantFileError(f"there is no Vortex file in {path}", file=os.fspath(path), reason="no-such-file")
    return files
