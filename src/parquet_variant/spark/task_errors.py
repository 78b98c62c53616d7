"""Errors on their way from Python workers of Spark to the driver, of which Spark itself transfers only the text.

Errors of our own jobs are pickled into their message. Of other errors (data source, SQL functions) the class, reason
and message are parsed from the text.
"""

from __future__ import annotations

import base64
import os
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

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
        if (original := _original_error(str(error))) is None:
            raise
        raise original from None


def _original_error(text: str) -> VariantError | None:
    if (match := _PICKLED.search(text)) is not None:
        return pickle.loads(base64.b64decode(match[1]))
    if "[SPARK_JOB_CANCELLED]" in text:
        return VariantError("the job was cancelled and nothing was committed: run it again", reason="cancelled")
    if not (lines := _TRACEBACK.findall(text)):
        return None
    name, message, reason = lines[-1]
    error_class = getattr(errors, name, VariantError)
    is_ours = isinstance(error_class, type) and issubclass(error_class, VariantError)
    return (error_class if is_ours else VariantError)(message, reason=reason or None)
