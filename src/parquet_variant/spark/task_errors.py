"""Errors on their way from Spark's Python workers to the driver: Spark itself hands over only their text.

Owns the envelope for errors of our own jobs, which arrive whole, and the reading of the text of others. Leaves what is
an error to the code that runs in the workers.
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

# Asked by PySpark's workers when they tell an error; and what Spark sets for its workers alone.
_HIDE = "SPARK_HIDE_TRACEBACK"
_WORKER = "PYTHON_WORKER_FACTORY_"
_ENVELOPE = re.compile(r"variant-error:([A-Za-z0-9+/=]+)")
# The last line of a traceback that names one of our errors; `one_line` puts the reason behind it.
_TRACEBACK = re.compile(r"\bparquet_variant\.errors\.(\w+): (.*?)(?: \[([a-z-]+)\])?$", re.MULTILINE)


class TaskError(RuntimeError):
    """What a task raises: the message for people, then the whole error for the driver."""

    def __init__(self, error: VariantError) -> None:
        super().__init__(f"{error} [variant-error:{base64.b64encode(pickle.dumps(error)).decode()}]")

    def __reduce__(self) -> tuple[object, ...]:
        return (RuntimeError, self.args)


@contextmanager
def to_spark_errors() -> Iterator[None]:
    """In a task: put a `VariantError` into an envelope."""
    try:
        yield
    except VariantError as error:
        raise TaskError(error) from None


@contextmanager
def one_line() -> Iterator[None]:
    """In a worker that runs the data source: let Spark show an error of ours as its one line, without the traceback.

    The line ends with the reason, which nothing else of it says. The worker ends with the error, so that the variable
    says nothing to anyone else.
    """
    try:
        yield
    except VariantError as error:
        if not any(name.startswith(_WORKER) for name in os.environ):
            raise
        os.environ[_HIDE] = "1"
        raise type(error)(f"{error} [{error.reason}]", reason=error.reason) from None


@contextmanager
def from_spark_errors() -> Iterator[None]:
    """On the driver: raise the `VariantError` that is inside Spark's exception, if there is one.

    It comes whole from an envelope; from a traceback come its class, reason and message, with the location in the text.
    """
    try:
        yield
    except VariantError:
        raise
    except Exception as error:
        if (original := _inside(str(error))) is None:
            raise
        raise original from None


def _inside(text: str) -> VariantError | None:
    if (match := _ENVELOPE.search(text)) is not None:
        return pickle.loads(base64.b64decode(match[1]))
    if "[SPARK_JOB_CANCELLED]" in text:
        return VariantError("the job was cancelled: nothing was committed, run it again", reason="cancelled")
    if not (lines := _TRACEBACK.findall(text)):
        return None
    name, message, reason = lines[-1]
    kind = getattr(errors, name, VariantError)
    is_ours = isinstance(kind, type) and issubclass(kind, VariantError)
    return (kind if is_ours else VariantError)(message, reason=reason or None)
