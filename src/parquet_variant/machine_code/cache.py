"""Where compiled kernels are kept, between builds and for the `jit` way.

Owns the directory, and the objects in it: one file a kernel and CPU level, named by the hash of all that it was made
of.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def cache_home() -> Path:
    """Where things of all versions are kept; ``PARQUET_VARIANT_CACHE`` names another place."""
    named = os.environ.get("PARQUET_VARIANT_CACHE")
    if named is not None:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "parquet-variant"
    except RuntimeError:  # a user without a home
        return own_temporary()


def own_temporary() -> Path:
    """A place for what is run later, below the directory of temporary files, where anybody may write.

    Raises `PermissionError` if somebody else made it, or can write there.
    """
    place = Path(tempfile.gettempdir()) / f"parquet-variant-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{place} is not a directory of this user's alone: remove it")
    return place


def _path(key: str) -> Path:
    return cache_home() / "objects" / key[:2] / f"{key}.o"


def find_object(key: str) -> bytes | None:
    """An object that was kept."""
    try:
        return _path(key).read_bytes()
    except OSError:
        return None


def keep_object(key: str, content: bytes) -> None:
    """Keep an object, unless the directory cannot be written: then it is made again another time."""
    with contextlib.suppress(OSError):
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            file.write(content)
        os.replace(file.name, path)  # noqa: PTH105
