"""Whose a job or a file is that is not whole yet: the process that writes it, and whether it still does.

Owns telling processes apart, over restarts of the machine and containers, the temporary name that one file has until it
is whole, and which of those are of dead writers. Leaves when to look to the operations that write one file, and
directories that a job fills to `staging`.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import posixpath
import re
import time
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

# Earlier versions put only a number where the owner is now.
_NAME = re.compile(r"\.(?P<name>.+)\.(?:(?P<owner>[0-9a-f]{12}-[0-9a-f]+-[0-9a-f]+)-[0-9a-f]{8}|[0-9a-f]{32})\.tmp")
# Where the process cannot be asked for, what has not changed for so many seconds is dead.
STALE_AFTER = 24 * 3600

_PROC = Path("/proc")
_ZOMBIE = "Z"
# Spark sets such variables for its Python workers.
_WORKER = "PYTHON_WORKER_FACTORY_"
_MAX_PARENTS = 8
_UNKNOWN = "0" * 12


@dataclass(frozen=True, slots=True)
class JobOwner:
    """A process."""

    machine: str  # The machine, since it was started, and the container.
    # The process: its number, and when it began in ticks of the machine's clock; None if that cannot be told.
    pid: int
    started: int | None

    @classmethod
    def current(cls) -> JobOwner:
        """This process; in a worker of Spark's, which may end before its job, the JVM that started it.

        >>> JobOwner.current().is_gone()
        False
        """
        pid: int | None = os.getpid()
        if any(name.startswith(_WORKER) for name in os.environ):
            pid = _java_above(os.getpid())
        return cls(_UNKNOWN, 0, None) if pid is None else cls(_machine(), pid, _started(pid))

    @classmethod
    def from_token(cls, text: str) -> JobOwner:
        """Read what `to_token` gave."""
        machine, pid, started = text.split("-")
        return cls(machine, int(pid, 16), int(started, 16) or None)

    def to_token(self) -> str:
        """As it is written, and as a part of a file's name.

        >>> JobOwner("0123456789ab", 4242, None).to_token()
        '0123456789ab-1092-0'
        """
        return f"{self.machine}-{self.pid:x}-{self.started or 0:x}"

    def is_gone(self) -> bool | None:
        """Whether the process has ended; None for one of another machine, of which nothing is known."""
        if self.machine != _machine():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        fields = _fields(self.pid)
        if fields is not None and fields[0] == _ZOMBIE:
            return True
        now = _started(self.pid)
        return now is not None and self.started is not None and now != self.started


def is_dead(owner: JobOwner | None, changed: Iterable[float]) -> bool:
    """Whether a job has ended: its process is gone, or, if that cannot be told, nothing of it changed for 24 hours.

    `owner`: its process; None if that is not known.
    `changed`: when its files changed, in seconds since 1970; looked at only where the process cannot be asked for.
    """
    gone = None if owner is None else owner.is_gone()
    return time.time() - max(changed, default=math.inf) > STALE_AFTER if gone is None else gone


def _machine() -> str:
    """A number for the machine since it was started, and the container: short, since it is part of names."""
    parts = [platform.node()]
    try:
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text().strip())
        parts.append((_PROC / "self/ns/pid").readlink().name)
    except OSError:
        pass
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=6).hexdigest()


def _fields(pid: int) -> list[str] | None:
    """What Linux says of a process after its name, which may hold anything."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _started(pid: int) -> int | None:
    fields = _fields(pid)
    return None if fields is None else int(fields[19])


def _java_above(pid: int) -> int | None:
    for _ in range(_MAX_PARENTS):
        fields = _fields(pid)
        if fields is None:
            return None
        pid = int(fields[1])
        try:
            if (_PROC / str(pid) / "comm").read_text().strip() == "java":
                return pid
        except OSError:
            return None
    return None


def temporary_beside(path: str) -> str:
    """A name beside a file's that nobody else takes, and that says whose it is.

    >>> name = temporary_beside("lake/a.parquet")
    >>> name.startswith("lake/.a.parquet."), name.endswith(".tmp")
    (True, True)
    """
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{name}.{JobOwner.current().to_token()}-{uuid.uuid4().hex[:8]}.tmp")


def sweep_temporaries(filesystem: pafs.FileSystem, paths: Iterable[str]) -> None:
    """Remove what writers of these files left that died; each directory is listed once."""
    names: dict[str, set[str]] = {}
    for path in paths:
        folder, name = posixpath.split(path)
        names.setdefault(folder, set()).add(name)
    for folder, files in names.items():
        for name in dead_temporaries(filesystem, folder, files):
            with suppress(OSError):
                filesystem.delete_file(posixpath.join(folder, name))


def dead_temporaries(filesystem: pafs.FileSystem, folder: str, files: Collection[str] | None = None) -> list[str]:
    """The names of what writers that died left in a directory of a local or mounted disk.

    An object store shows nothing of a file that was not written to its end. Whether a writer died is told as `is_dead`
    says, by its process and else by the file's age.

    `filesystem` and `folder`: the directory.
    `files`: names of files that were being written; by default all.
    """
    names_of_dead: list[str] = []
    if isinstance(filesystem, pafs.LocalFileSystem):
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - names alone, of what may be many files
                match = _NAME.fullmatch(name)
                if match is None or (files is not None and match["name"] not in files):
                    continue
                owner = None if match["owner"] is None else JobOwner.from_token(match["owner"])
                if is_dead(owner, (Path(each).stat().st_mtime for each in [posixpath.join(folder, name)])):
                    names_of_dead.append(name)
    return names_of_dead
