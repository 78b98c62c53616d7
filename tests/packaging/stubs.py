"""The type stubs of the packages with lazily loaded names, generated from the tables in their ``__init__`` modules.

Run ``python -m tests.packaging.stubs --update`` to write them. Type checkers and editors read the stubs; Python reads
the tables.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from parquet_variant.support.lazy_names import PACKAGES

SOURCES = Path(__file__).resolve().parents[2] / "src"
STUBBED = ("parquet_variant", "parquet_variant.spark", "parquet_variant.files.vortex")
_HEADER = "# Generated from the table in __init__.py: change that, then run make snapshots.\n"


def stub_path(package: str) -> Path:
    """Return the path of a package's stub."""
    return SOURCES.joinpath(*package.split("."), "__init__.pyi")


def stub_lines(package: str) -> list[str]:
    """Return the statements of a package's stub, one per line, without formatting."""
    module = import_module(package)
    lines = []
    for owner, names in vars(module)["_NAMES"].items():
        for name in names.split():
            parent, _, module_name = f"parquet_variant.{owner}".rpartition(".")
            package_of_name = parent if owner in PACKAGES and module_name == name else f"parquet_variant.{owner}"
            lines.append(f"from {package_of_name} import {name} as {name}")
    if hasattr(module, "__version__"):
        lines.append("from parquet_variant._version import __version__ as __version__")
    return [*lines, f"__all__ = {sorted(module.__all__)}", "def __dir__() -> list[str]: ..."]


def update() -> None:
    """Write all stubs."""
    paths = [stub_path(package) for package in STUBBED]
    for package, path in zip(STUBBED, paths, strict=True):
        path.write_text(_HEADER + "\n".join(stub_lines(package)) + "\n", "utf-8")
    for command in (["format", "--quiet"], ["check", "--quiet", "--fix"], ["format", "--quiet"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *paths], check=True)


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        raise SystemExit("usage: python -m tests.packaging.stubs --update")
    update()
