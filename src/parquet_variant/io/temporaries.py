"""The temporary name that one file has until it is whole: whose it is, and removing what writers that died left.

Owns the name, and which files of dead writers there are. Leaves when to look to the operations that write one file, and
directories that a job fills to `staging`.
"""

from __future__ import annotations

import os
import posixpath
import re
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from parquet_variant.io.job_owner import JobOwner, is_dead

# Earlier versions put only a number where the owner is now.
_NAME = re.compile(r"\.(?P<name>.+)\.(?:(?P<owner>[0-9a-f]{12}-[0-9a-f]+-[0-9a-f]+)-[0-9a-f]{8}|[0-9a-f]{32})\.tmp")


def temporary_beside(path: str) -> str:
    """A name beside a file's that nobody else takes, and that says whose it is.

    >>> name = temporary_beside("lake/a.parquet")
    >>> name.startswith("lake/.a.parquet."), name.endswith(".tmp")
    (True, True)
    """
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.{JobOwner.current().to_token()}-{uuid.uuid4().hex[:8]}.tmp")


def sweep_temporaries(filesystem: pafs.FileSystem, paths: Iterable[str]) -> None:
    """Remove what writers of these files left that died; each directory is listed once."""
    names: dict[str, set[str]] = {}
    for path in paths:
        folder, name = posixpath.split(path)
        names.setdefault(folder, set()).add(name)
    for folder, files in names.items():
        for name in dead_temporaries(filesystem, folder, files):
            with suppress(OSError):
                filesystem.delete_file(posixpath.join(folder, name))


def dead_temporaries(filesystem: pafs.FileSystem, folder: str, files: Collection[str] | None = None) -> list[str]:
    """The names of what writers that died left in a directory of a local or mounted disk.

    An object store shows nothing of a file that was not written to its end. Whether a writer died is told as `is_dead`
    says, by its process and else by the file's age.

    `filesystem` and `folder`: the directory.
    `files`: names of files that were being written; by default all.
    """
    names_of_dead: list[str] = []
    if isinstance(filesystem, pafs.LocalFileSystem):
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - names alone, of what may be many files
                match = _NAME.fullmatch(name)
                if match is None or (files is not None and match["name"] not in files):
                    continue
                owner = None if match["owner"] is None else JobOwner.from_token(match["owner"])
                if is_dead(owner, (Path(each).stat().st_mtime for each in [posixpath.join(folder, name)])):
                    names_of_dead.append(name)
    return names_of_dead
