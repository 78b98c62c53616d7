"""How a Python worker of Spark ends when the JVM reads no more: quietly.

Where a query has enough rows (``show``, ``take``, ``LIMIT``), where a job is cancelled, and where a session stops, the
JVM closes its end of the socket while the worker still has something to write. The worker is to end then, and does; but
PySpark's daemon prints the broken pipe as a traceback, which reads like a failure of the job. Owns keeping that one
quiet. Leaves every other error to PySpark.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

_DAEMONS = ("pyspark.daemon", "pyspark.worker")


class _Tracebacks:
    """The module `traceback` as PySpark's daemon sees it in this worker."""

    def __getattr__(self, name: str) -> Any:
        return getattr(traceback, name)

    def print_exc(self, *arguments: Any, **options: Any) -> None:
        """Print the error that is being handled, unless it is that the JVM is not there any more."""
        if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
            traceback.print_exc(*arguments, **options)


class QuietEnd:
    """Goes along with whatever is sent to a worker: where it arrives, the worker will end quietly.

    On arrival, not with the first row: the JVM may have enough rows before a worker has begun.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (end_quietly, ())


def keep_quiet(daemon: Any) -> None:
    """Let a daemon's module, and the workers that it forks, print no broken pipe."""
    daemon.traceback = _Tracebacks()


def end_quietly() -> QuietEnd:
    """Keep this process quiet if it is a worker, and whatever worker the result is sent to."""
    daemon: Any = sys.modules.get("__main__")
    if getattr(getattr(daemon, "__spec__", None), "name", None) in _DAEMONS:
        keep_quiet(daemon)
    return QuietEnd()
