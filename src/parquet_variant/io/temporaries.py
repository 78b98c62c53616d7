"""Owners of jobs and unfinished files: the process that writes them, and whether it still runs.

Owns identifying processes across restarts of the machine and containers, the temporary name of a file until it is
complete, and the temporary files of dead writers. `staging` replaces files and handles the directory of a job.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import posixpath
import re
import stat
import time
import uuid
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow.fs as pafs

from parquet_variant.io.filesystems import write_errors
from parquet_variant.support.records import Record

_NAME = re.compile(r"\.(?P<name>.+)\.(?:(?P<owner>[0-9a-f]{12}-[0-9a-f]+-[0-9a-f]+)-[0-9a-f]{8}|[0-9a-f]{32})\.tmp")
# Bytes of a file name in its temporary names.
_MAX_STEM = 180
# If the state of the process is unknown, files that did not change for this many seconds are dead.
STALE_AFTER = 24 * 3600

_PROC = Path("/proc")
# Spark sets variables with this prefix for its Python workers.
_WORKER = "PYTHON_WORKER_FACTORY_"
_MAX_PARENTS = 8
_UNKNOWN = "0" * 12


class JobOwner(Record):
    """A process."""

    machine: str  # An identifier of the machine since its start, and of the container.
    # The process id, and the start time in clock ticks of the machine; None if unknown.
    pid: int
    started: int | None

    @classmethod
    def current(cls) -> JobOwner:
        """Return this process; in a Python worker of Spark, which may end before its job, the JVM that started it."""
        pid: int | None = os.getpid()
        if any(name.startswith(_WORKER) for name in os.environ):
            pid = _java_above(os.getpid())
        return cls(_UNKNOWN, 0, None) if pid is None else cls(_machine(), pid, _started(pid))

    @classmethod
    def from_token(cls, text: str) -> JobOwner:
        """Parse the text of `to_token`."""
        machine, pid, started = text.split("-")
        return cls(machine, int(pid, 16), int(started, 16) or None)

    def to_token(self) -> str:
        """Return the owner as text for a file or a file name.

        >>> JobOwner("0123456789ab", 4242, None).to_token()
        '0123456789ab-1092-0'
        """
        return f"{self.machine}-{self.pid:x}-{self.started or 0:x}"

    def is_gone(self) -> bool | None:
        """Return whether the process has ended; None for a process of another machine."""
        if self.machine != _machine():
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass
        fields = _fields(self.pid)
        if fields is not None and fields[0] == "Z":  # a zombie
            return True
        start_of_pid = _started(self.pid)
        return start_of_pid is not None and self.started is not None and start_of_pid != self.started


def is_dead(owner: JobOwner | None, changed: Iterable[float]) -> bool:
    """Return whether a job has ended: its process is gone, or, if that is unknown, nothing changed for 24 hours.

    `owner`: the process of the job; None if unknown.
    `changed`: the modification times of its files, in seconds since 1970; used only if the state of the process is
    unknown.
    """
    gone = None if owner is None else owner.is_gone()
    return time.time() - max(changed, default=math.inf) > STALE_AFTER if gone is None else gone


def _machine() -> str:
    """Return a short identifier of the machine since its start, and of the container, for use in names."""
    parts = [platform.node()]
    try:
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text().strip())
        parts.append((_PROC / "self/ns/pid").readlink().name)
    except OSError:
        pass
    return hashlib.blake2b(" ".join(parts).encode(), digest_size=6).hexdigest()


def _fields(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/<pid>/stat`` after the process name, which may contain any character."""
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
    """Return a unique name next to a file that contains its owner.

    >>> name = temporary_beside("lake/a.parquet")
    >>> name.startswith("lake/.a.parquet."), name.endswith(".tmp")
    (True, True)
    """
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f".{_stem(name)}.{JobOwner.current().to_token()}-{uuid.uuid4().hex[:8]}.tmp")


def _stem(name: str) -> str:
    """Return the part of a file name that its temporary names contain: names may have only 255 bytes."""
    return os.fsdecode(os.fsencode(name)[:_MAX_STEM])


def linked_file(filesystem: pafs.FileSystem, path: str) -> str:
    """Return the file that a path leads to: the target of a symbolic link on a disk, else the path."""
    return os.path.realpath(path) if isinstance(filesystem, pafs.LocalFileSystem) and Path(path).is_symlink() else path


def open_temporary(filesystem: pafs.FileSystem, temporary: str, target: str) -> pafs.NativeFile:
    """Open a temporary file for writing, with the permissions of the file that it will replace."""
    stream = filesystem.open_output_stream(temporary)
    keep_mode(filesystem, temporary, target)
    return stream


def keep_mode(filesystem: pafs.FileSystem, file: str, replaced: str) -> None:
    """Give a local file the permissions of the file that it will replace, if that exists."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        with write_errors(file), suppress(FileNotFoundError):
            Path(file).chmod(stat.S_IMODE(Path(replaced).stat().st_mode))


def sync(path: Path) -> None:
    """Write what the system holds back of a local file, or of the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep_temporaries(filesystem: pafs.FileSystem, paths: Iterable[str]) -> None:
    """Remove temporary files of dead writers of these files. Each directory is listed once."""
    names: dict[str, set[str]] = {}
    for path in paths:
        folder, name = posixpath.split(path)
        names.setdefault(folder, set()).add(_stem(name))
    for folder, files in names.items():
        for name in dead_temporaries(filesystem, folder, files):
            with suppress(OSError):
                filesystem.delete_file(posixpath.join(folder, name))


def dead_temporaries(filesystem: pafs.FileSystem, folder: str, files: Collection[str] | None = None) -> list[str]:
    """Return the names of the temporary files of dead writers in a directory of a local or mounted disk.

    Object stores do not show files that were not completely written. `is_dead` decides whether a writer is dead.

    `filesystem` and `folder`: the directory.
    `files`: names of files that were being written; by default all.
    """
    names_of_dead: list[str] = []
    if isinstance(filesystem, pafs.LocalFileSystem):
        with suppress(OSError):
            for name in os.listdir(folder or "."):  # noqa: PTH208 - only names, of possibly many files
                match = _NAME.fullmatch(name)
                if match is None or (files is not None and match["name"] not in files):
                    continue
                owner = None if match["owner"] is None else JobOwner.from_token(match["owner"])
                if is_dead(owner, (Path(path).stat().st_mtime for path in [posixpath.join(folder, name)])):
                    names_of_dead.append(name)
    return names_of_dead
