"""`warmup`: make sure that no kernel is compiled later.

Owns the public operation. With kernels that were built with the package there is nothing to do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from parquet_variant.machine_code.entry_points import machine_code


def warmup(progress: Callable[[str, int, int], None] | None = None) -> bool:
    """Compile the kernels that were neither built with the package nor kept in the cache.

    Parameters
    ----------
    progress
        Called with what is done, the kernels that are ready, and how many there are.

    Returns
    -------
    bool
        Whether there was anything to compile for: False where the kernels were built with the package.

    Raises
    ------
    KernelsError
        If there are neither built kernels that fit nor Numba, or a kernel cannot be compiled.
    """
    code = machine_code()
    if code.way == "built":
        return False
    from parquet_variant.machine_code.building.build import build_all_objects
    from parquet_variant.machine_code.building.discovery import find_kernels

    report = progress or (lambda what, done, total: None)
    with tempfile.TemporaryDirectory() as folder:
        build_all_objects(find_kernels(), [code.level], Path(folder), report=report)
    return True
