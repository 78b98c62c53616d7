"""Which format a path names: a Delta table, Vortex files, or else Parquet.

Owns telling them apart. Leaves what is there to the rooms that own the formats.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["is_delta", "is_vortex"]


def is_delta(path: Any) -> bool:
    """Whether a path is that of a Delta table: a directory with a log.

    Examples
    --------
    >>> is_delta("examples")
    False
    """
    import pyarrow.fs as pafs

    from parquet_variant.io.filesystems import filesystem_of

    filesystem, root = filesystem_of(os.fspath(path), None)
    return bool(filesystem.get_file_info(f"{root.rstrip('/')}/_delta_log").type == pafs.FileType.Directory)


def is_vortex(path: Any) -> bool:
    """Whether a path names Vortex files: one, a glob, or a directory that holds some.

    Examples
    --------
    >>> is_vortex("events.vortex"), is_vortex("examples")
    (True, False)
    """
    from parquet_variant.vortex.paths import vortex_files

    return bool(vortex_files(os.fspath(path)))
