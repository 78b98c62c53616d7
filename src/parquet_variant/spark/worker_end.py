"""Silence about broken pipes in Python workers of Spark that the JVM no longer reads from.

When a query has enough rows (``show``, ``take``, ``LIMIT``), a job is cancelled or a session stops, the JVM closes the
socket while the worker still writes. The worker ends as it should, but PySpark's daemon prints the broken pipe as a
traceback to stderr, which looks like a failure of the job. In workers that run code of this package, stderr drops that
one traceback. All other output is written.
"""

from __future__ import annotations

import sys
from typing import Any

_DAEMONS = ("pyspark.daemon", "pyspark.worker")


class _WorkerStderr:
    """The stderr of a worker, without the traceback of a broken pipe that PySpark's daemon prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text, unless the daemon is handling an error of its closed socket."""
        if isinstance(error := sys.exc_info()[1], BrokenPipeError | ConnectionResetError) and _is_of_daemon(error):
            return len(text)
        return int(self._stream.write(text))


def _is_of_daemon(error: BaseException) -> bool:
    """Return whether the daemon caught the error: its traceback begins in the frame that handles it."""
    trace = error.__traceback__
    return trace is not None and _module_name(trace.tb_frame.f_globals) in _DAEMONS


def _module_name(namespace: dict[str, Any]) -> str | None:
    """Return the name under which a module was found, also if it runs as ``__main__``."""
    return getattr(namespace.get("__spec__"), "name", None) or namespace.get("__name__")


class QuietEnd:
    """A member of objects that are sent to workers: unpickling it calls `end_quietly` in the worker.

    It takes effect when the object arrives and not with the first row, because the JVM may have enough rows before a
    worker has begun.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (end_quietly, ())


def keep_quiet() -> None:
    """Drop tracebacks of broken pipes in this process and in the workers that it forks."""
    if not isinstance(sys.stderr, _WorkerStderr):
        sys.stderr = _WorkerStderr(sys.stderr)


def end_quietly() -> QuietEnd:
    """Call `keep_quiet` if this process is a worker, and return an object that does so where it is unpickled."""
    main: Any = sys.modules.get("__main__")
    if main is not None and _module_name(vars(main)) in _DAEMONS:
        keep_quiet()
    return QuietEnd()
