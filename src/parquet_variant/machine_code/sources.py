"""The sources that machine code was made from, told by one hash.

Owns the hash: of every module of `kernels`, and of the modules outside that these take constants from. Works where the
package is a directory and where it is a zip file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import parquet_variant

# The directory (or the place in a zip file) of the package.
PACKAGE = os.path.dirname(parquet_variant.__file__)  # noqa: PTH120
_FOREIGN = re.compile(rb"^from parquet_variant\.(types|encoding\.[\w.]+) import", re.MULTILINE)

# What decides how kernels are called, and what they are compiled to.
_COMPILING = {
    *("machine_code/functions.py", "machine_code/signatures.py"),
    *(f"machine_code/building/{name}.py" for name in ("frontend", "linking", "objects")),
}


def read(name: str) -> bytes:
    """The bytes of a file of the package, named with slashes. Raises `OSError` if there is no such file."""
    loader: Any = parquet_variant.__spec__.loader
    return loader.get_data(os.path.join(PACKAGE, *name.split("/")))  # noqa: PTH118


def kernel_sources() -> set[str]:
    """The modules of `kernels`, named with slashes; none if the package is in a zip file."""
    root = Path(PACKAGE)
    return {path.relative_to(root).as_posix() for path in root.joinpath("kernels").rglob("*.py")}


def sources() -> list[str]:
    """All that a hash of the sources as they are now is made of."""
    kernels = kernel_sources()
    foreign = {name.decode() for kernel in kernels for name in _FOREIGN.findall(read(kernel))}
    return sorted(kernels | {f"{name.replace('.', '/')}.py" for name in foreign} | _COMPILING)


def source_hash(names: Iterable[str]) -> str:
    """SHA-256 of some files of the package, with their names."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = read(name)
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
