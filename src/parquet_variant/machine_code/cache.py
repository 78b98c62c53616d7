"""Where compiled kernels are kept, between builds and for the `jit` way.

Owns the directory, and the objects in it: one file a kernel and CPU level, named by the hash of all that it was made
of.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["cache_home", "find_object", "keep_object"]


def cache_home() -> Path:
    """Where things of all versions are kept; ``PARQUET_VARIANT_CACHE`` names another place."""
    named = os.environ.get("PARQUET_VARIANT_CACHE")
    if named is not None:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "parquet-variant"
    except RuntimeError:  # a user without a home
        return Path(tempfile.gettempdir()) / f"parquet-variant-{os.getuid()}"


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
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            file.write(content)
        os.replace(file.name, path)  # noqa: PTH105
