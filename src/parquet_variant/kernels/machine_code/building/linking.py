"""Link objects to a shared library with the C compiler of the machine, or with the one of the package ``ziglang``.

Owns the command. A library depends on no other library: the C functions that it calls are already in the process,
whichever libc it has.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.levels import architecture, levels_of_wheel

_OPTIONS = ("-shared", "-nostdlib", "-Wl,-s", "-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--gc-sections")


def _c_compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc"))


def needs_ziglang(level: str) -> bool:
    """Return whether this machine has no C compiler that links for a CPU level."""
    return level not in levels_of_wheel() or _c_compiler() is None


def find_linker(level: str) -> list[str]:
    """Return the link command for a CPU level, without arguments. Raises `KernelsError` if there is none."""
    compiler = _c_compiler()
    if compiler is not None and not needs_ziglang(level):
        return [compiler]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture(level)}-linux-gnu.2.17"]
    raise KernelsError(
        f"found no linker for {architecture(level)}: install a C compiler, or pip install ziglang",
        reason="no-linker",
    )


def link(objects: Sequence[Path], target: Path, level: str) -> None:
    """Link objects to a shared library. Raises `KernelsError` with the output of the linker if that fails."""
    # The names of a thousand objects may be longer than a command line allows, so they are passed in a file.
    names = target.with_suffix(".objects")
    names.write_text("".join(f'"{path}"\n' for path in objects))
    try:
        command = [*find_linker(level), *_OPTIONS, f"@{names}", "-o", str(target)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        names.unlink()
    if run.returncode:
        raise KernelsError(f"linking kernels for {level} failed: {run.stderr.strip()[-2000:]}", reason="no-linker")
