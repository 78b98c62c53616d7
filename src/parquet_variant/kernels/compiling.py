"""How kernels are compiled: the one decorator, and where the compiled code is kept.

Owns `njit` and the cache directory. Numba notices a change in a kernel's own file, but not in a function of another
file that was compiled into it; so the directory is named by a hash of every kernel source and of the versions involved.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

__all__ = ["cache_directory", "njit"]


@cache
def cache_directory() -> str:
    """Directory of the compiled kernels; ``PARQUET_VARIANT_CACHE`` names another parent directory."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {platform.machine()}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    home = os.environ.get("PARQUET_VARIANT_CACHE")
    if home is None:
        base = os.environ.get("XDG_CACHE_HOME")
        home = str((Path(base) if base else Path.home() / ".cache") / "parquet-variant")
    return str(Path(home) / f"kernels-{digest.hexdigest()[:16]}")


def njit(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Compile without the GIL, without object mode, with NumPy's error model, and keep the result on disk."""
    if function is None:
        return lambda wrapped: njit(wrapped, inline=inline)
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = cache_directory()  # read once, while the dispatcher is made
    try:
        options: dict[str, Any] = {"inline": "always"} if inline else {}
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = previous
