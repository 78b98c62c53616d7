"""The directory of compiled kernels, for later builds and for the `jit` mode.

Owns the directory and its objects: one file per kernel and CPU level, named by its fingerprint.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


def cache_home() -> Path:
    """Return the cache directory of all versions; ``PARQUET_VARIANT_CACHE`` overrides it."""
    named = os.environ.get("PARQUET_VARIANT_CACHE")
    if named is not None:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "parquet-variant"
    except RuntimeError:  # a user without a home
        return own_temporary()


def own_temporary() -> Path:
    """Return a private directory in the directory of temporary files, to which anybody may write.

    Raises `PermissionError` if another user made it or can write to it.
    """
    place = Path(tempfile.gettempdir()) / f"parquet-variant-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    status = place.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{place} does not belong to this user alone; remove it")
    return place


def _path(key: str) -> Path:
    return cache_home() / "objects" / key[:2] / f"{key}.o"


def find_object(key: str) -> bytes | None:
    """Return an object from the cache, or None."""
    try:
        return _path(key).read_bytes()
    except OSError:
        return None


def keep_object(key: str, content: bytes) -> None:
    """Store an object, unless the directory is not writable."""
    with contextlib.suppress(OSError):
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            file.write(content)
        os.replace(file.name, path)  # noqa: PTH105
