"""Errors on their way from Python workers of Spark to the driver, and silence about broken pipes in the workers.

Spark transfers only the text of an error. Errors of our own jobs are pickled into their message. Of other errors (data
source, SQL functions) the class, reason and message are parsed from the text.

When a query has enough rows (``show``, ``take``, ``LIMIT``), a job is cancelled or a session stops, the JVM closes the
socket while the worker still writes. The worker ends as it should, but PySpark's daemon prints the broken pipe as a
traceback to stderr, which looks like a failure of the job. In workers that run code of this package, stderr drops that
one traceback. All other output is written.
"""

from __future__ import annotations

import base64
import os
import pickle
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parquet_variant import errors
from parquet_variant.errors import VariantError

# PySpark's workers read this variable when they report an error.
_HIDE_TRACEBACK = "SPARK_HIDE_TRACEBACK"
# Prefix of variables that Spark sets only for its workers.
_WORKER_PREFIX = "PYTHON_WORKER_FACTORY_"
_PICKLED = re.compile(r"variant-error:([A-Za-z0-9+/=]+)")
# The last line of a traceback with one of our errors; `one_line` appends the reason.
_TRACEBACK = re.compile(r"\bparquet_variant\.errors\.(\w+): (.*?)(?: \[([a-z-]+)\])?$", re.MULTILINE)


class TaskError(RuntimeError):
    """The error that a task raises: the message for people, and the pickled `VariantError` for the driver."""

    def __init__(self, error: VariantError) -> None:
        super().__init__(f"{error} [variant-error:{base64.b64encode(pickle.dumps(error)).decode()}]")

    def __reduce__(self) -> tuple[object, ...]:
        return (RuntimeError, self.args)


@contextmanager
def to_spark_errors() -> Iterator[None]:
    """In a task: raise a `VariantError` as a `TaskError`, which transfers it completely."""
    try:
        yield
    except VariantError as error:
        raise TaskError(error) from None


@contextmanager
def one_line() -> Iterator[None]:
    """In a worker that runs the data source: let Spark show a `VariantError` as one line without a traceback.

    The line ends with the reason, which the message does not contain. The worker ends with the error, so that the
    environment variable affects nothing else.
    """
    try:
        yield
    except VariantError as error:
        if not any(name.startswith(_WORKER_PREFIX) for name in os.environ):
            raise
        os.environ[_HIDE_TRACEBACK] = "1"
        raise type(error)(f"{error} [{error.reason}]", reason=error.reason) from None


@contextmanager
def from_spark_errors() -> Iterator[None]:
    """On the driver: raise the `VariantError` that Spark's exception contains, if there is one.

    A pickled error is complete. From a traceback come the class, reason and message, with the location in the text.
    """
    try:
        yield
    except VariantError:
        raise
    except Exception as error:
        text, original = str(error), None
        if (match := _PICKLED.search(text)) is not None:
            original = pickle.loads(base64.b64decode(match[1]))
        elif "[SPARK_JOB_CANCELLED]" in text:
            original = VariantError("the job was cancelled and nothing was committed: run it again", reason="cancelled")
        elif lines := _TRACEBACK.findall(text):
            name, message, reason = lines[-1]
            kind = getattr(errors, name, VariantError)
            is_ours = isinstance(kind, type) and issubclass(kind, VariantError)
            original = (kind if is_ours else VariantError)(message, reason=reason or None)
        if original is None:
            raise
        raise original from None


_DAEMONS = ("pyspark.daemon", "pyspark.worker")


class _WorkerStderr:
    """The stderr of a worker, without the traceback of a broken pipe that PySpark's daemon prints."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text, unless the daemon is handling an error of its closed socket."""
        error = sys.exc_info()[1]
        trace = error.__traceback__ if isinstance(error, BrokenPipeError | ConnectionResetError) else None
        # The traceback of an error that the daemon caught begins in the frame that handles it.
        if trace is not None and _module_name(trace.tb_frame.f_globals) in _DAEMONS:
            return len(text)
        return int(self._stream.write(text))


def _module_name(namespace: dict[str, Any]) -> str | None:
    """Return the name under which a module was found, also if it runs as ``__main__``."""
    return getattr(namespace.get("__spec__"), "name", None) or namespace.get("__name__")


def keep_quiet() -> None:
    """Drop tracebacks of broken pipes in this process and in the workers that it forks."""
    if not isinstance(sys.stderr, _WorkerStderr):
        sys.stderr = _WorkerStderr(sys.stderr)


# Executed when a worker imports this module, to unpickle an object of this package: before the first row, because the
# JVM may have enough rows before a worker has begun.
_main = sys.modules.get("__main__")
if _main is not None and _module_name(vars(_main)) in _DAEMONS:
    keep_quiet()
