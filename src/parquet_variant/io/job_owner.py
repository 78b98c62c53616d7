"""Whose job it is: the process that runs it, so that somebody else can tell later whether it still does.

Owns telling processes apart, over restarts of the machine and containers. Leaves what becomes of a dead job's files to
`staging`.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["JobOwner"]

_PROC = Path("/proc")
_ZOMBIE = "Z"
# Spark sets such variables for its Python workers.
_WORKER = "PYTHON_WORKER_FACTORY_"
_MAX_PARENTS = 8


@dataclass(frozen=True, slots=True)
class JobOwner:
    """A process.

    Parameters
    ----------
    machine
        The machine, since it was started, and the container.
    pid, started
        The process: its number, and when it began in ticks of the machine's clock; None if that cannot be told.
    """

    machine: str
    pid: int
    started: int | None

    @classmethod
    def current(cls) -> JobOwner:
        """This process; in a worker of Spark's, which may end before its job, the JVM that started it.

        Examples
        --------
        >>> JobOwner.current().is_gone()
        False
        """
        pid: int | None = os.getpid()
        if any(name.startswith(_WORKER) for name in os.environ):
            pid = _java_above(os.getpid())
        return cls("unknown", 0, None) if pid is None else cls(_machine(), pid, _started(pid))

    @classmethod
    def from_json(cls, text: str) -> JobOwner:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))

    def to_json(self) -> str:
        """As it is written."""
        return json.dumps(asdict(self))

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


def _machine() -> str:
    parts = [platform.node()]
    try:
        parts.append((_PROC / "sys/kernel/random/boot_id").read_text().strip())
        parts.append((_PROC / "self/ns/pid").readlink().name)
    except OSError:
        pass
    return " ".join(parts)


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
