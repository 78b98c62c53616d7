"""Hatchling build hook: compile the kernels into the wheel, or into the source tree of an editable install.

Owns the content and the name of a wheel. Leaves compiling to `parquet_variant.kernels.machine_code.building`. On
platforms without libraries (macOS, Windows), the wheel is pure Python, and kernels need the extra ``jit``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path(__file__).parent / "src"
# CPU levels of a wheel for another architecture, separated by commas; set by `make wheels`.
LEVELS = "PARQUET_VARIANT_LEVELS"
# Packages for compiling: the bounds of the extra ``jit``, and the imports of kernel modules.
COMPILERS = ["numba>=0.62,<0.69", "llvmlite>=0.45,<0.51", "numpy>=2.1", "pyarrow>=23"]
LINKER = "ziglang>=0.13,<0.18"


def _levels(version: str) -> tuple[str, ...]:
    """Return the CPU levels to build: all of the architecture for a wheel, the best one for an editable install."""
    from parquet_variant.kernels.machine_code.library import levels_here, levels_of_wheel

    if named := os.environ.get(LEVELS):
        return tuple(named.split(","))
    return levels_here()[:1] if version == "editable" else levels_of_wheel()


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Build hook for wheels of a platform."""

    def dependencies(self) -> list[str]:
        """Return the packages that compiling and linking need on this platform."""
        sys.path.insert(0, str(SOURCES))
        from parquet_variant.kernels.machine_code.library import needs_ziglang

        levels = _levels("standard")
        return COMPILERS * bool(levels) + [LINKER] * any(map(needs_ziglang, levels))

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, and set the tag of the wheel."""
        sys.path.insert(0, str(SOURCES))
        levels = _levels(version)
        if not levels:
            return
        from parquet_variant.kernels.machine_code.building import build, printed_progress
        from parquet_variant.kernels.machine_code.library import FOLDER, architecture

        target = SOURCES / "parquet_variant" / FOLDER
        platform = f"manylinux_2_17_{architecture(levels[0])}"
        if version != "editable":
            target = Path(self.directory) / f"kernels-{platform}"
            build_data["force_include"] = {str(target): f"parquet_variant/{FOLDER}"}
        build(levels, target, report=printed_progress())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
