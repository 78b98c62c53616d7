"""The library of kernels that was built with the package, its CPU levels, and the hash of its sources.

Owns finding the library, refusing one that does not fit, and loading it; the hash, which covers every module of
`kernels` and the modules from which these take constants; and the directory of compiled objects for later builds and
the `jit` mode, one file per kernel and CPU level, named by its fingerprint. Leaves building to `building`. The file
``kernels.json`` describes the library, and is read before anything is loaded. The package may be a directory or a zip
file.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from parquet_variant.errors import KernelsError
from parquet_variant.support.records import Record

# Directory of the package, or its path in a zip file.
PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: PTH120
_FOREIGN = re.compile(rb"^from parquet_variant\.(types|encoding\.[\w.]+) import", re.MULTILINE)


def read(name: str) -> bytes:
    """Return the bytes of a file of the package, named with slashes. Raises `OSError` if it does not exist."""
    loader: Any = __spec__.loader
    return loader.get_data(os.path.join(PACKAGE, *name.split("/")))  # noqa: PTH118


def kernel_sources() -> set[str]:
    """Return the modules of `kernels`, named with slashes; empty if the package is in a zip file."""
    root = Path(PACKAGE)
    return {path.relative_to(root).as_posix() for path in root.joinpath("kernels").rglob("*.py")}


def sources() -> list[str]:
    """Return the files that the hash of the current sources covers."""
    kernels = kernel_sources()
    foreign = {name.decode().replace(".", "/") for kernel in kernels for name in _FOREIGN.findall(read(kernel))}
    packages = {name for name in foreign if Path(PACKAGE, name).is_dir()}
    return sorted(kernels | {f"{name}/__init__.py" if name in packages else f"{name}.py" for name in foreign})


def source_hash(names: Iterable[str]) -> str:
    """Return the SHA-256 of some files of the package, including their names."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = read(name)
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


# Folder of the libraries in the package, and the table in it.
FOLDER = "kernels/machine_code/libraries"
TABLE = "kernels.json"


def file_name(level: str, source_hash: str) -> str:
    """Return the file name of the library for a CPU level, built from sources with a hash."""
    return f"kernels-{level}-{source_hash[:16]}.so"


class Library(Record):
    """A loaded library."""

    level: str
    handle: ctypes.CDLL
    kernels: dict[str, str]
    mode: str = "built"

    def address(self, kernel: Any) -> int:
        """Return the entry point of a kernel. Raises `KernelsError` if the library does not have the kernel."""
        if self.kernels.get(kernel.symbol) != str(kernel.signature):
            raise KernelsError(f"{kernel!r} is not in the library of kernels; {_BUILD}", reason="no-kernels")
        address = ctypes.cast(getattr(self.handle, kernel.symbol), ctypes.c_void_p).value
        assert address is not None
        return address


_BUILD = "rebuild it with: python -m parquet_variant.kernels.machine_code.building"


def _library_error(what: str, name: str) -> KernelsError:
    return KernelsError(f"{what}; reinstall the package", file=os.path.join(PACKAGE, *name.split("/")))  # noqa: PTH118


def _table() -> dict[str, Any]:
    """Return the table of the libraries, whose sources are those of the package."""
    name = f"{FOLDER}/{TABLE}"
    try:
        table = json.loads(read(name))
        complete = {"sources", "source_hash", "libraries", "kernels"} <= table.keys()
    except OSError:
        raise KernelsError("the package has no built kernels", reason="no-kernels") from None
    except (ValueError, AttributeError):
        complete = False
    if not complete:
        raise _library_error("the table of kernels is damaged", name)
    try:
        fits = kernel_sources() <= set(table["sources"]) and source_hash(table["sources"]) == table["source_hash"]
    except OSError:
        fits = False
    if not fits:
        problem = f"the kernels were built from other sources than those of the package; {_BUILD}"
        raise KernelsError(problem, reason="other-kernels")
    return table


def _open(name: str, size: int) -> ctypes.CDLL:
    """Load a library from its file, or from memory if the package is in a zip file."""
    path = os.path.join(PACKAGE, *name.split("/"))  # noqa: PTH118
    is_file = os.path.exists(path)  # noqa: PTH110
    content = b"" if is_file else read(name)
    if size != (os.path.getsize(path) if is_file else len(content)):  # noqa: PTH202
        raise _library_error("the library of kernels is truncated", name)
    if is_file:
        return ctypes.CDLL(path)
    file = os.memfd_create("parquet-variant kernels")
    try:
        os.truncate(file, size)
        os.pwrite(file, content, 0)
        return ctypes.CDLL(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


def load(levels: tuple[str, ...] | None = None) -> Library:
    """Load the library for this machine.

    `levels`: CPU levels to choose from, best first; by default those of this machine.

    Raises `KernelsError` if there is no library, if it was built from other sources, or if it is damaged.
    """
    table = _table()
    built = table["libraries"]
    level = next((name for name in levels_here() if name in built and (levels is None or name in levels)), None)
    if level is None:
        raise KernelsError(
            f"the package has kernels for {', '.join(built)}, but not for this machine", reason="no-kernels"
        )
    name = f"{FOLDER}/{file_name(level, table['source_hash'])}"
    try:
        return Library(level, _open(name, built[level]["size"]), table["kernels"])
    except (OSError, KeyError, TypeError) as failed:
        raise _library_error(f"the library of kernels cannot be loaded: {failed}", name) from failed


X86_64, X86_64_V3, AARCH64 = "x86-64", "x86-64-v3", "aarch64"
LEVELS = (X86_64_V3, X86_64, AARCH64)

# Flags of x86-64-v3 beyond the baseline, as Linux spells them (psABI, "Micro-Architecture Levels"; abm is lzcnt).
_V3_FLAGS = frozenset(
    (
        *("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
        *("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    )
)


def cpu_flags() -> frozenset[str]:
    """Return the flags of the first CPU; empty if Linux does not report them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def architecture(level: str) -> str:
    """Return the architecture of a level, as Linux names it."""
    return "aarch64" if level == AARCH64 else "x86_64"


def levels_of_wheel() -> tuple[str, ...]:
    """Return all levels of this machine's architecture, best first; empty if no libraries are built for it."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return ()
    names = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
    return tuple(level for level in LEVELS if architecture(level) == names.get(platform.machine().lower()))


def needs_ziglang(level: str) -> bool:
    """Return whether this machine has no C compiler that links for a CPU level."""
    return level not in levels_of_wheel() or shutil.which(os.environ.get("CC", "cc")) is None


def levels_here() -> tuple[str, ...]:
    """Return the levels whose code this machine can run, best first; empty if no libraries are built for it."""
    levels = levels_of_wheel()
    if X86_64_V3 in levels and not cpu_flags() >= _V3_FLAGS:
        return (X86_64,)
    return levels


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
